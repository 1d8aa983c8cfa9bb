"""A fitted model of the library."""

import functools
import json
import os
import weakref
from contextlib import nullcontext
from ctypes import POINTER, byref, c_double, c_size_t, c_void_p, cast, pointer

import numpy as np

from . import _library
from ._errors import names, python_names
from ._kernels import number
from ._watched import watched

_WANTED = {"values": 0, "decision": 1, "probabilities": 2, "deviations": 3}

# Predictions for fewer rows run on the calling thread, which Ctrl-C does not interrupt.
_SHORT = 1024


def about():
    """Describes the library and this machine.

    Returns
    -------
    about : dict
        version and go, the versions of Mercer and of Go; devices, each with its properties or
        the reason why it cannot be used; memory_bytes, the memory that the process may
        still allocate; learners, with their parameters; and kernels.

    Examples
    --------
    >>> import mercer
    >>> "kernel-ridge" in [learner["name"] for learner in mercer.about()["learners"]]
    True
    """
    return json.loads(_library.describe(0))


@functools.lru_cache(maxsize=None)
def descriptions(learner):
    """The parameters of a learner, as the library describes them."""
    for description in about()["learners"]:
        if description["name"] == learner:
            return description["parameters"]
    return []  # the fit fails with an error that lists the learners


@functools.lru_cache(maxsize=None)
def takes_sparse(learner):
    """Whether a learner takes sparse samples without a dense copy."""
    return any(d["name"] == learner and d.get("sparse", False) for d in about()["learners"])


def with_effect(learner, given, keep=()):
    """Returns the given parameters without the ineffective ones: the library raises an error for a
    parameter that another parameter makes ineffective. Parameters in keep are never removed."""
    described = {p["name"]: p for p in descriptions(learner)}

    def met(name):
        when = described.get(name, {}).get("when")
        if when is None or name in keep:
            return True
        other = when["parameter"]
        if "values" not in when:
            return other not in given
        value = given.get(other, described[other]["default"])
        return (str(value).lower() if isinstance(value, bool) else str(value)) in when["values"]

    return {name: value for name, value in given.items() if met(name)}


def _weights(sample_weight, rows):
    """The weights as an array for the library, or None."""
    if sample_weight is None:
        return None
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight has {weights.size} weights, X {rows} rows")
    return weights


