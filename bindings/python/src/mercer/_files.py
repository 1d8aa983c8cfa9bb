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
    """A fitted estimator of a file that `save` of an estimator or the command
    `mercer fit` wrote.

    A model that was fitted to a table takes the table's columns of numbers as they
    stood there: scaling and filling in are part of the model. Parameters that the
    file knows are those of the fit, others are defaults.
    """
    model = Model.load(path)
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
    names = estimator.get_params()
    estimator.set_params(**{name: value for name, value in known.items() if value is not None and name in names})
    return estimator._restore(model)
