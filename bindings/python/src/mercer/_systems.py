"""Solves (K + alpha I) a = y without a model."""

import json
import weakref
from ctypes import byref, c_double, c_size_t, c_void_p

import numpy as np
from scipy.sparse import csr_matrix

from . import _library
from ._errors import python_names
from ._kernels import number
from ._watched import watched


_NAMES = {"lambda": "alpha", "kernel": "kernel"}


def _right(y, rows):
    """Returns y as a library matrix, and whether y was a vector."""
    y = np.asarray(y)
    flat = y.ndim == 1
    m = _library.matrix(y.reshape(-1, 1) if flat else y)
    if m.rows != rows:
        raise ValueError(f"y has {m.rows} rows, the system {rows}")
    return m, flat


def _text(kernel):
    """The text of a kernel for the library."""
    if kernel is not None and not isinstance(kernel, str):
        raise ValueError(f"kernel must be the text of a kernel, such as 'gaussian(sigma=2)', or None, got {kernel!r}")
    return None if kernel is None else kernel.encode("utf-8")


def gram(kernel, X, Z=None, V=None):
    """k(X, Z), or its product with V, for the text of a kernel; k(X, X) if Z is None. Two sparse
    matrices stay sparse if stays_sparse is true for both."""
    sparse = _library.stays_sparse(X) and (Z is None or _library.stays_sparse(Z))
    mx = _library.matrix(X, sparse)
    mz = None if Z is None else _library.matrix(Z, sparse)
    mv = None if V is None else _library.matrix(V)
    out = np.empty((mx.rows, mv.cols if mv else (mz or mx).rows))

    def arguments(watch):
        return _library.device(), kernel.encode(), byref(mx), mz and byref(mz), mv and byref(mv), out.ctypes.data, out.size, watch

    watched("mercer_gram", arguments)
    return out


def _texts(values):
    """A C array of texts; NULL if values is None."""
    if any("\0" in text for text in values or ()):
        raise ValueError("a text contains the character U+0000: remove it")
    return _library.texts(values)


def text_gram(kernel, a, b=None):
    """k(a, b) for lists of texts and the text of a kernel of texts or trees; k(a, a) if b is None."""
    first, second = _texts(a), _texts(b)
    out = np.empty((len(a), len(a if b is None else b)))
    watched("mercer_text_gram", lambda watch: (kernel.encode(), first, second, out.ctypes.data, out.size, watch))
    return out


def tfidf(settings, texts, learn):
    """The tf-idf features of texts as a CSR matrix, and the vocabulary as JSON. If learn is True, settings
    is the JSON object of mercer_tfidf, and the vocabulary is that of the texts; otherwise settings is a
    vocabulary."""
    vocabulary, features, size = c_void_p(), c_void_p(), c_size_t()
    _library.call("mercer_tfidf", settings.encode(), _texts(texts), byref(vocabulary) if learn else None, byref(features), byref(size))
    data = _library.taken(features, size.value)
    known = _library.taken(vocabulary).decode() if learn else settings
    n = len(texts)
    starts = np.frombuffer(data, np.int64, n + 1)
    values = np.frombuffer(data, np.float64, starts[n], 8 * (n + 1))
    columns = np.frombuffer(data, np.int32, starts[n], 8 * (n + 1 + int(starts[n])))
    return csr_matrix((values.copy(), columns.copy(), starts.copy()), shape=(n, len(json.loads(known)["grams"]))), known


def evidence(kernel, height, noise, X, y, parameters=None):
    """The log marginal likelihood of y under a Gaussian process with the covariance height·k(X, X) +
    noise·I, and its derivatives with respect to the logarithms of height, of the given number of
    parameters of the kernel, and of noise. If parameters is None, there are no derivatives."""
    mx, my = _library.matrix(X), _library.matrix(y)
    log = c_double()
    gradient = None if parameters is None else np.empty(parameters + 2)
    to, size = (None, 0) if gradient is None else (gradient.ctypes.data, gradient.size)
    watched("mercer_evidence", lambda w: (_library.device(), kernel.encode(), height, noise, byref(mx), byref(my), byref(log), to, size, w))
    return log.value, gradient


