"""Compares with scikit-learn's Ridge for targets that no weights can explain."""

import unittest

from . import support
import numpy as np
from sklearn.linear_model import Ridge

import mercer

U = support.U


class TestOrthogonalTargets(unittest.TestCase):
    def test_ridge(self):
        r = support.rng(self)
        x = np.arange(-20, 21)[:, None] / 20
        grid = np.array([(a, b) for a in (-3, -1, 1, 3) for b in (-3, -1, 1, 3)]) / 3
        factors = np.array(np.meshgrid(*[[-0.7, 0.7]] * 4)).reshape(4, -1).T
        table = r.normal(size=(60, 3))
        for name, X, y in [
            ("square", x, x[:, 0] ** 2),
            ("absolute value", x, np.abs(x[:, 0])),
            ("cosine", 3 * x, np.cos(3 * x[:, 0])),
            ("exclusive or", grid, 0.1 * np.sign(grid[:, 0] * grid[:, 1])),
            ("factorial", factors, 0.1 * factors[:, 0] * factors[:, 1] * factors[:, 2] + 3.3),
            ("constant", table, np.full(60, 0.1)),
            ("constant, far from 0", table, np.full(60, 1e8 + 0.3)),
            ("constant but for rounding", table, np.where(np.arange(60) % 3, 0.3, np.nextafter(0.3, 1))),
        ]:
            for alpha in (1e-8, 1.0, 1e8):
                with self.subTest(target=name, alpha=alpha):
                    got = mercer.MercerRidge(alpha=alpha).fit(X, y).predict(X)
                    want = Ridge(alpha=alpha, solver="svd").fit(X, y).predict(X)
                    # In both fits, w is the rounding error of Xᵀy divided by the smallest σ² of X,
                    # and b = mean(y).
                    X0 = X - X.mean(axis=0)
                    s = np.linalg.svd(X0, compute_uv=False)
                    n, d = X.shape
                    bound = 40 * np.sqrt(n + d) * U * np.linalg.norm(y) * np.linalg.norm(X0) / s[-1] ** 2 * np.linalg.norm(X0, axis=1).max()
                    self.assertLessEqual(np.abs(got - want).max(), bound)
                    self.assertLessEqual(np.abs(got - y.mean()).max(), bound)


if __name__ == "__main__":
    unittest.main()
