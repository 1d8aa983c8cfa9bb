"""Calls functions of the library that run long, with Ctrl-C and progress."""

import threading
import time
from ctypes import byref

from . import _library
from ._errors import exception, names


def watched(name, arguments, say=None):
    """Calls a function of the library with the arguments that arguments(watch) returns
    for a Watch.

    Signal handlers run only while the main thread runs Python code, so the main thread
    makes the call on another thread, and cancels it if a handler raises. say, if given, is
    called about once a second with the stage and the completed fraction. """
    if say is None and threading.current_thread() is not threading.main_thread():
        _library.call(name, *arguments(None))
        return
    function = getattr(_library.library(), name)
    watch = _library.Watch()
    passed = arguments(byref(watch))
    outcome, own = [], names()

    def work():
        try:
            _library.library().mercer_set_names(own)  # the names are set for this thread, which ends after the call
            status = function(*passed)
            text = _library.library().mercer_last_error() if status else b""
            outcome.append(exception(status, text.decode("utf-8", "replace")) if status else None)
        except Exception as err:  # an error of ctypes about the arguments
            outcome.append(err)

    worker = threading.Thread(target=work, name="mercer", daemon=True)
    worker.start()
    try:
        reported = time.monotonic()
        while worker.is_alive():
            worker.join(0.05)
            if say is not None and time.monotonic() - reported >= 1 and watch.stage is not None:
                reported = time.monotonic()
                say(watch.stage.decode("utf-8"), watch.permille / 1000)
    except BaseException:
        watch.cancel = 1
        worker.join()  # the thread uses the caller's memory
        raise
    if outcome[0] is not None:
        raise outcome[0]
