"""Checks that advice in errors names only arguments that the estimator has and accepts."""

import json
import os
import re
import shutil
import subprocess
import unittest
import warnings

from . import support
import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer._estimator import python_names
from mercer._model import _text

SOURCES = ["solvers", "learners", "kernels", "backend", "cpu", "cuda", "gonum", "internal"]

# Valid values of the arguments that occur in advice.
VALID = {
    "alpha": 10.0, "tol": 0.1, "max_iter": 100000, "C": 0.5, "n_components": 5, "kernel": "gaussian(sigma=30)", "solver": "auto",
    "lambda": 10.0, "iterations": 100000, "centers": 5, "features": 4, "rate": 1e-5, "nu": 0.1, "accuracy": 1e6,
}


def advice():
    """Every advice in the sources of the library, such as {raise $lambda|raise $tol}."""
    found = set()
    for folder in SOURCES:
        for where, _, files in os.walk(os.path.join(support.ROOT, folder)):
            for name in files:
                if not name.endswith(".go") or name.endswith("_test.go") or where.endswith("test") or where.endswith("message"):
                    continue
                with open(os.path.join(where, name), encoding="utf-8") as f:
                    source = re.sub(r"(?m)^\s*//.*$", "", f.read())
                for group in re.findall(r"\{[^{}\n]*\$[a-zA-Z][^{}\n]*\}", source):
                    found.add(re.sub(r'"\s*\+.*?\+\s*"', "…", group))
                found.update("{" + text + "}" for text in re.findall(r'"((?:raise|lower) \$[^"{}\n]*)"', source))
    return sorted(group for group in found if '"' not in group and "%" not in group)


def estimators():
    """Each estimator that fits a learner; an estimator with a method once for each of its learners."""
    for name in mercer.__all__:
        kind = getattr(mercer, name)
        if hasattr(kind, "get_params") and not issubclass(kind, TransformerMixin) and "method" not in kind().get_params():
            yield kind()
    yield mercer.MercerKernelRidge(alpha=[1.0, 2.0])
    yield mercer.MercerKernelRidge(kernel="rbf", solver="cg")
    yield mercer.MercerGaussianProcess(optimize=False)
    for learner in mercer.about()["learners"]:
        if "regression" in learner["tasks"]:
            yield mercer.MercerRegressor(learner["name"])
        if "classification" in learner["tasks"]:
            yield mercer.MercerClassifier(learner["name"])


