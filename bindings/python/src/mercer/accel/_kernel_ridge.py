"""Kernel ridge regression."""

import numpy as np
import sklearn.kernel_ridge
from scipy.sparse import issparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._estimator import penalties, validate_data
from .._model import Model
from ._engine import Accelerated, gram, kernel_of, needs, numbers


class KernelRidge(Accelerated, sklearn.kernel_ridge.KernelRidge):
    _smallest = {"fit": 400 * 400, "predict": 100 * 100}

    def _text(self, X):
        return kernel_of(self.kernel, X, self.gamma, self.degree, self.coef0)

    def _mercer_fit(self, X, y, sample_weight=None):
        self._validate_params()
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), multi_output=True, y_numeric=True)
        self._decline_small("fit", X.shape[0] ** 2)
        precomputed = self.kernel == "precomputed"
        kernel = "precomputed()" if precomputed else self._text(X)
        needs(not precomputed or not issparse(X), "a sparse precomputed kernel")
        numbers(X)
        numbers(y, "y")
        if sample_weight is not None:
            needs(not isinstance(sample_weight, float), "sample_weight is a number")
            sample_weight = _check_sample_weight(sample_weight, X)
            needs((sample_weight > 0).all(), "a sample weight ≤ 0")
        alpha = np.atleast_1d(self.alpha)
        needs((alpha > 0).all(), "alpha=0")
        targets = y.reshape(-1, 1) if y.ndim == 1 else y
        if self.kernel == "linear" and X.shape[1] < X.shape[0] and alpha.size == 1:
            # The d×d system: a = W(y − Xw)/alpha solves (XXᵀ + alpha W⁻¹)a = y, because w = Xᵀa.
            model = Model.fit("ridge", X, targets, parameters={"lambda": float(alpha[0]), "intercept": False}, sample_weight=sample_weight)
            dual = (targets - safe_sparse_dot(X, model.array("coef"))) / alpha[0]
            if sample_weight is not None:
                dual *= sample_weight[:, np.newaxis]
        else:
            model = Model.fit("kernel-ridge", X, targets, parameters={"kernel": kernel, "intercept": False, **penalties(self.alpha, targets.shape[1])}, sample_weight=sample_weight)
            dual = model.array("alpha")
        self.dual_coef_ = dual.ravel() if y.ndim == 1 else dual
        self.X_fit_ = X
        return self

    def _mercer_predict(self, X):
        check_is_fitted(self)
        needs(self.kernel != "precomputed", "a product with a precomputed kernel")
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        self._decline_small("predict", X.shape[0] * self.X_fit_.shape[0])
        numbers(X)
        numbers(self.X_fit_)
        dual = self.dual_coef_
        return gram(self._text(X), X, self.X_fit_, dual.reshape(len(dual), -1)).reshape(X.shape[0], *dual.shape[1:])
