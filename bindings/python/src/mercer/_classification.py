"""Classification."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ._estimator import ORDER, Estimator, KernelParameters, samples
from ._model import parameter_names
from ._regression import target_names

# The methods whose models always know probabilities, for those who ask before a fit.
_PROBABILITIES = ("logistic", "kernel-logistic", "rvc")


def _has_probabilities(estimator):
    """Whether predict_proba is to be there."""
    model = getattr(estimator, "model_", None)
    if model is not None:
        knows = "probabilities" in model.info["capabilities"]
    else:
        knows = estimator.method in _PROBABILITIES or estimator.method == "svc" and estimator.probability
    if not knows:
        raise AttributeError(f"method {estimator.method!r} has no probabilities" + (": set probability=True" if estimator.method == "svc" else ""))
    return True


class MercerClassifier(ClassifierMixin, KernelParameters, Estimator):
    """Classes by kernel ridge, logistic regression, a support vector machine or
    any other of Mercer's learners of classes.

    Parameters
    ----------
    method : str, default "kernel-ridge"
        "kernel-ridge" and "ridge" (least squares on ±1), "kernel-logistic" and
        "logistic" (with probabilities), "svc", "nystrom-ridge", "fourier-ridge",
        or another of `mercer learners`, whose parameters are in params.
    alpha : float, default 1
        λ of the methods that have it. logistic: 1/C of scikit-learn.
    C : float, default 1
        The penalty of svc.
    kernel, gamma, degree, coef0 : see MercerKernelRidge; gamma "scale" as in SVC
    fit_intercept : bool, default True
        Of the methods that have a choice; svc always has an intercept.
    class_weight : dict, "balanced" or None
        Weights of the classes, beside sample_weight.
    probability : bool, default False
        Of svc: fit probabilities too, at six times the work.
    tol, max_iter : default None, which is the learner's own
    params : dict, default None
        More parameters of the learner, by Mercer's names.
    random_state, device, threads, verbose : see MercerKernelRidge

    Attributes
    ----------
    classes_ : array
    model_ : mercer.Model
    """

    def __init__(self, method="kernel-ridge", *, alpha=1.0, C=1.0, kernel="rbf", gamma="scale", degree=3, coef0=0.0, fit_intercept=True,
                 class_weight=None, probability=False, tol=None, max_iter=None, params=None, random_state=None, device=None, threads=None, verbose=0):
        self.method = method
        self.alpha = alpha
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.params = params
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return self.method, "classification"

    @property
    def _unsupported(self):
        return ORDER if self.method == "svc" else {}

    def _parameters(self, X):
        given = {
            "kernel": lambda: self._kernel(X),
            "lambda": lambda: self.alpha,
            "C": lambda: self.C,
            "intercept": lambda: self.fit_intercept,
            "probability": lambda: self.probability,
            "tol": lambda: self.tol,
            "iterations": lambda: self.max_iter,
            "seed": self._seed,
        }
        has = parameter_names(self.method)
        return {**{name: value() for name, value in given.items() if name in has}, **self._more()}

    def fit(self, X, y, sample_weight=None):
        """Fits to the n×d array X and the n classes y, texts or numbers.

        sample_weight are n numbers ≥ 0; a row of weight 0 is left out.
        """
        names = target_names(y)
        X, y = samples(self, X, y)
        check_classification_targets(y)
        found, places = np.unique(y, return_inverse=True)
        weights = self._weights(sample_weight, X)
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            weights = by_class if weights is None else by_class * weights
        targets = places.reshape(-1, 1).astype(np.float64)
        self._fit_model(X, targets, weights, classes=[_label(v) for v in found.tolist()], targets=names)
        # A class that only rows of weight 0 have is not the model's.
        self.classes_ = found[np.asarray(self.model_.info["labels"], dtype=int)]
        return self

    def predict(self, X):
        """The classes."""
        values = self._predict_model(X)[:, 0]
        return self.classes_[np.searchsorted(self.model_.info["labels"], values)]

    def decision_function(self, X):
        """Decision values: n for two classes, > 0 being the second, n×K for more,
        of which the largest is predicted."""
        f = self._predict_model(X, "decision")
        return f[:, 0] if f.shape[1] == 1 else f

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """The n×K probabilities of the classes."""
        return self._predict_model(X, "probabilities")

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """The logarithms of predict_proba."""
        return np.log(self.predict_proba(X))

    def _restore(self, model):
        self.classes_ = _classes(model.info["classes"])
        return super()._restore(model)


def _label(value):
    """A class as the text by which the model file knows it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _classes(names):
    """Classes from their texts: numbers where all of them are."""
    for kind in (int, float):
        try:
            return np.asarray([kind(n) for n in names])
        except ValueError:
            pass
    return np.asarray(names)
