"""Compares predictions with scikit-learn's, with derived bounds."""

import unittest

from . import support
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import mercer

U = support.U


def kernel_error(kernel, gamma, coef0, degree, X, Z):
    """A bound of the rounding error of a kernel value, valid for both programs.

    The error of an inner product of d terms is at most (d + 2)u‖x‖‖z‖ (Higham 2002, 3.1). The
    error of a squared distance, computed from three inner products, is at most
    4(d + 2)u·max‖x‖². The kernel
    multiplies this error by its derivative and adds a few rounding errors of its value."""
    d = X.shape[1]
    size = max(np.sum(X**2, axis=1).max(), np.sum(Z**2, axis=1).max())
    product = (d + 2) * U * size
    if kernel == "linear":
        return product
    if kernel == "rbf":
        return gamma * 4 * product + 8 * U
    if kernel == "laplacian":
        return gamma * 2 * d * U * np.sqrt(d * size) + 8 * U
    base = gamma * size + coef0
    if kernel == "poly":
        return degree * base ** (degree - 1) * gamma * product + 8 * (degree + 2) * U * base**degree
    return gamma * product + 8 * U * max(base, 1)  # sigmoid: its slope is at most 1


def solution_bound(K, delta, alpha, weights, cross_norm, rows):
    """The largest difference of two predictions kᵀa if both programs solve (K + αI)a =
    y by Cholesky, each with its own K, with an error of delta in every element.

    Cholesky solves a system whose matrix has an error of n·γ(3n+1)‖A‖ (Higham 2002,
    theorem 10.4), so that ‖δa‖ ≤ ‖δA‖‖a‖/α. The factor 2 covers the terms of second order."""
    n = len(K)
    norm = np.linalg.norm(K, 2) + alpha
    matrix = n * (3 * n + 1) * U * norm + n * delta
    size = np.linalg.norm(weights)
    return 2 * (2 * cross_norm * matrix * size / alpha + 2 * np.sqrt(rows) * (delta + n * U * cross_norm) * size)


