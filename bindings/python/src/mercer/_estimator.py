"""What all estimators share."""

import inspect
import sys
import warnings

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ._errors import python_names
from ._kernels import kernel_text
from ._library import SMALL, dense, stays_sparse
from ._model import Model, descriptions, takes_sparse, with_effect

try:  # scikit-learn 1.6
    from sklearn.utils.validation import validate_data

    _FINITE = "ensure_all_finite"
except ImportError:
    _FINITE = "force_all_finite"

    def validate_data(estimator, *args, **kwargs):
        return estimator._validate_data(*args, **kwargs)


def samples(estimator, X, *args, **kwargs):
    """Validates X, or X and y, by scikit-learn's validate_data. A sparse X stays sparse if the
    learner accepts it, and becomes dense otherwise."""
    checked = validate_data(estimator, X, *args, accept_sparse="csr", dtype=(np.float64, np.float32), **kwargs)
    X, *rest = checked if isinstance(checked, tuple) else (checked,)
    if estimator._keeps(X):
        return (X, *rest) if rest else X
    if issparse(X) and estimator.verbose:
        print(f"[{type(estimator).__name__}] fit: a dense copy of the sparse X takes {8 * X.shape[0] * X.shape[1]} bytes", file=sys.stderr, flush=True)
    return (dense(X), *rest) if rest else dense(X)


_ATTRIBUTES = """n_iter_ : int
        The number of steps of the fit; 1 if the fit does not iterate.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, if the columns of X have names.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

"""
_KERNEL = """kernel_ : str
        The kernel of the fit, in Mercer's notation. Only methods with a kernel have it.
    """


def documented(cls):
    """Completes the docstring of an estimator, which has a summary and sections: adds the
    section of parameters from the first base, and the attributes of all estimators."""
    if cls.__doc__:
        summary, _, rest = cls.__doc__.partition("    See Also\n" if "    See Also\n" in cls.__doc__ else "    Examples\n")
        rest = cls.__doc__[len(summary):]
        summary, _, own = summary.partition("    Attributes\n    ----------\n")
        own = own.rstrip() + "\n    " if own else "    "
        kernel = _KERNEL if issubclass(cls, KernelParameters) else ""
        cls.__doc__ = f"{summary}    {cls.__bases__[0].__doc__.rstrip()}\n\n    Attributes\n    ----------\n{own}{kernel}{_ATTRIBUTES}{rest}"
    return cls


def penalties(alpha, targets):
    """The library's parameter lambda or lambdas as a dict. alpha is a number, or an array with
    one number for each target."""
    if np.ndim(alpha) == 0:
        return {"lambda": alpha}
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.size == 1:
        return {"lambda": float(alpha.reshape(-1)[0])}
    if alpha.shape != (targets,):
        raise ValueError(f"alpha has the shape {alpha.shape}: it must be a number, or one for each target, of which there are {targets}")
    return {"lambdas": ",".join(repr(float(a)) for a in alpha)}


# The names under which different learners report their number of steps.
_STEPS = ("iterations", "steps", "newton_steps", "passes", "epochs", "evaluations")


# The check of scikit-learn that support vector machines fail, including scikit-learn's own machines.
ORDER = {"check_sample_weights_invariance": "the steps, and so the last digits within tol, depend on the order of the rows"}


