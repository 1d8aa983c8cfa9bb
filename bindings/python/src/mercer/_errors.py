"""The library's errors as exceptions. What is wrong with arguments or data is a
plain ValueError, as everywhere in scikit-learn."""

import re
from contextlib import contextmanager

import numpy as np


class MercerError(Exception):
    """An error of the library; by itself, a defect in it."""


class OutOfMemory(MercerError, MemoryError):
    """The work does not fit into memory; it was refused before it began."""


class NotPositiveDefinite(MercerError, np.linalg.LinAlgError):
    """K + alpha I is not positive definite; the text says how large alpha must be."""


class NotConverged(MercerError, RuntimeError):
    """The residual that was asked for was not reached."""


class DeviceUnavailable(MercerError, RuntimeError):
    """This machine lacks the device."""


# By the numbers of mercer.h.
_CANCELLED = 2
_KINDS = {
    1: ValueError,
    _CANCELLED: KeyboardInterrupt,
    3: OutOfMemory,
    4: NotPositiveDefinite,
    5: NotConverged,
    6: DeviceUnavailable,
    7: MercerError,
}


def exception(status, text):
    """The exception for a status that is not 0."""
    return _KINDS.get(status, MercerError)(text)


# The arguments of the estimators by the library's names of parameters.
ARGUMENTS = {
    "lambda": "alpha",
    "lambdas": "alpha",
    "intercept": "fit_intercept",
    "iterations": "max_iter",
    "seed": "random_state",
    "cache": "cache_size",
    "centers": "n_components",
    "features": "n_components",
    "optimize": "optimize",
    "restarts": "n_restarts_optimizer",
    "scale": "fit_scale",
}


def in_python(text, arguments=ARGUMENTS):
    """A text of the library with the arguments of Python for its parameters.

    A parameter stands behind the learner, "learners: svr: cache: must be …", or in
    advice, "raise lambda, tol or iterations"; lambda and λ stand anywhere.
    """
    if "is no parameter of" in text:  # about params, which have the library's names
        return text

    def argument(name):
        return arguments.get(name, name)

    text = re.sub(r"^(learners: [\w-]+: )([\w-]+)(?=: )", lambda m: m[1] + argument(m[2]), text)
    text = re.sub(r"\braise [^:;]*", lambda m: re.sub(r"\biterations\b", argument("iterations"), m[0]), text)
    if argument("lambda") == "lambda":
        return text
    text = re.sub(r"λ(?=[A-Z])", "alpha ", text)
    return re.sub(r"\blambda(s?)\b|λ", r"alpha\1", text)


@contextmanager
def python_names(arguments=ARGUMENTS):
    """Errors of the library within it speak of the arguments of Python."""
    try:
        yield
    except (ValueError, MercerError) as err:
        raise type(err)(in_python(str(err), arguments)) from None