class Model:
    """A fitted model, which an estimator keeps as ``model_``.

    ``fit``, ``load`` and ``from_bytes`` return a Model. A Model can be pickled; its pickle
    has the bytes of the file that ``save`` writes.

    Parameters
    ----------
    handle : int
        The handle of the library's model, which this object frees.

    Attributes
    ----------
    info : dict
        The learner, the shapes, the parameters and the classes; for a model fitted in this
        process also the solver, the residual, the memory and the seconds of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Model
    >>> X = np.arange(4.0).reshape(-1, 1)
    >>> model = Model.fit("ridge", X, X, parameters={"lambda": 0})
    >>> model.info["learner"]
    'ridge'
    >>> print(model.predict(np.array([[7.0]])).round(6))
    [[7.]]
    """

    def __init__(self, handle):
        self._handle = handle
        weakref.finalize(self, _library.free, handle)
        self.info = json.loads(_library.describe(handle))

    @classmethod
    def fit(cls, learner, X, y=None, *, task=None, parameters=None, sample_weight=None, classes=None, features=None, targets=None,
            centers=None, device=None, threads=None, say=None):
        """Fits a learner; its parameters have Mercer's names.

        Parameters
        ----------
        learner : str
            For example "kernel-ridge"; ``about()["learners"]`` lists all.
        X : {array, sparse matrix} of shape (n, d)
            The samples.
        y : array of shape (n, t), default=None
            The targets; None for the task "novelty".
        task : str, default=None
            "regression", "classification" or "novelty"; None means the first of the learner's
            tasks.
        parameters : dict, default=None
            The values of parameters, by Mercer's names.
        sample_weight : array-like of shape (n,), default=None
            Numbers ≥ 0; None means all 1.
        classes : list of str, default=None
            The names of the classes; y then holds indices into this list, from 0.
        features : list of str, default=None
            The names of the columns of X in the model's file; None means x1, x2, …
        targets : list of str, default=None
            The names of the columns of y in the model's file; None means y, or y1, y2, …
        centers : array of shape (m, d), default=None
            The centers of nystrom-ridge; None means that the fit chooses them.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        model : Model

        Raises
        ------
        ValueError, mercer.MercerError
            As in MercerKernelRidge.fit, but with Mercer's names of the parameters.
        """
        what = _library.Learner()
        what.name, what.task = learner.encode("utf-8"), task.encode("utf-8") if task else None
        given = [f"{name}={_text(value)}" for name, value in (parameters or {}).items()]
        lists = {"parameters": given, "classes": classes, "features": features, "targets": targets}
        for name, values in lists.items():
            lists[name] = _library.texts(values)
            setattr(what, name, lists[name])
        mx = _library.matrix(X, takes_sparse(learner))
        my = None if y is None else _library.matrix(y)
        weights = _weights(sample_weight, mx.rows)
        if weights is not None:
            what.weights = cast(weights.ctypes.data, POINTER(c_double))
        mc = None if centers is None else _library.matrix(centers)
        if mc is not None:
            what.centers = pointer(mc)
        dev = _library.device(device, threads)
        handle = _library.Handle()
        own = {p["name"]: p["name"] for p in descriptions(learner)}
        with nullcontext() if names() else python_names({**own, "standardize": "standardize X"}):
            watched("mercer_fit", lambda w: (dev, byref(what), byref(mx), None if my is None else byref(my), w, byref(handle)), say)
            return cls(handle.value)

    def _samples(self, X):
        """X as a library matrix. A sparse X stays sparse if the library can apply this model to it
        without a dense copy."""
        return _library.matrix(X, takes_sparse(self.info["learner"]) and not self.info["raw"])

    def predict(self, X, wanted="values", *, device=None, threads=None, say=None):
        """Applies the model.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            The samples.
        wanted : {"values", "decision", "probabilities", "deviations"}, default="values"
            What to return; ``info["capabilities"]`` lists the results that the model
            has besides values.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        values : ndarray of shape (n, k)
            For "values", the k targets, or for classification the index of the class (k = 1).
            For "decision", k = 1 for two classes and otherwise a value for each class. For
            "probabilities", a value for each class. For "deviations", the standard deviation
            of each target.
        """
        mx = self._samples(X)
        classes = len(self.info.get("classes", ()))
        columns = self.info["outputs"]
        if wanted == "decision":
            columns = 1 if classes == 2 else classes
        elif wanted == "probabilities":
            columns = classes
        out = np.empty((mx.rows, columns))
        dev = _library.device(device, threads)

        def arguments(w):
            return dev, self._handle, _WANTED[wanted], byref(mx), out.ctypes.data, out.size, w

        if mx.rows < _SHORT and say is None:
            _library.call("mercer_predict", *arguments(None))
        else:
            watched("mercer_predict", arguments, say)
        return out

    def intervals(self, X, level, *, device=None, threads=None, say=None):
        """Returns prediction intervals, if ``info["capabilities"]`` contains "intervals".

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            The samples.
        level : float
            The fraction of new targets in the intervals; see
            MercerKernelRidge.predict_interval.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        lower : ndarray of shape (n, t)
            The lower bounds.
        upper : ndarray of shape (n, t)
            The upper bounds.
        """
        mx = self._samples(X)
        lower, upper = np.empty((2, mx.rows, self.info["outputs"]))
        dev = _library.device(device, threads)
        level = number("level", level)
        watched("mercer_intervals", lambda w: (dev, self._handle, level, byref(mx), lower.ctypes.data, upper.ctypes.data, lower.size, w), say)
        return lower, upper

    def bounds(self, X, *, device=None, threads=None, say=None):
        """Returns predictions with proven bounds of the errors of the computation.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            The samples.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        values : ndarray of shape (n, t)
            The predictions.
        bounds : ndarray of shape (n, t)
            Bounds of the distances between these predictions and the predictions of the exact
            solution.
        """
        mx = self._samples(X)
        values, bounds = np.empty((2, mx.rows, self.info["outputs"]))
        dev = _library.device(device, threads)
        watched("mercer_bounds", lambda w: (dev, self._handle, byref(mx), values.ctypes.data, bounds.ctypes.data, values.size, w), say)
        return values, bounds

    def calibrate(self, X, y, *, device=None, threads=None, say=None):
        """Returns a copy of the model with split-conformal intervals, or sets of classes.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (m, d)
            Samples that the model was not fitted to.
        y : array of shape (m, t)
            The targets of these samples, as in ``fit``.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        model : Model
            The copy. Its file contains the calibration.
        """
        mx, my = self._samples(X), _library.matrix(y)
        dev = _library.device(device, threads)
        handle = _library.Handle()
        watched("mercer_calibrate", lambda w: (dev, self._handle, byref(mx), byref(my), w, byref(handle)), say)
        return Model(handle.value)

    def update(self, X, y, sample_weight=None, remove=False, *, device=None, threads=None, say=None):
        """Returns the model after samples are appended or removed, without a refit. The model
        must be one of ridge, nystrom-ridge or fourier-ridge that was fitted with std.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (m, d)
            The samples to append or to remove.
        y : array of shape (m, t)
            Their targets.
        sample_weight : array-like of shape (m,), default=None
            Their weights; None means all 1.
        remove : bool, default=False
            Remove the samples, which must be among those of the model.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        model : Model
            The new model.
        """
        mx, my = self._samples(X), _library.matrix(y)
        weights = _weights(sample_weight, mx.rows)
        at = None if weights is None else weights.ctypes.data
        dev = _library.device(device, threads)
        handle = _library.Handle()
        watched("mercer_update", lambda w: (dev, self._handle, byref(mx), byref(my), at, int(remove), w, byref(handle)), say)
        return Model(handle.value)

    def merge(self, other, *, device=None, threads=None, say=None):
        """The model of the samples of two models, without a refit.

        Parameters
        ----------
        other : Model
            A model that ``update`` accepts, fitted to other samples with the same kernel, lambda
            and centers or frequencies.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        model : Model
            The new model.
        """
        dev = _library.device(device, threads)
        handle = _library.Handle()
        watched("mercer_merge", lambda w: (dev, self._handle, other._handle, w, byref(handle)), say)
        return Model(handle.value)

    def sample(self, X, draws=1, seed=0, *, device=None, threads=None, say=None):
        """Draws of the function from the posterior of a model that ``update`` accepts.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            The samples.
        draws : int, default=1
            The number of draws.
        seed : int, default=0
            The same seed gives the same draws.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        values : ndarray of shape (draws, n, t)
            The values of the function, without noise.
        """
        mx = self._samples(X)
        out = np.empty((draws, mx.rows, self.info["outputs"]))
        dev = _library.device(device, threads)
        watched("mercer_sample", lambda w: (dev, self._handle, byref(mx), draws, seed, out.ctypes.data, out.size, w), say)
        return out

    def effects(self, X, binary=(), std=True, *, device=None, threads=None, say=None):
        """Marginal effects of the features: derivatives of the outputs, or for a classifier of
        the decision values.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            The samples.
        binary : sequence of int, default=()
            The columns with two values, whose effects are differences.
        std : bool, default=True
            Compute the standard errors, which may take long for many rows.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        rows : ndarray of shape (t, n, d)
            The effects at each row.
        mean : ndarray of shape (t, d)
            Their averages.
        std : ndarray of shape (t, d)
            The standard errors of the averages; NaN if the model has none, and None if std is
            False.
        """
        mx = self._samples(X)
        classes = len(self.info.get("classes", ()))
        outputs = self.info["outputs"] if not classes else 1 if classes == 2 else classes
        rows = np.empty((outputs, mx.rows, mx.cols))
        mean, deviations = np.empty((2, outputs, mx.cols))
        columns = np.asarray(binary)
        if columns.ndim != 1 or columns.size and columns.dtype.kind not in "iu":
            raise ValueError(f"binary must be a sequence of indices of features, got {binary!r}")
        columns = np.ascontiguousarray(columns, dtype=np.int64)
        dev = _library.device(device, threads)
        watched("mercer_effects", lambda w: (dev, self._handle, byref(mx), columns.ctypes.data, columns.size, rows.ctypes.data, mean.ctypes.data, deviations.ctypes.data if std else None, mean.size, w), say)
        return rows, mean, deviations if std else None

    def sets(self, X, level, *, device=None, threads=None, say=None):
        """Returns sets of classes, if ``info["capabilities"]`` contains "sets".

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            The samples.
        level : float
            The fraction of new samples whose class is in their set.
        device : str, default=None
            The device, such as "cpu/avx2"; None means the best available device.
        threads : int, default=None
            The number of threads; None means all.
        say : callable, default=None
            Called about once a second with the stage and the fraction that is done.

        Returns
        -------
        sets : ndarray of shape (n, k)
            1 if the class is in the set, otherwise 0.
        """
        mx = self._samples(X)
        out = np.empty((mx.rows, len(self.info["classes"])))
        dev = _library.device(device, threads)
        level = number("level", level)
        watched("mercer_sets", lambda w: (dev, self._handle, level, byref(mx), out.ctypes.data, out.size, w), say)
        return out

    def array(self, name):
        """A copy of an array of the model.

        Parameters
        ----------
        name : str
            For example "coef"; ``info["arrays"]`` lists the names and shapes.

        Returns
        -------
        array : ndarray of shape (rows, columns)

        Raises
        ------
        ValueError
            If the model has no array of this name.
        """
        out = np.empty(self.info["arrays"].get(name, (0, 0)))
        _library.call("mercer_array", self._handle, name.encode("utf-8"), out.ctypes.data, out.size)
        return out

    def save(self, path):
        """Writes the file that `mercer predict --model` and `load` read. If writing fails, no
        incomplete file remains.

        Parameters
        ----------
        path : str or path-like
            The file; an existing file is replaced.
        """
        _library.call("mercer_save", self._handle, os.fsencode(path))

    @classmethod
    def load(cls, path):
        """Reads a file that `save` or `mercer fit` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        model : Model

        Raises
        ------
        ValueError
            If the file does not exist, is not a model, or is damaged.
        """
        handle = _library.Handle()
        _library.call("mercer_load", os.fsencode(path), byref(handle))
        return cls(handle.value)

    def to_bytes(self):
        """The bytes of the file that `save` writes.

        Returns
        -------
        data : bytes
        """
        data, size = c_void_p(), c_size_t()
        _library.call("mercer_dump", self._handle, byref(data), byref(size))
        return _library.taken(data, size.value)

    @classmethod
    def from_bytes(cls, data):
        """A model from the bytes that `to_bytes` returned.

        Parameters
        ----------
        data : bytes
            The bytes of a model.

        Returns
        -------
        model : Model

        Raises
        ------
        ValueError
            If data is not the bytes of a model, or is damaged.
        """
        handle = _library.Handle()
        _library.call("mercer_parse", data, len(data), byref(handle))
        return cls(handle.value)

    def __reduce__(self):
        return Model.from_bytes, (self.to_bytes(),)

    def __repr__(self):
        return f"<mercer.Model {self.info['learner']}, {self.info['features']} features>"


def _text(value):
    """The text of a parameter's value for the library."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)
