"""Checks that the command loads models saved by Python, and Python loads those of the command."""

import csv
import os
import subprocess
import tempfile
import unittest
import warnings

from . import support
import numpy as np

import mercer


def run(*args):
    done = subprocess.run([support.COMMAND, *args], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"mercer {' '.join(args)}: {done.stderr}")
    return done.stdout


class TestFiles(unittest.TestCase):
    def setUp(self):
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        self.addCleanup(warnings.resetwarnings)
        if not os.path.exists(support.COMMAND):
            support.absent("command", "bin/mercer is not built: make build")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        r = support.rng(self)
        self.X, self.y = support.smooth(r, 80, 3)
        self.X[:, 1] = 100 + 30 * self.X[:, 1]
        self.label = np.where(self.y > np.median(self.y), "high", "low")

    def path(self, name):
        return os.path.join(self.folder, name)

    def table(self, name, header, *columns):
        """Writes a CSV file with all digits, so that the command reads the same numbers."""
        with open(self.path(name), "w", newline="") as f:
            w = csv.writer(f)
            w.writerow(header)
            w.writerows(zip(*[[repr(v) if isinstance(v, float) else v for v in c] for c in columns]))
        return self.path(name)

    def predictions(self, model, table, column="prediction", *flags):
        rows = list(csv.DictReader(run("predict", "--model", model, *flags, table).splitlines()))
        return [row[column] for row in rows]

    def columns(self):
        return [c.tolist() for c in self.X.T]

    def test_from_the_command(self):
        """Checks that a model of the command, which standardizes, gives the same bits for the raw
        data in Python."""
        table = self.table("t.csv", ["a", "b", "c", "y"], *self.columns(), self.y.tolist())
        model = self.path("m.safetensors")
        for learner, kind in [("kernel-ridge", mercer.MercerKernelRidge), ("ridge", mercer.MercerRidge), ("svr", mercer.MercerSVR), ("lasso", mercer.MercerRegressor)]:
            with self.subTest(learner=learner):
                run("fit", "--quiet", "--learner", learner, "--target", "y", "--model", model, table)
                loaded = mercer.load(model)
                self.assertIsInstance(loaded, kind)
                self.assertEqual(list(loaded.feature_names_in_), ["a", "b", "c"])
                f = np.array([float(v) for v in self.predictions(model, table)])
                np.testing.assert_array_equal(loaded.predict(self.X), f)
        self.assertEqual(mercer.load(model).n_features_in_, 3)
        missing = self.X.copy()
        missing[0, 1] = np.nan
        filled = self.X.copy()
        filled[0, 1] = np.median(self.X[:, 1])  # the command replaces missing values by the median
        # The median of an even number of values is a mean of two values, rounded once or twice.
        np.testing.assert_allclose(loaded.predict(missing), loaded.predict(filled), rtol=64 * support.U)

    def test_penalties(self):
        """Checks that the file contains the alpha of each target."""
        Y = np.column_stack([self.y, 2 * self.y])
        for kind in (mercer.MercerKernelRidge, mercer.MercerRidge):
            fitted = kind(alpha=[0.5, 3]).fit(self.X, Y)
            path = self.path("m.safetensors")
            fitted.save(path)
            loaded = mercer.load(path)
            np.testing.assert_array_equal(loaded.alpha, [0.5, 3])
            np.testing.assert_array_equal(loaded.predict(self.X), fitted.predict(self.X))
            np.testing.assert_array_equal(loaded.fit(self.X, Y).predict(self.X), fitted.predict(self.X))

    def test_intervals(self):
        """Checks that the file of a model fitted in Python keeps its intervals, and that Python
        reads the intervals of a model that the command calibrated."""
        model = self.path("m.safetensors")
        for estimator in (mercer.MercerKernelRidge(0.1, kernel="rbf"), mercer.MercerRidge(intervals=True)):
            fitted = estimator.fit(self.X, self.y)
            fitted.save(model)
            loaded = mercer.load(model)
            np.testing.assert_array_equal(loaded.predict_interval(self.X), fitted.predict_interval(self.X))
            np.testing.assert_array_equal(loaded.fit(self.X, self.y).predict_interval(self.X), fitted.predict_interval(self.X))
        table = self.table("t.csv", ["a", "b", "c", "y"], *self.columns(), self.y.tolist())
        run("fit", "--quiet", "--learner", "svr", "--calibrate", "0.3", "--target", "y", "--model", model, table)
        bounds = mercer.load(model).predict_interval(self.X, 0.8)
        for column, bound in zip(("lower", "upper"), bounds):
            np.testing.assert_array_equal([float(v) for v in self.predictions(model, table, column, "--interval", "0.8")], bound)

    def test_classes_from_the_command(self):
        table = self.table("t.csv", ["a", "b", "c", "y"], *self.columns(), self.label)
        model = self.path("m.safetensors")
        for learner in ("kernel-ridge", "svc", "logistic"):
            with self.subTest(learner=learner):
                run("fit", "--quiet", "--learner", learner, "--task", "classification", "--target", "y", "--model", model, table)
                loaded = mercer.load(model)
                self.assertEqual(list(loaded.classes_), ["high", "low"])
                self.assertEqual(list(loaded.predict(self.X)), self.predictions(model, table))

    def test_to_the_command(self):
        table = self.table("t.csv", ["x1", "x2", "x3", "y"], *self.columns(), self.y.tolist())
        model = self.path("m.safetensors")
        for estimator in (mercer.MercerRidge(), mercer.MercerKernelRidge(kernel="rbf"), mercer.MercerNystroemRidge(), mercer.MercerGaussianProcess(optimize=False)):
            with self.subTest(estimator=estimator):
                f = estimator.fit(self.X, self.y).predict(self.X)
                estimator.save(model)
                np.testing.assert_array_equal([float(v) for v in self.predictions(model, table)], f)
                self.assertIn("R²", run("evaluate", "--model", model, table))
                np.testing.assert_array_equal(mercer.load(model).predict(self.X), f)

    def test_classes_to_the_command(self):
        for labels in (self.label, (self.label == "high").astype(int), np.where(self.label == "high", 2.0, -1.0)):
            classifier = mercer.MercerClassifier("logistic").fit(self.X, labels)
            model = self.path("m.safetensors")
            classifier.save(model)
            table = self.table("t.csv", ["x1", "x2", "x3", "y"], *self.columns(), labels.tolist())
            said = self.predictions(model, table)
            got = said if labels.dtype.kind == "U" else [float(v) for v in said]
            self.assertEqual(got, classifier.predict(self.X).tolist())
            self.assertIn("accuracy", run("evaluate", "--model", model, table))
            loaded = mercer.load(model)
            np.testing.assert_array_equal(loaded.classes_, classifier.classes_)
            np.testing.assert_array_equal(loaded.predict(self.X), classifier.predict(self.X))

    def test_numpy_file(self):
        """Checks that the command gives the columns of NPY files the names that Python gives."""
        model, data = self.path("m.safetensors"), self.path("x.npy")
        estimator = mercer.MercerKernelRidge(kernel="rbf").fit(self.X, self.y)
        estimator.save(model)
        np.save(data, self.X)
        np.testing.assert_array_equal([float(v) for v in self.predictions(model, data)], estimator.predict(self.X))

    def test_novelty(self):
        model = self.path("m.safetensors")
        estimator = mercer.MercerOneClassSVM().fit(self.X)
        estimator.save(model)
        table = self.table("t.csv", ["x1", "x2", "x3"], *self.columns())
        said = [1 if v == "inlier" else -1 for v in self.predictions(model, table)]
        self.assertEqual(said, estimator.predict(self.X).tolist())
        np.testing.assert_array_equal(mercer.load(model).predict(self.X), estimator.predict(self.X))

    def test_damaged(self):
        model = self.path("m.safetensors")
        mercer.MercerRidge().fit(self.X, self.y).save(model)
        with open(model, "r+b") as f:
            f.seek(-1, os.SEEK_END)
            f.write(b"\xff")
        with self.assertRaisesRegex(ValueError, "damaged"):
            mercer.load(model)
        with self.assertRaisesRegex(ValueError, "no such file"):
            mercer.load(self.path("none"))
