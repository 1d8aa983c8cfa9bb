"""Fast kernel machines with scikit-learn's interface.

Estimators over Mercer's shared library, which `make libmercer` builds. The library
is loaded when it is first needed: from the file that the environment variable
MERCER_LIBRARY names, from this package, or from bin/ of a checkout.
"""

from ._classification import MercerClassifier, MercerNuSVC
from ._errors import DeviceUnavailable, MercerError, NotConverged, NotPositiveDefinite, OutOfMemory
from ._files import load
from ._kernel_ridge_cv import MercerKernelRidgeCV
from ._model import Model, about
from ._novelty import MercerOneClassSVM
from ._process import MercerGaussianProcess
from ._regression import (
    MercerFourierRidge,
    MercerKernelRidge,
    MercerNuSVR,
    MercerNystroemRidge,
    MercerRegressor,
    MercerRidge,
    MercerSVR,
)
from ._sklearn import from_sklearn
from ._systems import Factor, solve
from ._transformers import MercerKernelCenterer, MercerKernelPCA, MercerNystroem, MercerRBFSampler, MercerTextNystroem, MercerTextTfidf

__version__ = "0.1.0"

__all__ = [
    "DeviceUnavailable",
    "Factor",
    "MercerClassifier",
    "MercerError",
    "MercerFourierRidge",
    "MercerGaussianProcess",
    "MercerKernelCenterer",
    "MercerKernelPCA",
    "MercerKernelRidge",
    "MercerKernelRidgeCV",
    "MercerNuSVC",
    "MercerNuSVR",
    "MercerNystroem",
    "MercerNystroemRidge",
    "MercerRBFSampler",
    "MercerOneClassSVM",
    "MercerRegressor",
    "MercerRidge",
    "MercerSVR",
    "MercerTextNystroem",
    "MercerTextTfidf",
    "Model",
    "NotConverged",
    "NotPositiveDefinite",
    "OutOfMemory",
    "about",
    "from_sklearn",
    "load",
    "solve",
]
