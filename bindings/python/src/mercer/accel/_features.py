"""Features of kernels: Nystroem, random Fourier features and kernel principal components."""

import collections
import itertools
import math

import numpy as np
import sklearn.decomposition
import sklearn.kernel_approximation
import sklearn.preprocessing
from scipy import linalg
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import _check_psd_eigenvalues, check_is_fitted
from threadpoolctl import threadpool_limits

from .._estimator import validate_data
from .._systems import cosines
from ._engine import Accelerated, Declined, gram, kernel_of, needs, numbers


def largest(product, n, t):
    """The t largest eigenvalues of a symmetric matrix of order n in descending order, and their
    eigenvectors, by block Lanczos with full orthogonalization (Golub and Van Loan 2013, section 10.3.6).
    product returns the product of the matrix with a block. Raises Declined if the residuals are above
    rounding errors after 40 blocks."""
    width = min(2 * t, t + 2)
    V = np.linalg.qr(np.random.RandomState(0).normal(size=(n, width)))[0]
    Q, T = np.empty((n, 40 * width), order="F"), np.zeros((40 * width, 40 * width))
    for first in range(0, len(T), width):
        m = first + width
        Q[:, first:m] = V
        W, known = product(V), Q[:, :m]
        for _ in range(2):
            C = known.T @ W
            W -= known @ C
            T[:m, first:m] += C
        T[first:m, :m] = T[:m, first:m].T
        V, R = np.linalg.qr(W)
        sizes = np.abs(np.diag(R))
        if sizes.min() <= 1e-8 * sizes.max():  # columns of W that are rounding errors are not orthogonal to Q
            V = np.linalg.qr(V - known @ (known.T @ V))[0]
        values, S = np.linalg.eigh(T[:m, :m])
        left = np.linalg.norm(R @ S[first:, -t:], axis=0)
        if (left <= 4 * np.sqrt(n) * np.finfo(np.float64).eps * values[-1]).all():
            return values[:-t - 1:-1], known @ S[:, :-t - 1:-1]
    raise Declined("no convergence")


def monomials(X, degree, c):
    """The rows F with FᵀF' = (XX'ᵀ + c)^degree: the monomials of each row of X and √c times the square
    roots of their multinomial coefficients, in the order of itertools.combinations_with_replacement."""
    Z = np.vstack([X.T, np.full((1, len(X)), math.sqrt(c))]) if c > 0 else np.ascontiguousarray(X.T)
    d, F = len(Z), Z
    for power in range(2, degree + 1):
        # The monomials of degree power − 1 that begin with variable i or a later one are the last ones.
        F = np.vstack([Z[i] * F[len(F) - math.comb(d - i + power - 2, power - 1):] for i in range(d)])
    counts = (collections.Counter(v).values() for v in itertools.combinations_with_replacement(range(d), degree))
    F *= np.sqrt([math.factorial(degree) / math.prod(map(math.factorial, c)) for c in counts])[:, np.newaxis]
    return F


def inverse_root(K):
    """K^(−½) of a symmetric positive semidefinite matrix, whose eigenvalues are replaced by 1e-12 if they
    are smaller."""
    values, Q = np.linalg.eigh(K)
    if values[0] > max(1e-8 * values[-1], 1e-12):
        return (Q / np.sqrt(values)) @ Q.T
    U, values, V = np.linalg.svd(K)  # the rounding errors of small eigenvalues are then scikit-learn's
    return (U / np.sqrt(np.maximum(values, 1e-12))) @ V


class Nystroem(Accelerated, sklearn.kernel_approximation.Nystroem):
    _hooks = {"fit": "fit", "transform": "transform"}
    _smallest = {"fit": 10_000, "transform": 100_000}

    def _text(self, X):
        needs(not self.kernel_params, "kernel_params")
        degree, coef0 = 3 if self.degree is None else self.degree, 1 if self.coef0 is None else self.coef0
        gamma = 1.0 if self.kernel == "chi2" and self.gamma is None else self.gamma
        return kernel_of(self.kernel, X, gamma, degree, coef0)

    def _mercer_fit(self, X, y=None):
        self._validate_params()
        needs(self.kernel != "precomputed", "kernel='precomputed'")
        X = validate_data(self, X, accept_sparse="csr")
        n, m = X.shape[0], self.n_components
        needs(m <= n, "more components than samples")
        self._decline_small("fit", m * m)
        numbers(X)
        text = self._text(X)
        chosen = check_random_state(self.random_state).permutation(n)[:m]
        self.components_, self.component_indices_ = X[chosen], chosen
        self.normalization_, self._n_features_out = inverse_root(gram(text, self.components_)), m
        return self

    def _mercer_transform(self, X):
        check_is_fitted(self)
        text = self._text(X)
        # scikit-learn takes no longer for kernels without exponentials.
        slow = self.kernel not in ("linear", "poly", "polynomial")
        self._decline_small("transform", slow * np.prod(np.shape(X)[:1]) * self.components_.shape[0])
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        numbers(X)
        numbers(self.components_, "components_")
        return gram(text, X, self.components_, np.ascontiguousarray(self.normalization_.T))


