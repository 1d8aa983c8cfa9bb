"""Linear models: ridge regression, the lasso and logistic regression."""

import functools
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from numbers import Number

import numpy as np
import sklearn.linear_model
from scipy import linalg
from scipy.sparse import issparse
from sklearn._loss import HalfMultinomialLoss
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import _linear_loss
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight
from threadpoolctl import ThreadpoolController

from .. import _library
from .._estimator import penalties, validate_data
from .._model import Model
from .._systems import moments
from ._engine import Accelerated, Declined, needs, numbers


def nearly_centered(X):
    """Whether the squared means of about 200 rows of X are at most three times the variances."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub" or len(X) == 0:
        return False
    part = X[:: -(-len(X) // 200)]
    return bool((part.mean(axis=0) ** 2 <= 3 * part.var(axis=0)).all())


def products(X, Y, intercept):
    """XᵀX and YᵀX of the columns minus their means, and these means, without a copy of X; without an
    intercept nothing is subtracted, and the means are 0. Returns None if the means are so large that
    Σx² − n·mean² would lose more than three bits of Σ(x − mean)²."""
    if intercept and not nearly_centered(X):
        return None
    level = Y.mean(axis=0) if intercept else np.zeros(Y.shape[1])
    G, P = X.T @ X, (Y - level).T @ X
    mean = np.zeros(len(G))
    if intercept:
        mean, squares = np.ones(len(X)) @ X / len(X), np.diag(G).copy()
        G -= len(X) * np.outer(mean, mean)
        if (np.diag(G) < squares / 8).any():
            return None
    return (G, P, mean, level) if np.isfinite(G).all() and np.isfinite(P).all() else None


class Linear(Accelerated):
    """What the linear models share."""

    _hooks = {"fit": "fit"}

    def _samples(self, X, y, sample_weight, **checks):
        """The checked arguments of fit. sample_weight becomes an array, or stays None."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], **checks)
        numbers(X)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
            needs((sample_weight >= 0).all(), "a sample weight < 0")
        return X, y, sample_weight

    def _train(self, learner, X, y, sample_weight, **parameters):
        """The facts of a model of Mercer, the rows of its weights for each column of y, and its intercepts."""
        model = Model.fit(learner, X, y, parameters={"intercept": self.fit_intercept, **parameters}, sample_weight=sample_weight)
        return model.info.get("facts", {}), np.ascontiguousarray(model.array("coef").T), model.array("intercept")[0]


class Ridge(Linear, sklearn.linear_model.Ridge):
    _smallest = {"fit": 100_000, "learner": 2_000_000_000}

    def _mercer_fit(self, X, y, sample_weight=None):
        self._validate_params()
        needs(not self.positive, "positive=True")
        needs(self.solver in ("auto", "cholesky", "svd"), f"solver={self.solver!r}")
        needs(not issparse(X), "X is sparse")
        rows, columns = np.shape(X)
        needs(columns <= rows or self.solver == "svd", "more features than samples")
        self._decline_small("fit", rows * columns)
        X, y, sample_weight = self._samples(X, y, sample_weight, multi_output=True, y_numeric=True)
        numbers(y, "y")
        targets, alpha = y.reshape(len(y), -1), np.asarray(self.alpha, dtype=np.float64)
        needs((alpha > 0).all(), "alpha=0")
        needs(alpha.size in (1, targets.shape[1]), "the number of penalties")
        found = products(X, targets, self.fit_intercept) if sample_weight is None and alpha.size == 1 and self.solver != "svd" else None
        if found:
            G, P, mean, level = found
            G.flat[:: columns + 1] += alpha.ravel()[0]
            try:
                coef = np.ascontiguousarray(linalg.solve(G, P.T, assume_a="pos", overwrite_a=True, check_finite=False).T)
            except linalg.LinAlgError as err:
                raise Declined("a singular matrix") from err
            intercept = level - coef @ mean
        else:
            # With 128 features or more, XᵀX takes most of the time. With fewer features, reading X does, and
            # scikit-learn is as fast. scikit-learn's singular value decomposition takes many times longer than XᵀX.
            self._decline_small("learner", rows * columns**2 * (100 if self.solver == "svd" else columns >= 128))
            _, coef, intercept = self._train("ridge", X, targets, sample_weight, **penalties(self.alpha, targets.shape[1]))
        self.coef_, self.n_iter_ = coef.ravel() if y.ndim == 1 else coef, None
        self.intercept_ = 0.0 if not self.fit_intercept else intercept[0] if y.ndim == 1 else intercept
        return self


