"""Makes the tests import the package of this checkout, and skips tests if programs are missing."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python", "src"))
# The processes that joblib starts find the package by this variable.
os.environ["PYTHONPATH"] = os.pathsep.join([os.path.join(ROOT, "bindings", "python", "src"), os.environ.get("PYTHONPATH", "")])


def absent(what, why):
    """Skips a test because something is missing, unless MERCER_REQUIRE names it."""
    if what in os.environ.get("MERCER_REQUIRE", "").split(","):
        raise AssertionError(f"MERCER_REQUIRE names {what}: {why}")
    raise unittest.SkipTest(why)


try:
    import sklearn  # noqa: F401
except ImportError as err:
    absent("sklearn", f"scikit-learn is not installed for {sys.executable}: {err}")

import numpy as np  # noqa: E402

COMMAND = os.path.join(ROOT, "bin", "mercer")
U = 2.0**-53  # unit roundoff


def rng(test, seed=1):
    """A random generator whose seed a failing test shows."""
    print(f"{test.id()}: seed {seed}", file=sys.stderr)
    return np.random.default_rng(seed)


def smooth(rng, n, d):
    """n points and a smooth function of them with a little noise."""
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + 0.5 * np.cos(2 * X[:, -1]) + 0.05 * rng.normal(size=n)
    return X, y
