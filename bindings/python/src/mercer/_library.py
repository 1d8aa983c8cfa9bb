"""Declares the functions and structures of mercer.h, and calls the shared library, by ctypes."""

import ctypes
import json
import numbers
import os
import threading
from ctypes import POINTER, addressof, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

import numpy as np
from scipy.sparse import issparse

from ._errors import MercerError, OutOfMemory, exception, names

ABI = 4
Handle = c_size_t  # uintptr_t


class Matrix(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("rows", c_int64), ("cols", c_int64), ("stride", c_int64), ("type", c_int32)]


class CSR(ctypes.Structure):
    _fields_ = [("indptr", c_void_p), ("indices", c_void_p), ("data", c_void_p)]


class Watch(ctypes.Structure):
    _fields_ = [("cancel", c_int32), ("permille", c_int32), ("stage", c_char_p)]


class Learner(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("task", c_char_p),
        ("parameters", POINTER(c_char_p)),
        ("weights", POINTER(c_double)),
        ("classes", POINTER(c_char_p)),
        ("features", POINTER(c_char_p)),
        ("targets", POINTER(c_char_p)),
        ("memory", c_int64),
        ("centers", POINTER(Matrix)),
    ]


class Scores(ctypes.Structure):
    _fields_ = [("gcv", c_void_p), ("loo", c_void_p), ("errors", c_void_p), ("freedom", c_void_p)]


_P = POINTER
_PROTOTYPES = {
    "mercer_set_names": [_P(c_char_p)],
    "mercer_free": [Handle],
    "mercer_describe": [Handle, _P(c_void_p)],
    "mercer_open": [c_char_p, c_int, c_int64, _P(Handle)],
    "mercer_fit": [Handle, _P(Learner), _P(Matrix), _P(Matrix), _P(Watch), _P(Handle)],
    "mercer_predict": [Handle, Handle, c_int, _P(Matrix), c_void_p, c_size_t, _P(Watch)],
    "mercer_bounds": [Handle, Handle, _P(Matrix), c_void_p, c_void_p, c_size_t, _P(Watch)],
    "mercer_intervals": [Handle, Handle, c_double, _P(Matrix), c_void_p, c_void_p, c_size_t, _P(Watch)],
    "mercer_calibrate": [Handle, Handle, _P(Matrix), _P(Matrix), _P(Watch), _P(Handle)],
    "mercer_sets": [Handle, Handle, c_double, _P(Matrix), c_void_p, c_size_t, _P(Watch)],
    "mercer_update": [Handle, Handle, _P(Matrix), _P(Matrix), c_void_p, c_int, _P(Watch), _P(Handle)],
    "mercer_merge": [Handle, Handle, Handle, _P(Watch), _P(Handle)],
    "mercer_sample": [Handle, Handle, _P(Matrix), c_int64, c_uint64, c_void_p, c_size_t, _P(Watch)],
    "mercer_effects": [Handle, Handle, _P(Matrix), c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_size_t, _P(Watch)],
    "mercer_array": [Handle, c_char_p, c_void_p, c_size_t],
    "mercer_save": [Handle, c_char_p],
    "mercer_load": [c_char_p, _P(Handle)],
    "mercer_dump": [Handle, _P(c_void_p), _P(c_size_t)],
    "mercer_parse": [c_char_p, c_size_t, _P(Handle)],
    "mercer_path": [Handle, c_char_p, c_void_p, c_size_t, _P(Matrix), _P(Matrix), c_void_p, c_int, c_int64, _P(Scores), _P(c_void_p), _P(Watch)],
    "mercer_solve": [Handle, c_char_p, c_double, _P(Matrix), _P(Matrix), c_void_p, c_size_t, _P(c_double), _P(Watch)],
    "mercer_gram": [Handle, c_char_p, _P(Matrix), _P(Matrix), _P(Matrix), c_void_p, c_size_t, _P(Watch)],
    "mercer_text_gram": [c_char_p, _P(c_char_p), _P(c_char_p), c_void_p, c_size_t, _P(Watch)],
    "mercer_tfidf": [c_char_p, _P(c_char_p), _P(c_void_p), _P(c_void_p), _P(c_size_t)],
    "mercer_evidence": [Handle, c_char_p, c_double, c_double, _P(Matrix), _P(Matrix), _P(c_double), c_void_p, c_size_t, _P(Watch)],
    "mercer_moments": [Handle, _P(Matrix), _P(Matrix), c_void_p, c_int, c_void_p, c_void_p, c_void_p, _P(Watch)],
    "mercer_neighbors": [Handle, _P(Matrix), _P(Matrix), c_int64, c_void_p, c_void_p, c_size_t, _P(Watch)],
    "mercer_cosines": [Handle, c_double, _P(Matrix), _P(Matrix), c_void_p, c_void_p, c_size_t, _P(Watch)],
    "mercer_factor": [Handle, c_char_p, c_double, _P(Matrix), _P(Watch), _P(Handle)],
    "mercer_factor_append": [Handle, c_void_p, c_size_t],
    "mercer_factor_remove": [Handle, c_int64],
    "mercer_factor_solve": [Handle, _P(Matrix), c_void_p, c_size_t, _P(c_double), _P(Watch)],
}

