"""Suites, fakes, faults and clocks: what we test with, shipped for whoever writes a store.

`octavo.testing.strategies` needs hypothesis, a development dependency, and is imported by name only.
"""

from octavo.testing.clocks import SettableClock
from octavo.testing.faults import (
    CountingStore,
    FailingDisk,
    LosingStore,
    RecordingDisk,
    Stopped,
    StoppingDisk,
    StoppingStore,
    UnlockedStore,
)
from octavo.testing.memory_store import MemoryStore
from octavo.testing.stores import StoreSuite, open_on

__all__ = [
    "CountingStore",
    "FailingDisk",
    "LosingStore",
    "MemoryStore",
    "RecordingDisk",
    "SettableClock",
    "Stopped",
    "StoppingDisk",
    "StoppingStore",
    "StoreSuite",
    "UnlockedStore",
    "open_on",
]