class TestKernelRidge(unittest.TestCase):
    def test_kernels(self):
        r = support.rng(self)
        X, y = support.smooth(r, 120, 4)
        Z = r.normal(size=(60, 4))
        Y = np.column_stack([y, y**2])
        for kernel, gamma in [("linear", None), ("rbf", 0.3), ("rbf", None), ("laplacian", 0.2), ("poly", 0.2)]:
            for target in (y, Y):
                with self.subTest(kernel=kernel, gamma=gamma, targets=target.ndim):
                    parameters = {"alpha": 0.7, "kernel": kernel, "gamma": gamma, "degree": 3, "coef0": 0.5}
                    want = KernelRidge(**parameters).fit(X, target)
                    got = mercer.MercerKernelRidge(**parameters).fit(X, target)
                    g = 1 / 4 if gamma is None else gamma
                    K = pairwise_kernels(X, metric=kernel, filter_params=True, gamma=g, degree=3, coef0=0.5)
                    cross = pairwise_kernels(Z, X, metric=kernel, filter_params=True, gamma=g, degree=3, coef0=0.5)
                    delta = kernel_error(kernel, g, 0.5, 3, X, Z)
                    bound = solution_bound(K, delta, 0.7, want.dual_coef_, np.linalg.norm(cross, 2), len(Z))
                    f, h = got.predict(Z), want.predict(Z)
                    self.assertEqual(f.shape, h.shape)
                    self.assertLessEqual(np.abs(f - h).max(), bound)
                    self.assertEqual(got.dual_coef_.shape, want.dual_coef_.shape)
                    # The bound can detect errors, because it is much smaller than the predictions.
                    self.assertLess(bound, 1e-5 * np.abs(h).max())

    def test_weights(self):
        X, y = support.smooth(support.rng(self), 80, 3)
        w = np.linspace(0.5, 2, 80)
        want = KernelRidge(kernel="rbf", alpha=0.5).fit(X, y, sample_weight=w)
        got = mercer.MercerKernelRidge(kernel="rbf", alpha=0.5).fit(X, y, sample_weight=w)
        K = pairwise_kernels(X, metric="rbf", gamma=1 / 3)
        # scikit-learn solves (W½KW½ + αI)b = W½y. As W ≤ 2, the norms of this matrix and of its
        # inverse are at most twice the norms for W = I.
        bound = 4 * solution_bound(K, kernel_error("rbf", 1 / 3, 0, 0, X, X), 0.5 / 2, want.dual_coef_, np.linalg.norm(K, 2), len(X))
        self.assertLessEqual(np.abs(got.predict(X) - want.predict(X)).max(), bound)

    def test_penalties(self):
        """Compares fits with an alpha for each target: all different, some equal, or an array of
        one number."""
        r = support.rng(self)
        X, y = support.smooth(r, 90, 3)
        Z = r.normal(size=(30, 3))
        Y = np.column_stack([y, y**2, np.abs(y), y - 1])
        cross = pairwise_kernels(Z, X, metric="rbf", gamma=1 / 3)
        K = pairwise_kernels(X, metric="rbf", gamma=1 / 3)
        for alpha, target in [([0.3, 2, 0.3, 10], Y), (np.array([0.5]), Y), (np.array([0.5]), y), (np.geomspace(0.1, 10, 4), Y)]:
            for solver in ("auto", "dual", "cg"):
                with self.subTest(alpha=alpha, solver=solver):
                    want = KernelRidge(kernel="rbf", alpha=alpha).fit(X, target)
                    got = mercer.MercerKernelRidge(kernel="rbf", alpha=alpha, solver=solver, tol=1e-12).fit(X, target)
                    least = np.min(alpha)
                    bound = solution_bound(K, kernel_error("rbf", 1 / 3, 0, 3, X, Z), least, want.dual_coef_, np.linalg.norm(cross, 2), len(Z))
                    # This term bounds the effect of a residual of 1e-12.
                    bound += np.linalg.norm(cross, 2) * 1e-12 * np.linalg.norm(target) / least
                    f, h = got.predict(Z), want.predict(Z)
                    self.assertEqual(f.shape, h.shape)
                    self.assertLessEqual(np.abs(f - h).max(), bound)
                    self.assertEqual(got.dual_coef_.shape, want.dual_coef_.shape)

    def test_penalties_refused(self):
        X, y = support.smooth(support.rng(self), 30, 2)
        for model in (mercer.MercerKernelRidge, mercer.MercerRidge):
            with self.assertRaisesRegex(ValueError, r"alpha has the shape \(2,\): it must be a number, or one for each target, of which there are 3"):
                model(alpha=[1, 2]).fit(X, np.column_stack([y, y, y]))
            with self.assertRaisesRegex(ValueError, r"alpha\[1\] must be a finite number ≥ 0, got -1"):
                model(alpha=[1, -1]).fit(X, np.column_stack([y, y]))

    def test_precomputed(self):
        r = support.rng(self)
        X, y = support.smooth(r, 70, 3)
        Z = r.normal(size=(20, 3))
        K, cross = pairwise_kernels(X, metric="rbf"), pairwise_kernels(Z, X, metric="rbf")
        want = KernelRidge(kernel="precomputed", alpha=0.3).fit(K, y)
        got = mercer.MercerKernelRidge(kernel="precomputed", alpha=0.3).fit(K, y)
        bound = solution_bound(K, U, 0.3, want.dual_coef_, np.linalg.norm(cross, 2), len(Z))
        self.assertLessEqual(np.abs(got.predict(cross) - want.predict(cross)).max(), bound)
        np.testing.assert_array_equal(got.X_fit_, np.tril(K) + np.tril(K, -1).T)  # the library reads only one triangle

    def test_nystroem_with_every_row(self):
        """Checks that the model with every row as a center agrees with kernel ridge, up to the
        residual of the normal equations, whose condition number is the square of K's."""
        X, y = support.smooth(support.rng(self), 60, 2)
        full = mercer.MercerKernelRidge(kernel="rbf", alpha=1.0).fit(X, y).predict(X)
        part = mercer.MercerNystroemRidge(kernel="rbf", alpha=1.0, n_components=60, tol=1e-10).fit(X, y).predict(X)
        # f = K(K + αI)⁻¹y changes by at most ‖K‖/α times the relative residual.
        K = pairwise_kernels(X, metric="rbf", gamma=0.5)
        self.assertLessEqual(np.abs(full - part).max(), np.linalg.norm(K, 2) * 1e-10 * np.linalg.norm(y) * 10)