class TestAdvice(unittest.TestCase):
    def test_can_be_followed(self):
        """Checks that each argument in the advice of a message is an argument of the estimator
        or a key of its params, and that the fit accepts another value of this argument."""
        if shutil.which("go") is None:
            support.absent("go", "there is no go command, which shows the library's advice")
        r = support.rng(self)
        X, y = r.normal(size=(40, 2)), r.normal(size=40)
        pieces, list_ = advice(), list(estimators())
        self.assertGreater(len(pieces), 20)
        callers = []
        for e in list_:
            fitted = clone(e)
            if isinstance(e, mercer.MercerKernelRidgeCV):
                fitted.alpha_, fitted._best = 1.0, "linear()"
            fitted._targets = 2
            given = fitted._given(fitted._name(), X)
            callers.append({"Learner": fitted._name(), "Task": fitted._learner[1], "Names": fitted._names(),
                            "Given": {name: _text(value) for name, value in given.items()}})
        shown = subprocess.run(["go", "run", "./bindings/c/ctest/advice"], cwd=support.ROOT, capture_output=True, text=True,
                               input=json.dumps({"Advice": pieces, "Callers": callers}))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        words = {p[key] for learner in mercer.about()["learners"] for p in learner["parameters"] for key in ("name", "python")}
        tried = set()
        for e, caller, texts in zip(list_, callers, json.loads(shown.stdout)):
            has = set(caller["Names"].values())
            for text in texts:
                self.assertNotIn("$", text)
                self.assertNotIn("memory", text, e)
                said = re.sub(r"\bscale the\b|\bfewer features or outputs\b", "", text.partition("fault")[2])  # of X and y
                for names in re.findall(r"(?:raise|lower|use fewer|take another|use) ([\w-]+(?:=\w+)?(?:, [\w-]+)*(?: or [\w-]+)?)", said):
                    for name in re.split(", | or ", names):
                        name, _, value = name.partition("=")
                        if name in words:
                            with self.subTest(estimator=e, text=text):
                                self.assertIn(name, has)
                                tried.add((repr(e), name, value))
        self.assertGreater(len(tried), 60)
        by_name = {repr(e): e for e in list_}
        for shown_as, name, value in sorted(tried):
            e = clone(by_name[shown_as])
            own = "alphas" if isinstance(e, mercer.MercerKernelRidgeCV) and name == "alpha" else name
            new = value or VALID[name]
            if own in e.get_params():
                e.set_params(**{own: [new] if own == "alphas" else new})
            else:
                e.set_params(params={name: new})
            with self.subTest(estimator=shown_as, name=name, value=value), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                two = np.ndim(getattr(by_name[shown_as], "alpha", 1)) == 1
                e.fit(X, y > 0 if isinstance(e, mercer.MercerClassifier) else np.column_stack([y, y]) if two else y)

    def test_alternatives_that_are_absent(self):
        """Checks that errors and warnings of fits name the arguments, or the library's parameters."""
        X = np.random.default_rng(1).normal(size=(60, 3))
        y = X[:, 0] ** 2
        with self.assertRaises(mercer.NotConverged) as caught:
            mercer.MercerKernelRidge(kernel="rbf", alpha=1e-8, solver="cg", tol=1e-14, max_iter=2).fit(X, y)
        self.assertRegex(str(caught.exception), "raise alpha or tol$")
        with self.assertRaises(mercer.NotConverged) as caught:
            mercer.Model.fit("kernel-ridge", X, y.reshape(-1, 1), parameters={
                "kernel": "gaussian(sigma=1)", "lambda": 1e-8, "solver": "cg", "tol": 1e-14, "iterations": 2})
        self.assertRegex(str(caught.exception), "raise lambda or tol$")
        for estimator, target, text in (
            (mercer.MercerRegressor("lasso", params={"iterations": 1, "lambda": 1e-9, "tol": 1e-12}), y, "raise lambda, tol or iterations, or standardize X$"),
            (mercer.MercerRegressor("bayes-ridge", params={"iterations": 1, "tol": 1e-15}), y, "raise tol or iterations$"),
            (mercer.MercerRegressor("rvm", params={"iterations": 1}), y, "raise tol or iterations$"),
            (mercer.MercerClassifier("logistic", max_iter=1, tol=1e-14), y > 1, "raise alpha, tol or max_iter$"),
            (mercer.MercerClassifier("kernel-logistic", max_iter=1, tol=1e-14), y > 1, "raise alpha, tol or max_iter$"),
            (mercer.MercerClassifier("svc", max_iter=1), y > 1, "raise tol or max_iter$"),
            (mercer.MercerClassifier("rvc", max_iter=1), y > 1, "raise tol or max_iter$"),
            (mercer.MercerOneClassSVM(max_iter=1), None, "raise tol or max_iter$"),
        ):
            with self.subTest(estimator=estimator), self.assertWarnsRegex(ConvergenceWarning, text):
                estimator.fit(X, target)

    def test_names_are_of_one_call(self):
        """Checks that the names that one estimator passes to the library do not apply to the next call."""
        X, y = np.ones((2, 1)), np.ones((2, 1))
        for _ in range(2):
            with self.assertRaisesRegex(ValueError, "^max_iter must"):
                mercer.MercerKernelRidge(max_iter=0).fit(X, y)
            with self.assertRaisesRegex(ValueError, "^iterations: must|^iterations must"):
                mercer.Model.fit("kernel-ridge", X, y, parameters={"iterations": 0})
            with python_names({"iterations": "steps"}), self.assertRaisesRegex(ValueError, "^steps must"):
                mercer.Model.fit("kernel-ridge", X, y, parameters={"iterations": 0})

    def test_memory(self):
        """Checks that no message advises to change the memory, for which the package has no argument."""
        X = np.arange(1e6).reshape(-1, 1)
        for call in (
            lambda: mercer.MercerKernelRidge(kernel="rbf", solver="dual").fit(X, X[:, 0]),
            lambda: mercer.Model.fit("kernel-ridge", X, X, parameters={"kernel": "gaussian(sigma=1)", "solver": "dual"}),
            lambda: mercer.Factor(X, kernel="gaussian(sigma=1)"),
        ):
            with self.assertRaises(mercer.OutOfMemory) as caught:
                call()
            self.assertNotIn("more memory", str(caught.exception))
