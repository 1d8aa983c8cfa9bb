"""Runs each call of a patched class in Mercer or in scikit-learn, and records where it ran."""

import collections
import copyreg
import functools
import os
import sys
import threading

import numpy as np
from joblib.externals.loky.backend.reduction import register
from scipy.sparse import issparse

from .. import _library, _systems
from .._errors import MercerError
from .._kernels import kernel_text


class Declined(Exception):
    """Mercer does not compute a call; the text is the reason. If the attempt has already computed
    scikit-learn's result, result holds it."""

    result = None


Calls = collections.namedtuple("Calls", "method ran_in reason count")

_lock = threading.Lock()
_counts = collections.Counter()


def report():
    """Where the calls of the patched classes ran since the process began.

    Returns
    -------
    calls : list of namedtuple
        The number of calls of each method that ran in Mercer, or in scikit-learn for a reason, as
        tuples (method, ran_in, reason, count), such as ("SVC.fit", "scikit-learn",
        "probability=True", 2). ran_in is "Mercer" or "scikit-learn"; reason is "" for Mercer.

    Examples
    --------
    >>> from mercer import accel
    >>> all(calls.count > 0 for calls in accel.report())
    True
    """
    with _lock:
        return [Calls(*key, count) for key, count in sorted(_counts.items())]


def record(method, ran_in, reason="", detail=""):
    """Counts a call, and writes a line of the log if MERCER_ACCEL_LOG is set."""
    with _lock:
        _counts[method, ran_in, reason] += 1
    log = os.environ.get("MERCER_ACCEL_LOG", "")
    if log in ("", "0"):
        return
    line = f"mercer.accel: {method}: {ran_in}" + (f": {reason}" if reason else "") + (f" ({detail.splitlines()[0]})" if detail else "") + "\n"
    if log == "1":
        sys.stderr.write(line)
        return
    with _lock, open(log, "a", encoding="utf-8") as f:
        f.write(line)


class Accelerated:
    """The base of the patched classes, whose second base is scikit-learn's class.

    _hooks maps methods of scikit-learn to names. For each name, a method _mercer_NAME computes the same
    result in Mercer or raises an exception; report() uses the same name. If the exception is Declined, a
    ValueError, a TypeError or an error of the library, scikit-learn's method runs instead, and raises
    scikit-learn's own error if the arguments are wrong.
    """

    _hooks = {"fit": "fit", "predict": "predict"}
    _smallest = {}  # for each method, the size from which Mercer is faster; the method defines the size

    def __init_subclass__(cls, **kwargs):
        if replaces(cls):
            cls._replace_methods()
        super().__init_subclass__(**kwargs)  # scikit-learn wraps transform here for set_output

    @classmethod
    def _replace_methods(cls):
        original = cls.__bases__[1]
        for name, called in cls._hooks.items():
            setattr(cls, name, _switch(f"{cls.__name__}.{called}", getattr(cls, f"_mercer_{called}"), getattr(original, name)))
        cls.__module__, cls.__qualname__, cls.__doc__ = original.__module__, original.__qualname__, original.__doc__

    def __reduce__(self):
        # The pickle names the class by its place in scikit-learn, so that it can be read where
        # scikit-learn is not patched, and can be written after unpatch.
        cls = type(self)
        if replaces(cls):
            cls = getattr(sys.modules[cls.__module__], cls.__name__)
        return copyreg._reconstructor, (cls, object, None), self.__getstate__()

    def _reduce_for_workers(self):
        return restored, (type(self).__name__,), self.__getstate__()

    def _decline_small(self, method, size):
        """Raises Declined if Mercer would be slower for an input of this size. The environment
        variable MERCER_ACCEL_MIN replaces all smallest sizes."""
        smallest = os.environ.get("MERCER_ACCEL_MIN")
        if size < (self._smallest.get(method, 0) if smallest is None else float(smallest)):
            raise Declined("small input")


def send_to_workers(classes):
    """Sends estimators of patched classes to joblib's worker processes with these classes, although
    scikit-learn is not patched there."""
    for cls in classes:
        register(cls, cls._reduce_for_workers)


def restored(name):
    """An empty estimator of a patched class in a worker process. joblib limits the threads of each
    worker by OMP_NUM_THREADS."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit():
        _library.worker_threads = int(limit)
    from . import _CLASSES

    return object.__new__(next(cls for cls in _CLASSES if cls.__name__ == name))


def replaces(cls):
    """Whether cls itself replaces a class of scikit-learn, and is not a subclass that a program made."""
    return len(cls.__bases__) == 2 and issubclass(cls.__bases__[0], Accelerated) and not issubclass(cls.__bases__[1], Accelerated)


def _switch(called, attempt, original):
    """A method that tries attempt and otherwise calls scikit-learn's original; called is its name in
    the record."""

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        try:
            if _library._loaded is not None and not _library.usable():
                raise Declined("the process was forked after Mercer was loaded")
            result = attempt(self, *args, **kwargs)
        except Declined as err:
            record(called, "scikit-learn", str(err))
            if err.result is not None:
                return err.result
        except (ValueError, TypeError, MercerError) as err:
            kind = type(err).__name__
            record(called, "scikit-learn", f"an error of the library: {kind}" if isinstance(err, MercerError) else f"an error in the arguments: {kind}", str(err))
        else:
            record(called, "Mercer")
            return result
        return original(self, *args, **kwargs)

    return method


def needs(condition, reason):
    """Raises Declined with the reason unless the condition holds."""
    if not condition:
        raise Declined(reason)


def numbers(X, what="X"):
    """Raises Declined unless an array of samples has a type that scikit-learn converts to
    float64, as Mercer does."""
    needs(X.dtype == np.float64 or X.dtype.kind in "iub", f"{what} is {X.dtype}")


_KERNELS = ("linear", "rbf", "laplacian", "poly", "polynomial", "sigmoid", "cosine", "chi2")


def kernel_of(kernel, X, gamma, degree, coef0):
    """The text of a kernel of sklearn.metrics.pairwise with the given parameters."""
    needs(not callable(kernel), "the kernel is a function")
    needs(kernel in _KERNELS, f"kernel={kernel!r}")
    needs(kernel != "chi2" or gamma is not None, "kernel='chi2' without gamma")
    needs(gamma is None or kernel in ("linear", "cosine") or gamma > 0, "gamma=0")
    if kernel in ("poly", "polynomial"):
        needs(degree >= 1, "degree=0")
        needs(coef0 >= 0, "coef0 < 0")
    return kernel_text(kernel, gamma, degree, coef0, X)


def gram(kernel, X, Z=None, V=None):
    """k(X, Z), or its product with V, for the text of a kernel; k(X, X) if Z is None."""
    if issparse(X) or issparse(Z):
        needs(Z is None or issparse(X) == issparse(Z), "one matrix is sparse and the other is dense")
    return _systems.gram(kernel, X, Z, V)
