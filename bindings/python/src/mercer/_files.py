"""Models from files, as estimators."""

from ._classification import MercerClassifier
from ._model import Model
from ._novelty import MercerOneClassSVM
from ._process import MercerGaussianProcess
from ._regression import MercerFourierRidge, MercerKernelRidge, MercerNystroemRidge, MercerRegressor, MercerRidge, MercerSVR

_REGRESSION = {
    "ridge": MercerRidge,
    "kernel-ridge": MercerKernelRidge,
    "nystrom-ridge": MercerNystroemRidge,
    "fourier-ridge": MercerFourierRidge,
    "gaussian-process": MercerGaussianProcess,
    "svr": MercerSVR,
}


def load(path):
    """Reads a fitted estimator from a file.

    A model that was fitted to a table takes the numeric columns of the table without
    changes: scaling and replacing missing values are part of the model. Parameters that
    the file stores have the values of the fit, and others their defaults.

    Parameters
    ----------
    path : str or path-like
        A file written by `save` of an estimator or by the command `mercer fit`.

    Returns
    -------
    estimator : object
        The fitted estimator of the model's learner.

    Raises
    ------
    ValueError
        If the file does not exist, is not a model, or is damaged.

    Examples
    --------
    >>> import os, tempfile
    >>> import mercer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     mercer.MercerRidge(alpha=2).fit([[0.0], [1], [2]], [1, 2, 4]).save(path)
    ...     mercer.load(path)
    MercerRidge(alpha=2)
    """
    return restored(Model.load(path))


def restored(model):
    """The fitted estimator of a model's learner."""
    learner, task = model.info["learner"], model.info["task"]
    if task == "classification":
        estimator = MercerClassifier(method=learner)
    elif task == "novelty":
        estimator = MercerOneClassSVM()
    elif learner in _REGRESSION:
        estimator = _REGRESSION[learner]()
    else:
        estimator = MercerRegressor(method=learner)
    saved = model.info["parameters"]
    known = {"alpha": saved.get("lambda"), "kernel": saved.get("kernel"), "fit_intercept": saved.get("intercept")}
    if "lambdas" in model.info["arrays"]:
        known["alpha"] = model.array("lambdas")[0]
    known["intervals"] = "samples" in model.info["arrays"] or None
    known["std"] = "posterior" in model.info["arrays"] or None
    names = estimator.get_params()
    estimator.set_params(**{name: value for name, value in known.items() if value is not None and name in names})
    return estimator._restore(model)
