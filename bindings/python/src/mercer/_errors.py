"""The library's errors as exceptions. What is wrong with arguments or data is a
plain ValueError, as everywhere in scikit-learn."""

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
