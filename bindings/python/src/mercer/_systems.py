"""(K + alpha I) a = y without a model."""

import json
import weakref
from ctypes import byref, c_double

import numpy as np

from . import _library
from ._errors import python_names
from ._kernels import number
from ._watched import watched


def _right(y, rows):
    """y as a matrix, and whether it was a vector."""
    y = np.asarray(y)
    flat = y.ndim == 1
    m = _library.matrix(y.reshape(-1, 1) if flat else y)
    if m.rows != rows:
        raise ValueError(f"mercer: y has {m.rows} rows, the system {rows}")
    return m, flat


def _text(kernel):
    """The text of a kernel for the library."""
    if kernel is not None and not isinstance(kernel, str):
        raise ValueError(f"kernel must be the text of a kernel, such as 'gaussian(sigma=2)', or None, got {kernel!r}")
    return None if kernel is None else kernel.encode("utf-8")


def solve(X, y, *, alpha=1.0, kernel=None, device=None, threads=None):
    """Solves (K + alpha I) a = y by the method with the least modelled time.

    Parameters
    ----------
    X : (n, n) array K, symmetric; with a kernel (n, d) points, K = k(X, X).
    y : (n,) or (n, t) array
    kernel : str such as "gaussian(sigma=2)"

    Returns
    -------
    a : array of the shape of y, whose relative residual is 1e-8 at most.
    """
    mx = _library.matrix(X)
    my, flat = _right(y, mx.rows)
    a = np.empty((my.rows, my.cols))
    text = _text(kernel)
    dev = _library.device(device, threads)
    alpha = number("alpha", alpha)
    with python_names():
        watched("mercer_solve", lambda w: (dev, text, alpha, byref(mx), byref(my), a.ctypes.data, a.size, None, w))
    return a.ravel() if flat else a


class Factor:
    """The Cholesky factor of K + alpha I, kept for many right-hand sides.

    Parameters are those of `solve`. It may be used by several threads at once;
    `append` and `remove` wait for those that solve.
    """

    def __init__(self, X, *, alpha=1.0, kernel=None, device=None, threads=None):
        mx = _library.matrix(X)
        text = _text(kernel)
        dev = _library.device(device, threads)
        handle = _library.Handle()
        alpha = number("alpha", alpha)
        with python_names():
            watched("mercer_factor", lambda w: (dev, text, alpha, byref(mx), w, byref(handle)))
        self._handle = handle.value
        weakref.finalize(self, _library.free, self._handle)

    @property
    def info(self):
        """A dict of the order, kernel, alpha and device."""
        info = json.loads(_library.describe(self._handle))
        info["alpha"] = info.pop("lambda")
        return info

    def append(self, values):
        """Adds a sample in O(n²): the numbers of its point where there is a kernel,
        else its kernel values with the others and, last, with itself."""
        values = np.ascontiguousarray(values, dtype=np.float64).ravel()
        _library.call("mercer_factor_append", self._handle, values.ctypes.data, values.size)

    def remove(self, i):
        """Takes sample i out in O(n²); those behind it move up."""
        _library.call("mercer_factor_remove", self._handle, i)

    def solve(self, y, *, residual=False):
        """(K + alpha I)⁻¹ y, of the shape of y; with residual a pair of it and of
        its relative residual, for which K is evaluated anew."""
        my, flat = _right(y, self.info["order"])
        a = np.empty((my.rows, my.cols))
        left = c_double()
        to = byref(left) if residual else None
        watched("mercer_factor_solve", lambda w: (self._handle, byref(my), a.ctypes.data, a.size, to, w))
        a = a.ravel() if flat else a
        return (a, left.value) if residual else a
