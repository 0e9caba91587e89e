"""A second process that indexes what a long import commits, while the import goes on.

It does what `catch_up` would do afterwards, by the same lock and watermark: killed at any moment it costs
nothing but time.
"""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from types import TracebackType
from typing import Self

from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.engine.spines import open_spine

_log = logging.getLogger("octavo.follower")
_LONG = 4_000  # candidates after which another process pays for its own start,
_LARGE = 2_000  # and at once so many that more are likely to come


class Follower:
    """Told of every commit of an import; its process starts as soon as that is a long one."""

    def __init__(self, spine: Spine) -> None:
        self._spine = spine
        self._written = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the process finish what is committed, unless that is so little that it hardly began."""
        if self._process is None:
            return
        is_short = self._written < _LONG
        if is_short:
            self._process.kill()
        self._process.communicate()
        if self._process.returncode and not is_short:
            _log.warning("the index is behind, the follower ended exit=%d", self._process.returncode)

    def wrote(self, candidates: int) -> None:
        """Note a commit."""
        self._written += candidates
        if self._process is None and (candidates >= _LARGE or self._written >= _LONG):
            self._process = _started(self._spine)
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(b"%d\n" % candidates)
            except BrokenPipeError:  # it has ended, which is reported at the end of the import
                _log.debug("nobody follows any more")


def _started(spine: Spine) -> subprocess.Popen[bytes] | None:
    """The process, if another one can read the account and has a processor of its own."""
    if spine.store.folder is None or len(os.sched_getaffinity(0)) < 2:
        return None
    folder = spine.store.folder.resolve()
    command = [sys.executable, "-m", "octavo.engine.follower", str(folder.parent), spine.identity.account]
    alone = {"OPENBLAS_NUM_THREADS": "1", **os.environ}  # idle threads of numpy would take the import's time
    # What goes wrong there goes wrong again, with its message, for whoever catches up.
    silent = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=silent, bufsize=0, env=alone)  # noqa: S603


def main(root: str, account: str) -> None:
    """Index when enough has been written, by the lines that come in, and once more when no more can come."""
    gc.disable()  # a pass makes no cycles, and the process ends with the import
    behind = _LONG
    spine = open_spine(root, account)
    indexing = Indexing(spine, spine.index, None)
    for line in sys.stdin:
        behind += int(line)
        if behind >= _LONG:  # every pass costs something of its own
            indexing.catch_up(None)
            behind = 0
    indexing.catch_up(None)
    spine.state.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
