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
    return _KINDS.get(status, MercerError)(_places(text))


# The parts of the library that a text begins with, which are none of the caller's.
_PARTS = re.compile(
    r"(?:learners: [\w-]+|learners|solvers|kernels|backend|cpu|cuda|modelfile|libmercer|dataset|calibration|"
    r"predict|intervals|variance|leave-one-out|factor|solve|append|remove|gram|precomputed|dual|primal|mixed|cg): ")


def _places(text):
    """A text of the library without the parts of it in front, and with places in the
    caller's arrays, which count from 0: "learners: ridge: weights: row 2: must be …" is
    "sample_weight[1] must be …"."""
    while part := _PARTS.match(text):
        text = text[part.end():]

    def before(m):
        return str(int(m) - 1)

    text = re.sub(r"^weights(?=: )", "sample_weight", text)
    text = re.sub(r"^x(?=: )", "X", text)
    text = re.sub(r"^element (\d+)", lambda m: f"values[{before(m[1])}]", text)
    text = re.sub(r"^(\w+): (?:row|number) (\d+)(?:, column (\d+))?",
                  lambda m: f"{m[1]}[{before(m[2])}{', ' + before(m[3]) if m[3] and m[3] + m[1] != '1y' else ''}]", text)
    text = re.sub(r"^([\w-]+(?:\[[\d, ]+\])?): (?=(?:must|is) )", r"\1 ", text)
    return re.sub(r"\b(row|column|sample) (\d+)\b", lambda m: f"{m[1]} {before(m[2])}", text)


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
    """A text of the library, such as a reason in its JSON, with the places and the
    arguments of Python."""
    return _names(_places(text), arguments)


def _names(text, arguments):
    """A text with the arguments of Python for the library's parameters.

    A parameter stands in front, "cache must be …", or in advice, "raise lambda, tol or
    iterations"; lambda and λ stand anywhere.
    """
    if "is no parameter of" in text:  # about params, which have the library's names
        return text

    def argument(name):
        return arguments.get(name, name)

    text = re.sub(r"^([\w-]+)(?=\[\d+\]| must |: )", lambda m: argument(m[1]), text)
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
        raise type(err)(_names(str(err), arguments)) from None
