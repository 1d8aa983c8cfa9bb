"""Support vector machines."""

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from sklearn.utils.extmath import safe_sparse_dot

from .._library import dense, stays_sparse
from .._model import Model
from ._engine import Accelerated, Declined, gram, kernel_of, needs


ACCURATE = 1e-7  # tolerance of fits to few samples


class Machine(Accelerated):
    """What the support vector machines share."""

    # The methods of sklearn.svm._base.BaseLibSVM that run after its checks of the arguments.
    _hooks = {
        "_dense_fit": "fit", "_sparse_fit": "fit", "_dense_predict": "predict", "_sparse_predict": "predict",
        "_dense_decision_function": "decision_function", "_sparse_decision_function": "decision_function",
    }
    _smallest = {"fit": 800 * 800, "predict": 50_000}

    def _text(self, X):
        return kernel_of(self.kernel, X, self._gamma, self.degree, self.coef0)

    def _train(self, X, y, sample_weight, learner, **parameters):
        """The model of Mercer, and the indices of its support vectors."""
        text = "precomputed()" if self.kernel == "precomputed" else self._text(X)
        needs(not self.probability, "probability=True")
        needs(self.max_iter == -1, "max_iter")
        needs(not self.verbose, "verbose")
        needs((sample_weight > 0).all(), "a sample weight ≤ 0")
        self._decline_small("fit", X.shape[0] ** 2)
        # Solutions to the tolerance 1e-3 depend on rounding in the fourth digit. For few samples a
        # more accurate solution takes little time.
        attempts = [{"tol": self.tol}]
        if X.shape[0] <= 2000 and self.tol > ACCURATE:
            attempts.insert(0, {"tol": ACCURATE, "iterations": 100_000})
        for limits in attempts:
            model = Model.fit(learner, X, y, parameters={"kernel": text, **limits, **parameters}, sample_weight=sample_weight if len(sample_weight) else None)
            if "warning" not in model.info.get("facts", {}):
                return model, model.array("support")[0].astype(np.int32)
        raise Declined("no convergence")

    def _keep(self, X, support, n_support, dual_coef, intercept, steps):
        """Sets the attributes that LIBSVM's fit sets."""
        self.support_, self._n_support = support, np.asarray(n_support, dtype=np.int32)
        self.intercept_ = np.array(intercept)
        self._probA = self._probB = np.empty(0)
        self.fit_status_, self._num_iter = 0, steps.astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self.kernel == "precomputed" else X[support]
        if not self._sparse:
            self.dual_coef_ = np.ascontiguousarray(dual_coef)
            return
        rows, columns = dual_coef.shape
        self.dual_coef_ = sp.csr_matrix((dual_coef.ravel(), np.tile(np.arange(columns), rows), np.arange(0, rows * columns + 1, columns)), (rows, columns)) if columns else sp.csr_matrix([])

    def _products(self, X, dual=None):
        """k(X, support vectors) times dual; dual=None means the dual coefficients."""
        text, vectors = self._text(X), self.support_vectors_
        if dual is None:
            dual = (self._dual_coef_.toarray() if self._sparse else self._dual_coef_).T
        if not stays_sparse(X):
            X, vectors = dense(X), dense(vectors)
        if self.kernel == "linear":
            w = safe_sparse_dot(vectors.T, dual)
            return safe_sparse_dot(X, w)
        return gram(text, X, vectors, np.ascontiguousarray(dual))

    def _mercer_decision_function(self, X):
        """The decision values of LIBSVM."""
        needs(self.support_vectors_.shape[0] > 0 or self.kernel == "precomputed", "no support vectors")
        self._decline_small("predict", X.shape[0] * self.support_vectors_.shape[0])
        return self._products(X) + self._intercept_


class SVC(Machine, sklearn.svm.SVC):
    def _mercer_decision_function(self, X):
        """The decision values of the pairs of classes, positive for the first class."""
        k = len(self.classes_)
        if k == 2:
            return super()._mercer_decision_function(X)
        self._decline_small("predict", X.shape[0] * self.support_vectors_.shape[0])
        ends = np.cumsum(self._n_support)
        dual = (self._dual_coef_.toarray() if self._sparse else self._dual_coef_).T
        # The columns of a class are the other classes.
        V = np.zeros((len(dual), k * (k - 1) // 2))
        for column, (i, j) in enumerate((i, j) for i in range(k) for j in range(i + 1, k)):
            for label, other in ((i, j - 1), (j, i)):
                of = slice(ends[label] - self._n_support[label], ends[label])
                V[of, column] = dual[of, other]
        return self._products(X, V) + self._intercept_

    def _mercer_fit(self, X, y, sample_weight, solver_type, kernel, random_seed):
        k = len(self.classes_)
        if (self._class_weight != 1).any():
            weights = self._class_weight[y.astype(int)]
            sample_weight = weights * sample_weight if len(sample_weight) else weights
        model, support = self._train(X, y.reshape(-1, 1), sample_weight, "svc", C=self.C)
        needs(len(model.info["classes"]) == k, "a class without samples")
        # Mercer's decision values of a pair are positive for the second class, LIBSVM's for the first.
        self._keep(X, support, model.array("counts")[0], 0.0 - model.array("coef").T, 0.0 - model.array("intercept")[0], model.array("steps")[0])

    def _mercer_predict(self, X):
        values = self._mercer_decision_function(X)
        k = len(self.classes_)
        votes = np.zeros((len(values), k))
        rows = np.arange(len(values))
        for value, (i, j) in zip(values.T, ((i, j) for i in range(k) for j in range(i + 1, k))):
            votes[rows, np.where(value > 0, i, j)] += 1
        return np.argmax(votes, axis=1).astype(np.float64)


class SVR(Machine, sklearn.svm.SVR):
    def _mercer_fit(self, X, y, sample_weight, solver_type, kernel, random_seed):
        parameters = {"standardize-target": False, "epsilon": self.epsilon, "C": self.C}
        model, support = self._train(X, y.reshape(-1, 1), sample_weight, "svr", **parameters)
        beta = model.array("beta")
        kept = beta[:, 0] != 0  # a model without support vectors keeps one sample
        self._keep(X, support[kept], [kept.sum(), 0], beta[kept].T, model.array("intercept")[0], model.array("steps")[0])

    def _mercer_predict(self, X):
        return self._mercer_decision_function(X)[:, 0]


class OneClassSVM(Machine, sklearn.svm.OneClassSVM):
    def _mercer_fit(self, X, y, sample_weight, solver_type, kernel, random_seed):
        needs(self.kernel != "precomputed", "kernel='precomputed'")
        model, support = self._train(X, None, sample_weight, "one-class-svm", nu=self.nu)
        beta = model.array("beta")
        # LIBSVM's offset is the mean of f over the support vectors whose coefficient is below its bound.
        bound = sample_weight[support] if len(sample_weight) else 1.0
        free = beta[:, 0] < bound
        needs(free.any(), "no free support vectors")
        offset = gram(self._text(X), X[support[free]], X[support], beta).mean()
        self._keep(X, support, [len(support), 0], beta.T, [-offset], model.array("steps")[0])

    def _mercer_predict(self, X):
        return np.where(self._mercer_decision_function(X)[:, 0] > 0, 1.0, -1.0)
