"""The worker: one background thread of an open account that does due work when it is woken."""

from __future__ import annotations

import atexit
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

from octavo.errors import OctavoError, Unavailable

_log = logging.getLogger("octavo.worker")
_BACKOFF_SECONDS = 0.5
_YIELD_SECONDS = 0.0001  # how long the job may keep the interpreter while a question waits for it
_QUIET_SECONDS = 0.05  # so long after a question the job lets the next one come first,
_PATIENCE = 10.0  # but for no longer than so many times what it worked since it waited last


class Worker:
    """Runs a job each time it is woken, never twice at once; failed work is tried again, then reported.

    `failure` holds the last error that outlived its attempts, until the job succeeds again.
    """

    def __init__(self, job: Callable[[], object], *, attempts: int, delay_seconds: float = 0.0) -> None:
        """Run a job; with a delay what is asked for within it is done together."""
        self._job = job
        self._delay_seconds = delay_seconds
        self._attempts = attempts
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_near = False
        self._asked, self._since = -math.inf, 0.0  # when the last question came, and since when the job works
        self.failure: OctavoError | None = None

    def wake(self) -> bool:
        """Ask for a run; returns at once, and whether one was about to begin without that."""
        with self._lock:
            if self._stopping.is_set():
                return False
            was_near, self._is_near = self._is_near, self._is_near or self._idle.is_set()
            self._idle.clear()
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="octavo-worker", daemon=True)
                self._thread.start()
                _at_work.add(self)
            return was_near

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until everything asked for is done; False if the time ran out."""
        return self._idle.wait(seconds)

    @property
    def is_stopping(self) -> bool:
        """Whether the run under way shall come to an end soon."""
        return self._stopping.is_set()

    def asked(self) -> None:
        """Note that a question comes."""
        self._asked = time.monotonic()

    def must_stop(self) -> bool:
        """Let questions go first, for a while; whether the run under way shall come to an end soon."""
        now = time.monotonic()
        latest = now + _PATIENCE * (now - self._since)
        while (rest := min(latest, self._asked + _QUIET_SECONDS) - now) > 0 and not self._stopping.wait(rest):
            now = time.monotonic()
        self._since = time.monotonic()
        return self._stopping.is_set()

    def stop(self) -> None:
        """Finish the run under way, then end."""
        with self._lock:
            self._stopping.set()
            self._wake.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._wake.wait()
                self._is_near = True
                self._stopping.wait(self._delay_seconds)
                self._wake.clear()
                self._is_near = False
                if not self._stopping.is_set():
                    with _yielding():
                        self._attempt()
                with self._lock:
                    if not self._wake.is_set():
                        self._idle.set()
        finally:  # an error nobody foresaw ends the thread and is shown, but nobody waits for ever
            with self._lock:
                self._thread = None
                self._idle.set()

    def _attempt(self) -> None:
        for attempt in range(1, self._attempts + 1):
            self._since = time.monotonic()
            try:
                self._job()
            except (OctavoError, OSError) as error:  # a folder that somebody removed ends no thread
                _log.warning(
                    "work failed attempt=%d of=%d error=%s", attempt, self._attempts, type(error).__name__
                )
                self.failure = (
                    error
                    if isinstance(error, OctavoError)
                    else Unavailable(f"background work: {error.strerror or type(error).__name__}")
                )
                if self._stopping.wait(_BACKOFF_SECONDS * attempt):
                    return
            else:
                self.failure = None
                return


_at_work: WeakSet[Worker] = WeakSet()


def _end_with_the_process(owner: int = os.getpid()) -> None:
    """Stop what nobody closed: a thread inside a library while the interpreter ends aborts the process."""
    if os.getpid() == owner:  # a forked child has none of the threads
        for worker in list(_at_work):
            worker.stop()


atexit.register(_end_with_the_process)


@contextmanager
def _yielding() -> Iterator[None]:
    """Let other threads have the interpreter soon: each of a question's pauses would else cost 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _YIELD_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