class TestOthers(unittest.TestCase):
    def test_ridge(self):
        X, y = load_diabetes(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        want, got = Ridge(alpha=2.0).fit(X, y), mercer.MercerRidge(alpha=2.0).fit(X, y)
        n, d = X.shape
        A = X.T @ X + 2 * np.eye(d)
        # Both programs compute XᵀX with an error of γ(n)‖X‖², and factor it.
        condition = np.linalg.cond(A)
        bound = 4 * (n + 3 * d * d) * U * condition * np.linalg.norm(want.coef_)
        self.assertLessEqual(np.linalg.norm(got.coef_ - want.coef_), bound)
        self.assertLessEqual(abs(got.intercept_ - want.intercept_), 4 * n * U * (np.abs(y).mean() + np.abs(X).mean(axis=0) @ np.abs(want.coef_)) + bound)
        self.assertEqual(got.coef_.shape, (d,))
        two = mercer.MercerRidge(alpha=2.0).fit(X, np.column_stack([y, -y]))
        self.assertEqual(two.coef_.shape, (2, d))
        self.assertLessEqual(np.linalg.norm(two.coef_[1] + want.coef_), bound)
        self.assertEqual(two.intercept_.shape, (2,))

    def test_gaussian_process(self):
        """Checks that a process with a fixed kernel and the scale 1 has scikit-learn's means, and
        scikit-learn's variances plus the variance of the noise."""
        r = support.rng(self)
        X, y = support.smooth(r, 60, 2)
        Z = r.normal(size=(25, 2))
        alpha = 0.2
        want = GaussianProcessRegressor(RBF(1.5), alpha=alpha, optimizer=None).fit(X, y)
        got = mercer.MercerGaussianProcess("gaussian(sigma=1.5)", alpha=alpha, optimize=False, fit_scale=False, fit_intercept=False).fit(X, y)
        mean, std = got.predict(Z, return_std=True)
        want_mean, want_std = want.predict(Z, return_std=True)
        K, cross = want.kernel_(X), want.kernel_(Z, X)
        delta = kernel_error("rbf", 0.5 / 1.5**2, 0, 0, X, Z)
        bound = solution_bound(K, delta, alpha, want.alpha_, np.linalg.norm(cross, 2), len(Z))
        self.assertLessEqual(np.abs(mean - want_mean).max(), bound)
        # The variance is 1 − kᵀA⁻¹k: the bound of a prediction kᵀa holds with A⁻¹k for a, and
        # ‖A⁻¹k‖ ≤ ‖k‖/α.
        bound = solution_bound(K, delta, alpha, cross[0] * 0 + np.linalg.norm(cross, axis=1).max() / alpha, np.linalg.norm(cross, 2), len(Z))
        self.assertLessEqual(np.abs(std**2 - (want_std**2 + alpha)).max(), bound)
        # The likelihood has n logarithms of pivots and a sum of squares, whose errors grow with
        # the condition number.
        self.assertLessEqual(abs(got.log_marginal_likelihood_value_ - want.log_marginal_likelihood_value_),
                             bound * len(X) + len(X) * (len(X) * delta / alpha))

    def test_svm(self):
        """Compares decision values. SMO ends when no optimality condition is violated by more than
        tol, so that decision values from different starts agree to a multiple of tol."""
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)[:300]
        y = y[:300]
        tol = 1e-6
        want, got = SVC(tol=tol).fit(X, y), mercer.MercerClassifier("svc", tol=tol).fit(X, y)
        # A violation of tol changes f by up to about √(n·C·tol) in the norm of the kernel (strong
        # convexity: ½‖δf‖² ≤ the duality gap ≤ n·C·tol).
        self.assertLessEqual(np.abs(got.decision_function(X) - want.decision_function(X)).max(), 2 * np.sqrt(2 * len(X) * tol) + tol)
        self.assertEqual(np.mean(got.predict(X) == want.predict(X)), 1)
        f = SVR(tol=tol, epsilon=0.05).fit(X, X[:, 0] + y).predict(X)
        g = mercer.MercerSVR(tol=tol, epsilon=0.05).fit(X, X[:, 0] + y).predict(X)
        self.assertLessEqual(np.abs(f - g).max(), 2 * np.sqrt(2 * len(X) * tol) + tol)

    def test_logistic(self):
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        names = np.array(["malignant", "benign"])[y]
        tol = 1e-8
        want = LogisticRegression(C=0.5, tol=tol, max_iter=10000).fit(X, names)
        got = mercer.MercerClassifier("logistic", alpha=2.0).fit(X, names)
        np.testing.assert_array_equal(got.classes_, want.classes_)
        # If the gradient has the norm g, the weights differ from the minimum by at most g/λ, and f
        # by at most ‖x‖·g/λ. lbfgs stops when the largest entry of the mean gradient is at most
        # tol.
        gradient = tol * len(X) * np.sqrt(X.shape[1] + 1)
        reach = np.linalg.norm(np.column_stack([X, np.ones(len(X))]), axis=1).max()
        self.assertLessEqual(np.abs(got.predict_proba(X) - want.predict_proba(X)).max(), reach * (gradient / 2 + 1e-4))
        self.assertEqual(np.mean(got.predict(X) == want.predict(X)), 1)

    def test_one_class(self):
        from sklearn.svm import OneClassSVM

        X, _ = support.smooth(support.rng(self), 150, 3)
        tol = 1e-7
        want, got = OneClassSVM(tol=tol, nu=0.2).fit(X), mercer.MercerOneClassSVM(tol=tol, nu=0.2).fit(X)
        f, h = got.decision_function(X), want.decision_function(X)
        self.assertLessEqual(np.abs(f - h).max(), 2 * np.sqrt(2 * len(X) * tol) + tol)
        sure = np.abs(h) > 2 * np.sqrt(2 * len(X) * tol) + tol
        np.testing.assert_array_equal(got.predict(X)[sure], want.predict(X)[sure])

    def test_one_class_boundary(self):
        X, _ = support.smooth(support.rng(self), 150, 3)
        # At most nu·n training rows are outside (in scikit-learn #4195, all rows are outside).
        for nu in (1e-6, 1e-3, 0.1, 0.5):
            self.assertLessEqual(np.sum(mercer.MercerOneClassSVM(nu=nu).fit(X).predict(X) == -1), nu * len(X))
        edge = mercer.MercerOneClassSVM().fit(X)
        edge.decision_function = lambda X: np.array([0.0, -0.0, -5e-324])
        self.assertEqual(edge.predict(X).tolist(), [1, 1, -1])


