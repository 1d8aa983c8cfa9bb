"""Checks proven bounds of the errors of predictions in cases with known exact predictions."""

import math
import unittest

from . import support
import numpy as np
from scipy.sparse import csr_matrix

import mercer


def limit(n, S, y, alpha):
    """The largest possible bound of a prediction by the formulas of docs/trust.md. The entries of K are at most 1
    with errors of at most 64u, S is the sum of the absolute values of the coefficients, and the targets are at most y.
    Each computed residual is assumed to be no larger than the limit of its rounding errors."""
    u = 2.0**-53
    residual = 2 * u * ((64 + n + 33) * S + 16 * (3 * y + 2 * y + alpha * S))
    return residual * math.sqrt(n / alpha) / 2 + u * ((64 + n + 9) * S + (n + 9) * y)


class TestBounds(unittest.TestCase):
    def test_contain_the_exact_predictions(self):
        # The samples are so far apart that K = I to the last bit. Then a = y/(1 + alpha), here y/2.
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
        # The norm of the 6 coefficients is at most ‖y‖/alpha, and the sum of their absolute values at most sqrt(6) times that.
        self.assertTrue(((0 < bound) & (bound < limit(6, 6 / 0.1, 1, 0.1))).all())

    def test_of_functions(self):
        # The samples are x = ±1, each twice, and y = x. The minimum of 4(1 - w)² + alpha w² is at w = 4/(4 + alpha), here 1/2.
        X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
        f, bound = mercer.MercerRidge(4, bound=True).fit(X, X[:, 0]).predict(X, return_bound=True)
        self.assertTrue((abs(f - X[:, 0] / 2) <= bound).all())
        self.assertLess(bound.max(), 1e-15)  # w has a few rounding errors of numbers of at most 4
        # There is one center, at 0, and k(0, 0) = 1 to the last bit. Then f(0) = y/(1 + alpha).
        zero = np.zeros((1, 1))
        for model in (mercer.MercerNystroemRidge(1, kernel="gaussian(sigma=1)", n_components=1, bound=True),
                      mercer.MercerFourierRidge(1, kernel="gaussian(sigma=1)", n_components=2, bound=True)):
            f, bound = model.fit(zero, [3.0]).predict(zero, return_bound=True)
            self.assertTrue((abs(f - 1.5) <= bound).all() and bound.max() < 1e-4)  # tol is 1e-6
        with self.assertRaisesRegex(ValueError, "no bound"):
            mercer.MercerRidge(4).fit(X, X[:, 0]).predict(X, return_bound=True)

    def test_refused_with_the_reason(self):
        X, y = support.smooth(support.rng(self), 20, 2)
        for model in (mercer.MercerKernelRidge(100, kernel="sigmoid"), mercer.MercerKernelRidge(0, kernel="laplacian")):
            with self.assertRaisesRegex(ValueError, "not known to be positive semidefinite"):
                model.fit(X, y).predict(X, return_bound=True)


if __name__ == "__main__":
    unittest.main()
