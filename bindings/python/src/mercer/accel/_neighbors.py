"""Nearest neighbors."""

import numpy as np
import sklearn.neighbors
from scipy.sparse import issparse
from sklearn.neighbors._base import _get_weights
from sklearn.utils.validation import check_is_fitted

from .._estimator import validate_data
from .._systems import nearest
from ._engine import Accelerated, Declined, needs, numbers


class Neighbors(Accelerated):
    """The fit is scikit-learn's, which stores the samples."""

    _hooks = {"kneighbors": "kneighbors"}
    _smallest = {"kneighbors": 4_000_000}

    def _mercer_kneighbors(self, X=None, n_neighbors=None, return_distance=True):
        check_is_fitted(self)
        needs(X is not None, "X=None")
        needs(self.effective_metric_ in ("euclidean", "l2"), f"metric={self.effective_metric_!r}")
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        needs(isinstance(k, (int, np.integer)) and 0 < k <= self.n_samples_fit_, f"n_neighbors={k!r}")
        X = validate_data(self, X, accept_sparse="csr", reset=False, order="C")
        needs(not issparse(X) and not issparse(self._fit_X), "X is sparse")
        numbers(X)
        Z = np.asarray(self._fit_X)
        numbers(Z)
        self._decline_small("kneighbors", len(X) * len(Z))
        needs(self._fit_method == "brute" or X.shape[1] > TREE, "few features")
        rows, squares = nearest(X, Z, min(k + 1, len(Z)))
        # Among equal distances, rounding and the order of the search decide. scikit-learn therefore finds
        # the neighbors of such rows. (d + 4)u(|x| + |z|)² bounds the error of a squared distance.
        size = np.sqrt(np.einsum("ij,ij->i", X, X)) + np.sqrt(np.einsum("ij,ij->i", Z, Z).max())
        error = (X.shape[1] + 4) * np.finfo(np.float64).eps * size**2
        equal = np.flatnonzero((np.diff(squares, axis=1) <= 4 * error[:, np.newaxis]).any(axis=1))
        if len(equal) > len(X) // 8:
            raise Declined("equal distances")
        rows, distances = rows[:, :k], np.sqrt(squares[:, :k])
        if len(equal):
            distances[equal], rows[equal] = super().kneighbors(X[equal], k)
        return (distances, rows) if return_distance else rows


# The number of features up to which scikit-learn's search by a tree is faster.
TREE = 8


class KNeighborsRegressor(Neighbors, sklearn.neighbors.KNeighborsRegressor):
    pass


class KNeighborsClassifier(Neighbors, sklearn.neighbors.KNeighborsClassifier):
    _hooks = {"kneighbors": "kneighbors", "predict": "predict"}
    _smallest = {"kneighbors": 4_000_000, "predict": 0}

    def _mercer_predict(self, X):
        """The classes with the most votes, for all samples at once; scikit-learn counts sample by sample."""
        check_is_fitted(self)
        needs(not self.outputs_2d_, "y has several columns")
        if self.weights == "uniform":
            rows, weights = self.kneighbors(X, return_distance=False), None
        else:
            distances, rows = self.kneighbors(X)
            weights = _get_weights(distances, self.weights)
        labels, weights = self._y[rows], 1 if weights is None else weights
        votes = np.stack([np.sum((labels == c) * weights, axis=1) for c in range(len(self.classes_))], axis=1)
        return self.classes_.take(np.argmax(votes, axis=1))
