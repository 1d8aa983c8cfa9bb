"""Kernel ridge regression that chooses its penalty and kernel by leave-one-out errors."""

import json
import warnings
from ctypes import byref, c_void_p

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer

from . import _library
from ._errors import NotPositiveDefinite, in_python
from ._estimator import documented, penalties
from ._kernels import kernel_text, number
from ._parameters import KernelRidgeCVParameters
from ._regression import MercerKernelRidge
from ._watched import watched


class _Identity(RegressorMixin, BaseEstimator):
    """An estimator whose predict returns its argument. Scorers need an estimator, and are
    applied to predictions that are already known."""

    def predict(self, X):
        return X


def _path(kernel, alphas, X, y, sample_weight, intercept, wanted, *, device, threads, say):
    """Scores all alphas with one kernel, given by its text. Returns a dict of the wanted arrays,
    gcv and loo of shape len(alphas)×t and errors of shape len(alphas)×n×t, and a dict with the
    kernel and the alphas that failed."""
    mx, my = _library.matrix(X), _library.matrix(y)
    count, t = len(alphas), my.cols
    shapes = {"gcv": (count, t), "loo": (count, t), "errors": (count, my.rows, t)}
    arrays = {name: np.empty(shapes[name]) for name in wanted}
    scores = _library.Scores(**{name: a.ctypes.data for name, a in arrays.items()})
    weights = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    text = None if kernel is None else kernel.encode("utf-8")
    found = c_void_p()
    handle = _library.device(device, threads)
    watched("mercer_path", lambda w: (
        handle, text, alphas.ctypes.data, count, byref(mx), byref(my), None if weights is None else weights.ctypes.data,
        int(intercept), 0, byref(scores), byref(found), w), say)
    return arrays, json.loads(_library.taken(found).decode("utf-8"))


def _listed(value):
    """A list of the elements of a list, tuple or array; any other value becomes a list of one."""
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]


