"""Compares each score of MercerKernelRidgeCV with n fits of scikit-learn's KernelRidge."""

import pickle
import unittest
import warnings

from . import support
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error
from sklearn.metrics.pairwise import pairwise_kernels

import mercer

# The names of RidgeCV's parameter and attribute for its results depend on scikit-learn's version.
STORE, RESULTS = ("store_cv_results", "cv_results_") if "store_cv_results" in RidgeCV().get_params() else ("store_cv_values", "cv_values_")

KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.4},
    {"kernel": "laplacian", "gamma": 0.2},
    {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
]


def gram(parameters, X):
    return pairwise_kernels(X, metric=parameters["kernel"], filter_params=True, gamma=parameters.get("gamma"),
                            degree=parameters.get("degree", 3), coef0=parameters.get("coef0", 1))


def fitted(K, Y, w, alpha, intercept, kept, out):
    """The predictions for the rows out by kernel ridge fitted to the rows kept: by
    KernelRidge if it supports the case, otherwise by the bordered system (K + αW⁻¹ 1;
    1ᵀ 0)(a; b) = (y; 0)."""
    inside, cross = K[np.ix_(kept, kept)], K[np.ix_(out, kept)]
    if not intercept:
        return KernelRidge(alpha=alpha, kernel="precomputed").fit(inside, Y[kept], sample_weight=w[kept]).predict(cross)
    n = len(kept)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = inside + alpha * np.diag(1 / w[kept])
    A[n, :n] = A[:n, n] = 1
    solution = np.linalg.solve(A, np.vstack([Y[kept], np.zeros(Y.shape[1])]))
    return np.column_stack([cross, np.ones(len(out))]) @ solution


def left_out(K, Y, w, alpha, intercept):
    """The prediction for each row by a fit to all other rows."""
    n = len(K)
    return np.array([fitted(K, Y, w, alpha, intercept, np.delete(np.arange(n), i), [i])[0] for i in range(n)])


def hat(K, w, alpha, intercept):
    """The matrix that maps y to the fitted values."""
    rows = np.arange(len(K))
    return fitted(K, np.eye(len(K)), w, alpha, intercept, rows, rows)


def tolerance(K, w, alpha):
    """A relative bound of the difference: both programs solve systems with this condition number, each
    backward stable by n·γ(3n+1) at most (Higham 2002, theorem 10.4); weights scale rows
    and columns."""
    n = len(K)
    values = np.linalg.eigvalsh(np.sqrt(w[:, None] * w) * K)
    return 4 * n * (3 * n + 1) * support.U * (values[-1] + alpha) / alpha * max(1, w.max() / w.min())


