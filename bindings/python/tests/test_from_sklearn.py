"""Checks that estimators of scikit-learn that from_sklearn has converted predict the same numbers."""

import csv
import json
import os
import subprocess
import tempfile
import unittest
import urllib.request

from . import support
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import mercer


class TestFromSklearn(unittest.TestCase):
    def setUp(self):
        r = support.rng(self)
        self.X, self.y = support.smooth(r, 80, 4)
        self.new = r.normal(size=(30, 4))
        self.two = np.where(self.y > 0, "yes", "no")
        self.three = np.digitize(self.y, [-0.3, 0.4]) * 5 - 5

    def near(self, got, want):
        """Checks that arrays are equal within 1e-12 of the largest number."""
        self.assertEqual(got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())

    def test_classes(self):
        """Checks decision values and classes of all kernels, for two and three classes."""
        for y in (self.two, self.three):
            fits = [SVC(kernel=k, gamma=0.2, coef0=0.5, break_ties=True) for k in ("linear", "rbf", "poly", "sigmoid")]
            for fit in [*fits, NuSVC(nu=0.2, break_ties=True), LogisticRegression(C=2)]:
                with self.subTest(fit=fit, classes=len(set(y))):
                    fit.fit(self.X, y)
                    got = mercer.from_sklearn(fit)
                    self.near(got.decision_function(self.new), fit.decision_function(self.new))
                    np.testing.assert_array_equal(got.predict(self.new), fit.predict(self.new))
                    self.assertEqual(got.classes_.dtype, fit.classes_.dtype)
                    if isinstance(fit, LogisticRegression):
                        self.near(got.predict_proba(self.new), fit.predict_proba(self.new))

    def test_probabilities(self):
        """Checks the probabilities of an SVC, which both programs compute by an iteration that ends
        when the residual is below 0.005/K."""
        for y in (self.two, self.three):
            fit = SVC(probability=True, random_state=1).fit(self.X, y)
            np.testing.assert_allclose(mercer.from_sklearn(fit).predict_proba(self.new), fit.predict_proba(self.new), rtol=0, atol=0.005)

    def test_numbers(self):
        """Checks the predictions of regressions, of one target and of two."""
        Y = np.column_stack([self.y, 3 - self.y**2])
        fits = [SVR(kernel="poly", degree=2, coef0=1), NuSVR(C=5), OneClassSVM(nu=0.3), Ridge(alpha=0.5), Ridge(fit_intercept=False), KernelRidge(kernel="laplacian", alpha=0.3)]
        for fit in [*fits, Ridge(alpha=np.array([0.5, 2.0])), KernelRidge(kernel="rbf", gamma=0.4, alpha=[0.5, 2]), KernelRidge(kernel="chi2", gamma=1)]:
            with self.subTest(fit=fit):
                X, new = (np.abs(self.X), np.abs(self.new)) if getattr(fit, "kernel", "") == "chi2" else (self.X, self.new)
                fit.fit(X, Y if np.ndim(getattr(fit, "alpha", 0)) else self.y)
                got = mercer.from_sklearn(fit)
                if isinstance(fit, OneClassSVM):
                    self.near(got.decision_function(new), fit.decision_function(new))
                    np.testing.assert_array_equal(got.predict(new), fit.predict(new))
                else:
                    self.near(got.predict(new), fit.predict(new))

    def test_gaussian_processes(self):
        """Checks means and standard deviations. The standard deviation includes alpha."""
        k = kernels
        for kernel, alpha in [
            (k.ConstantKernel(2) * k.RBF([1, 2, 3, 4]) + k.WhiteKernel(0.1), 1e-10),
            (k.Matern(1.3, nu=1.5) + k.RationalQuadratic(1.1, 0.7) * k.DotProduct(0.5), 0.2),
            (k.ExpSineSquared(3, 40) * k.RBF(2), 0.2),  # with a shorter period it is indefinite for several features
            (k.ConstantKernel(0.5) * (k.RBF(2) ** 2 + k.Matern(1, nu=2.5)) + k.ConstantKernel(0.5) * k.WhiteKernel(0.3), np.linspace(0.1, 0.3, 80)),
        ]:
            for y in (self.y, np.column_stack([self.y, 3 - self.y**2])):
                with self.subTest(kernel=kernel, targets=y.ndim):
                    fit = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None, normalize_y=True).fit(self.X, y)
                    got = mercer.from_sklearn(fit)
                    mean, std = fit.predict(self.new, return_std=True)
                    self.near(got.predict(self.new), mean)
                    _, deviation = got.predict(self.new, return_std=True)
                    scale = np.atleast_1d(fit._y_train_std) ** 2
                    extra = np.ravel(alpha)[0] * (scale if y.ndim > 1 else scale[0])
                    # The variance of the noise is that of the first sample. The condition of K + λI is at most
                    # about 80·5/0.1, and the variances have few digits less than the means.
                    np.testing.assert_allclose(deviation**2, std**2 + extra, rtol=1e-10)

    def test_sparse(self):
        """Checks support vectors that stay sparse."""
        r = support.rng(self)
        X = csr_matrix(np.where(r.random((80, 200)) < 0.1, r.normal(size=(80, 200)), 0))
        for fit in (SVC(gamma=0.1).fit(X, self.two), SVR().fit(X, self.y)):
            got = mercer.from_sklearn(fit)
            self.assertIn("points.starts", got.model_.info["arrays"])
            values = "decision_function" if isinstance(fit, SVC) else "predict"
            self.near(getattr(got, values)(X), getattr(fit, values)(X))

    def test_file(self):
        """Checks that a saved model predicts the same, and keeps the names of the columns."""
        import pandas

        X = pandas.DataFrame(self.X, columns=["a", "b", "y", "d"])
        fit = SVC().fit(X, self.three)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.safetensors")
            mercer.from_sklearn(fit).save(path)
            loaded = mercer.load(path)
        self.assertEqual(list(loaded.feature_names_in_), ["a", "b", "y", "d"])
        self.near(loaded.decision_function(X), fit.decision_function(X))

    def test_command(self):
        """Checks that mercer predict and mercer serve compute the predictions of scikit-learn from a saved model."""
        if not os.path.exists(support.COMMAND):
            support.absent("command", "bin/mercer is not built: make build")
        fits = [SVR(gamma=0.3).fit(self.X, self.y), KernelRidge(kernel="rbf", gamma=0.4, alpha=0.5).fit(self.X, self.y), Ridge().fit(self.X, self.y),
                GaussianProcessRegressor(kernels.RBF(2) + kernels.WhiteKernel(0.1), optimizer=None).fit(self.X, self.y), make_pipeline(StandardScaler(), SVR()).fit(self.X, self.y),
                SVC(break_ties=True).fit(self.X, self.three), LogisticRegression(C=2).fit(self.X, self.three)]
        with tempfile.TemporaryDirectory() as folder:
            table, path = os.path.join(folder, "new.csv"), os.path.join(folder, "m.safetensors")
            for fit in fits:
                with self.subTest(fit=fit):
                    model = mercer.from_sklearn(fit)
                    model.save(path)
                    names = [c["name"] for c in json.loads(self.run_command("show", "--json", path))["columns"]]
                    with open(table, "w", encoding="utf-8") as f:
                        f.writelines(",".join(map(str, row)) + "\n" for row in [names, *self.new.tolist()])
                    proba = ["--proba"] if isinstance(fit, LogisticRegression) else []
                    rows = list(csv.DictReader(self.run_command("predict", "--quiet", "--model", path, *proba, table).splitlines()))
                    answers = self.served(path, "?proba" if proba else "")
                    want = fit.predict(self.new)
                    if want.dtype.kind == "f":
                        self.near(np.array([float(row["prediction"]) for row in rows]), want)
                        self.near(np.array([next(iter(a["values"].values())) for a in answers]), want)
                        continue
                    self.assertEqual([row["prediction"] for row in rows], [str(c) for c in want])
                    self.assertEqual([a["class"] for a in answers], [str(c) for c in want])
                    if proba:
                        classes = [str(c) for c in fit.classes_]
                        self.near(np.array([[float(row[f"probability_{c}"]) for c in classes] for row in rows]), fit.predict_proba(self.new))
                        self.near(np.array([[a["probabilities"][c] for c in classes] for a in answers]), fit.predict_proba(self.new))

    def run_command(self, *args):
        done = subprocess.run([support.COMMAND, *args], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def served(self, path, query):
        """The predictions of mercer serve for the new rows."""
        server = subprocess.Popen([support.COMMAND, "serve", "--listen", "127.0.0.1:0", path], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().split()[0]
            request = urllib.request.Request(f"{url}predict{query}", json.dumps(self.new.tolist()).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        finally:
            server.terminate()
            server.communicate()

    def test_pipelines(self):
        """Checks that a model takes the columns before a StandardScaler, dense and sparse."""
        X, new = 1e3 + 50 * self.X, 1e3 + 50 * self.new
        for scaler in (StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False)):
            with self.subTest(scaler=scaler):
                fit = make_pipeline(scaler, SVR(gamma=0.1)).fit(X, self.y)
                self.near(mercer.from_sklearn(fit).predict(new), fit.predict(new))
        r = support.rng(self)
        X = csr_matrix(np.where(r.random((80, 200)) < 0.1, r.normal(size=(80, 200)), 0))
        fit = make_pipeline(StandardScaler(with_mean=False), SVC()).fit(X, self.two)
        self.near(mercer.from_sklearn(fit).decision_function(X), fit.decision_function(X))

    def test_refusals(self):
        """Checks the errors about what a model cannot represent."""
        k = kernels
        process = lambda kernel: GaussianProcessRegressor(kernel, optimizer=None, alpha=100).fit(self.X, self.y)  # noqa: E731
        for fit, want in [
            (Lasso().fit(self.X, self.y), "from_sklearn reads SVC.*, not Lasso"),
            (make_pipeline(MinMaxScaler(), SVC()).fit(self.X, self.two), "from_sklearn reads SVC.*, not Pipeline"),
            (SVC(kernel=lambda a, b: a @ b.T).fit(self.X, self.two), "only Python can compute"),
            (KernelRidge(kernel="precomputed").fit(self.X @ self.X.T, self.y), "only Python can compute"),
            (SVC(kernel="poly", coef0=-1).fit(self.X, self.two), "coef0 must be"),
            (LogisticRegression(solver="liblinear").fit(self.X, self.three), "multi_class='ovr' for 3 classes"),
            (process(k.PairwiseKernel()), "PairwiseKernel.* is not read"),
            (process(k.Matern([1, 2, 3, 4])), "Matern.* is not read"),
            (process(k.WhiteKernel()), "noise only"),
        ]:
            with self.subTest(want=want), self.assertRaisesRegex(ValueError, want):
                mercer.from_sklearn(fit)
        with self.assertRaisesRegex(ValueError, "not fitted"):
            mercer.from_sklearn(SVC())
