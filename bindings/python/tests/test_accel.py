"""scikit-learn patched by mercer.accel."""

import os
import pickle
import re
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

from . import support
import numpy as np
import scipy.sparse
import sklearn
from sklearn._loss import HalfMultinomialLoss
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, ExpSineSquared, Matern, RationalQuadratic, WhiteKernel
from sklearn.linear_model import _linear_loss

from mercer import accel

sys.path.insert(0, os.path.join(support.ROOT, "bindings", "python"))
import accel_suite  # noqa: E402


def changed(method):
    """The calls of a method since `before` was set, as {(ran_in, reason): count}."""
    now = {(c.method, c.ran_in, c.reason): c.count for c in accel.report()}
    return {key[1:]: count - changed.before.get(key, 0) for key, count in now.items() if key[0] == method and count > changed.before.get(key, 0)}


class Patched(unittest.TestCase):
    """A test of the patched classes, where every input is large enough for Mercer."""

    def setUp(self):
        everything = mock.patch.dict(os.environ, {"MERCER_ACCEL_MIN": "0"})
        everything.start()
        self.addCleanup(everything.stop)
        self.original = {name: self.find(name) for name in accel.patched()}
        changed.before = {(c.method, c.ran_in, c.reason): c.count for c in accel.report()}
        accel.patch()
        self.addCleanup(accel.unpatch)

    @staticmethod
    def find(name):
        module, _, cls = name.rpartition(".")
        return getattr(sys.modules[module], cls)

    def both(self, name, **parameters):
        """An estimator of scikit-learn's class and one of the class in its place."""
        cls = next(n for n in accel.patched() if n.endswith("." + name))
        return self.original[cls](**parameters), self.find(cls)(**parameters)


