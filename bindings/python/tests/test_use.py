"""Checks uses of estimators: searches, pipelines, pickles, Ctrl-C, threads."""

import copy
import io
import os
import pickle
import signal
import sys
import threading
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from unittest import mock

from . import support
import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin, clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mercer
from mercer import _estimator, _library

FITTED = [
    mercer.MercerRidge(),
    mercer.MercerKernelRidge(kernel="rbf"),
    mercer.MercerKernelRidgeCV(kernel=["rbf", "linear"]),
    mercer.MercerNystroemRidge(),
    mercer.MercerFourierRidge(),
    mercer.MercerGaussianProcess(optimize=False),
    mercer.MercerSVR(),
    mercer.MercerRegressor(),
    mercer.MercerOneClassSVM(),
    mercer.MercerClassifier(),
    mercer.MercerClassifier("svc", probability=True),
    mercer.MercerClassifier("kernel-logistic"),
]


class TestTools(unittest.TestCase):
    def test_search_in_processes(self):
        X, y = load_diabetes(return_X_y=True)
        steps = make_pipeline(StandardScaler(), mercer.MercerKernelRidge(kernel="rbf", threads=1))
        grid = {"mercerkernelridge__alpha": [0.1, 1, 10], "mercerkernelridge__gamma": [0.01, 0.1]}
        alone = GridSearchCV(steps, grid, cv=3).fit(X, y)
        many = GridSearchCV(steps, grid, cv=3, n_jobs=2).fit(X, y)
        self.assertEqual(alone.best_params_, many.best_params_)
        # Both searches use the same device, so the bits are equal.
        np.testing.assert_array_equal(alone.cv_results_["mean_test_score"], many.cv_results_["mean_test_score"])
        self.assertGreater(alone.best_score_, 0.4)

    def test_precomputed_is_split_both_ways(self):
        X, y = load_diabetes(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        by_kernel = cross_val_score(mercer.MercerKernelRidge(kernel="rbf", gamma=0.05), X, y)
        by_values = cross_val_score(mercer.MercerKernelRidge(kernel="precomputed"), rbf_kernel(X, gamma=0.05), y)
        # The scores are R² of predictions whose relative difference is much smaller than 1e-9 (see
        # test_agreement).
        np.testing.assert_allclose(by_kernel, by_values, rtol=1e-9)
        with self.assertRaisesRegex(ValueError, "square"):
            mercer.MercerKernelRidge(kernel="precomputed").fit(X, y)

    def test_weights_of_given_values(self):
        # A row of weight 0 has the same effect as a missing row, up to rounding: the
        # two systems differ by a permutation, and their condition number is below
        # (trace + alpha)/alpha.
        X, y = load_diabetes(return_X_y=True)
        K = rbf_kernel(StandardScaler().fit_transform(X), gamma=0.05)
        kept = np.arange(len(y)) % 3 != 0
        whole = mercer.MercerKernelRidge(kernel="precomputed").fit(K, y, sample_weight=kept.astype(float))
        part = mercer.MercerKernelRidge(kernel="precomputed").fit(K[np.ix_(kept, kept)], y[kept])
        f = part.predict(K[:, kept])
        np.testing.assert_allclose(whole.predict(K), f, rtol=0, atol=1e-8 * np.abs(f).max())

    def test_kernel_of_python(self):
        # The function and the named kernel differ only by the order in which ten terms are added.
        X, y = load_diabetes(return_X_y=True)
        X, labels = StandardScaler().fit_transform(X)[:90], y[:90] > np.median(y[:90])
        weights = np.arange(90) % 4

        def kernel(a, b):
            return np.exp(-0.05 * np.sum((a - b) ** 2))

        for by_name, by_function, target in [
            (mercer.MercerKernelRidge(kernel="rbf", gamma=0.05), mercer.MercerKernelRidge(kernel=kernel), y[:90]),
            (mercer.MercerClassifier("svc", gamma=0.05, tol=1e-9), mercer.MercerClassifier("svc", kernel=kernel, tol=1e-9), labels),
        ]:
            with self.subTest(by_name=by_name):
                f = by_name.fit(X, target, weights).predict(X)
                g = by_function.fit(X, target, weights).predict(X)
                np.testing.assert_allclose(f.astype(float), g.astype(float), rtol=0, atol=1e-8 * np.abs(f.astype(float)).max())
                with self.assertRaisesRegex(ValueError, "pickle"):
                    by_function.save("model.safetensors")
        np.testing.assert_array_equal(mercer.MercerKernelRidge(kernel=kernel).fit(X, y[:90]).X_fit_, X)
        self.assertGreater(cross_val_score(mercer.MercerKernelRidge(kernel=kernel, fit_intercept=True), X, y[:90]).mean(), -1)

    def test_copies(self):
        X, y = load_iris(return_X_y=True)
        for estimator in FITTED:
            with self.subTest(estimator=estimator):
                fitted = clone(estimator).fit(X, y)
                f = fitted.predict(X)
                for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
                    np.testing.assert_array_equal(again.predict(X), f)
                    self.assertEqual(again.get_params(), fitted.get_params())
                self.assertFalse(hasattr(clone(fitted), "model_"))
                twice = clone(estimator).fit(X, y)
                np.testing.assert_array_equal(twice.predict(X), f)

    def test_probabilities_only_where_there_are(self):
        X, y = load_iris(return_X_y=True)
        self.assertFalse(hasattr(mercer.MercerClassifier(), "predict_proba"))
        self.assertFalse(hasattr(mercer.MercerClassifier("svc").fit(X, y), "predict_proba"))
        p = mercer.MercerClassifier("svc", probability=True).fit(X, y).predict_proba(X)
        # Each row is divided by its sum, with several rounding errors.
        self.assertLessEqual(np.abs(p.sum(axis=1) - 1).max(), 16 * support.U)

    def test_classes_of_texts_and_weights(self):
        X, y = load_iris(return_X_y=True)
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        weights = np.where(y == 1, 0.0, 1.0)
        model = mercer.MercerClassifier().fit(X, names, sample_weight=weights)
        self.assertEqual(list(model.classes_), ["setosa", "virginica"])
        self.assertEqual(set(model.predict(X)), {"setosa", "virginica"})
        self.assertEqual(model.decision_function(X).shape, (150,))
        balanced = mercer.MercerClassifier(class_weight="balanced").fit(X, names)
        self.assertGreater(balanced.score(X, names), 0.9)

    def test_every_learner(self):
        """Fits each learner of regression and of classification, given only its name."""
        X, y = load_iris(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        for learner in mercer.about()["learners"]:
            with self.subTest(learner=learner["name"]):
                if "regression" in learner["tasks"]:
                    f = mercer.MercerRegressor(learner["name"]).fit(X, y).predict(X)
                    self.assertEqual(f.shape, (150,))
                if "classification" in learner["tasks"]:
                    two = y < 2
                    model = mercer.MercerClassifier(learner["name"]).fit(X[two], y[two])
                    self.assertGreater(model.score(X[two], y[two]), 0.9)


class TestMemory(unittest.TestCase):
    def test_no_copies(self):
        big = np.arange(60.0).reshape(6, 10)
        for a in (big, big[1:5], big[:, 2:7], big[::2], big.astype(np.float32), big[:, :1], big[:1]):
            m = _library.matrix(a)
            self.assertTrue(np.shares_memory(m.array, a))
            self.assertEqual(m.data, a.ctypes.data)
            self.assertEqual((m.rows, m.cols), a.shape)
        for a in (big.T, big[:, ::2], big[::-1], big.astype(int), big.astype(">f8"), np.asfortranarray(big), np.broadcast_to(big[0], (6, 10))):
            m = _library.matrix(a)
            self.assertFalse(np.shares_memory(m.array, a))
            np.testing.assert_array_equal(m.array, a)

    def test_layouts_give_the_same_bits(self):
        r = support.rng(self)
        X, y = support.smooth(r, 50, 4)
        X = X.astype(np.float32)  # exact in both precisions
        wide = np.zeros((50, 9))
        wide[:, 3:7] = X
        want = mercer.MercerKernelRidge(kernel="rbf").fit(X.astype(float), y).predict(X.astype(float))
        for a in (X, wide[:, 3:7], np.asfortranarray(X), X.astype(float)[::-1][::-1]):
            got = mercer.MercerKernelRidge(kernel="rbf").fit(a, y).predict(a)
            np.testing.assert_array_equal(got, want)

    def test_inputs_are_only_read(self):
        X, y = support.smooth(support.rng(self), 30, 3)
        X.setflags(write=False)
        y.setflags(write=False)
        for estimator in (mercer.MercerRidge(), mercer.MercerKernelRidge(), mercer.MercerSVR()):
            estimator.fit(X, y).predict(X)

    def test_refused_for_want_of_memory(self):
        with self.assertRaisesRegex(MemoryError, "memory"):
            handle = _library.Handle()
            _library.call("mercer_open", b"cpu", 1, 100000, _library.byref(handle))
            m = _library.matrix(np.random.default_rng(0).normal(size=(500, 2)))
            factor = _library.Handle()
            _library.call("mercer_factor", handle.value, b"gaussian(sigma=1)", 1.0, _library.byref(m), None, _library.byref(factor))

    def test_shapes_beyond_the_memory(self):
        # 2**46 rows of doubles are more than a process of 64 bits can address.
        X, y = support.smooth(support.rng(self), 30, 3)
        huge = np.lib.stride_tricks.as_strided(X, shape=(1 << 46, 3), strides=(24, 8))
        apart = np.lib.stride_tricks.as_strided(X, shape=(2, 3), strides=(1 << 50, 8))
        one = np.broadcast_to(X[:1], (1 << 46, 3))
        column = y.reshape(-1, 1)
        model = mercer.Model.fit("ridge", X, column)
        for a in (huge, apart):
            with self.assertRaisesRegex(ValueError, "X: .* beyond the memory of the process"):
                mercer.Model.fit("ridge", a, column)
            with self.assertRaisesRegex(ValueError, "y: .* beyond the memory of the process"):
                mercer.Model.fit("ridge", X, a)
        with self.assertRaisesRegex(ValueError, "X: .* beyond the memory of the process"):
            model.predict(apart)
        for a in (huge, one):  # there is no memory for the result or for the copy
            with self.assertRaises(MemoryError):
                model.predict(a)
        with self.assertRaises(MemoryError):
            mercer.Model.fit("ridge", one, column)


class TestSparse(unittest.TestCase):
    def data(self):
        r = support.rng(self)
        X = r.normal(size=(60, 5)) * (r.uniform(size=(60, 5)) < 0.4)
        return X, X[:, 0] - X[:, 1] ** 2 + 0.1 * r.normal(size=60)

    def test_same_bits_as_dense(self):
        X, y = self.data()
        for estimator in FITTED:
            target = y > 0 if isinstance(estimator, mercer.MercerClassifier) else y
            want = clone(estimator).fit(X, target).predict(X)
            for format in ("csr", "csc", "coo", "lil"):
                with self.subTest(estimator=estimator, format=format):
                    S = sparse.csr_matrix(X).asformat(format)
                    got = clone(estimator).fit(S, target)
                    np.testing.assert_array_equal(got.predict(S), want)
                    np.testing.assert_array_equal(got.predict(X), want)
        kernel = mercer.MercerKernelRidge(kernel=lambda x, z: float(x @ z)).fit(sparse.csr_matrix(X), y)
        np.testing.assert_array_equal(kernel.predict(sparse.csr_matrix(X)), mercer.MercerKernelRidge(kernel=lambda x, z: float(x @ z)).fit(X, y).predict(X))
        K = sparse.csr_matrix(X @ X.T)
        np.testing.assert_array_equal(mercer.MercerKernelRidge(kernel="precomputed").fit(K, y).predict(K),
                                      mercer.MercerKernelRidge(kernel="precomputed").fit(K.toarray(), y).predict(K.toarray()))
        np.testing.assert_array_equal(mercer.solve(K, y), mercer.solve(K.toarray(), y))
        np.testing.assert_array_equal(mercer.Factor(K).solve(y), mercer.Factor(K.toarray()).solve(y))
        single = mercer.MercerKernelRidge(kernel="rbf").fit(sparse.csr_matrix(X.astype(np.float32)), y)
        np.testing.assert_array_equal(single.predict(X), mercer.MercerKernelRidge(kernel="rbf").fit(X.astype(np.float32), y).predict(X))

    def wide(self, dtype=np.float64):
        """40 rows with 500,000 features, of which about 8 in each row are stored."""
        r = support.rng(self)
        n, d = 40, 500_000
        X = sparse.random(n, d, density=8 / d, format="csr", random_state=int(r.integers(1 << 31)), dtype=dtype)
        X = sparse.hstack([sparse.csr_matrix(r.normal(size=(n, 2)).astype(dtype)), X]).tocsr()
        return X, np.asarray(X[:, 0].todense()).ravel() > 0

    def test_wide_without_a_dense_copy(self):
        """Checks that learners that accept sparse samples make no dense copy of any sparse format."""
        X, above = self.wide()
        y = np.where(above, 1.0, -1.0) + np.arange(40) / 40
        K = (X @ X.T).toarray()

        def dense(array):
            self.assertFalse(sparse.issparse(array), "a dense copy is made")
            return array

        with mock.patch.object(_library, "dense", dense), mock.patch.object(_estimator, "dense", dense):
            # numpy solves (K + λI)α = y, or the bordered system if there is an intercept. An
            # entry of K is a sum of at most 16 products.
            f = mercer.MercerKernelRidge(alpha=0.5, fit_intercept=False).fit(X, y).predict(X)
            for other in (X.tocsc(), X.tocoo(), X.tolil()):
                np.testing.assert_array_equal(mercer.MercerKernelRidge(alpha=0.5, fit_intercept=False).fit(other, y).predict(other), f)
            model = mercer.Model.fit("kernel-ridge", X, y[:, None], parameters={"kernel": "linear()", "lambda": 0.5, "intercept": "false"})
            np.testing.assert_array_equal(model.predict(X).ravel(), f)
            loaded = mercer.Model.from_bytes(model.to_bytes())
            np.testing.assert_array_equal(loaded.predict(X).ravel(), f)
            factor = mercer.Factor(X, alpha=0.5, kernel="linear()")
            A = K + 0.5 * np.eye(40)
            for _ in range(2):
                a = factor.solve(y)  # backward error of a Cholesky factor: Higham 2002, theorem 10.4
                self.assertLessEqual(np.linalg.norm(A @ a - y), 8 * 40**2 * 2.0**-53 * np.linalg.norm(A) * np.linalg.norm(a))
                factor.remove(39)
                factor.append(X[39].toarray().ravel())
            self.assertEqual(loaded.info["features"], X.shape[1])
            svc = mercer.MercerClassifier("svc", kernel="rbf", gamma="scale").fit(X, above)
            self.assertEqual(svc.predict(X).tolist(), SVC(kernel="rbf", gamma="scale").fit(X, above).predict(X).tolist())
            support_vectors = mercer.MercerSVR(kernel="rbf").fit(X, y).calibrate(X, y)
            lower, upper = support_vectors.predict_interval(X, level=0.5)
            self.assertTrue((lower <= upper).all())
            ridge = mercer.MercerKernelRidge(alpha=0.5, fit_intercept=False).fit(X, y)
            bounded, bound = ridge.predict(X, return_bound=True)
            lower, upper = ridge.predict_interval(X, level=0.8)
            self.assertTrue((lower < upper).all())
            np.testing.assert_array_equal(svc.calibrate(X, above).predict_set(X, level=0.9).shape, (40, 2))
            search = mercer.MercerKernelRidgeCV(kernel="linear", alphas=[0.5], fit_intercept=False, store_cv_results=True).fit(X, y)
            a = mercer.solve(X, y, alpha=0.5, kernel="linear()")
        self.assertTrue((np.abs(f - bounded) <= bound).all())
        # The bound is that of two backward stable solutions of the same system.
        eigenvalues = np.linalg.eigvalsh(K)
        near = 40 * 64 * support.U * (eigenvalues[-1] + 0.5) / 0.5 * np.abs(y).max() / 0.5
        np.testing.assert_allclose(a, np.linalg.solve(K + 0.5 * np.eye(40), y), rtol=0, atol=near)
        np.testing.assert_allclose(search.predict(X), f, rtol=0, atol=near * eigenvalues[-1])
        want = K @ np.linalg.solve(K + 0.5 * np.eye(40), y)
        condition = np.linalg.norm(K, 2) / 0.5 + 1
        self.assertLessEqual(np.abs(f - want).max(), 40 * 64 * support.U * condition * np.linalg.norm(K, 2) * np.abs(y).max() / 0.5)

    def test_malformed(self):
        """Checks that an invalid sparse matrix is refused by one line that names the row and column."""
        X, above = self.wide()
        y = above.astype(float)
        twice = X.copy()
        twice.indices[1] = twice.indices[0]
        with self.assertRaisesRegex(ValueError, r"^X\[0\]: column 0 appears twice$"):
            mercer.Model.fit("kernel-ridge", twice, y[:, None])
        X.data[0] = np.nan
        with self.assertRaisesRegex(ValueError, "^X.*NaN$"):
            mercer.Model.fit("kernel-ridge", X, y[:, None])

    def test_predictions_in_blocks(self):
        """Checks that a prediction makes few rows dense at a time, with the same bits."""
        X, y = self.data()
        model = mercer.MercerKernelRidge(kernel="rbf").fit(X, y)
        sizes = []

        def dense(part):
            sizes.append(part.shape)
            return _library.dense(part)

        with mock.patch.object(_estimator, "SMALL", 8 * 5 * 7), mock.patch.object(_estimator, "dense", dense):
            f = model.predict(sparse.csr_matrix(X))
        self.assertEqual(sizes, [(7, 5)] * 8 + [(4, 5)])
        # For a small block of rows, the device stores the model and adds the 60 products in
        # another order: the sums differ by at most γ(60)‖a‖₁, because k ≤ 1. The kernel values
        # differ by less than 60 u.
        self.assertLessEqual(np.abs(f - model.predict(X)).max(), 4 * 60 * support.U * np.abs(model.dual_coef_).sum())

    def test_refused_for_want_of_memory(self):
        """Checks that a dense copy that does not fit into memory is refused before it is made, by a
        message with the sizes."""
        free = mercer.about()["memory_bytes"]
        columns = free // 8 // 50
        S = sparse.csr_matrix(([1.0] * 50, (range(50), range(50))), shape=(50, columns))
        need = 8 * 50 * columns
        for call in (
            lambda: mercer.MercerFourierRidge().fit(S, np.arange(50.0)),
            lambda: mercer.Model.fit("rvm", S, np.ones((50, 1))),
        ):
            with self.assertRaisesRegex(mercer.OutOfMemory, f"50×{columns} sparse matrix has 50 values.*need {need} bytes: [0-9]+ are available.*kernel='precomputed'"):
                call()
        K = (S @ S.T).toarray()  # as the message advises
        self.assertEqual(mercer.MercerKernelRidge(kernel="precomputed").fit(K, np.arange(50.0)).predict(K)[3], 1.5)

    def test_verbose_names_the_copy(self):
        X, y = self.data()
        text = io.StringIO()
        with redirect_stderr(text):
            mercer.MercerRidge(verbose=1).fit(sparse.csr_matrix(X), y)
        self.assertIn(f"a dense copy of the sparse X takes {8 * 60 * 5} bytes", text.getvalue())


class TestErrors(unittest.TestCase):
    def test_texts(self):
        X, y = support.smooth(support.rng(self), 20, 2)
        for estimator, text in [
            (mercer.MercerKernelRidge(alpha=-1), "^alpha must be a finite number ≥ 0, got -1"),
            (mercer.MercerKernelRidge(alpha=None), "alpha must not be None; its default is 1.0"),
            (mercer.MercerKernelRidge(max_iter=0), "^max_iter must be"),
            (mercer.MercerKernelRidge(fit_intercept="perhaps"), "fit_intercept: want true or false"),
            (mercer.MercerKernelRidge(fit_intercept=True, alpha=0), "alpha: with the kernel linear"),
            (mercer.MercerKernelRidge(threads=-1), "threads must be an integer ≥ 1, or None for all, got -1"),
            (mercer.MercerKernelRidge(threads="all"), "threads must be an integer ≥ 1, or None for all, got 'all'"),
            (mercer.MercerKernelRidge(device=5), "device must be the name of a device, .* got 5"),
            (mercer.MercerKernelRidge(kernel="rbf", gamma=0), "gamma must be a finite number > 0, .* got 0"),
            (mercer.MercerKernelRidge(kernel="rbf", gamma=[1]), r"gamma must be a finite number > 0, .* got \[1\]"),
            (mercer.MercerKernelRidge(kernel="poly", gamma=0), "gamma must be a finite number > 0"),
            (mercer.MercerKernelRidge(kernel="poly", coef0=-1), "coef0 must be a finite number ≥ 0 for the kernel 'poly', got -1"),
            (mercer.MercerKernelRidge(kernel="poly", degree=2.5), "degree must be an integer ≥ 1, got 2.5"),
            (mercer.MercerNystroemRidge(n_components=0), "^n_components must be"),
            (mercer.MercerFourierRidge(n_components=0), "^n_components must be"),
            (mercer.MercerGaussianProcess(n_restarts_optimizer=-1), "^n_restarts_optimizer must be"),
            (mercer.MercerGaussianProcess(optimize="perhaps"), "optimize: want true or false"),
            (mercer.MercerGaussianProcess(fit_scale="perhaps"), "fit_scale: want true or false"),
            (mercer.MercerSVR(cache_size=-1), "^cache_size must be"),
            (mercer.MercerRegressor("lasso", params={"lambda": -1}), "^lambda must be"),  # params has the library's names
            (mercer.MercerRegressor("lasso", params={"alpha": 1}), "^alpha is not a parameter of lasso, which has lambda"),
            (mercer.MercerRegressor("lasso", params=5), "params must be a dict of the learner's parameters or None, got 5"),
            (mercer.MercerKernelRidge(kernel="abacus"), "there is no kernel 'abacus'"),
            (mercer.MercerKernelRidge(kernel="gaussian(sigma=-1)"), "sigma"),
            (mercer.MercerKernelRidge(kernel="rbf", gamma="large"), "gamma must be a number"),
            (mercer.MercerRegressor("abacus"), "no learner is called"),
            (mercer.MercerRegressor("svc"), "^svc does not support regression"),
            (mercer.MercerRegressor("ridge", params={"sigma": 1}), "is not a parameter of ridge"),
        ]:
            with self.subTest(estimator=estimator), self.assertRaisesRegex(ValueError, text):
                estimator.fit(X, y)
        with self.assertRaisesRegex(mercer.DeviceUnavailable, "no device is called"):
            mercer.MercerRidge(device="abacus").fit(X, y)
        with self.assertRaises(mercer.NotConverged):
            mercer.MercerKernelRidge(kernel="rbf", alpha=1e-8, solver="cg", tol=1e-14, max_iter=2).fit(X, y)
        with self.assertWarnsRegex(ConvergenceWarning, "raise tol or max_iter"):
            mercer.MercerSVR(tol=1e-9, max_iter=1).fit(X, y)

    def test_places(self):
        """Checks that errors name the given array, count from 0, and do not name packages of the
        library. Each case has one wrong element with a known index."""
        X, y = support.smooth(support.rng(self), 12, 2)
        classes, two = (y > 0).astype(int), np.column_stack([y, y])
        estimators = [(name, getattr(mercer, name)()) for name in mercer.__all__ if name.startswith("Mercer") and name not in (
            "MercerError", "MercerClassifier", "MercerOneClassSVM") and not issubclass(getattr(mercer, name), TransformerMixin)]
        estimators += [(m, mercer.MercerRegressor(m)) for m in ("kernel-knn", "kernel-vote", "lasso", "bayes-ridge")]
        estimators += [(m, mercer.MercerClassifier(m)) for m in ("svc", "logistic", "perceptron", "kernel-knn", "rvc")]
        for name, estimator in estimators:
            target = classes if isinstance(estimator, mercer.MercerClassifier) else y
            for i in (0, 1, 11):
                weight = np.ones(12)
                weight[i] = -2
                with self.subTest(estimator=name), self.assertRaisesRegex(ValueError, rf"^sample_weight\[{i}\] must be .*, got -2"):
                    estimator.fit(X, target, sample_weight=weight)
        nan = X.copy()
        nan[7, 1] = np.nan
        f = mercer.Factor(np.eye(2))
        far = mercer.MercerKernelRidge(kernel="poly", degree=5).fit(X, y)
        huge = X.copy()
        huge[3] = 1e200
        for call, text in (
            (lambda: mercer.MercerKernelRidge(alpha=[1, -2]).fit(X, two), r"^alpha\[1\] must be a finite number ≥ 0, got -2"),
            (lambda: mercer.Model.fit("ridge", nan, two), r"^X\[7, 1\] is NaN"),
            (lambda: mercer.Model.fit("ridge", X, nan), r"^y\[7, 1\] is NaN"),
            (lambda: mercer.solve(np.eye(2), [1, np.nan]), r"^y\[1\] is NaN"),
            (lambda: f.append([0, 1, np.nan]), r"^values\[2\] is NaN"),
            (lambda: f.append([1]), "^the row has 1 element, but it must have 3, because the factor has order 2$"),
            (lambda: f.append([9, 9, 0]), "^K \\+ alpha I is not positive definite for alpha = 1"),
            (lambda: far.predict(huge), r"^X\[3\]: the prediction is "),
            (lambda: far.predict_interval(X, level=2), "^level must be"),
            (lambda: mercer.load("/nonexistent/m"), "^/nonexistent/m: no such file"),
        ):
            with self.subTest(text=text), self.assertRaises(Exception) as caught:
                call()
            self.assertRegex(str(caught.exception), text)
            self.assertNotRegex(str(caught.exception), "\n|learners: |solvers: |λ")

    def test_texts_speak_of_alpha(self):
        """Checks that errors and notes contain the names of the arguments, not lambda and λ."""
        X, y = support.smooth(support.rng(self), 20, 2)
        X[1] = X[0]
        singular = pairwise_kernels(X, metric="rbf")
        for call in (
            lambda: mercer.MercerKernelRidge(alpha=0, kernel="rbf").fit(X, y),
            lambda: mercer.MercerKernelRidge(alpha=[0, 0], kernel="rbf").fit(X, np.column_stack([y, y])),
            lambda: mercer.MercerClassifier("kernel-ridge", alpha=0).fit(X, y > 0),
            lambda: mercer.solve(singular, y, alpha=0),
            lambda: mercer.Factor(singular, alpha=0),
        ):
            with self.assertRaises(mercer.NotPositiveDefinite) as caught:
                call()
            self.assertRegex(str(caught.exception), r"K \+ alpha I is not positive definite.*raise alpha")
            self.assertNotRegex(str(caught.exception), "lambda|λ")
        for call in (lambda: mercer.solve(singular, y, alpha=-1), lambda: mercer.Factor(singular, alpha=np.nan)):
            with self.assertRaisesRegex(ValueError, "alpha must be a finite number ≥ 0"):
                call()
        for call in (lambda: mercer.solve(singular, y, alpha="1"), lambda: mercer.Factor(singular, alpha=None)):
            with self.assertRaisesRegex(ValueError, "alpha must be a number"):
                call()
        self.assertEqual(mercer.Factor(singular, alpha=2).info["alpha"], 2)
        with self.assertWarnsRegex(ConvergenceWarning, "raise alpha, tol or max_iter"):
            mercer.MercerClassifier("logistic", max_iter=1, tol=1e-14).fit(X, y > 0)

    def test_devices_agree(self):
        X, y = support.smooth(support.rng(self), 40, 3)
        fits = [mercer.MercerKernelRidge(kernel="rbf", device=d).fit(X, y) for d in ("cpu/generic", "ref", None)]
        self.assertEqual([f.model_.info["device"] for f in fits[:2]], ["cpu/generic", "ref"])
        f = [fit.predict(X) for fit in fits]
        # With α = 1 and K ≤ 1, the bound is twice n·γ(3n+1)(n + 1)‖a‖√n, as in test_agreement.
        n = 40
        bound = 8 * n * (3 * n + 1) * support.U * (n + 1) * n * np.linalg.norm(y)
        self.assertLessEqual(max(np.abs(f[0] - f[1]).max(), np.abs(f[0] - f[2]).max()), bound)


class TestLongWork(unittest.TestCase):
    def slow(self):
        """An estimator and data whose fit takes minutes."""
        X, y = support.smooth(support.rng(self), 6000, 4)
        return mercer.MercerKernelRidge(kernel="gaussian(sigma=3)", alpha=1e-9, solver="cg", tol=1e-15, max_iter=10**9), X, y

    def test_interrupt(self):
        # A background process of a shell may have been started with SIGINT ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        slow, X, y = self.slow()
        for estimator in (slow, mercer.MercerKernelRidgeCV(np.geomspace(1e-3, 1, 9), kernel="rbf")):
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                with self.assertRaises(KeyboardInterrupt):
                    estimator.fit(X, y)
            finally:
                timer.join()
            self.assertFalse(hasattr(estimator, "model_"))
            mercer.MercerRidge().fit(X[:100], y[:100])  # the library can still be used

    def test_progress(self):
        estimator, X, y = self.slow()
        estimator.set_params(verbose=1, solver="auto", tol=1e-8, alpha=1.0)
        reported = []
        estimator._say = lambda what: lambda stage, fraction: reported.append((what, stage, fraction))
        text = io.StringIO()
        with redirect_stderr(text):
            estimator.fit(X[:4000], y[:4000])
        self.assertRegex(text.getvalue(), r"\[MercerKernelRidge\] fit: solver \w+, residual .*, device .*, seconds ")
        for what, stage, fraction in reported:  # empty if the fit took less than a second
            self.assertEqual(what, "fit")
            self.assertTrue(stage and 0 <= fraction <= 1)

    def test_threads(self):
        X, y = support.smooth(support.rng(self), 300, 3)
        shared = mercer.MercerKernelRidge(kernel="rbf").fit(X, y)
        want = shared.predict(X)

        def work(i):
            own = mercer.MercerKernelRidge(kernel="rbf", alpha=1.0 + i % 3).fit(X, y)
            with self.assertRaisesRegex(ValueError, f"no learner is called \"learner-{i}\""):
                mercer.MercerRegressor(f"learner-{i}").fit(X, y)
            return shared.predict(X), own.predict(X)

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(work, range(24)))
        for i, (f, own) in enumerate(results):
            np.testing.assert_array_equal(f, want)
            np.testing.assert_array_equal(own, results[i % 3][1])

    def test_fork(self):
        """Checks that a call in a forked child fails, instead of waiting for threads that the child
        does not have."""
        X, y = support.smooth(support.rng(self), 20, 2)
        fitted = mercer.MercerRidge().fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of fork in a process with threads
            child = os.fork()
        if child == 0:
            code = 1
            try:
                fitted.predict(X)
            except mercer.MercerError as err:
                code = 0 if "forked" in str(err) else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


class TestLibrary(unittest.TestCase):
    def test_where_it_is_looked_for(self):
        import subprocess

        program = "import mercer; mercer.about()"
        for path, text in (("/nowhere/libmercer.so", "cannot be loaded"), (os.path.join(support.HERE, "support.py"), "cannot be loaded")):
            done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "MERCER_LIBRARY": path}, capture_output=True, text=True)
            self.assertIn("ImportError: mercer: " + path, done.stderr)
            self.assertIn(text, done.stderr)