class RBFSampler(Accelerated, sklearn.kernel_approximation.RBFSampler):
    """The fit is scikit-learn's, which draws the frequencies."""

    _hooks = {"transform": "transform"}
    _smallest = {"transform": 50_000}

    def _mercer_transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        needs(not issparse(X), "X is sparse")
        self._decline_small("transform", X.shape[0] * self.random_weights_.shape[1])
        numbers(X)
        numbers(self.random_weights_, "random_weights_")
        return cosines((2.0 / self.n_components) ** 0.5, X, self.random_weights_, self.random_offset_)


class KernelPCA(Accelerated, sklearn.decomposition.KernelPCA):
    """A few components of many samples by block Lanczos, which stores no kernel matrix; other
    decompositions are scikit-learn's, of a kernel matrix that Mercer computes."""

    _hooks = {"fit": "fit", "_get_kernel": "kernel", "transform": "transform"}
    _smallest = {"fit": 1_000_000, "kernel": 250_000, "transform": 50_000}

    def _mercer_fit(self, X, y=None):
        self._validate_params()
        t = self.n_components
        needs(self.eigen_solver in ("auto", "arpack"), f"eigen_solver={self.eigen_solver!r}")
        needs(t is not None and t < 10, "n_components ≥ 10")
        needs(self.kernel != "precomputed", "kernel='precomputed'")
        needs(not self.fit_inverse_transform, "fit_inverse_transform=True")
        needs(self.tol == 0 and self.max_iter is None, "tol or max_iter")
        X = validate_data(self, X, accept_sparse="csr", copy=self.copy_X)
        n, text = X.shape[0], self._text(X)
        needs(n > 200, "at most 200 samples")
        self._decline_small("fit", n * n)
        numbers(X)
        self._centerer, self.X_fit_ = sklearn.preprocessing.KernelCenterer(), X
        values, vectors = self._by_features(X, t) or self._by_products(text, X, t)
        self.eigenvalues_ = _check_psd_eigenvalues(values, enable_warnings=False)
        self.eigenvectors_ = svd_flip(vectors, np.zeros_like(vectors).T)[0]
        if self.remove_zero_eig:
            used = self.eigenvalues_ > 0
            self.eigenvalues_, self.eigenvectors_ = self.eigenvalues_[used], self.eigenvectors_[:, used]
        return self

    def _features(self, X, of):
        """The monomials of a linear or polynomial kernel of the samples of, for a fit to X; None for other
        kernels, and if their number is above an eighth of the number of rows of X."""
        degree = {"linear": 1, "poly": self.degree}.get(self.kernel, 0)
        if degree < 1 or issparse(X) or issparse(of) or not float(degree).is_integer() or self.kernel == "poly" and self.coef0 < 0:
            return None
        gamma = 1.0 if self.kernel == "linear" else 1 / X.shape[1] if self.gamma is None else self.gamma
        c = 0.0 if self.kernel == "linear" else self.coef0
        if gamma <= 0 or math.comb(X.shape[1] + (c > 0) + int(degree) - 1, int(degree)) > X.shape[0] // 8:
            return None
        return monomials(math.sqrt(gamma) * of, int(degree), c)

    def _by_features(self, X, t):
        """The t largest eigenvalues of the centered kernel matrix K = FᵀF and its eigenvectors, by those of
        FFᵀ; None for other kernels than those of _features, and if an eigenvalue is close to 0."""
        F = self._features(X, X)
        if F is None:
            return None
        mean = F.mean(axis=1)
        self._centerer.K_fit_rows_, self._centerer.K_fit_all_, self._centerer.n_features_in_ = mean @ F, mean @ mean, len(X)
        F -= mean[:, np.newaxis]
        if len(F) < t:
            return None
        values, vectors = linalg.eigh(F @ F.T, subset_by_index=(len(F) - t, len(F) - 1))
        if values[0] <= 1e-8 * values[-1]:
            return None
        vectors = F.T @ vectors[:, ::-1]
        return values[::-1], vectors / np.linalg.norm(vectors, axis=0)

    def _by_products(self, text, X, t):
        """The t largest eigenvalues of the centered kernel matrix and its eigenvectors, by its products."""
        n, centerer = X.shape[0], self._centerer
        centerer.K_fit_rows_ = rows = gram(text, X, None, np.full((n, 1), 1 / n))[:, 0]
        centerer.K_fit_all_, centerer.n_features_in_ = rows.sum() / n, n

        def product(V):
            sums = V.sum(axis=0)
            return gram(text, X, None, V) - np.outer(rows, sums) - rows @ V + centerer.K_fit_all_ * sums

        # The threads of numpy's BLAS would wait for work and delay Mercer's threads between small products.
        with threadpool_limits(limits=1, user_api="blas"):
            return largest(product, n, t)

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
        weights = np.column_stack([scaled, np.full(n, 1 / n)])
        F = self._features(self.X_fit_, self.X_fit_)
        products = gram(self._text(X), X, self.X_fit_, weights) if F is None else self._features(self.X_fit_, X).T @ (F @ weights)
        sums = scaled.sum(axis=0)
        return products[:, :t] - np.outer(products[:, t], sums) - self._centerer.K_fit_rows_ @ scaled + self._centerer.K_fit_all_ * sums