class TestSystems(unittest.TestCase):
    def test_solve_and_factor(self):
        r = support.rng(self)
        X, y = support.smooth(r, 90, 3)
        Y = r.normal(size=(90, 4))
        K = pairwise_kernels(X, metric="rbf", gamma=0.5)
        want = np.linalg.solve(K + 0.1 * np.eye(90), Y)
        for where, kernel in ((K, None), (X, "gaussian(sigma=1)")):
            delta = U if kernel is None else kernel_error("rbf", 0.5, 0, 0, X, X)
            bound = solution_bound(K, delta, 0.1, want, 1, 1)
            self.assertLessEqual(np.linalg.norm(mercer.solve(where, Y, alpha=0.1, kernel=kernel) - want), bound)
            f = mercer.Factor(where, alpha=0.1, kernel=kernel)
            a, residual = f.solve(Y, residual=True)
            self.assertLessEqual(np.linalg.norm(a - want), bound)
            self.assertLess(residual, bound)
            self.assertEqual(f.solve(y).shape, y.shape)
            f.remove(3)
            f.append(where[3] if kernel else np.append(np.delete(K[3], 3), K[3, 3]))
            moved = np.append(np.delete(np.arange(90), 3), 3)
            self.assertEqual(f.info["order"], 90)
            self.assertLessEqual(np.linalg.norm(f.solve(Y[moved]) - want[moved]), 4 * bound)
        with self.assertRaises(mercer.NotPositiveDefinite):
            mercer.Factor(np.array([[1.0, 2.0], [2.0, 1.0]]), alpha=0.5)
        with self.assertRaisesRegex(ValueError, "y has 3 rows"):
            f.solve(np.ones(3))
        with self.assertRaisesRegex(ValueError, "no sample has index 90"):
            f.remove(90)
