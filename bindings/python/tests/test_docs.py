"""Checks the sections of docstrings by the rules of numpydoc, and runs their examples."""

import doctest
import inspect
import re
import unittest

from . import support  # noqa: F401: finds the package
import numpy as np
from sklearn.base import ClassifierMixin

import mercer
from mercer import accel

def sections(text):
    """A dict from the title of each section of a docstring to its lines. The summary has the title ""."""
    lines = inspect.cleandoc(text or "").splitlines()
    found, name = {"": []}, ""
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and line and re.fullmatch("-+", lines[i + 1]) and len(lines[i + 1]) == len(line):
            name = line
            found[name] = []
        elif not (re.fullmatch("-+", line) and found[name] == []):
            found[name].append(line)
    return found


def names(lines):
    """The names that a section describes: its lines that are not indented."""
    return [line.split(" : ")[0] for line in lines if line and not line.startswith(" ")]


def things():
    """The functions and classes of the package and of mercer.accel."""
    for name in mercer.__all__:
        yield name, getattr(mercer, name)
    for name in accel.__all__:
        yield f"accel.{name}", getattr(accel, name)


def public():
    """The functions and classes of the package, and the methods of the classes."""
    for name, thing in things():
        yield name, thing
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            for method, value in inspect.getmembers(thing, lambda m: callable(m)):
                if not method.startswith("_") and (getattr(value, "__module__", "") or "").startswith("mercer"):
                    yield f"{name}.{method}", value


class TestDocs(unittest.TestCase):
    def test_parameters(self):
        """Checks that each parameter is described with a type, in the order of the signature."""
        seen = 0
        for name, thing in public():
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                self.assertTrue(thing.__doc__, name)
                continue
            with self.subTest(name=name):
                found = sections(thing.__doc__)
                self.assertTrue("".join(found[""]), "there is no summary")
                want = [p for p in inspect.signature(thing).parameters if p not in ("self", "cls")]
                self.assertEqual(names(found.get("Parameters", [])), want)
                for section in ("Parameters", "Attributes", "Returns"):
                    lines = found.get(section, [])
                    for line, following in zip(lines, lines[1:] + [""]):
                        if line and not line.startswith(" ") and section != "Returns":
                            self.assertRegex(line, r"^\w+ : .+")
                            self.assertRegex(following, r"^    \S", f"{line} has no description")
                seen += 1
        self.assertGreater(seen, 40)

    def test_defaults(self):
        """Checks that each default in a description equals the default of the signature."""
        for name, thing in public():
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                continue
            described = {p: v.default for p, v in inspect.signature(thing).parameters.items()}
            for line in sections(thing.__doc__).get("Parameters", []):
                said = re.match(r"(\w+) : .*default=(.*)$", line)
                if said:
                    with self.subTest(name=name, parameter=said[1]):
                        self.assertEqual(described[said[1]], eval(said[2]))

    def test_attributes(self):
        """Checks that a fitted estimator has exactly the described attributes."""
        X = np.random.default_rng(1).normal(size=(30, 2))
        y = X[:, 0] - X[:, 1]
        for name in mercer.__all__:
            kind = getattr(mercer, name)
            if not (inspect.isclass(kind) and hasattr(kind, "get_params")):
                continue
            with self.subTest(name=name):
                store = {p: True for p in ("store_cv_results", "std", "fit_inverse_transform") if p in kind().get_params()}
                square = kind().get_params().get("kernel") == "precomputed"
                samples = [f"text {i}" for i in range(30)] if "Text" in name else X @ X.T if square else X
                fitted = kind(**store).fit(samples, y > 0 if issubclass(kind, ClassifierMixin) else y)
                have = {a for a in dir(fitted) if a.endswith("_") and not a.startswith("_") and hasattr(fitted, a)}
                described = set(names(sections(kind.__doc__)["Attributes"]))
                self.assertEqual(described - {"feature_names_in_"}, have - {"feature_names_in_"})

    def test_examples(self):
        """Checks that each function and class has an example, which prints the output it shows."""
        runner = doctest.DocTestRunner()
        finder = doctest.DocTestFinder(recurse=False)
        for name, thing in things():
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                continue
            with self.subTest(name=name):
                self.assertIn("Examples", sections(thing.__doc__))
                said = []
                for test in finder.find(thing, name, globs={}):
                    self.assertTrue(test.examples)
                    runner.run(test, out=said.append)
                self.assertEqual("".join(said), "")
