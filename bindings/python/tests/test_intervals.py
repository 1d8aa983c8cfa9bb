"""Compares prediction intervals with the n refits of their definition."""

import pickle
import unittest

from . import support
import numpy as np
from scipy.sparse import csr_matrix
from scipy.stats import norm
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import mercer


def jackknife_plus(make, X, y, Z, level):
    """The bounds by their definition: quantiles of f₋ᵢ(z) ∓ |y_i − f₋ᵢ(x_i)|, where f₋ᵢ is the
    fit without sample i (Barber et al. 2021, equation 1.5)."""
    n = len(y)
    low, high = np.empty((n, len(Z))), np.empty((n, len(Z)))
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        model = make().fit(X[rest], y[rest])
        error = abs(y[i] - model.predict(X[i:i + 1])[0])
        low[i], high[i] = model.predict(Z) - error, model.predict(Z) + error
    rank = int(np.ceil(round(level * (n + 1), 9)))
    return np.sort(low, axis=0)[n - rank], np.sort(high, axis=0)[rank - 1]


class TestIntervals(unittest.TestCase):
    def setUp(self):
        self.r = support.rng(self)
        self.X, self.y = support.smooth(self.r, 39, 2)
        self.Z = self.r.normal(size=(12, 2))

    def test_are_those_of_n_refits(self):
        # The values are below 10. The systems have ‖K‖ ≤ 39, ‖XᵀX‖ < 1e3 and condition numbers
        # below 1e4, and are solved with a backward error of n·γ(3n+1) (Higham 2002, theorem 10.4).
        bound = 4 * 39 * (3 * 39 + 1) * support.U * 1e4 * 10
        for level in (0.5, 0.8, 0.9):
            for got, make in [
                (mercer.MercerKernelRidge(0.1, kernel="rbf", gamma=0.7), lambda: KernelRidge(alpha=0.1, kernel="rbf", gamma=0.7)),
                (mercer.MercerKernelRidgeCV([0.1], kernel="rbf", gamma=0.7), lambda: KernelRidge(alpha=0.1, kernel="rbf", gamma=0.7)),
                (mercer.MercerRidge(0.5, intervals=True), lambda: Ridge(alpha=0.5)),
            ]:
                with self.subTest(estimator=got, level=level):
                    lower, upper = got.fit(self.X, self.y).predict_interval(self.Z, level)
                    want = jackknife_plus(make, self.X, self.y, self.Z, level)
                    self.assertEqual(lower.shape, (12,))
                    self.assertLessEqual(np.abs(lower - want[0]).max(), bound)
                    self.assertLessEqual(np.abs(upper - want[1]).max(), bound)
                    self.assertLess(bound, 1e-3 * (upper - lower).min())

    def test_targets_and_kinds_of_input(self):
        Y = np.column_stack([self.y, 3 - 2 * self.y])
        for make in (lambda: mercer.MercerKernelRidge(0.1, kernel="rbf"), lambda: mercer.MercerRidge(intervals=True)):
            both = make().fit(self.X, Y)
            lower, upper = both.predict_interval(self.Z)
            alone = make().fit(self.X, Y[:, 1]).predict_interval(self.Z)
            self.assertEqual(lower.shape, (12, 2))
            # Products with one column and products with two columns may add their terms in
            # different orders.
            np.testing.assert_allclose(lower[:, 1], alone[0], rtol=1e4 * 39 * support.U, atol=1e4 * 39 * support.U)
            np.testing.assert_allclose(upper[:, 1], alone[1], rtol=1e4 * 39 * support.U, atol=1e4 * 39 * support.U)
            for got in zip(both.predict_interval(csr_matrix(self.Z)), (lower, upper)):
                np.testing.assert_array_equal(*got)
        named = mercer.MercerKernelRidge(0.1, kernel="rbf", gamma=0.5).fit(self.X, self.y).predict_interval(self.Z)
        by_function = mercer.MercerKernelRidge(0.1, kernel=lambda x, z: np.exp(-0.5 * np.sum((x - z) ** 2))).fit(self.X, self.y).predict_interval(self.Z)
        np.testing.assert_allclose(np.array(by_function), np.array(named), rtol=0, atol=4 * 39 * (3 * 39 + 1) * support.U * 1e4)

    def test_of_the_normal_distribution(self):
        """Checks that Nyström features with a center at each sample have the posterior of
        scikit-learn's process, whose standard deviation does not include the noise."""
        k = RBF(0.8)
        want = GaussianProcessRegressor(k, alpha=0.1, optimizer=None).fit(self.X, self.y)
        mean, std = want.predict(self.Z, return_std=True)
        # s² maximizes the likelihood of C = K + I/10, and scikit-learn's process has s² = 1.
        s2 = self.y @ np.linalg.solve(k(self.X) + 0.1 * np.eye(39), self.y) / 39
        std = np.sqrt(s2 * (std ** 2 + 0.1))
        # The jitter of k(c, c) is 4·2⁻⁵²·39, ‖C⁻¹‖ ≤ 10, and there are 39 samples.
        bound = 4 * 2 * support.U * 39 * 10 * 10 * 39 * 39 * max(1, s2)
        for fit_scale in (True, False):
            got = mercer.MercerNystroemRidge(0.1, kernel="rbf", gamma=0.5 / 0.8 ** 2, n_components=39, tol=1e-12, std=True, fit_scale=fit_scale).fit(self.X, self.y)
            f, s = got.predict(self.Z, return_std=True)
            np.testing.assert_allclose(f, mean, rtol=0, atol=bound)
            np.testing.assert_allclose(s, std if fit_scale else std / np.sqrt(s2), rtol=0, atol=bound)
            lower, upper = got.predict_interval(self.Z, 0.95)
            np.testing.assert_allclose(lower, f - norm.ppf(0.975) * s, rtol=0, atol=1e-12)
            np.testing.assert_allclose(upper, f + norm.ppf(0.975) * s, rtol=0, atol=1e-12)
            if not fit_scale:
                self.assertAlmostEqual(got.log_marginal_likelihood_value_, want.log_marginal_likelihood_value_, delta=bound * 39)
        fourier = mercer.MercerFourierRidge(0.1, n_components=50, std=True).fit(self.X, self.y)
        self.assertTrue(np.all(fourier.predict(self.Z, return_std=True)[1] > 0))
        self.assertTrue(np.all(pickle.loads(pickle.dumps(fourier)).predict_interval(self.Z)[0] == fourier.predict_interval(self.Z)[0]))
        plain = mercer.MercerNystroemRidge(0.1).fit(self.X, self.y)
        with self.assertRaisesRegex(ValueError, "did not keep its posterior: fit it with std = true"):
            plain.predict(self.Z, return_std=True)
        with self.assertRaisesRegex(AttributeError, "set std=True and fit again"):
            plain.predict_interval(self.Z)
        with self.assertRaisesRegex(AttributeError, "set std=True and fit again"):
            plain.log_marginal_likelihood_value_

    def test_coverage(self):
        """Checks the fraction of new targets in the intervals over many draws of the samples: it
        is at least 2·level − 1 by theory, and near level for this distribution."""
        inside = []
        for _ in range(40):
            X, y = support.smooth(self.r, 60, 2)
            Z, z = support.smooth(self.r, 25, 2)
            lower, upper = mercer.MercerKernelRidge(0.1, kernel="rbf").fit(X, y).predict_interval(Z, 0.8)
            inside.append(np.mean((lower <= z) & (z <= upper)))
        # Five standard errors of the mean of the draws.
        error = 5 * np.std(inside, ddof=1) / np.sqrt(len(inside))
        self.assertLess(error, 0.15)
        self.assertLessEqual(abs(np.mean(inside) - 0.8), error + 1 / 61)

    def test_calibrated(self):
        """Checks that the split-conformal intervals of every estimator are f(z) ± the
        ⌈level (m + 1)⌉-th smallest error, and that copies and files keep them."""
        X, y = support.smooth(self.r, 60, 2)
        C, c = support.smooth(self.r, 39, 2)
        named = [mercer.MercerRegressor(method) for method in ("lasso", "bayes-ridge", "kernel-knn")]
        estimators = [mercer.MercerRidge(), mercer.MercerKernelRidge(0.1, kernel="rbf"), mercer.MercerKernelRidge(0.1, kernel=lambda x, z: np.exp(-np.sum((x - z) ** 2))),
                      mercer.MercerKernelRidgeCV(), mercer.MercerNystroemRidge(), mercer.MercerFourierRidge(), mercer.MercerGaussianProcess(), mercer.MercerSVR(), mercer.MercerNuSVR(), *named]
        self.assertEqual({type(e) for e in estimators}, {v for v in vars(mercer).values() if isinstance(v, type) and issubclass(v, RegressorMixin)})
        for estimator in estimators:
            with self.subTest(estimator=estimator):
                fitted = estimator.fit(X, y)
                f = fitted.predict(self.Z)
                errors = np.sort(np.abs(c - fitted.predict(C)))
                self.assertIs(fitted.calibrate(C, c), fitted)
                for level in (0.25, 0.8, 39 / 40):
                    lower, upper = fitted.predict_interval(self.Z, level)
                    half = errors[int(np.ceil(round(level * 40, 9))) - 1]
                    # Predictions for 12 rows and for 39 rows may add their terms in different
                    # orders.
                    bound = 1e4 * 60 * support.U * (1 + half + np.abs(f).max())
                    np.testing.assert_allclose(lower, f - half, rtol=0, atol=bound)
                    np.testing.assert_allclose(upper, f + half, rtol=0, atol=bound)
                if fitted._function is None:
                    again = pickle.loads(pickle.dumps(fitted)).predict_interval(self.Z, 0.8)
                    np.testing.assert_array_equal(again, fitted.predict_interval(self.Z, 0.8))
                with self.assertRaisesRegex(ValueError, "level"):
                    fitted.predict_interval(self.Z, 0.99)
                self.assertEqual(fitted.fit(X, y).model_.info["capabilities"].count("intervals"), int(isinstance(estimator, mercer.MercerKernelRidge) or "deviations" in fitted.model_.info["capabilities"]))
        with self.assertRaisesRegex(AttributeError, "call calibrate"):
            mercer.MercerSVR().fit(X, y).predict_interval(self.Z)
        with self.assertRaises(NotFittedError):
            mercer.MercerSVR().calibrate(C, c)
        with self.assertRaisesRegex(ValueError, "inconsistent numbers of samples"):
            mercer.MercerSVR().fit(X, y).calibrate(C, c[:-1])

    def test_calibrated_coverage(self):
        """Over draws of all samples, split-conformal intervals contain a fraction of new
        targets of at least level and at most level + 1/(m + 1); sets of classes contain at
        least level."""
        m, level, draws, each = 39, 0.8, 60, 40
        for classes, make in [(False, lambda: mercer.MercerSVR(C=10)), (False, mercer.MercerNystroemRidge), (True, mercer.MercerClassifier),
                              (True, lambda: mercer.MercerClassifier("logistic")), (True, lambda: mercer.MercerClassifier("svc"))]:
            inside = []
            for _ in range(draws):
                X, y = support.smooth(self.r, 60 + m + each, 2)
                if classes:
                    y = np.where(y + self.r.normal(scale=0.5, size=len(y)) > 0.5, "high", np.where(y < -0.3, "low", "mid"))
                fitted = make().fit(X[:60], y[:60]).calibrate(X[60:60 + m], y[60:60 + m])
                Z, z = X[60 + m:], y[60 + m:]
                if classes:
                    sets = fitted.predict_set(Z, level)
                    self.assertTrue(sets[np.arange(each), np.searchsorted(fitted.classes_, fitted.predict(Z))].all())
                    inside.append(np.mean([name in fitted.classes_[row] for name, row in zip(z, sets)]))
                else:
                    lower, upper = fitted.predict_interval(Z, level)
                    inside.append(np.mean((lower <= z) & (z <= upper)))
            # Five standard errors of the mean of the draws, which are independent.
            error = 5 * np.std(inside, ddof=1) / np.sqrt(draws)
            with self.subTest(estimator=make()):
                self.assertLess(error, 0.1)
                self.assertGreaterEqual(np.mean(inside), level - error)
                if not classes:
                    self.assertLessEqual(np.mean(inside), level + 1 / (m + 1) + error)

    def test_sets(self):
        fitted = mercer.MercerClassifier("svc").fit(self.X, self.y > 0)
        with self.assertRaisesRegex(AttributeError, "call calibrate"):
            fitted.predict_set(self.Z)
        X, y = support.smooth(self.r, 30, 2)
        sets = fitted.calibrate(X, y > 0).predict_set(self.Z, 0.7)
        self.assertEqual((sets.shape, sets.dtype), ((12, 2), np.dtype(bool)))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_set(csr_matrix(self.Z), 0.7), sets)
        # A class that the model does not know is in no set, as if its error were infinite.
        unknown = mercer.MercerClassifier("svc").fit(self.X, np.where(self.y > 0, "a", "b")).calibrate(X, np.full(30, "c"))
        self.assertTrue(unknown.predict_set(self.Z, 0.7).all())

    def test_only_where_there_are_some(self):
        self.assertTrue(hasattr(mercer.MercerKernelRidge(), "predict_interval"))
        self.assertTrue(hasattr(mercer.MercerRidge(intervals=True), "predict_interval"))
        for estimator in (mercer.MercerRidge(), mercer.MercerSVR(), mercer.MercerNystroemRidge(), mercer.MercerClassifier()):
            self.assertFalse(hasattr(estimator, "predict_interval"), estimator)
            fitted = clone(estimator).fit(self.X, self.y > 0)
            self.assertFalse(hasattr(fitted, "predict_interval"), estimator)
        with self.assertRaisesRegex(AttributeError, "set intervals=True"):
            mercer.MercerRidge().fit(self.X, self.y).predict_interval(self.Z)
        fitted = mercer.MercerKernelRidge(kernel="rbf").fit(self.X, self.y)
        for level, text in [(0.4, "level must be ≥ 0.5"), (1, "level must be"), (np.nan, "level must be"), ("0.9", "level must be a number, got '0.9'"), (0.99, "needs at least 99 rows")]:
            with self.subTest(level=level), self.assertRaisesRegex(ValueError, text):
                fitted.predict_interval(self.Z, level)
        with self.assertRaisesRegex(ValueError, "alpha > 0: raise alpha"):
            mercer.MercerKernelRidge(alpha=0, kernel="laplacian").fit(self.X, self.y).predict_interval(self.Z)