_lock = threading.Lock()
_loaded = None  # the library, and the process that loaded it


def _path():
    """The file of the library."""
    named = os.environ.get("MERCER_LIBRARY")
    if named:
        return named
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(here, "libmercer.so"), os.path.join(here, "..", "..", "..", "..", "bin", "libmercer.so")):
        if os.path.isfile(path):
            return os.path.normpath(path)
    raise ImportError("mercer: there is no libmercer.so: build it with `make libmercer`, or name it in MERCER_LIBRARY")


def _load():
    path = _path()
    try:
        lib = ctypes.CDLL(path)
    except OSError as err:
        raise ImportError(f"mercer: {path} cannot be loaded: {err}") from err
    if lib.mercer_abi() != ABI:
        raise ImportError(f"mercer: {path} has the interface {lib.mercer_abi()}, this package needs {ABI}: build the library again")
    for name, types in _PROTOTYPES.items():
        function = getattr(lib, name)
        function.argtypes, function.restype = types, c_int
    lib.mercer_last_error.argtypes, lib.mercer_last_error.restype = [], c_char_p
    lib.mercer_release.argtypes, lib.mercer_release.restype = [c_void_p], None
    return lib


def library():
    """The library, which the first call loads."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load(), os.getpid()
    lib, process = _loaded
    if process != os.getpid():
        raise MercerError("mercer: the library was loaded before this process was forked, and its threads are not here: use joblib's processes or multiprocessing's spawn")
    return lib


def usable():
    """Whether the library was loaded by this very process."""
    return _loaded is not None and _loaded[1] == os.getpid()


def call(name, *arguments):
    """Calls a function that returns a status, on this thread."""
    lib = library()
    own = names()
    if own is not None:
        lib.mercer_set_names(own)
    status = getattr(lib, name)(*arguments)
    if own is not None:
        lib.mercer_set_names(None)
    if status:
        # mercer_last_error returns the message of the last call that failed on this thread.
        raise exception(status, lib.mercer_last_error().decode("utf-8", "replace"))


def free(handle):
    """Frees a handle, except in a forked child, whose parent frees it."""
    if usable():
        library().mercer_free(handle)


def taken(pointer, size=None):
    """Returns a copy of bytes that the library allocated, and frees the library's bytes."""
    try:
        return ctypes.string_at(pointer.value, -1 if size is None else size)
    finally:
        library().mercer_release(pointer)


def describe(handle):
    """The JSON description of the object of a handle."""
    text = c_void_p()
    call("mercer_describe", handle, byref(text))
    return taken(text).decode("utf-8")


def texts(values):
    """A C array of the texts in values that ends with NULL; NULL if values is None."""
    if values is None:
        return None
    return (c_char_p * (len(values) + 1))(*[str(v).encode("utf-8") for v in values], None)


# Size in bytes up to which a dense copy is made without checking the free memory.
SMALL = 1 << 26