class TestScores(unittest.TestCase):
    def setUp(self):
        r = support.rng(self)
        self.X, y = support.smooth(r, 30, 3)
        self.y, self.Y = y, np.column_stack([y, 2 + y**2])
        self.w = r.uniform(0.5, 3, 30)
        self.alphas = [0.01, 0.3, 5.0]

    def cases(self):
        for parameters in KERNELS:
            K = gram(parameters, self.X)
            for target in (self.y, self.Y):
                for weights in (None, self.w):
                    for intercept in (False, True):
                        w = np.ones(30) if weights is None else weights
                        with self.subTest(**parameters, targets=target.ndim, weights=weights is not None, intercept=intercept):
                            yield parameters, K, target, weights, w, intercept

    def test_leave_one_out_is_n_refits(self):
        for parameters, K, target, weights, w, intercept in self.cases():
            Y = target.reshape(30, -1)
            model = mercer.MercerKernelRidgeCV(self.alphas, **parameters, fit_intercept=intercept, store_cv_results=True).fit(self.X, target, weights)
            squares = np.array([(Y - left_out(K, Y, w, a, intercept)) ** 2 for a in self.alphas])  # a×n×t
            bounds = np.array([tolerance(K, w, a) for a in self.alphas])
            want = -np.average(squares.mean(axis=2), axis=1, weights=w)
            scale = np.abs(Y).max() ** 2 + squares.max()
            self.assertTrue((np.abs(model.scores_[0] - want) <= bounds * scale).all(), (model.scores_, want, bounds))
            values = model.cv_results_
            self.assertEqual(values.shape, (30, 3) if target.ndim == 1 else (30, 2, 3))
            off = np.abs(values.reshape(30, -1, 3) - np.moveaxis(squares, 0, -1)).max(axis=(0, 1))
            self.assertTrue((off <= bounds * scale).all(), (off, bounds))
            self.assertEqual(model.alpha_, self.alphas[np.argmax(want)])
            self.assertEqual(model.best_score_, model.scores_.max())
            self.assertLess(bounds.max(), 1e-6)  # so that the comparison can detect errors
            # The model must equal a fit with the chosen alpha.
            again = mercer.MercerKernelRidge(model.alpha_, **parameters, fit_intercept=intercept).fit(self.X, target, weights)
            np.testing.assert_array_equal(model.predict(self.X), again.predict(self.X))

    def test_generalized_cross_validation_is_its_formula(self):
        for parameters, K, target, weights, w, intercept in self.cases():
            Y = target.reshape(30, -1)
            model = mercer.MercerKernelRidgeCV(self.alphas, **parameters, fit_intercept=intercept, scoring="gcv").fit(self.X, target, weights)
            for got, alpha in zip(model.scores_[0], self.alphas):
                H = hat(K, w, alpha, intercept)
                left = 30 - np.trace(H)
                want = -30 * (w[:, None] * (Y - H @ Y) ** 2).sum(axis=0).mean() / left**2
                # GCV divides by the square of n − trace(H).
                self.assertLessEqual(abs(got - want), tolerance(K, w, alpha) * (30 / left) ** 3 * w.max() * np.abs(Y).max() ** 2)

    def test_scorers(self):
        for parameters, K, target, weights, w, intercept in self.cases():
            model = mercer.MercerKernelRidgeCV(self.alphas, **parameters, fit_intercept=intercept, scoring="neg_mean_absolute_error",
                                               store_cv_results=True).fit(self.X, target, weights)
            for i, alpha in enumerate(self.alphas):
                f = left_out(K, target.reshape(30, -1), w, alpha, intercept).reshape(target.shape)
                bound = tolerance(K, w, alpha) * (np.abs(target).max() + np.abs(f).max())
                self.assertLessEqual(abs(model.scores_[0, i] + mean_absolute_error(target, f, sample_weight=weights)), bound)
                self.assertLessEqual(np.abs(model.cv_results_[..., i] - f).max(), bound)


