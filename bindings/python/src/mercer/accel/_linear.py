"""Linear models: ridge regression, the lasso and logistic regression."""

import os
import warnings
from numbers import Number

import numpy as np
import sklearn.linear_model
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from .._estimator import penalties, validate_data
from .._model import Model
from .._systems import moments
from ._engine import Accelerated, Declined, needs, numbers


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
    _smallest = {"fit": 2_000_000_000}

    def _mercer_fit(self, X, y, sample_weight=None):
        self._validate_params()
        needs(not self.positive, "positive=True")
        needs(self.solver in ("auto", "cholesky", "svd"), f"solver={self.solver!r}")
        needs(not issparse(X), "X is sparse")
        rows, columns = np.shape(X)
        needs(columns <= rows or self.solver == "svd", "more features than samples")
        # With 128 features or more, XᵀX takes most of the time. With fewer features, reading X does, and
        # scikit-learn is as fast. scikit-learn's singular value decomposition takes many times longer than XᵀX.
        self._decline_small("fit", rows * columns**2 * (100 if self.solver == "svd" else columns >= 128))
        X, y, sample_weight = self._samples(X, y, sample_weight, multi_output=True, y_numeric=True)
        numbers(y, "y")
        targets, alpha = y.reshape(len(y), -1), np.asarray(self.alpha, dtype=np.float64)
        needs((alpha > 0).all(), "alpha=0")
        needs(alpha.size in (1, targets.shape[1]), "the number of penalties")
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
        if "MERCER_ACCEL_MIN" not in os.environ:
            self._decline_quick(X, y, sample_weight)
        if isinstance(sample_weight, Number):
            sample_weight = None
        X, y, sample_weight = self._samples(X, y, sample_weight, y_numeric=True)
        numbers(y, "y")
        if sample_weight is not None:
            sample_weight = sample_weight * (rows / sample_weight.sum())
        G, products, mean, (level,) = moments(X, y.reshape(-1, 1), sample_weight, self.fit_intercept)
        centered = y - level
        if sample_weight is not None:
            centered *= np.sqrt(sample_weight)
        _, coef, gaps, steps = self.path(
            X, centered, l1_ratio=1.0, alphas=[self.alpha], precompute=G, Xy=products[0], return_n_iter=True, positive=self.positive, check_input=False, tol=self.tol,
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


class LogisticRegression(Linear, sklearn.linear_model.LogisticRegression):
    _smallest = {"fit": 100_000}

    def _mercer_fit(self, X, y, sample_weight=None):
        self._validate_params()
        needs(self.penalty == "l2", f"penalty={self.penalty!r}")
        needs(self.solver in ("lbfgs", "newton-cg", "newton-cholesky"), f"solver={self.solver!r}")
        needs(not self.dual, "dual=True")
        needs(self.l1_ratio is None, "l1_ratio")
        needs(not self.warm_start, "warm_start=True")
        needs(not self.verbose, "verbose")
        needs(self.multi_class != "multinomial", "multi_class='multinomial'")
        one_by_one = self.multi_class == "ovr" or self.solver == "newton-cholesky"
        self._decline_small("fit", np.prod(np.shape(X)))
        needs(one_by_one or len(np.unique(y)) <= 2, "more than two classes at once")
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
