"""The garbage collector, held while a batch is made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Keep the collector from looking for circles among thousands of new things that all live for now.

    It would look through them again and again, a seventh of an import's time, and find none. Whatever is
    garbage by then is found afterwards.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