class TestChoice(unittest.TestCase):
    def setUp(self):
        r = support.rng(self)
        self.X, y = support.smooth(r, 40, 2)
        self.y = y
        self.Y = np.column_stack([y, r.normal(size=40), self.X[:, 0]])
        self.alphas = np.geomspace(1e-4, 1e3, 8)

    def test_alpha_of_each_target(self):
        for scoring in (None, "gcv", "r2"):
            with self.subTest(scoring=scoring):
                together = mercer.MercerKernelRidgeCV(self.alphas, kernel="rbf", scoring=scoring, alpha_per_target=True).fit(self.X, self.Y)
                self.assertEqual(together.scores_.shape, (1, 8, 3))
                for j in range(3):
                    alone = mercer.MercerKernelRidgeCV(self.alphas, kernel="rbf", scoring=scoring, alpha_per_target=True).fit(self.X, self.Y[:, j])
                    self.assertIsInstance(alone.alpha_, float)
                    self.assertEqual(together.alpha_[j], alone.alpha_)
                    bound = tolerance(gram({"kernel": "rbf"}, self.X), np.ones(40), self.alphas[0])
                    self.assertLessEqual(abs(together.best_score_[j] - alone.best_score_), 10 * bound)
                self.assertGreater(len(set(together.alpha_)), 1)
                np.testing.assert_array_equal(together.predict(self.X), mercer.MercerKernelRidge(together.alpha_, kernel="rbf").fit(self.X, self.Y).predict(self.X))

    def test_kernels(self):
        kernels, gammas = ["linear", "rbf", "matern52(sigma=2)"], [0.1, 1.0, 10.0]
        model = mercer.MercerKernelRidgeCV(self.alphas, kernel=kernels, gamma=gammas).fit(self.X, self.y)
        self.assertEqual(len(model.kernels_), 5)  # linear and matern52 have no gamma
        self.assertEqual(model.scores_.shape, (5, 8))
        alone = [mercer.MercerKernelRidgeCV(self.alphas, kernel=k, gamma=g).fit(self.X, self.y)
                 for k, g in [("linear", None), *(("rbf", g) for g in gammas), ("matern52(sigma=2)", None)]]
        np.testing.assert_array_equal(model.scores_, [a.scores_[0] for a in alone])
        best = max(alone, key=lambda a: a.best_score_)
        self.assertEqual((model.kernel_, model.alpha_, model.best_score_), (best.kernel_, best.alpha_, best.best_score_))
        self.assertEqual(model.kernel_, model.kernels_[np.argmax(model.scores_.max(axis=1))])
        # None means the default Gaussian of MercerKernelRidge.
        self.assertEqual(mercer.MercerKernelRidgeCV(kernel=None).fit(self.X, self.y).kernel_, mercer.MercerKernelRidge(kernel=None).fit(self.X, self.y).kernel_)

    def test_given_kernels(self):
        K = gram({"kernel": "rbf", "gamma": 0.5}, self.X)
        named = mercer.MercerKernelRidgeCV(self.alphas, kernel="rbf", gamma=0.5).fit(self.X, self.y)
        bound = 10 * tolerance(K, np.ones(40), self.alphas[0])
        for kernel, X in (("precomputed", K), (lambda x, z: np.exp(-0.5 * np.sum((x - z) ** 2)), self.X)):
            model = mercer.MercerKernelRidgeCV(self.alphas, kernel=kernel).fit(X, self.y)
            self.assertEqual(model.alpha_, named.alpha_)
            self.assertTrue((np.abs(model.scores_ - named.scores_) <= bound).all())
            self.assertLessEqual(np.abs(model.predict(X) - named.predict(self.X)).max(), bound)
        with self.assertRaisesRegex(ValueError, "tried by itself"):
            mercer.MercerKernelRidgeCV(kernel=["rbf", "precomputed"]).fit(self.X, self.y)

    def test_like_ridge_cv(self):
        """Checks that the linear kernel with an intercept agrees with RidgeCV in values and names."""
        for per_target in (False, True):
            want = RidgeCV(self.alphas, alpha_per_target=per_target, **{STORE: True}).fit(self.X, self.Y)
            got = mercer.MercerKernelRidgeCV(self.alphas, fit_intercept=True, alpha_per_target=per_target, store_cv_results=True).fit(self.X, self.Y)
            np.testing.assert_array_equal(got.alpha_, want.alpha_)
            bound = tolerance(self.X @ self.X.T, np.ones(40), self.alphas[0]) * np.abs(self.Y).max() ** 2
            self.assertLessEqual(np.abs(got.best_score_ - want.best_score_).max(), bound)
            self.assertEqual(got.cv_results_.shape, getattr(want, RESULTS).shape)
            self.assertLessEqual(np.abs(got.cv_results_ - getattr(want, RESULTS)).max(), 10 * bound)
            self.assertLessEqual(np.abs(got.predict(self.X) - want.predict(self.X)).max(), bound)

    def test_rows_of_weight_zero(self):
        w = np.where(np.arange(40) % 5 == 0, 0.0, 1 + np.arange(40) / 40)
        kept = w > 0
        for kernel, X, part in (("rbf", self.X, self.X[kept]), ("precomputed", gram({"kernel": "rbf"}, self.X), gram({"kernel": "rbf"}, self.X)[np.ix_(kept, kept)])):
            model = mercer.MercerKernelRidgeCV(self.alphas, kernel=kernel, gamma=0.5, store_cv_results=True).fit(X, self.y, w)
            alone = mercer.MercerKernelRidgeCV(self.alphas, kernel=kernel, gamma=0.5, store_cv_results=True).fit(part, self.y[kept], w[kept])
            values = model.cv_results_
            self.assertEqual(values.shape, (40, 8))
            self.assertTrue(np.isnan(values[~kept]).all())
            np.testing.assert_array_equal(values[kept], alone.cv_results_)
            np.testing.assert_array_equal(model.scores_, alone.scores_)

    def test_what_has_no_score(self):
        X = np.vstack([self.X, self.X[:1]])  # two equal samples make K singular
        y = np.append(self.y, 0)
        with self.assertWarnsRegex(FitFailedWarning, r"kernel gaussian\(.*\): alpha 0 has no score: .*K \+ alpha I is not positive definite.*raise alpha"):
            model = mercer.MercerKernelRidgeCV([0.0, 1.0], kernel="rbf").fit(X, y)
        self.assertTrue(np.isnan(model.scores_[0, 0]))
        self.assertEqual(model.alpha_, 1.0)
        with self.assertWarnsRegex(FitFailedWarning, r"kernel sigmoid\(.*\): every alpha has no score"):
            model = mercer.MercerKernelRidgeCV([0.1], kernel=["sigmoid", "rbf"]).fit(X, y)
        self.assertTrue(np.isnan(model.scores_[0]).all())
        self.assertTrue(model.kernel_.startswith("gaussian"))
        with warnings.catch_warnings(), self.assertRaisesRegex(mercer.NotPositiveDefinite, "alpha"):
            warnings.simplefilter("ignore")
            mercer.MercerKernelRidgeCV([0.0], kernel=["rbf", "laplacian"]).fit(X, y)
        with self.assertRaisesRegex(ValueError, "as many degrees of freedom as there are samples.*raise alpha or add samples"):
            mercer.MercerKernelRidgeCV([1.0], kernel="rbf", fit_intercept=True).fit(X[:1], y[:1])

    def test_copies_and_sparse(self):
        model = mercer.MercerKernelRidgeCV(self.alphas, kernel=["rbf", "linear"]).fit(self.X, self.y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(self.X), model.predict(self.X))
        self.assertEqual((again.alpha_, again.kernel_, again.best_score_), (model.alpha_, model.kernel_, model.best_score_))
        np.testing.assert_array_equal(clone(model).fit(csr_matrix(self.X), self.y).scores_, model.scores_)

    def test_refused(self):
        for parameters, text in [
            ({"alphas": []}, "alphas is empty"),
            ({"alphas": [1, -1]}, r"alphas\[1\] must be a finite number ≥ 0, got -1"),
            ({"alphas": [np.nan]}, r"alphas\[0\] must be a finite number ≥ 0, got nan"),
            ({"alphas": "abc"}, r"alphas\[0\] must be a number, got 'abc'"),
            ({"kernel": []}, "kernel is an empty list"),
            ({"kernel": "rbf", "gamma": [1, -1]}, "gamma must be a finite number > 0"),
            ({"kernel": ["rbf", "abacus"]}, "there is no kernel 'abacus'"),
            ({"scoring": "abacus"}, "abacus"),
            ({"scoring": "gcv", "store_cv_results": True}, "no errors of single samples"),
            ({"fit_intercept": "yes"}, "fit_intercept must be True or False, got 'yes'"),
            ({"alpha_per_target": None}, "alpha_per_target must be True or False, got None"),
        ]:
            with self.subTest(**parameters), self.assertRaisesRegex(ValueError, text):
                mercer.MercerKernelRidgeCV(**parameters).fit(self.X, self.y)