class Lasso(Linear, sklearn.linear_model.Lasso):
    """scikit-learn runs the coordinate descent. If that takes many iterations, Mercer computes the matrix
    XᵀX for it; the iterations are the same as without this matrix."""

    _smallest = {"fit": 1_000_000}

    def _mercer_fit(self, X, y, sample_weight=None, check_input=True):
        self._validate_params()
        needs(check_input, "check_input=False")
        needs(self.alpha > 0, "alpha=0")
        needs(self.l1_ratio == 1, "l1_ratio")
        needs(self.tol >= 1e-10, "tol < 1e-10")
        needs(not self.warm_start, "warm_start=True")
        needs(self.selection == "cyclic", "selection='random'")
        needs(self.max_iter > FEW, "max_iter")
        needs(isinstance(self.precompute, (bool, np.bool_)), "precompute is a matrix")
        needs(not issparse(X), "X is sparse")
        needs(np.ndim(y) == 1, "several targets")
        rows, columns = np.shape(X)
        needs(columns <= min(rows, MOST), "many features")
        self._decline_small("fit", rows * columns)
        if "MERCER_ACCEL_MIN" not in os.environ and not (columns <= QUICK and sample_weight is None and nearly_centered(X)):
            self._decline_quick(X, y, sample_weight)
        if isinstance(sample_weight, Number):
            sample_weight = None
        X, y, sample_weight = self._samples(X, y, sample_weight, y_numeric=True)
        numbers(y, "y")
        if sample_weight is not None:
            sample_weight = sample_weight * (rows / sample_weight.sum())
        found = products(X, y.reshape(-1, 1), self.fit_intercept) if sample_weight is None else None
        G, sums, mean, (level,) = found or moments(X, y.reshape(-1, 1), sample_weight, self.fit_intercept)
        centered = y - level
        if sample_weight is not None:
            centered *= np.sqrt(sample_weight)
        _, coef, gaps, steps = self.path(
            X, centered, l1_ratio=1.0, alphas=[self.alpha], precompute=G, Xy=sums[0], return_n_iter=True, positive=self.positive, check_input=False, tol=self.tol,
            max_iter=self.max_iter)
        self.n_iter_, self.dual_gap_, self.coef_ = steps[0], gaps[0], coef[:, 0]
        self.intercept_ = level - mean @ self.coef_ if self.fit_intercept else 0.0
        return self

    def _decline_quick(self, X, y, sample_weight):
        """Runs FEW iterations of scikit-learn's fit. If that fit converges, raises Declined with it."""
        limit, self.max_iter = self.max_iter, FEW
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                super().fit(X, y, sample_weight)
        finally:
            self.max_iter = limit
        if self.n_iter_ < FEW:
            declined = Declined("few iterations")
            declined.result = self
            raise declined


# FEW iterations take less time than computing XᵀX. For more than MOST features, XᵀX saves no time.
FEW, MOST = 20, 1000

# For at most QUICK features, XᵀX takes less time than scikit-learn's copy of X.
QUICK = 256


# The smallest number of elements of X for which LinearModelLoss is faster than scikit-learn's.
SMALLEST = 500_000


class LogisticRegression(Linear, sklearn.linear_model.LogisticRegression):
    _smallest = {"fit": 100_000_000, "several classes": SMALLEST}

    def _mercer_fit(self, X, y, sample_weight=None):
        self._validate_params()
        needs(self.penalty == "l2", f"penalty={self.penalty!r}")
        needs(self.solver in ("lbfgs", "newton-cg", "newton-cholesky"), f"solver={self.solver!r}")
        needs(not self.dual, "dual=True")
        needs(self.l1_ratio is None, "l1_ratio")
        needs(not self.warm_start, "warm_start=True")
        needs(not self.verbose, "verbose")
        one_by_one = self.multi_class == "ovr" or self.solver == "newton-cholesky"
        rows, columns = np.shape(X)
        for labels in y[:100], y:  # usually the first labels suffice to decide, in much less time
            if self.multi_class == "multinomial" or not one_by_one and len(np.unique(labels)) > 2:
                needs(self.solver == "lbfgs" and not issparse(X), "more than two classes at once")
                self._decline_small("several classes", np.prod(np.shape(X)))
                return super().fit(X, y, sample_weight)  # with the loss of LinearModelLoss
            self._decline_small("fit", rows * columns**2)  # the operations of Newton's method, which Mercer uses
        X, y, sample_weight = self._samples(X, y, sample_weight, order="C")
        check_classification_targets(y)
        classes, index = np.unique(y, return_inverse=True)
        k = len(classes)
        needs(k > 1, "one class")
        if self.class_weight is not None:
            needs(k == 2, "class_weight with more than two classes")
            of_class = compute_class_weight(self.class_weight, classes=classes, y=y)[index]
            sample_weight = of_class if sample_weight is None else of_class * sample_weight
        labels = [index] if k == 2 else [index == c for c in range(k)]
        limits = {"lambda": 1 / self.C, "iterations": self.max_iter, "tol": ACCURATE}
        fits = [self._train("logistic", X, label.reshape(-1, 1).astype(np.float64), sample_weight, **limits) for label in labels]
        facts, coef, intercept = zip(*fits)
        needs(not any("warning" in f for f in facts), "no convergence")
        self.classes_, self.coef_ = classes, np.vstack(coef)
        self.intercept_ = np.concatenate(intercept) if self.fit_intercept else np.zeros(len(self.coef_))
        self.n_iter_ = np.array([f["iterations"] for f in facts], dtype=np.int32)
        return self


