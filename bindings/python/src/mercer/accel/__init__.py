"""Runs programs for scikit-learn faster without a change of their code.

`python -m mercer.accel program.py` runs a program with the classes of `patched()` replaced by
subclasses that have the same names, parameters, fitted attributes, errors and warnings. A call runs
in Mercer if Mercer computes the same result from its parameters and data, and the input is so large
that this is faster; otherwise it runs in scikit-learn. `report()` lists where the calls ran and why.

The environment variable MERCER_ACCEL_LOG=1 writes a line for each call to stderr, and
MERCER_ACCEL_LOG=path appends the lines to a file. MERCER_ACCEL_MIN=0 also runs small inputs in
Mercer.
"""

import sys
import warnings
from types import ModuleType

from ._engine import report, send_to_workers
from ._features import KernelPCA, Nystroem, RBFSampler
from ._gaussian_process import GaussianProcessRegressor
from ._kernel_ridge import KernelRidge
from ._linear import Lasso, LinearModelLoss, LogisticRegression, Ridge
from ._neighbors import KNeighborsClassifier, KNeighborsRegressor
from ._svm import SVC, SVR, OneClassSVM

__all__ = ["patch", "patched", "report", "unpatch"]

_CLASSES = (
    KernelRidge, SVC, SVR, OneClassSVM, GaussianProcessRegressor, Nystroem, RBFSampler, KernelPCA, Ridge, Lasso, LogisticRegression, KNeighborsClassifier, KNeighborsRegressor)


def _originals():
    """Pairs of scikit-learn's class and the class that replaces it."""
    return [(cls.__bases__[1], cls) for cls in _CLASSES]


def patched():
    """The names of the classes that patch replaces.

    Returns
    -------
    names : list of str
        Such as "sklearn.kernel_ridge.KernelRidge".

    Examples
    --------
    >>> from mercer import accel
    >>> accel.patched()[0]
    'sklearn.kernel_ridge.KernelRidge'
    """
    return [f"{original.__module__}.{original.__qualname__}" for original, _ in _originals()]


def patch():
    """Replaces classes of scikit-learn by classes of the same names that run in Mercer.

    Every module of scikit-learn that is loaded gets the new classes. A program must therefore
    import the classes after it calls patch. Estimators that exist already keep their classes. The
    worker processes of joblib, as in GridSearchCV(n_jobs=2), use the new classes too.

    Warns
    -----
    UserWarning
        If a module has imported one of the classes before: there it stays scikit-learn's.

    Examples
    --------
    >>> from mercer import accel
    >>> accel.patch()
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> print(KernelRidge(alpha=1.0).fit([[1.0], [2.0]], [3.0, 6.0]).predict([[4.0]]))
    [10.]
    >>> accel.unpatch()
    """
    _replace([*_originals(), (LinearModelLoss.__bases__[0], LinearModelLoss)])
    send_to_workers(_CLASSES)
    imported = _imported()
    if imported:
        others = f", and {len(imported) - 1} more" if len(imported) > 1 else ""
        warnings.warn(f"mercer.accel: {imported[0]} was imported before patch() and stays scikit-learn's{others}: call patch() before these imports", stacklevel=2)


def _imported():
    """The places outside scikit-learn and Mercer that hold one of scikit-learn's classes, such as
    "__main__.SVC"."""
    originals = {id(original) for original, _ in _originals()}
    return [
        f"{name}.{key}" for name, module in list(sys.modules.items()) if name.partition(".")[0] not in ("sklearn", "mercer") and isinstance(module, ModuleType)
        for key, value in list(vars(module).items()) if id(value) in originals]


def unpatch():
    """Puts scikit-learn's own classes back.

    Estimators that were made in between keep their classes, and can still be copied and pickled.

    Examples
    --------
    >>> from mercer import accel
    >>> accel.unpatch()
    """
    _replace([(cls, cls.__bases__[cls in _CLASSES]) for cls in (*_CLASSES, LinearModelLoss)])


def _replace(pairs):
    """Replaces each first class of the pairs by the second one in all modules of scikit-learn."""
    for name, module in list(sys.modules.items()):
        if module is not None and name.partition(".")[0] == "sklearn":
            for old, new in pairs:
                if vars(module).get(old.__name__) is old:
                    setattr(module, old.__name__, new)
