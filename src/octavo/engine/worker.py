"""The worker: one background thread of an open account that does due work when it is woken."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from octavo.errors import OctavoError

_log = logging.getLogger("octavo.worker")
_BACKOFF_SECONDS = 0.5


class Worker:
    """Runs a job each time it is woken, never twice at once; failed work is tried again, then reported.

    `failure` holds the last error that outlived its attempts, until the job succeeds again.
    """

    def __init__(self, job: Callable[[], object], *, attempts: int) -> None:
        self._job = job
        self._attempts = attempts
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.failure: OctavoError | None = None

    def wake(self) -> None:
        """Ask for a run; returns at once."""
        with self._lock:
            if self._stopping.is_set():
                return
            self._idle.clear()
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="octavo-worker", daemon=True)
                self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until everything asked for is done; False if the time ran out."""
        return self._idle.wait(seconds)

    @property
    def is_stopping(self) -> bool:
        """Whether the run under way shall come to an end soon."""
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
                self._wake.clear()
                if not self._stopping.is_set():
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
            try:
                self._job()
            except OctavoError as error:
                _log.warning(
                    "work failed attempt=%d of=%d error=%s", attempt, self._attempts, type(error).__name__
                )
                self.failure = error
                if self._stopping.wait(_BACKOFF_SECONDS * attempt):
                    return
            else:
                self.failure = None
                return
