"""Features of kernels: Nystroem and kernel principal components."""

import numpy as np
import sklearn.decomposition
import sklearn.kernel_approximation
from sklearn.utils.validation import check_is_fitted

from .._estimator import validate_data
from ._engine import Accelerated, gram, kernel_of, needs, numbers


class Nystroem(Accelerated, sklearn.kernel_approximation.Nystroem):
    """The fit is scikit-learn's, which chooses the components."""

    _hooks = {"transform": "transform"}
    _smallest = {"transform": 100_000}

    def _mercer_transform(self, X):
        check_is_fitted(self)
        needs(not self.kernel_params, "kernel_params")
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        # scikit-learn takes no longer for kernels without exponentials.
        slow = self.kernel not in ("linear", "poly", "polynomial")
        self._decline_small("transform", slow * X.shape[0] * self.components_.shape[0])
        numbers(X)
        numbers(self.components_, "components_")
        degree, coef0 = 3 if self.degree is None else self.degree, 1 if self.coef0 is None else self.coef0
        gamma = 1.0 if self.kernel == "chi2" and self.gamma is None else self.gamma
        return gram(kernel_of(self.kernel, X, gamma, degree, coef0), X, self.components_, np.ascontiguousarray(self.normalization_.T))


class KernelPCA(Accelerated, sklearn.decomposition.KernelPCA):
    """The decomposition is scikit-learn's, of a kernel matrix that Mercer computes."""

    _hooks = {"_get_kernel": "kernel", "transform": "transform"}
    _smallest = {"kernel": 250_000, "transform": 50_000}

    def _mercer_kernel(self, X, Y=None):
        self._decline_small("kernel", X.shape[0] * (X if Y is None else Y).shape[0])
        numbers(X)
        if Y is not None:
            numbers(Y)
        return gram(self._text(X), X, Y)

    def _text(self, X):
        return kernel_of(self.kernel, X, self.gamma, self.degree, self.coef0)

    def _mercer_transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        self._decline_small("transform", X.shape[0] * self.X_fit_.shape[0])
        numbers(X)
        numbers(self.X_fit_)
        used = self.eigenvalues_ != 0
        scaled = np.zeros_like(self.eigenvectors_)
        scaled[:, used] = self.eigenvectors_[:, used] / np.sqrt(self.eigenvalues_[used])
        # With the means of the rows of K, m, and of the fit's columns, f, and its mean F, the
        # centered matrix is K − m1ᵀ − 1fᵀ + F.
        n, t = scaled.shape
        products = gram(self._text(X), X, self.X_fit_, np.column_stack([scaled, np.full(n, 1 / n)]))
        sums = scaled.sum(axis=0)
        return products[:, :t] - np.outer(products[:, t], sums) - self._centerer.K_fit_rows_ @ scaled + self._centerer.K_fit_all_ * sums