class Estimator(BaseEstimator):
    """The base of the estimators. A subclass also has a generated base with its
    parameters and with `_learner`: the learner's name, or None if the argument method
    names the learner, and its task."""

    # Tags of scikit-learn, for versions before and since 1.6.
    _multioutput = False
    _function = None  # the kernel and the rows of the fit if the kernel is a Python function
    _unsupported = {}  # the checks of scikit-learn that the estimator fails, with the reasons
    _targets = 1

    def _pairwise(self):
        return getattr(self, "kernel", None) in ("precomputed", "precomputed()")

    def _allows_missing(self):
        model = getattr(self, "model_", None)
        return model is not None and model.info["missing"]

    if hasattr(BaseEstimator, "__sklearn_tags__"):

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.pairwise = self._pairwise()
            tags.input_tags.sparse = True
            tags.input_tags.allow_nan = self._allows_missing()
            tags.target_tags.multi_output = self._multioutput
            return tags

    else:

        def _more_tags(self):
            return {
                "pairwise": self._pairwise(),
                "allow_nan": self._allows_missing(),
                "multioutput": self._multioutput,
                "_xfail_checks": self._unsupported,
            }

    def _keeps(self, X):
        """Whether X is sparse and stays sparse."""
        return stays_sparse(X) and takes_sparse(self._name()) and not self._pairwise() and not callable(getattr(self, "kernel", None))

    def _name(self):
        """The learner's name."""
        return self._learner[0] or self.method

    def _arguments(self):
        """The estimator's arguments, keyed by the library's names of the learner's parameters."""
        own = set(self.get_params(deep=False)) - {"method"}
        return {p["name"]: p["python"] for p in descriptions(self._name()) if p["python"] in own}

    def _names(self):
        """The names of the parameters in messages: names of arguments or keys of params."""
        more = {p["name"]: p["name"] for p in descriptions(self._name())} if hasattr(self, "params") else {}
        return {**more, **self._arguments(), "standardize": "standardize X"}

    def _parameters(self, X):
        """The learner's parameters as a dict; None means the library's default."""
        given = {name: getattr(self, argument) for name, argument in self._arguments().items()}
        if "kernel" in given:
            given["kernel"] = self._kernel(X)
        if "seed" in given:
            given["seed"] = self._seed()
        if "lambdas" in given:
            del given["lambdas"]
            given.update(penalties(self.alpha, self._targets))
        return {**given, **self._more()}

    def _given(self, learner, X):
        """The entries of _parameters that are not None. Raises ValueError if an argument is None
        although its default is not None."""
        given = self._parameters(X)
        signature = inspect.signature(type(self).__init__).parameters
        arguments = self._arguments()
        for name, value in given.items():
            argument = signature.get(arguments.get(name, name))
            if value is None and name != "kernel" and argument is not None and argument.default is not None:
                raise ValueError(f"{argument.name} must not be None; its default is {argument.default!r}")
        given = {name: value for name, value in given.items() if value is not None}
        return with_effect(learner, given, keep=getattr(self, "params", None) or ())

    def _seed(self, *given):
        """The library's seed for the given random_state, or for that of the estimator. The
        random_state None always gives the same seed."""
        state = given[0] if given else self.random_state
        if state is None:
            return 1
        if isinstance(state, (int, np.integer)) and state >= 0:
            return int(state)
        return int(check_random_state(state).randint(1 << 31))

    def _say(self, what):
        """The function that prints progress, or None if verbose is 0."""
        if not self.verbose:
            return None
        name = type(self).__name__

        def say(stage, fraction):
            print(f"[{name}] {what}: {stage}, {100 * fraction:.0f} %", file=sys.stderr, flush=True)

        return say

    def _more(self):
        """The argument params as a dict by the library's names of the parameters."""
        params = getattr(self, "params", None)
        if not (params is None or isinstance(params, dict)):
            raise ValueError(f"params must be a dict of the learner's parameters or None, got {params!r}")
        return dict(params or {})

    def _centers(self):
        """The given centers of Nyström features, or None."""
        return None

    def _weights(self, sample_weight, X):
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64)

    def _select(self, X, y, sample_weight):
        """Chooses parameters from the data before the fit."""

    def _fit_model(self, X, y, sample_weight, classes=None, targets=None):
        """Fits to validated arrays, y a matrix or None, and sets model_."""
        if self._pairwise() and X.shape[0] != X.shape[1]:
            raise ValueError(f"a precomputed kernel needs the square matrix of its values, got {X.shape[0]}×{X.shape[1]}")
        if not self._pairwise() and sample_weight is not None and sample_weight.any() and not sample_weight.all():
            # Rows of weight 0 are removed here, because some defaults depend on the number of
            # rows. A precomputed matrix keeps these rows, because the columns would have to be
            # removed too.
            kept = sample_weight != 0
            X, y, sample_weight = X[kept], None if y is None else y[kept], sample_weight[kept]
        self._function = None
        if callable(getattr(self, "kernel", None)):
            self._function = self.kernel, X
            X = pairwise_kernels(X, metric=self.kernel)
        learner, task = self._name(), self._learner[1]
        names = getattr(self, "feature_names_in_", None)
        try:
            with python_names(self._names()):
                self._select(X, y, sample_weight)
                self.model_ = Model.fit(
                    learner, X, y, task=task, parameters=self._given(learner, X), sample_weight=sample_weight, classes=classes, centers=self._centers(),
                    features=None if names is None else list(names), targets=targets,
                    device=self.device, threads=self.threads, say=self._say("fit"))
        except ValueError as err:
            if X.shape[0] == 1:  # the library's message rarely says that one sample is the cause
                raise ValueError(f"{err} (there is 1 sample only)") from err
            raise
        info = self.model_.info
        facts = {**info.get("facts", {}), **info}
        if "warning" in facts:
            warnings.warn(facts["warning"], ConvergenceWarning, stacklevel=3)
        self.n_iter_ = max([1] + [facts[k] for k in _STEPS if isinstance(facts.get(k), int)])
        if self.verbose:
            said = [f"{name} {info[name]}" for name in ("solver", "residual", "device", "seconds", "fallback") if name in info]
            text = ", ".join(said + info.get("notes", []))
            print(f"[{type(self).__name__}] fit: {text}", file=sys.stderr, flush=True)
        return self

    def _predict_model(self, X, wanted="values", level=None):
        """Validates X and returns the wanted result of the model, an n×k array. For intervals,
        the lower bounds are in the left half of the columns and the upper bounds in the
        right half; for bounds, the predictions and the bounds of their errors. For sets, an
        element is 1 if the class is in the set and 0 otherwise."""
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32), accept_sparse="csr",
                          **{_FINITE: "allow-nan" if self._allows_missing() else True})
        if not issparse(X) or self._keeps(X) and not self.model_.info["raw"]:
            return self._values(X, wanted, level)
        rows = max(1, SMALL // (8 * X.shape[1]))  # number of rows of a dense copy
        return np.concatenate([self._values(dense(X[i:i + rows]), wanted, level) for i in range(0, X.shape[0], rows)])

    def _calibrate(self, X, y, **kwargs):
        """Validates X and y, and calibrates the model's intervals or sets with them. The
        argument targets is a function that converts the validated y to the library's array."""
        check_is_fitted(self, "model_")
        targets = kwargs.pop("targets")
        X, y = validate_data(self, X, y, reset=False, dtype=(np.float64, np.float32), accept_sparse="csr",
                             **{_FINITE: "allow-nan" if self._allows_missing() else True}, **kwargs)
        with python_names(self._names()):
            self.model_ = self.model_.calibrate(self._rows(X if self._keeps(X) else dense(X)), targets(y), device=self.device, threads=self.threads, say=self._say("calibrate"))
        return self

    def _update(self, X, y, sample_weight, remove):
        """Validates X and y, and appends or removes them."""
        X, y = samples(self, X, y, reset=False, multi_output=self._multioutput, y_numeric=True)
        y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        weights, what = self._weights(sample_weight, X), "remove" if remove else "partial_fit"
        with python_names(self._names()):
            self.model_ = self.model_.update(self._rows(X), y, weights, remove, device=self.device, threads=self.threads, say=self._say(what))
        return self

    def _draws(self, X, count, seed):
        """Draws of the function at validated rows: count×n×t."""
        check_is_fitted(self, "model_")
        X = samples(self, X, reset=False)
        with python_names(self._names()):
            return self.model_.sample(self._rows(X), count, seed, device=self.device, threads=self.threads, say=self._say("sample"))

    def marginal_effects(self, X, return_std=False, binary=(), average=True):
        """Marginal effects of the features on the predictions, or for a classifier on the
        decision values: the derivatives ∂f/∂x, averaged over the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        return_std : bool, default=False
            Also return the standard errors of the averages. Computing them may take long for
            many rows. For kernel ridge regression they are the errors of R's package KRLS
            (Hainmueller and Hazlett 2014). For Gaussian processes and for models that were fitted
            with std=True, they are posterior deviations.
        binary : sequence of int, default=()
            The columns that have two values in X. Their effects are the differences between
            the prediction with the larger value and the prediction with the smaller.
        average : bool, default=True
            If False, the effects at each row are returned instead of the averages.

        Returns
        -------
        effects : ndarray of shape (n_features,) or (n_outputs, n_features)
            The effects, with n_outputs only for several outputs or more than two classes. If
            average is False, the shape is (n_samples, n_features) or (n_outputs, n_samples,
            n_features).
        std : ndarray of shape (n_features,) or (n_outputs, n_features)
            The standard errors of the averages, if return_std is True.

        Raises
        ------
        ValueError
            The model or its kernel has no derivatives, or the model has no standard errors.
        """
        check_is_fitted(self, "model_")
        X = samples(self, X, reset=False)
        with python_names(self._names()):
            rows, mean, std = self.model_.effects(self._rows(X), binary, return_std, device=self.device, threads=self.threads, say=self._say("effects"))
        effects = mean if average else rows
        single = effects.shape[0] == 1
        effects = effects[0] if single else effects
        if not return_std:
            return effects
        if np.isnan(std).any():
            raise ValueError(f"{type(self).__name__} has no standard errors of effects: use MercerKernelRidge, MercerGaussianProcess, or a model with std=True; give fewer rows if there are more than ten thousand")
        return effects, std[0] if single else std

    def _rows(self, X):
        """The rows of an array in the form that the model accepts."""
        if self._function:
            kernel, rows = self._function
            return pairwise_kernels(X, rows, metric=kernel)
        return X

    def _values(self, X, wanted, level):
        """The wanted result of the model for an array."""
        X = self._rows(X)
        on = {"device": self.device, "threads": self.threads, "say": self._say("predict")}
        if wanted == "sets":
            return self.model_.sets(X, level, **on)
        if wanted == "intervals":
            with python_names(self._names()):
                return np.hstack(self.model_.intervals(X, level, **on))
        if wanted == "bounds":
            return np.hstack(self.model_.bounds(X, **on))
        return self.model_.predict(X, wanted, **on)

    def save(self, path):
        """Writes the model to a file that the command `mercer` and `mercer.load`
        read. If writing fails, no incomplete file remains.

        Parameters
        ----------
        path : str or path-like
            The file; an existing file is replaced.

        Raises
        ------
        ValueError
            If the file cannot be written, or if the kernel is a Python function.
        """
        check_is_fitted(self, "model_")
        if self._function:
            raise ValueError("a model whose kernel is a function of Python has no file: pickle the estimator")
        self.model_.save(path)

    def _restore(self, model):
        """Makes the estimator a fitted one with the model of a file, and returns it."""
        info = model.info
        self.model_, self.n_features_in_, self.n_iter_ = model, info["features"], 1
        names = info.get("names", [])
        if names and names != [f"x{j + 1}" for j in range(len(names))]:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        return self


class KernelParameters:
    """The kernel of estimators that have kernel, gamma, degree and coef0."""

    def _kernel(self, X):
        return kernel_text(self.kernel, self.gamma, self.degree, self.coef0, X)

    @property
    def kernel_(self):
        """The text of the kernel of the fitted model."""
        check_is_fitted(self, "model_")
        return self.model_.info["parameters"].get("kernel")


class SupportVectors(KernelParameters):
    """Support vector machines. With max_iter=-1 the library chooses the limit."""

    _unsupported = ORDER

    def _parameters(self, X):
        given = super()._parameters(X)
        return {**given, "iterations": 0} if self.max_iter == -1 else given