class TestPatch(Patched):
    def test_classes(self):
        """The new class has the name, module, signature and documentation of scikit-learn's; unpatch
        puts scikit-learn's back."""
        for name, original in self.original.items():
            with self.subTest(name=name):
                new = self.find(name)
                self.assertIsNot(new, original)
                self.assertTrue(issubclass(new, original))
                self.assertEqual((new.__name__, new.__module__, new.__doc__), (original.__name__, original.__module__, original.__doc__))
                self.assertEqual(new._get_param_names(), original._get_param_names())
                self.assertEqual(repr(new()), repr(original()))
                accel.patch()  # a second call changes nothing
                self.assertIs(self.find(name), new)
                accel.unpatch()
                self.assertIs(self.find(name), original)
                accel.patch()

    def test_pickle(self):
        """A pickle has scikit-learn's class, which is read with and without the patch, and is written
        after unpatch. A clone keeps its class."""
        X, y = support.smooth(support.rng(self), 30, 2)
        own, new = self.both("KernelRidge", kernel="rbf")
        new.fit(X, y)
        self.assertIs(type(clone(new)), type(new))
        self.assertIs(type(pickle.loads(pickle.dumps(new))), type(new))
        want = new.predict(X)
        accel.unpatch()
        estimator = pickle.loads(pickle.dumps(new))
        self.assertIs(type(estimator), type(own))
        # The predictions of the two estimators sum n terms with different rounding errors.
        np.testing.assert_allclose(estimator.predict(X), want, rtol=0, atol=1e3 * support.U * np.abs(new.dual_coef_).sum())

    def test_log(self):
        """MERCER_ACCEL_LOG writes each call with its reason; report counts the calls."""
        X, y = support.smooth(support.rng(self), 30, 2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            with mock.patch.dict(os.environ, {"MERCER_ACCEL_LOG": path}):
                _, new = self.both("KernelRidge", kernel="rbf")
                new.fit(X, y)
                new.set_params(kernel="additive_chi2").fit(np.abs(X), y)
                with mock.patch.dict(os.environ, {"MERCER_ACCEL_MIN": ""}):
                    os.environ.pop("MERCER_ACCEL_MIN")
                    new.fit(np.abs(X), y)
            with open(path, encoding="utf-8") as f:
                self.assertEqual(f.read().splitlines(), [
                    "mercer.accel: KernelRidge.fit: Mercer",
                    "mercer.accel: KernelRidge.fit: scikit-learn: kernel='additive_chi2'",
                    "mercer.accel: KernelRidge.fit: scikit-learn: small input"])
        self.assertEqual(changed("KernelRidge.fit"), {("Mercer", ""): 1, ("scikit-learn", "kernel='additive_chi2'"): 1, ("scikit-learn", "small input"): 1})

    def test_imported_before(self):
        """patch names a class that a module has imported before, and is silent otherwise."""
        accel.unpatch()
        without = mock.patch.dict(sys.modules)  # the modules of other tests have imported the classes
        without.start()
        self.addCleanup(without.stop)
        for name in [name for name in sys.modules if ".test_" in "." + name]:
            del sys.modules[name]
        module = types.ModuleType("early")
        module.Machine, module.other = self.original["sklearn.svm._classes.SVC"], [1]
        with mock.patch.dict(sys.modules, {"early": module}):
            with self.assertWarnsRegex(UserWarning, r"early\.Machine was imported before patch\(\) and stays scikit-learn's: call patch\(\) before these imports$"):
                accel.patch()
            module.Other = self.original["sklearn.svm._classes.SVR"]
            with self.assertWarnsRegex(UserWarning, "scikit-learn's, and 1 more:"):
                accel.patch()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            accel.patch()

    def test_workers(self):
        """joblib's worker processes use the patched classes, and return estimators as pickles do."""
        program = """
import warnings
import numpy as np
from mercer import accel
accel.patch()
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X = np.random.default_rng(1).normal(size=(60, 2))
model = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
search = GridSearchCV(model, {"kernelridge__alpha": [0.1, 1.0]}, cv=2, n_jobs=2, refit=False).fit(X, X[:, 0])
found = cross_validate(model, X, X[:, 0], cv=2, n_jobs=2, return_estimator=True)["estimator"]
print(search.best_params_, accel.report(), type(found[0][-1]) is KernelRidge)
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            source = os.path.join(support.ROOT, "bindings", "python", "src")
            environment = {**os.environ, "MERCER_ACCEL_LOG": path, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
            done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
            self.assertEqual((done.stdout, done.stderr), ("{'kernelridge__alpha': 0.1} [] True\n", ""))
            with open(path, encoding="utf-8") as f:
                self.assertEqual(f.read().count("mercer.accel: KernelRidge.fit: Mercer\n"), 6)

    def test_command(self):
        """python -m mercer.accel runs a program with its arguments, or a module."""
        program = "import sys\nfrom sklearn.kernel_ridge import KernelRidge\nprint(__name__, sys.argv[1:], [c.__name__ for c in KernelRidge.__mro__[1:2]])\n"
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as f:
                f.write(program)
            for command in (["program.py", "--flag", "7"], ["-m", "program", "--flag", "7"]):
                done = subprocess.run([sys.executable, "-m", "mercer.accel", *command], cwd=folder, capture_output=True, text=True)
                self.assertEqual((done.stdout, done.stderr), ("__main__ ['--flag', '7'] ['Accelerated']\n", ""))
            for command, want in (([], "usage: "), (["nothing.py"], "mercer.accel: there is no program nothing.py"), (["-m"], "mercer.accel: -m needs the name of a module")):
                done = subprocess.run([sys.executable, "-m", "mercer.accel", *command], cwd=folder, capture_output=True, text=True)
                self.assertNotEqual(done.returncode, 0)
                self.assertTrue(done.stderr.startswith(want), done.stderr)


class TestKernelRidge(Patched):
    def test_agrees(self):
        """dual_coef_ solves scikit-learn's equation for every kernel, weights and penalties."""
        rng = support.rng(self)
        X = np.abs(rng.normal(size=(60, 3)))
        Y = rng.normal(size=(60, 2))
        weights = rng.uniform(0.5, 2, size=60)
        runs = 0
        for kernel in ("linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2", "precomputed"):
            for y in (Y, Y[:, 0]):
                for w in (None, weights):
                    for alpha in (0.5, np.array([0.3, 2])):
                        if np.ndim(alpha) and y.ndim == 1:
                            continue
                        own, new = self.both("KernelRidge", kernel=kernel, alpha=alpha, gamma=0.1, coef0=0.5)
                        x = X @ X.T if kernel == "precomputed" else X
                        own.fit(x, y, sample_weight=w)
                        new.fit(x, y, sample_weight=w)
                        # The condition number is at most (60·max k + alpha)/alpha, k at most 200,
                        # and both solutions have a residual of at most 1e-8 or of rounding.
                        scale = np.abs(own.dual_coef_).max()
                        np.testing.assert_allclose(new.dual_coef_, own.dual_coef_, rtol=0, atol=1e5 * 60 * support.U * scale)
                        self.assertEqual(new.dual_coef_.shape, own.dual_coef_.shape)
                        np.testing.assert_allclose(new.predict(x[:7]), own.predict(x[:7]), rtol=0, atol=1e7 * 60 * support.U * scale)
                        runs += 1
        self.assertEqual(changed("KernelRidge.fit"), {("Mercer", ""): runs})
        weights[3] = 0
        own.set_params(alpha=1.0).fit(x, Y, sample_weight=weights)
        np.testing.assert_array_equal(new.set_params(alpha=1.0).fit(x, Y, sample_weight=weights).dual_coef_, own.dual_coef_)

    def test_errors(self):
        """Errors and warnings are scikit-learn's."""
        X, y = support.smooth(support.rng(self), 20, 2)
        cases = [
            (dict(kernel="nothing"), X, y), (dict(alpha=-1), X, y), (dict(), X[:, 0], y), (dict(), X, y[:5]), (dict(), X * np.nan, y),
            (dict(kernel="precomputed"), X, y), (dict(kernel="chi2", gamma=1.0), X - 9, y),
        ]
        for parameters, x, t in cases:
            own, new = self.both("KernelRidge", **parameters)
            with self.subTest(parameters=parameters):
                with self.assertRaises(Exception) as want:
                    own.fit(x, t)
                with self.assertRaises(type(want.exception)) as got:
                    new.fit(x, t)
                self.assertEqual(str(got.exception), str(want.exception))
        own, new = self.both("KernelRidge", alpha=0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            new.fit(np.ones((4, 1)), np.ones(4))
        self.assertIn("Singular matrix", str(said[0].message))
        own.fit(X, y)
        with self.assertRaisesRegex(ValueError, re.escape("X has 1 features, but KernelRidge is expecting 2 features as input.")):
            new.fit(X, y).predict(X[:, :1])


class TestMachines(Patched):
    def data(self):
        rng = support.rng(self)
        X = rng.normal(size=(60, 3))
        return X, rng.normal(size=60), rng.integers(0, 3, size=60)

    def optimal(self, name, estimator, X, y, weights, tol):
        """Checks the optimality conditions of a fit: for a coefficient of 0, inside its bounds, and
        at its bound, the margin is ≥, = and ≤ that of the problem, up to tol."""

        def check(margins, coefficients, bounds, wanted):
            tight = tol + 1e-9 * np.abs(margins).max()
            self.assertTrue((margins[coefficients < bounds] >= wanted - tight).all())
            self.assertTrue((margins[coefficients > 0] <= wanted + tight).all())
            self.assertTrue((coefficients >= 0).all() and (coefficients <= bounds * (1 + 1e-12)).all())

        def dense(a):
            return a.toarray() if scipy.sparse.issparse(a) else a

        weights = np.ones(len(X)) if weights is None else weights
        dual = np.zeros((dense(estimator.dual_coef_).shape[0], len(X)))
        dual[:, estimator.support_] = dense(estimator.dual_coef_)
        x = scipy.sparse.csr_matrix(X) if estimator._sparse else X
        if name == "OneClassSVM":
            check(estimator.decision_function(x), dual[0], weights, 0)
        elif name == "SVR":
            error = y - estimator.predict(x)
            check(estimator.epsilon - error, np.maximum(dual[0], 0), weights, 0)
            check(estimator.epsilon + error, np.maximum(-dual[0], 0), weights, 0)
        else:
            bounds = weights * estimator._class_weight[np.searchsorted(estimator.classes_, y)]
            values = estimator.decision_function(x).reshape(len(X), -1)
            k = len(estimator.classes_)
            for column, (i, j) in zip(values.T, ((i, j) for i in range(k) for j in range(i + 1, k))):
                for label, row, sign in ((i, j - 1, 1), (j, i, -1)):
                    of = y == estimator.classes_[label]
                    sign = sign if k > 2 else -sign
                    check(sign * column[of], sign * dual[row, of], bounds[of], 1)

    def test_optimal(self):
        """The fits of both fulfil the same optimality conditions, with attributes of the same types."""
        X, target, classes = self.data()
        texts = np.array(["one", "two", "three"])[classes]
        tol = 1e-5
        cases = [("SVR", target, {"epsilon": 0.2}), ("OneClassSVM", None, {"nu": 0.3}), ("SVC", texts == "one", {}), ("SVC", texts, {"decision_function_shape": "ovo"}),
                 ("SVC", texts, {"class_weight": {"one": 3.0}, "decision_function_shape": "ovo"})]
        for name, y, more in cases:
            for kernel in ("linear", "rbf", "poly"):
                for make in (np.asarray, scipy.sparse.csr_matrix):
                    for weights in (None, np.linspace(0.5, 2, 60)):
                        own, new = self.both(name, kernel=kernel, tol=tol, gamma=0.3, coef0=1.0, **more)
                        with self.subTest(name=name, kernel=kernel, make=make, weights=weights is not None):
                            x = make(X)
                            self.optimal(name, own.fit(x, y, sample_weight=weights), X, y, weights, tol)
                            self.optimal(name, new.fit(x, y, sample_weight=weights), X, y, weights, tol)
                            for attribute in ("support_", "n_support_", "dual_coef_", "intercept_", "support_vectors_", "n_iter_", "_gamma", "shape_fit_", "fit_status_"):
                                got, want = getattr(new, attribute), getattr(own, attribute)
                                self.assertEqual((type(got), getattr(got, "dtype", None), np.ndim(got)), (type(want), getattr(want, "dtype", None), np.ndim(want)), attribute)
                            vectors = new.support_vectors_
                            np.testing.assert_array_equal(X[new.support_], vectors if make is np.asarray else vectors.toarray())
                            self.assertEqual(new.n_support_.sum(), len(new.support_))
                            if name == "SVC":
                                self.assertGreaterEqual((new.predict(x) == own.predict(x)).mean(), 59 / 60)
        for name, _, _ in cases:
            self.assertGreaterEqual(changed(f"{name}.fit")["Mercer", ""], 8)

    def test_stay(self):
        """Fits that Mercer does not compute are scikit-learn's, bit by bit."""
        X, target, classes = self.data()
        cases = [
            ("SVC", dict(probability=True, random_state=1), classes, "probability=True"), ("SVC", dict(max_iter=1000), classes, "max_iter"),
            ("SVR", dict(kernel=lambda x, z: x @ z.T), target, "the kernel is a function"), ("SVR", dict(kernel="poly", degree=0), target, "degree=0"),
            ("OneClassSVM", dict(gamma=0.0), None, "gamma=0"),
        ]
        for name, parameters, y, reason in cases:
            own, new = self.both(name, **parameters)
            np.testing.assert_array_equal(new.fit(X, y).dual_coef_, own.fit(X, y).dual_coef_)
            self.assertIn(("scikit-learn", reason), changed(f"{name}.fit"))


class TestGaussianProcess(Patched):
    def test_likelihood(self):
        """The likelihood and its gradient are scikit-learn's, and so is the fitted kernel."""
        rng = support.rng(self)
        X = rng.normal(size=(60, 3))
        kernels = [
            RBF(1.3), 2.0 * RBF([1.0, 2, 0.7]) + WhiteKernel(0.1), ConstantKernel(2.0) * Matern(1.5, nu=1.5) + WhiteKernel(0.2), Matern([1.0, 2, 3], nu=2.5) * RBF(2.0) + 0.5,
            Matern(2.0, nu=np.inf) + ConstantKernel(0.5, "fixed") * RBF(0.8),
            Matern(1.5, nu=0.5), Matern([1.0, 2, 3], nu=0.5) + RBF(1.0), Matern(0.7, nu=0.5) * Matern(1.0, nu=0.5), DotProduct(1.5) + WhiteKernel(0.1), DotProduct(0.5) * RBF(1.0),
            2.0 * RationalQuadratic(1.2, 0.7), RationalQuadratic(0.8, 1.5) + RationalQuadratic(1.0, 2.0, length_scale_bounds="fixed"),
            ExpSineSquared(0.4, 30.0) + WhiteKernel(0.1), ExpSineSquared(0.4, 30.0) * RBF(2.0) + ExpSineSquared(0.3, 40.0, periodicity_bounds="fixed"),
        ]
        X[3] = X[7]  # at this distance the exponential kernel has no derivative
        for kernel in kernels:
            for y in (np.sin(X[:, 0]) + 0.1 * rng.normal(size=60), rng.normal(size=(60, 2))):
                with self.subTest(kernel=kernel, targets=y.ndim):
                    own, new = self.both("GaussianProcessRegressor", kernel=kernel, alpha=0.05, optimizer=None, normalize_y=True)
                    own.fit(X, y)
                    new.fit(X, y)
                    want, slope = own.log_marginal_likelihood(kernel.theta, eval_gradient=True)
                    got, new_slope = new.log_marginal_likelihood(kernel.theta, eval_gradient=True)
                    # K + 0.05 I has a condition number of at most 60·3/0.05.
                    tight = 60 * 60 * 3600 * support.U * max(1, np.abs(want))
                    self.assertLess(abs(got - want), tight)
                    np.testing.assert_allclose(new_slope, slope, rtol=0, atol=60 * tight)
                    Z = rng.normal(size=(7, 3))
                    np.testing.assert_allclose(new.predict(Z), own.predict(Z), rtol=0, atol=tight)
                    for more in ("return_std", "return_cov"):
                        got, want = new.predict(Z, **{more: True}), own.predict(Z, **{more: True})
                        for a, b in zip(got, want):
                            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
                            np.testing.assert_allclose(a, b, rtol=0, atol=tight)
        own, new = self.both("GaussianProcessRegressor", kernel=kernels[1], n_restarts_optimizer=1, random_state=3)
        y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
        # The search stops at a relative decrease of 2e-9 of the likelihood, which is flat there.
        np.testing.assert_allclose(new.fit(X, y).kernel_.theta, own.fit(X, y).kernel_.theta, atol=1e-3)
        # The search has left the class of the kernel as it was, so that scikit-learn evaluates K here. Mercer evaluated
        # the matrix that was factored. The squared norms of the scaled samples, whose rounding errors are those of K, are below 60.
        self.assertIs(type(new.kernel_), type(kernels[1]))
        K = new.kernel_(X) + new.alpha * np.eye(60)
        np.testing.assert_allclose(new.L_ @ new.L_.T, K, rtol=0, atol=60 * 60 * support.U * K.max())
        self.assertEqual(changed("GaussianProcessRegressor.fit"), {("Mercer", ""): 2 * len(kernels) + 1})
        self.assertEqual({where for where, _ in changed("GaussianProcessRegressor.predict")}, {"Mercer"})

    def test_negative_variances(self):
        """Variances that rounding makes negative are 0, with scikit-learn's warning."""
        X = np.linspace(0, 1, 30)[:, np.newaxis]
        for cls in self.both("GaussianProcessRegressor", kernel=RBF(10.0), optimizer=None):
            cls.fit(X, X[:, 0])
            cls.L_ *= 0.999  # larger than any rounding error
            with self.assertWarnsRegex(UserWarning, "^Predicted variances smaller than 0. Setting those variances to 0.$"):
                self.assertTrue((cls.predict(X, return_std=True)[1] == 0).all())
        with self.assertRaisesRegex(RuntimeError, "At most one of return_std or return_cov can be requested"):
            cls.predict(X, return_std=True, return_cov=True)


class TestFeatures(Patched):
    def test_transforms(self):
        """The features of both are equal, and set_output names their columns."""
        rng = support.rng(self)
        X = np.abs(rng.normal(size=(80, 4)))
        for name, kernels in (("Nystroem", ("rbf", "poly", "laplacian", "chi2")), ("KernelPCA", ("linear", "rbf", "poly", "cosine"))):
            for kernel in kernels:
                with self.subTest(name=name, kernel=kernel):
                    own, new = self.both(name, kernel=kernel, n_components=5, gamma=0.3, random_state=1)
                    want, got = own.fit(X).transform(X[:9]), new.fit(X).transform(X[:9])
                    # The condition number of the kernel of five points, or the inverse of the
                    # smallest eigenvalue relative to the largest, is below 1e7.
                    np.testing.assert_allclose(np.abs(got), np.abs(want), rtol=0, atol=1e7 * 80 * support.U * np.abs(want).max())
            new.set_output(transform="default")
            self.assertEqual({where for where, _ in changed(f"{name}.transform")}, {"Mercer"})
        large = rng.normal(size=(320, 4))  # 35 monomials
        for kernel in ("linear", "rbf", "poly"):
            own, few = self.both("KernelPCA", kernel=kernel, n_components=3, random_state=1)
            want, got = own.fit_transform(large), few.fit_transform(large)
            # Residuals of 64ε of the largest eigenvalue, and gaps above 1e-3 of it.
            np.testing.assert_allclose(got, want, rtol=0, atol=1e3 * 320 * support.U * np.abs(want).max())
            np.testing.assert_allclose(few.transform(X), own.transform(X), rtol=0, atol=1e3 * 320 * support.U * np.abs(want).max())
            self.assertEqual(few.eigenvalues_.shape, own.eigenvalues_.shape)
        self.assertEqual(changed("KernelPCA.fit")["Mercer", ""], 3)
        own, sampler = self.both("RBFSampler", n_components=7, random_state=1)
        want = own.fit(X).transform(X)
        # The angles, below 100, have d + 2 rounding errors.
        np.testing.assert_allclose(sampler.fit(X).transform(X), want, rtol=0, atol=6 * 100 * support.U)
        self.assertEqual(changed("RBFSampler.transform"), {("Mercer", ""): 1})
        frame = new.set_output(transform="pandas").transform(X)
        self.assertEqual(list(frame.columns), [f"kernelpca{i}" for i in range(5)])


class TestLinear(Patched):
    def data(self, n=60, d=5):
        rng = support.rng(self)
        X = rng.normal(size=(n, d)) + 1
        return X, X @ rng.normal(size=(d, 2)) + rng.normal(size=(n, 2)), rng.integers(0, 3, size=n), rng.uniform(0.5, 2, size=n)

    def same(self, new, own, names, atol):
        """Checks that attributes have the same types, shapes and, up to atol, values."""
        for name in names:
            got, want = getattr(new, name), getattr(own, name)
            self.assertEqual((type(got), getattr(got, "dtype", None)), (type(want), getattr(want, "dtype", None)), name)
            np.testing.assert_allclose(got, want, rtol=0, atol=atol, err_msg=name)
            self.assertEqual(np.shape(got), np.shape(want), name)

    def test_ridge(self):
        """The weights are scikit-learn's for targets, penalties and weights."""
        X, Y, _, weights = self.data()
        runs = 0
        for solver in ("auto", "svd"):
            for x in (X, X - X.mean(axis=0), X + 100):
                for y in (Y, Y[:, :1], Y[:, 0]):
                    for alpha in (0.5, np.array([0.3, 2])):
                        for intercept in (True, False):
                            for sample_weight in (None, weights, 2.0):
                                if np.ndim(alpha) and y.shape != Y.shape:
                                    continue
                                own, new = self.both("Ridge", alpha=alpha, fit_intercept=intercept, solver=solver)
                                own.fit(x, y, sample_weight=sample_weight)
                                new.fit(x, y, sample_weight=sample_weight)
                                # The condition number is at most ‖X‖²/alpha + 1, below 2000, and the
                                # relative residual is at most 1e-8.
                                self.same(new, own, ("coef_", "intercept_"), 2000 * 1e-8 * np.abs(Y).max())
                                self.assertIsNone(new.n_iter_)
                                self.assertEqual(new.predict(x).shape, y.shape)
                                runs += 1
        self.assertEqual(changed("Ridge.fit"), {("Mercer", ""): runs})

    def test_lasso(self):
        """The weights, steps and gaps are scikit-learn's."""
        X, Y, _, weights = self.data()
        runs = 0
        for more in ({}, {"positive": True}, {"precompute": True}):
            for w in (None, weights, 2.0):
                for intercept in (True, False):
                    own, new = self.both("Lasso", alpha=0.3, tol=1e-6, fit_intercept=intercept, **more)
                    own.fit(X, Y[:, 0], sample_weight=w)
                    new.fit(X, Y[:, 0], sample_weight=w)
                    # The steps are those of scikit-learn up to rounding errors of sums of 60 products.
                    self.same(new, own, ("coef_", "intercept_", "dual_gap_"), 1e5 * support.U * (Y**2).sum())
                    self.assertEqual((new.n_iter_, type(new.n_iter_)), (own.n_iter_, type(own.n_iter_)))
                    runs += 1
        self.assertEqual(changed("Lasso.fit"), {("Mercer", ""): runs})
        own, new = self.both("Lasso", alpha=0.3)
        for x, y, reason in ((scipy.sparse.csr_matrix(X), Y[:, 0], "X is sparse"), (X, Y, "several targets"), (X[:3], Y[:3, 0], "many features")):
            new.fit(x, y)
            self.assertIn(("scikit-learn", reason), changed("Lasso.fit"))

    def test_lasso_iterations(self):
        """A fit that ends after a few iterations is scikit-learn's; correlated features take many."""
        rng = support.rng(self)
        Z = rng.normal(size=(6000, 200))
        for x, where in ((Z + 100, ("scikit-learn", "few iterations")), (0.2 * Z + rng.normal(size=(6000, 1)) + 100, ("Mercer", "")), (Z, ("Mercer", ""))):
            y = x[:, 0] + rng.normal(size=6000)
            changed.before = {(c.method, c.ran_in, c.reason): c.count for c in accel.report()}
            with mock.patch.dict(os.environ):
                del os.environ["MERCER_ACCEL_MIN"]
                own, new = self.both("Lasso", alpha=0.005)
                self.assertIs(new.fit(x, y), new)
            own.fit(x, y)
            self.assertEqual((new.n_iter_, new.max_iter), (own.n_iter_, own.max_iter))
            # The gradients of sums of 6000 products have rounding errors of about 1e-12.
            np.testing.assert_allclose(new.coef_, own.coef_, rtol=0, atol=1e-9)
            self.assertEqual(changed("Lasso.fit")[where], 1)

    def test_logistic(self):
        """The weights are scikit-learn's for two classes, and for three one by one."""
        X, _, labels, weights = self.data(n=90)
        texts = np.array(["one", "three", "two"])[labels]
        for make in (np.asarray, scipy.sparse.csr_matrix):
            for y, more in ((labels == 1, {}), (texts, {"multi_class": "ovr"}), (texts == "two", {"class_weight": {False: 1, True: 3.0}})):
                for w in (None, weights):
                    for intercept in (True, False):
                        own, new = self.both("LogisticRegression", C=0.5, tol=1e-10, max_iter=10_000, fit_intercept=intercept, **more)
                        own.fit(make(X), y, sample_weight=w)
                        new.fit(make(X), y, sample_weight=w)
                        # The Hessian is at least the penalty 2, or for the intercept n·p(1−p)/k, above
                        # 1, so that the error is at most the gradient. scikit-learn also ends at a
                        # relative decrease of the loss, below 200, of 64ε: a gradient of 1e-5.
                        self.same(new, own, ("coef_", "intercept_"), 1e-4)
                        self.assertEqual(new.classes_.tolist(), own.classes_.tolist())
                        self.assertEqual((new.n_iter_.shape, new.n_iter_.dtype), (own.n_iter_.shape, own.n_iter_.dtype))
                        np.testing.assert_allclose(new.predict_proba(make(X)), own.predict_proba(make(X)), atol=1e-4)
        self.assertEqual(changed("LogisticRegression.fit"), {("Mercer", ""): 24})

    def test_several_classes(self):
        """The loss of several classes and its gradient are scikit-learn's, and so are the weights."""
        replaced = _linear_loss.LinearModelLoss
        own, rng = replaced.__bases__[0], support.rng(self)
        n, k = 2 * 8192 + 5, 4  # three blocks
        X, y, weights = rng.normal(size=(n, 3)), rng.integers(0, k, n).astype(np.float64), rng.uniform(0, 2, n)
        for intercept in (True, False):
            for w in (None, weights):
                for shape in ((k, 3 + intercept), (k * (3 + intercept),)):
                    coef = np.asfortranarray(rng.normal(size=shape))
                    want, got = (cls(base_loss=HalfMultinomialLoss(n_classes=k), fit_intercept=intercept).loss_gradient(coef, X, y, w, 0.7) for cls in (own, replaced))
                    # A sum of n terms has an error of at most n·u times the sum of the absolute values. A term of the
                    # loss is positive, and one of the gradient is at most |x_ip|·w_i or w_i; its own error is below 50u.
                    self.assertLess(abs(got[0] - want[0]), 2 * (n + 50) * support.U * want[0])
                    self.assertEqual(got[1].shape, want[1].shape)
                    largest = np.abs(X).sum(axis=0).max() * 2
                    np.testing.assert_allclose(got[1], want[1], rtol=0, atol=2 * (n + 50) * support.U * largest)
        X, _, labels, weights = self.data(n=90)
        for multi_class, classes in (("auto", labels), ("multinomial", labels), ("multinomial", labels == 1)):
            for w in (None, weights):
                own, new = self.both("LogisticRegression", C=0.5, tol=1e-10, max_iter=10_000, multi_class=multi_class)
                new.fit(X, classes, sample_weight=w)
                accel.unpatch()
                own.fit(X, classes, sample_weight=w)
                accel.patch()
                self.same(new, own, ("coef_", "intercept_"), 1e-4)
        self.assertEqual(changed("LogisticRegression.fit"), {("Mercer", ""): 6})
        self.assertIs(_linear_loss.LinearModelLoss, replaced)

    def test_stay(self):
        """Fits that Mercer does not compute are scikit-learn's, bit by bit."""
        X, Y, labels, _ = self.data()
        for name, parameters, y, reason in (
            ("Ridge", dict(positive=True), Y[:, 0], "positive=True"), ("Ridge", dict(solver="lsqr"), Y, "solver='lsqr'"), ("Ridge", dict(alpha=0.0), Y, "alpha=0"),
            ("Lasso", dict(alpha=0.1), Y, "several targets"), ("Lasso", dict(selection="random", random_state=1), Y[:, 0], "selection='random'"), ("LogisticRegression", dict(solver="newton-cg"), labels, "more than two classes at once"),
            ("LogisticRegression", dict(penalty=None), labels, "penalty=None"), ("LogisticRegression", dict(solver="liblinear"), labels, "solver='liblinear'"),
        ):
            own, new = self.both(name, **parameters)
            np.testing.assert_array_equal(new.fit(X, y).coef_, own.fit(X, y).coef_)
            self.assertIn(("scikit-learn", reason), changed(f"{name}.fit"))
        own, new = self.both("Ridge")
        for x, y in ((X * np.nan, Y), (X, Y[:5]), (X[:, 0], Y)):
            with self.assertRaises(ValueError) as want:
                own.fit(x, y)
            with self.assertRaises(ValueError) as got:
                new.fit(x, y)
            self.assertEqual(str(got.exception), str(want.exception))


class TestNeighbors(Patched):
    def test_agrees(self):
        """The neighbors and predictions are scikit-learn's, also among equal distances."""
        rng = support.rng(self)
        X, Z = rng.normal(size=(200, 9)), rng.normal(size=(40, 9))
        X[7] = X[3]
        Z[0] = X[3]  # two neighbors at the distance 0
        targets, labels = rng.normal(size=(200, 2)), np.array(["a", "b", "c"])[rng.integers(0, 3, size=200)]
        for algorithm in ("auto", "brute"):
            for weights in ("uniform", "distance", None, lambda d: np.exp(-d)):
                for name, y in (("KNeighborsRegressor", targets), ("KNeighborsRegressor", targets[:, 0]), ("KNeighborsClassifier", labels)):
                    own, new = self.both(name, n_neighbors=4, weights=weights, algorithm=algorithm)
                    own.fit(X, y)
                    new.fit(X, y)
                    got, want = new.kneighbors(Z), own.kneighbors(Z)
                    np.testing.assert_array_equal(got[1], want[1])
                    # scikit-learn computes squares below 100 with an error of at most (d + 4)·2ε·100.
                    np.testing.assert_allclose(got[0] ** 2, want[0] ** 2, rtol=0, atol=13 * 200 * support.U)
                    np.testing.assert_array_equal(new.kneighbors(Z, 2, return_distance=False), own.kneighbors(Z, 2, return_distance=False))
                    if name == "KNeighborsClassifier":
                        self.assertEqual(new.predict(Z).tolist(), own.predict(Z).tolist())
                    else:
                        # The weights 1/distance of other rows have relative errors of the squares.
                        np.testing.assert_allclose(new.predict(Z), own.predict(Z), rtol=0, atol=1e-9)
        self.assertEqual({where for where, _ in changed("KNeighborsClassifier.kneighbors")}, {"Mercer"})
        self.assertEqual({where for where, _ in changed("KNeighborsClassifier.predict")}, {"Mercer"})
        own, new = self.both("KNeighborsRegressor", algorithm="brute")
        whole = rng.integers(0, 2, size=(200, 9)).astype(float)
        np.testing.assert_array_equal(new.fit(whole, targets).predict(whole), own.fit(whole, targets).predict(whole))
        self.assertIn(("scikit-learn", "equal distances"), changed("KNeighborsRegressor.kneighbors"))


class TestScikitLearnsTests(unittest.TestCase):
    def test_outcomes(self):
        """scikit-learn's tests of two modules have the same outcomes with the patch; make accel-tests
        runs all."""
        try:
            import pytest  # noqa: F401
        except ImportError as err:
            support.absent("pytest", f"pytest is not installed for {sys.executable}: {err}")
        for name, least in (("tests/test_kernel_ridge.py", 10), ("svm/tests/test_svm.py", 50)):
            if not os.path.exists(os.path.join(os.path.dirname(sklearn.__file__), name)):
                support.absent("pytest", f"this scikit-learn has no {name}")
            without, outcomes, lines, differ = accel_suite.compare(name)
            self.assertEqual(differ, [])
            self.assertIn("passed", without.values())
            self.assertGreater(sum(count for line, count in lines.items() if line.endswith("fit: Mercer")), least, lines)