def dense(X):
    """Returns X, or the dense float64 array of a sparse X. Raises OutOfMemory if this array
    would not fit into the memory."""
    if not issparse(X):
        return X
    rows, cols = X.shape
    need = 8 * rows * cols
    if need > SMALL:
        free = json.loads(describe(0)).get("memory_bytes", 0)
        if free and need > 0.8 * free:
            raise OutOfMemory(f"the {rows}×{cols} sparse matrix has {X.nnz} values, and Mercer works with dense rows, which need {need} bytes: "
                              f"{int(0.8 * free)} are available; reduce the columns (TruncatedSVD), or compute the {rows}×{rows} kernel matrix and give it with kernel='precomputed'")
    return X.astype(np.float64, copy=False).toarray()


def stays_sparse(X):
    """Whether X is a sparse matrix with at least 64 columns that stores at most a third of its
    values, so that its dense copy would be larger."""
    return issparse(X) and X.shape[1] >= 64 and 3 * X.nnz <= X.shape[0] * X.shape[1]


def csr(X):
    """A Matrix that shares the memory of a sparse X if X is in CSR format with sorted 32-bit column
    indices and float64 values; otherwise it shares the memory of a copy. The Matrix keeps this
    memory alive. If X stores an element twice, the library's functions fail with an error."""
    S = X.tocsr()
    if not S.has_sorted_indices:
        S = S.sorted_indices()
    if S.nnz and S.indices.max() > np.iinfo(np.int32).max:
        raise ValueError(f"X has the column {S.indices.max()}; there may be {np.iinfo(np.int32).max} columns")
    arrays = (np.ascontiguousarray(S.indptr, dtype=np.int64), np.ascontiguousarray(S.indices, dtype=np.int32), np.ascontiguousarray(S.data, dtype=np.float64))
    rows = CSR(*(a.ctypes.data for a in arrays))
    m = Matrix(addressof(rows), *S.shape, 0, 2)
    m.array = arrays, rows
    return m


def matrix(array, sparse=True):
    """A Matrix that shares the memory of a 2-D array of floats with contiguous rows, and otherwise
    the memory of a copy. The Matrix keeps this memory alive. A sparse array for which
    stays_sparse is true stays sparse, unless sparse is False."""
    if sparse and stays_sparse(array):
        return csr(array)
    a = np.asarray(dense(array))
    if a.ndim != 2:
        raise ValueError(f"expected a matrix, got an array of {a.ndim} dimensions")
    if a.dtype not in (np.float64, np.float32) or not a.dtype.isnative or not a.flags.aligned:
        a = np.ascontiguousarray(a, dtype=np.float64)
    rows, cols = a.shape
    size = a.itemsize
    packed = cols <= 1 or a.strides[1] == size
    spaced = rows <= 1 or (a.strides[0] % size == 0 and a.strides[0] >= cols * size)
    if not (packed and spaced):
        a = np.ascontiguousarray(a)
    stride = a.strides[0] // size if rows > 1 else max(cols, 1)
    m = Matrix(a.ctypes.data, rows, cols, stride, 0 if a.dtype == np.float64 else 1)
    m.array = a
    return m


_devices = {}
worker_threads = None  # the number of threads of a device if a call does not give it; None means all


def device(name=None, threads=None):
    """The handle of a device, 0 for the best one with all threads. Each pair of a name and a number of
    threads is opened once in a process."""
    if not (name is None or isinstance(name, str)):
        raise ValueError(f"device must be the name of a device, such as 'cpu/avx2', or None, got {name!r}")
    if not (threads is None or isinstance(threads, numbers.Integral) and threads >= 0):
        raise ValueError(f"threads must be an integer ≥ 1, or None for all, got {threads!r}")
    threads = worker_threads if threads is None else threads
    if name is None and threads is None:
        return 0
    key = name or "", threads or 0
    with _lock:
        found = _devices.get((os.getpid(), key))
    if found is None:
        handle = Handle()
        call("mercer_open", key[0].encode("utf-8"), key[1], 0, byref(handle))
        with _lock:
            found = _devices.setdefault((os.getpid(), key), handle.value)
        if found != handle.value:
            free(handle.value)
    return found
