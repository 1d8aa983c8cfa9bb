"""Compares updated models with refits, and draws from posteriors with their moments."""

import unittest

from . import support
import numpy as np
from scipy.sparse import random as random_sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import mercer


class TestUpdates(unittest.TestCase):
    def setUp(self):
        self.r = support.rng(self)
        self.X, self.y = support.smooth(self.r, 60, 2)
        self.w = self.r.integers(0, 3, 60) / 2.0
        self.Z = self.r.normal(size=(9, 2))
        self.kinds = [
            lambda **more: mercer.MercerRidge(0.5, std=True, **more),
            lambda **more: mercer.MercerNystroemRidge(0.5, gamma=0.7, components=self.X[:10], std=True, tol=1e-13, **more),
            lambda **more: mercer.MercerFourierRidge(0.5, gamma=0.7, n_components=12, std=True, tol=1e-13, **more),
        ]

    def check(self, got, want):
        self.assertEqual(type(got), type(want))
        for a, b in zip(got.predict(self.Z, return_std=True), want.predict(self.Z, return_std=True)):
            self.assertEqual(a.shape, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(got.predict_interval(self.Z, 0.95), want.predict_interval(self.Z, 0.95), rtol=1e-12, atol=1e-12)

    def test_equal_refits(self):
        Y = np.column_stack([self.y, 3 - 2 * self.y])
        for make in self.kinds:
            for y, w in [(self.y, None), (Y, self.w)]:
                first = slice(0, 40), slice(40, 60)
                part = [(self.X[s], y[s], None if w is None else w[s]) for s in first]
                with self.subTest(estimator=make(), weights=w is not None):
                    whole, half = make().fit(self.X, y, w), make().fit(*part[0])
                    model = make().partial_fit(*part[0])
                    self.check(model, half)
                    self.check(model.partial_fit(*part[1]), whole)
                    self.check(model.remove(*part[1]), half)
                    self.check(model.merge(make().fit(*part[1])), whole)
                    self.assertAlmostEqual(model.log_marginal_likelihood_value_, whole.log_marginal_likelihood_value_, delta=1e-9)

    def test_sparse_samples(self):
        X = random_sparse(60, 100, 0.05, "csr", random_state=1)
        for make in (lambda: mercer.MercerRidge(0.5, std=True), lambda: mercer.MercerNystroemRidge(0.5, gamma=0.7, n_components=100, std=True, tol=1e-13)):
            y = np.asarray(X.sum(axis=1))[:, 0]
            model = make().fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
            want = make().fit(X[:40].toarray(), y[:40]).partial_fit(X[40:].toarray(), y[40:])
            for a, b in zip(model.predict(X, return_std=True), want.predict(X, return_std=True)):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)

    def test_faults(self):
        X, y = self.X, self.y
        for make in self.kinds:
            model = make().fit(X, y)
            for text, call in [
                ("some removed samples were not in the fit", lambda: model.remove(X + 9, y)),
                ("no sample of the fit is left", lambda: model.remove(X, y)),
                ("2 features|2 columns", lambda: model.partial_fit(X[:, :1], y)),
                ("y has 2 columns, but the model has 1 output", lambda: model.partial_fit(X, np.column_stack([y, y]))),
                (r"sample_weight\[1\] must be", lambda: model.partial_fit(X[:2], y[:2], [1, -1])),
                ("differ in lambda|differ in alpha", lambda: model.merge(make().set_params(alpha=1).fit(X, y))),
                ("fitted by gaussian-process", lambda: model.merge(mercer.MercerGaussianProcess(optimize=False).fit(X, y))),
                ("number of draws|negative|out has 0", lambda: model.sample_y(X, 0)),
            ]:
                with self.subTest(estimator=model, text=text), self.assertRaisesRegex(ValueError, text):
                    call()
            self.check(model, make().fit(X, y))  # no failed call has changed it
        nystroem = self.kinds[1]().fit(X, y)
        for text, other in [("differ in the kernel", self.kinds[1]().set_params(gamma=1)), ("differ in the centers", self.kinds[1]().set_params(components=X[1:11]))]:
            with self.assertRaisesRegex(ValueError, text):
                nystroem.merge(other.fit(X, y))
        for estimator in (mercer.MercerRidge(), mercer.MercerNystroemRidge(), mercer.MercerFourierRidge()):
            for name in ("partial_fit", "remove", "merge", "sample_y"):
                self.assertFalse(hasattr(estimator.fit(X, y), name))
            with self.assertRaisesRegex(AttributeError, "std=True"):
                estimator.partial_fit(X, y)

    def test_given_centers(self):
        C = self.r.normal(size=(7, 2))
        model = mercer.MercerNystroemRidge(0.5, gamma=0.7, components=C).fit(self.X, self.y)
        np.testing.assert_array_equal(model.components_, C)
        for text, more in [("components has 1 columns", {"components": C[:, :1]}), ("omit the number and the choice of centers", {"n_components": 5}), ("because the centers are given", {"choice": "rpcholesky"}),
                           ("components must be None", {"kernel": lambda x, z: x @ z})]:
            with self.assertRaisesRegex(ValueError, text):
                mercer.MercerNystroemRidge(0.5, gamma=0.7, components=C).set_params(**more).fit(self.X, self.y)

    def test_draws_are_those_of_the_process(self):
        """With a center at each sample the posterior is that of scikit-learn's process. The
        mean and the covariance of N draws have the standard errors √(v/N) and at most
        v√(2/N); 6 of them are exceeded with a probability below 1e-8."""
        k, N = RBF(0.8), 4000
        want = GaussianProcessRegressor(k, alpha=0.1, optimizer=None).fit(self.X, self.y)
        mean, cov = want.predict(self.Z, return_cov=True)
        model = mercer.MercerNystroemRidge(0.1, kernel="rbf", gamma=1 / (2 * 0.8**2), components=self.X, std=True, fit_scale=False).fit(self.X, self.y)
        draws = model.sample_y(self.Z, N, random_state=1)
        self.assertEqual(draws.shape, (9, N))
        np.testing.assert_array_equal(draws, model.sample_y(self.Z, N, random_state=1))
        v = np.diag(cov)
        self.assertTrue(np.all(abs(draws.mean(axis=1) - mean) <= 6 * np.sqrt(v / N)))
        self.assertTrue(np.all(abs(np.cov(draws) - cov) <= 6 * np.sqrt(2 * np.outer(v, v) / N)))
        both = mercer.MercerRidge(std=True).fit(self.X, np.column_stack([self.y, self.y]))
        self.assertEqual(both.sample_y(self.Z, 3).shape, (9, 2, 3))


if __name__ == "__main__":
    unittest.main()