def moments(X, y, weights, intercept):
    """XᵀWX, yᵀWX, and the weighted means of the columns of X and of y. With an intercept, the means are
    subtracted from X and y before the products; without an intercept, the means are 0."""
    mx, my = _library.matrix(X, False), _library.matrix(y)
    G, products, means = np.empty((mx.cols, mx.cols)), np.empty((my.cols, mx.cols)), np.empty(mx.cols + my.cols)
    if weights is not None:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != (mx.rows,):
            raise ValueError(f"there are {weights.size} weights, and X has {mx.rows} rows")
    of = None if weights is None else weights.ctypes.data
    watched("mercer_moments", lambda w: (_library.device(), byref(mx), byref(my), of, int(intercept), G.ctypes.data, products.ctypes.data, means.ctypes.data, w))
    return G, products, means[:mx.cols], means[mx.cols:]


def nearest(X, Z, k):
    """The indices of the k rows of Z that are nearest to each row of X, the nearest first, and the
    squares of their Euclidean distances."""
    mx, mz = _library.matrix(X, False), _library.matrix(Z, False)
    rows, squares = np.empty((mx.rows, k), dtype=np.int64), np.empty((mx.rows, k))
    watched("mercer_neighbors", lambda w: (_library.device(), byref(mx), byref(mz), k, rows.ctypes.data, squares.ctypes.data, squares.size, w))
    return rows, squares


def cosines(factor, X, omega, offset):
    """factor·cos(X·omega + offset). Column j of the result belongs to column j of omega and to element j
    of offset."""
    mx, mw = _library.matrix(X, False), _library.matrix(omega.T, False)
    offset = np.ascontiguousarray(offset, dtype=np.float64)
    if offset.shape != (mw.rows,):
        raise ValueError(f"offset has the shape {offset.shape}, omega {mw.rows} columns")
    out = np.empty((mx.rows, mw.rows))
    watched("mercer_cosines", lambda w: (_library.device(), factor, byref(mx), byref(mw), offset.ctypes.data, out.ctypes.data, out.size, w))
    return out


def solve(X, y, *, alpha=1.0, kernel=None, device=None, threads=None):
    """Solves (K + alpha I) a = y by the method with the lowest modeled time.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, n) or (n, d)
        The symmetric matrix K, or with a kernel k the n points for K = k(X, X).
    y : array-like of shape (n,) or (n, t)
        The right-hand sides.
    alpha : float ≥ 0, default=1.0
        The number that is added to the diagonal.
    kernel : str, default=None
        The text of a kernel, such as "gaussian(sigma=2)"; None means that X is K.
    device : str, default=None
        The device, such as "cpu/avx2"; None means the best available device.
    threads : int, default=None
        The number of threads; None means all.

    Returns
    -------
    a : ndarray of the shape of y
        The solution, whose relative residual ‖(K + alpha I)a − y‖ / ‖y‖ is at most
        1e-8.

    Raises
    ------
    ValueError
        For arrays of the wrong shape and numbers out of range.
    mercer.NotPositiveDefinite
        If K + alpha I is singular or indefinite.
    mercer.NotConverged
        If no method reaches the residual.
    mercer.OutOfMemory
        Before the computation, if it does not fit into the memory.

    Examples
    --------
    >>> from mercer import solve
    >>> print(solve([[1.0, 0], [0, 3]], [2.0, 4], alpha=1.0))
    [1. 1.]
    """
    mx = _library.matrix(X)
    my, flat = _right(y, mx.rows)
    a = np.empty((my.rows, my.cols))
    text = _text(kernel)
    dev = _library.device(device, threads)
    alpha = number("alpha", alpha)
    with python_names(_NAMES):
        watched("mercer_solve", lambda w: (dev, text, alpha, byref(mx), byref(my), a.ctypes.data, a.size, None, w))
    return a.ravel() if flat else a


