"""Calls functions of the library that run long, with Ctrl-C and progress."""

import queue
import threading
import time
from ctypes import byref

from . import _library
from ._errors import exception, names


class _Worker:
    """A thread that makes one call after another, because a new thread for each call takes
    milliseconds."""

    def __init__(self):
        self.calls, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="mercer", daemon=True)
        self.thread.start()

    def _run(self):
        while (call := self.calls.get()) is not None:
            call()
            self.done.put(None)


_idle = []  # the workers that wait for a call


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
            _library.library().mercer_set_names(own)  # each call sets the names of the worker's thread
            status = function(*passed)
            text = _library.library().mercer_last_error() if status else b""
            outcome.append(exception(status, text.decode("utf-8", "replace")) if status else None)
        except Exception as err:  # an error of ctypes about the arguments
            outcome.append(err)

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    try:
        worker.calls.put(work)
        reported = time.monotonic()
        while not outcome:
            try:
                worker.done.get(timeout=0.05)
            except queue.Empty:
                if say is not None and time.monotonic() - reported >= 1 and watch.stage is not None:
                    reported = time.monotonic()
                    say(watch.stage.decode("utf-8"), watch.permille / 1000)
    except BaseException:
        watch.cancel = 1
        worker.calls.put(None)
        worker.thread.join()  # the call uses the caller's memory
        raise
    _idle.append(worker)
    if outcome[0] is not None:
        raise outcome[0]
