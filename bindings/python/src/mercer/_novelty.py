"""What is like the samples and what is not."""

import numpy as np
from sklearn.base import OutlierMixin

from ._estimator import ORDER, Estimator, KernelParameters, samples


class MercerOneClassSVM(OutlierMixin, KernelParameters, Estimator):
    """The one-class support vector machine, as scikit-learn's OneClassSVM.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, nu, cache_size, max_iter : as in OneClassSVM
    random_state, device, threads, verbose : see MercerKernelRidge

    Attributes
    ----------
    offset_ : float
        decision_function is score_samples − offset_.
    model_ : mercer.Model
    """

    _unsupported = ORDER

    def __init__(self, *, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, nu=0.5, cache_size=200, max_iter=-1,
                 random_state=None, device=None, threads=None, verbose=0):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return "one-class-svm", "novelty"

    def _parameters(self, X):
        return {
            "kernel": self._kernel(X), "nu": self.nu, "tol": self.tol, "iterations": max(self.max_iter, 0),
            "cache": self.cache_size,
        }

    def fit(self, X, y=None, sample_weight=None):
        """Fits to the n×d array X; y is not looked at."""
        X = samples(self, X)
        self._fit_model(X, None, self._weights(sample_weight, X))
        self._set_offset()
        return self

    def _set_offset(self):
        self.offset_ = -float(self.model_.array("intercept")[0, 0])

    def decision_function(self, X):
        """f(x): > 0 is like the samples."""
        return self._predict_model(X)[:, 0]

    def score_samples(self, X):
        """decision_function + offset_."""
        return self.decision_function(X) + self.offset_

    def predict(self, X):
        """1 for what is like the samples, −1 for what is not."""
        return np.where(self.decision_function(X) > 0, 1, -1)

    def _restore(self, model):
        super()._restore(model)
        self._set_offset()
        return self
