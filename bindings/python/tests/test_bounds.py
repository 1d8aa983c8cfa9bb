"""Proven bounds of the errors of predictions, where the exact predictions are known."""

import unittest

from . import support
import numpy as np
from scipy.sparse import csr_matrix

import mercer


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
                self.assertLess(bound.max(), 1e-12)

    def test_of_means(self):
        X = np.arange(6.0)[:, None]
        model = mercer.MercerGaussianProcess("gaussian(sigma=1)", alpha=0.1, optimize=False).fit(X, np.sin(X[:, 0]))
        mean, std, bound = model.predict(X, return_std=True, return_bound=True)
        np.testing.assert_array_equal(mean, model.predict(X))
        np.testing.assert_array_equal(std, model.predict(X, return_std=True)[1])
        self.assertTrue(((0 < bound) & (bound < 1e-10)).all())

    def test_refused_with_the_reason(self):
        X, y = support.smooth(support.rng(self), 20, 2)
        for model in (mercer.MercerKernelRidge(100, kernel="sigmoid"), mercer.MercerKernelRidge(0, kernel="laplacian")):
            with self.assertRaisesRegex(ValueError, "not known to be positive semidefinite"):
                model.fit(X, y).predict(X, return_bound=True)


if __name__ == "__main__":
    unittest.main()
