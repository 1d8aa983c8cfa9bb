"""Proven bounds of the errors of predictions, where the exact predictions are known."""

import math
import unittest

from . import support
import numpy as np
from scipy.sparse import csr_matrix

import mercer


def limit(n, S, y, alpha):
    """The largest bound for K with entries of at most 1 that have errors of at most 64u, coefficients whose
    absolute values have the sum S, and targets of at most y: the formulas of docs/trust.md, where each computed
    residual is at most as large as the limit of its rounding errors, with room for the rounding of a result."""
    u = 2.0**-53
    residual = 2 * u * ((64 + n + 33) * S + 16 * (3 * y + 2 * y + alpha * S))
    return residual * math.sqrt(n / alpha) / 2 + u * ((64 + n + 9) * S + (n + 9) * y)


class TestBounds(unittest.TestCase):
    def test_contain_the_exact_predictions(self):
        # Samples so far apart that K = I to the last bit: a = y/(1 + alpha), here y/2.
        X, Y = np.arange(5.0)[:, None], np.array([[1, -4], [2, 5], [-3, 6], [4, 0.5], [7, 1]])
        model = mercer.MercerKernelRidge(1, kernel="gaussian(sigma=1e-3)", fit_intercept=False)
        for samples in (X, csr_matrix(X)):
            for y in (Y, Y[:, 0]):
                f, bound = model.fit(samples, y).predict(samples, return_bound=True)
                self.assertEqual(f.shape, y.shape)
                np.testing.assert_array_equal(f, model.predict(samples))
                self.assertTrue((abs(f - y / 2) <= bound).all())
                self.assertLess(bound.max(), limit(5, abs(y / 2).sum(axis=0).max(), 7, 1))

    def test_of_means(self):
        X = np.arange(6.0)[:, None]
        model = mercer.MercerGaussianProcess("gaussian(sigma=1)", alpha=0.1, optimize=False).fit(X, np.sin(X[:, 0]))
        mean, std, bound = model.predict(X, return_std=True, return_bound=True)
        np.testing.assert_array_equal(mean, model.predict(X))
        np.testing.assert_array_equal(std, model.predict(X, return_std=True)[1])
        # The norm of the 6 coefficients is at most that of y over alpha, and their sum sqrt(6) times that.
        self.assertTrue(((0 < bound) & (bound < limit(6, 6 / 0.1, 1, 0.1))).all())

    def test_refused_with_the_reason(self):
        X, y = support.smooth(support.rng(self), 20, 2)
        for model in (mercer.MercerKernelRidge(100, kernel="sigmoid"), mercer.MercerKernelRidge(0, kernel="laplacian")):
            with self.assertRaisesRegex(ValueError, "not known to be positive semidefinite"):
                model.fit(X, y).predict(X, return_bound=True)


if __name__ == "__main__":
    unittest.main()
