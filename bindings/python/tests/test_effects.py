"""Compares marginal effects with differences of predictions and with scikit-learn's coefficients."""

import unittest

from . import support
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge, LogisticRegression

import mercer


class TestEffects(unittest.TestCase):
    def setUp(self):
        self.r = support.rng(self)
        self.X, self.y = support.smooth(self.r, 60, 3)
        self.X[:, 2] = np.arange(60) % 2
        self.Z = self.X[:20] + np.array([0.1, -0.1, 0.0])

    def test_differences_of_predictions(self):
        Y = np.column_stack([self.y, self.y ** 2])
        h = 2.0 ** -10
        for model, f in [
            (mercer.MercerKernelRidge(0.5, kernel="rbf", gamma=0.7).fit(self.X, Y), "predict"),
            (mercer.MercerSVR(gamma=0.7).fit(self.X, self.y), "predict"),
            (mercer.MercerClassifier("kernel-ridge", gamma=0.7).fit(self.X, np.digitize(self.y, np.quantile(self.y, [0.3, 0.6]))), "decision_function"),
            (mercer.MercerClassifier("kernel-logistic", gamma=0.7).fit(self.X, self.y > 0), "decision_function"),
        ]:
            with self.subTest(model=model):
                def at(p, v):
                    Z = self.Z.copy()
                    Z[:, p] = v
                    out = getattr(model, f)(Z)
                    return out.reshape(len(Z), -1).T
                each = model.marginal_effects(self.Z, binary=[2], average=False)
                each = each.reshape(-1, 20, 3)
                for p in range(2):
                    z = self.Z[:, p]
                    # The error is h²/6 times the third derivative, which is below 10 for gamma = 0.7.
                    np.testing.assert_allclose(each[:, :, p], (at(p, z + h) - at(p, z - h)) / (2 * h), atol=20 * h * h * max(1, np.abs(each).max()))
                np.testing.assert_allclose(each[:, :, 2], at(2, 1.0) - at(2, 0.0), atol=1e-12)
                np.testing.assert_allclose(model.marginal_effects(self.Z, binary=[2]), np.squeeze(each.mean(axis=1)), atol=1e-13)

    def test_linear_models(self):
        want = BayesianRidge(tol=1e-12, max_iter=10000, **{f"{a}_{i}": 0 for a in ("alpha", "lambda") for i in (1, 2)}) if hasattr(BayesianRidge(), "max_iter") else \
            BayesianRidge(tol=1e-12, n_iter=10000, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0)
        want.fit(self.X, self.y)
        model = mercer.MercerRegressor("bayes-ridge").fit(self.X, self.y)
        effects, std = model.marginal_effects(self.Z, return_std=True)
        np.testing.assert_allclose(effects, want.coef_, rtol=1e-6)
        np.testing.assert_allclose(std, np.sqrt(np.diag(want.sigma_)), rtol=1e-6)

    def test_gaussian_process(self):
        """The difference of two means of the process has the variance hᵀCh with the posterior covariance C."""
        want = GaussianProcessRegressor(RBF(0.8), alpha=0.1, optimizer=None).fit(self.X, self.y)
        model = mercer.MercerGaussianProcess("gaussian(sigma=0.8)", alpha=0.1, optimize=False, fit_scale=False, fit_intercept=False).fit(self.X, self.y)
        effects, std = model.marginal_effects(self.Z, return_std=True, binary=[2])
        def moved(p, h, contrast):
            points = np.concatenate([self.Z, self.Z])
            points[:20, p], points[20:, p] = contrast(self.Z[:, p], h)
            mean, cov = want.predict(points, return_cov=True)
            step = np.repeat([1, -1], 20) / (20 * (points[0, p] - points[20, p]))
            return step @ mean, np.sqrt(step @ cov @ step)
        for p in range(3):
            derivative = lambda z, h: (z + h, z - h)
            m, s = moved(p, 2.0 ** -8, derivative) if p < 2 else moved(p, 0, lambda z, _: (1.0, 0.0))
            np.testing.assert_allclose([effects[p], std[p]], [m, s], rtol=1e-4, atol=1e-6)

        _, mean, none = model.model_.effects(self.Z, [2], std=False)
        self.assertIsNone(none)
        np.testing.assert_array_equal(mean[0], effects)

    def test_refusals(self):
        model = mercer.MercerSVR(gamma=0.7).fit(self.X, self.y)
        with self.assertRaisesRegex(ValueError, "MercerSVR has no standard errors of effects"):
            model.marginal_effects(self.Z, return_std=True)
        for binary, text in [([0], "the feature with index 0 has 20 values"), ([3], "3 is listed twice, or is not the index of a feature"), ([-1], "-1 is listed twice, or is not the index"),
                             ("x", "sequence of indices"), ([1.5], "sequence of indices"), (1, "sequence of indices")]:
            with self.assertRaisesRegex(ValueError, text):
                model.marginal_effects(self.Z, binary=binary)
        three = mercer.MercerClassifier("svc", gamma=0.7).fit(self.X, np.arange(60) % 3)
        with self.assertRaisesRegex(ValueError, "no derivative"):
            three.marginal_effects(self.Z)