@documented
class MercerKernelRidgeCV(KernelRidgeCVParameters, MercerKernelRidge):
    """Kernel ridge regression with the alpha and the kernel of the best score.

    Every alpha is scored by its leave-one-out errors or by generalized
    cross-validation, both in closed form: the n×n matrix of each kernel is decomposed once
    in O(n³) operations, and then each alpha takes O(n²) operations, whereas n refits would
    take O(n⁴). The arguments have the names of scikit-learn's RidgeCV, which has no kernels.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The best alpha; an array with alpha_per_target and several targets.
    best_score_ : float or ndarray of shape (n_targets,)
        The score of alpha_; larger is better.
    kernels_ : list of str
        The kernels that were tried.
    scores_ : ndarray of shape (n_kernels, n_alphas) or (n_kernels, n_alphas, n_targets)
        The score of each kernel and alpha; NaN if they have no score.
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        Set if store_cv_results is True: for the best kernel, the squared leave-one-out
        errors if scoring is None, otherwise the leave-one-out predictions; NaN for
        samples of weight 0.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The coefficients of the kernel functions at the samples of weight > 0.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The samples of weight > 0.

    See Also
    --------
    MercerKernelRidge : Kernel ridge regression with a given alpha and kernel.
    sklearn.linear_model.RidgeCV : The same choice of alpha for the linear kernel.

    Notes
    -----
    An alpha for which K + alpha I is singular to working precision, and a kernel that
    is not positive definite, have no score; a FitFailedWarning reports them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerKernelRidgeCV
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> y = np.sin(X[:, 0])
    >>> model = MercerKernelRidgeCV(alphas=np.logspace(-6, 2, 9), kernel=["rbf", "laplacian"], gamma=[0.1, 1.0]).fit(X, y)
    >>> model.scores_.shape
    (4, 9)
    >>> round(model.predict([[1.5]])[0], 2)
    1.0
    """

    def _names(self):
        return {**super()._names(), "lambda": "alpha", "lambdas": "alpha"}

    def _parameters(self, X):
        return {**penalties(self.alpha_, self._targets), "kernel": self._best, "intercept": self.fit_intercept}

    def _alphas(self):
        alphas = _listed(self.alphas)
        for i, alpha in enumerate(alphas):
            if not 0 <= number(f"alphas[{i}]", alpha) < np.inf:
                raise ValueError(f"alphas[{i}] must be a finite number ≥ 0, got {alpha!r}")
        if not alphas:
            raise ValueError("alphas is empty: give one at least")
        return np.asarray(alphas, dtype=np.float64)

    def _kernels(self, X):
        kernels, gammas = _listed(self.kernel), _listed(self.gamma)
        if not kernels or not gammas:
            raise ValueError(f"{'gamma' if kernels else 'kernel'} is an empty list: give one at least")
        if isinstance(self.kernel, (list, tuple)) and any(callable(k) or k in ("precomputed", "precomputed()") for k in kernels):
            raise ValueError("kernel: a function or 'precomputed' is tried by itself, not in a list")
        return list(dict.fromkeys(kernel_text(k, g, self.degree, self.coef0, X) for k in kernels for g in gammas))

    def _select(self, X, y, sample_weight):
        for name in ("fit_intercept", "alpha_per_target"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        gcv = isinstance(self.scoring, str) and self.scoring == "gcv"
        if gcv and self.store_cv_results:
            raise ValueError("scoring='gcv' has no errors of single samples to store")
        scorer = None if gcv or self.scoring is None else get_scorer(self.scoring)
        wanted = ["gcv" if gcv else "loo"] if scorer is None else ["errors"]
        if self.store_cv_results and scorer is None:
            wanted.append("errors")
        alphas = self._alphas()
        per_target = self.alpha_per_target and y.shape[1] > 1
        self.kernels_, scores, best, failure = [], [], None, None
        for text in self._kernels(X):
            try:
                arrays, info = _path(text, alphas, X, y, sample_weight, self.fit_intercept, wanted,
                                     device=self.device, threads=self.threads, say=self._say("select"))
            except NotPositiveDefinite as err:
                failure = err
                self._failed(text, "every alpha", str(err))
                self.kernels_.append(text)
                scores.append(np.full((len(alphas), y.shape[1]) if per_target else len(alphas), np.nan))
                continue
            for at in info["failed"]:
                self._failed(info["kernel"], f"alpha {at['lambda']!r}", at["reason"])
            if scorer is None:
                score = -arrays[wanted[0]]
                score = score if per_target else score.mean(axis=1)
            else:
                score = np.array([self._scored(scorer, y - e, y, sample_weight, per_target) for e in arrays["errors"]])
            self.kernels_.append(info["kernel"])
            scores.append(score)
            if np.isnan(score).all(axis=0).any():
                raise ValueError(f"scoring={self.scoring!r} is NaN for every alpha")
            places = np.nanargmax(score, axis=0)
            found = score[places, np.arange(y.shape[1])] if per_target else score[places]
            if best is None or np.mean(found) > best:
                best = np.mean(found)
                self._best = info["kernel"]
                self.alpha_ = alphas[places] if per_target else float(alphas[places])
                self.best_score_ = found if per_target else float(found)
                if self.store_cv_results:
                    self._store(arrays["errors"], y, sample_weight, scorer)
        if best is None:
            raise failure
        self.scores_ = np.array(scores)

    def _failed(self, kernel, alpha, reason):
        warnings.warn(f"kernel {kernel}: {alpha} has no score: {in_python(reason)}", FitFailedWarning, stacklevel=5)

    @staticmethod
    def _scored(scorer, predictions, y, sample_weight, per_target):
        """The score of predictions, or NaN if a prediction is NaN."""
        t = y.shape[1]
        if np.isnan(predictions).any():
            return np.full(t, np.nan) if per_target else np.nan
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if per_target:
            return np.array([scorer(_Identity(), predictions[:, j], y[:, j], **weights) for j in range(t)])
        if t == 1:
            predictions, y = predictions[:, 0], y[:, 0]
        return scorer(_Identity(), predictions, y, **weights)

    def _store(self, errors, y, sample_weight, scorer):
        """Sets cv_results_ for the samples that the library used."""
        values = np.moveaxis(errors**2 if scorer is None else y - errors, 0, -1)  # n×t×a
        if sample_weight is not None:
            values[sample_weight == 0] = np.nan
        self.cv_results_ = values[:, 0] if self._flat else values

    def _fit_model(self, X, y, sample_weight, classes=None, targets=None):
        super()._fit_model(X, y, sample_weight, classes, targets)
        if self.store_cv_results and sample_weight is not None:
            values = self.cv_results_
            if len(values) < len(y):  # samples of weight 0 were removed
                self.cv_results_ = np.full((len(y), *values.shape[1:]), np.nan)
                self.cv_results_[sample_weight != 0] = values
        return self