class Factor:
    """The Cholesky factor of K + alpha I, kept for many right-hand sides.

    The factor takes at most 8n² bytes, and a given K another 8n² bytes. Several threads
    may use the factor at once; `append` and `remove` wait for running calls of `solve`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, n) or (n, d)
        The symmetric matrix K, or with a kernel k the n points for K = k(X, X). Sparse points
        stay sparse; a sparse K is copied into a dense array.
    alpha : float ≥ 0, default=1.0
        The number that is added to the diagonal.
    kernel : str, default=None
        The text of a kernel, such as "gaussian(sigma=2)"; None means that X is K.
    device : str, default=None
        The device, such as "cpu/avx2"; None means the best available device.
    threads : int, default=None
        The number of threads; None means all.

    Raises
    ------
    ValueError
        For arrays of the wrong shape and numbers out of range.
    mercer.NotPositiveDefinite
        If K + alpha I is singular or indefinite.
    mercer.OutOfMemory
        Before the computation, if it does not fit into the memory.

    Examples
    --------
    >>> from mercer import Factor
    >>> factor = Factor([[1.0, 0], [0, 3]], alpha=1.0)
    >>> print(factor.solve([2.0, 4]))
    [1. 1.]
    >>> factor.append([0.0, 0, 4])
    >>> print(factor.solve([2.0, 4, 5]))
    [1. 1. 1.]
    """

    def __init__(self, X, *, alpha=1.0, kernel=None, device=None, threads=None):
        mx = _library.matrix(X)
        text = _text(kernel)
        dev = _library.device(device, threads)
        handle = _library.Handle()
        alpha = number("alpha", alpha)
        with python_names(_NAMES):
            watched("mercer_factor", lambda w: (dev, text, alpha, byref(mx), w, byref(handle)))
        self._handle = handle.value
        weakref.finalize(self, _library.free, self._handle)

    @property
    def info(self):
        """A dict with the order, kernel, alpha and device."""
        info = json.loads(_library.describe(self._handle))
        info["alpha"] = info.pop("lambda")
        return info

    def append(self, values):
        """Adds a sample in O(n²) operations.

        Parameters
        ----------
        values : array-like of shape (d,) or (n + 1,)
            The point of the sample if there is a kernel. Otherwise its row of K, with the
            diagonal element last.

        Raises
        ------
        mercer.NotPositiveDefinite
            If the enlarged matrix is not positive definite. The factor is then unchanged.
        """
        values = np.ascontiguousarray(values, dtype=np.float64).ravel()
        with python_names(_NAMES):
            _library.call("mercer_factor_append", self._handle, values.ctypes.data, values.size)

    def remove(self, i):
        """Removes a sample in O(n²) operations.

        Parameters
        ----------
        i : int
            The index of the sample, from 0; the indices of later samples decrease by one.
        """
        _library.call("mercer_factor_remove", self._handle, i)

    def solve(self, y, *, residual=False):
        """Solves (K + alpha I) a = y in O(n²) operations for each column.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, t)
            The right-hand sides.
        residual : bool, default=False
            Also return the residual, which needs another evaluation of K.

        Returns
        -------
        a : ndarray of the shape of y
            The solution.
        residual : float
            Returned if residual is True: the largest ‖(K + alpha I)a − y‖ / ‖y‖ among the
            columns.
        """
        my, flat = _right(y, self.info["order"])
        a = np.empty((my.rows, my.cols))
        left = c_double()
        to = byref(left) if residual else None
        watched("mercer_factor_solve", lambda w: (self._handle, byref(my), a.ctypes.data, a.size, to, w))
        a = a.ravel() if flat else a
        return (a, left.value) if residual else a
