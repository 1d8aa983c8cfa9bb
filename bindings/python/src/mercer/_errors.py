"""The library's errors as exceptions. Errors in arguments or data are plain
ValueErrors, as everywhere in scikit-learn."""

import re
import threading
from contextlib import contextmanager
from ctypes import c_char_p

import numpy as np


class MercerError(Exception):
    """The base of the library's errors. An error of exactly this class is a bug in the library."""


class OutOfMemory(MercerError, MemoryError):
    """The work does not fit into memory and was refused before it began."""


class NotPositiveDefinite(MercerError, np.linalg.LinAlgError):
    """K + alpha I is not positive definite; the message says how large alpha must be."""


class NotConverged(MercerError, RuntimeError):
    """The requested residual was not reached."""


class DeviceUnavailable(MercerError, RuntimeError):
    """This machine lacks the device."""


# The exception for each status number of mercer.h.
_CANCELED = 2
_KINDS = {
    1: ValueError,
    _CANCELED: KeyboardInterrupt,
    3: OutOfMemory,
    4: NotPositiveDefinite,
    5: NotConverged,
    6: DeviceUnavailable,
    7: MercerError,
}


def exception(status, text):
    """The exception for a status that is not 0."""
    return _KINDS.get(status, MercerError)(_places(text))


# Names of the library's packages at the beginning of a message; they are removed, because they mean
# nothing to the caller.
_PARTS = re.compile(
    r"(?:learners: [\w-]+|learners|solvers|kernels|backend|cpu|cuda|modelfile|libmercer|dataset|calibration|"
    r"predict|intervals|variance|leave-one-out|factor|solve|append|remove|gram|merge|sample|update|precomputed|dual|primal|mixed|cg): ")


def _places(text):
    """A message of the library as a Python caller needs it: without the names of packages
    and learners at its beginning, and with indices that count from 0: "learners: ridge:
    weights: row 2: must be …" becomes "sample_weight[1] must be …"."""
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


_local = threading.local()  # names: the parameter names that python_names has set on this thread


def names():
    """The parameter names that python_names has set on this thread, as the array of C strings
    that the library takes, or None."""
    return getattr(_local, "names", None)


def in_python(text):
    """A message of the library in which alpha replaces the library's names lambda and λ."""
    if "is not a parameter of" in text:  # messages about params, whose keys are the library's names
        return text
    for own, argument in (("λI", "alpha I"), ("λW", "alpha W"), ("λ", "alpha"), ("lambda", "alpha")):
        text = text.replace(own, argument)
    return text


@contextmanager
def python_names(arguments):
    """Within this context, messages of the library call each parameter by the name that the
    dict arguments maps it to, and give no advice about parameters that are not in the dict."""
    before = names()
    list_ = [f"{name}={argument}".encode() for name, argument in arguments.items()]
    _local.names = (c_char_p * (len(list_) + 1))(*list_, None)
    try:
        yield
    except (ValueError, MercerError) as err:
        if arguments.get("lambda") != "alpha":
            raise
        raise type(err)(in_python(str(err))) from None
    finally:
        _local.names = before