# The relative decrease of the loss at which logistic regression ends. The gradient of the loss is then
# as small as scikit-learn's default of tol requires.
ACCURATE = 1e-14


class LinearModelLoss(_linear_loss.LinearModelLoss):
    """The loss that scikit-learn's L-BFGS minimizes for linear models. For the softmax of several classes, this
    class computes the loss and its gradient in blocks of rows, whose scores remain in the cache, on all
    processors. The sums do not depend on the number of processors."""

    def loss_gradient(self, coef, X, y, sample_weight=None, l2_reg_strength=0.0, n_threads=1, raw_prediction=None):
        smallest = float(os.environ.get("MERCER_ACCEL_MIN", SMALLEST))
        if not (type(self.base_loss) is HalfMultinomialLoss and raw_prediction is None and isinstance(X, np.ndarray) and X.dtype == coef.dtype == np.float64 and X.size >= smallest):
            return super().loss_gradient(coef, X, y, sample_weight, l2_reg_strength, n_threads, raw_prediction)
        weights, intercept = self.weight_intercept(coef)
        W, b = np.ascontiguousarray(weights), np.reshape(intercept, (-1, 1))

        def block(start):
            """The loss of a block of rows, and its derivatives with respect to weights and intercepts."""
            rows = slice(start, start + BLOCK)
            Z, labels = X[rows], y[rows].astype(np.intp)
            of_label = labels, np.arange(len(Z))
            P = W @ Z.T + b
            P -= P.max(axis=0)
            losses = -P[of_label]
            total = np.exp(P, out=P).sum(axis=0)
            losses += np.log(total)
            P /= total
            P[of_label] -= 1
            if sample_weight is not None:
                losses *= sample_weight[rows]
                P *= sample_weight[rows]
            return losses.sum(), P @ Z, P.sum(axis=1)

        with blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(_library.worker_threads or os.cpu_count()) as pool:
            losses, products, sums = map(sum, zip(*pool.map(block, range(0, len(X), BLOCK))))
        count = (len(X) if sample_weight is None else np.sum(sample_weight)) if averages() else 1
        gradient = np.empty((len(W), X.shape[1] + self.fit_intercept), order="F")
        gradient[:, : X.shape[1]] = products / count + l2_reg_strength * weights
        if self.fit_intercept:
            gradient[:, -1] = sums / count
        return losses / count + l2_reg_strength / 2 * np.sum(W * W), gradient.ravel(order="F") if coef.ndim == 1 else gradient


# The number of rows of a block. On an EPYC with two processors (Zen 5, 2026-11-29) and 2,500,000 × 16 samples of six
# classes, an evaluation takes 0.16, 0.10, 0.10 and 0.12 s with blocks of 4,096, 8,192, 16,384 and 65,536 rows, and
# 0.51 s in scikit-learn.
BLOCK = 8192


@functools.cache
def blas():
    """The controller of the threads of BLAS; finding the libraries takes milliseconds."""
    return ThreadpoolController()


@functools.cache
def averages():
    """Whether this version of scikit-learn divides the loss by the sum of the weights. The sum of two losses is
    2 log 3."""
    return LinearModelLoss.__bases__[0](base_loss=HalfMultinomialLoss(n_classes=3), fit_intercept=False).loss_gradient(np.zeros(3), np.ones((2, 1)), np.zeros(2))[0] < 2
