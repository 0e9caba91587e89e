"""The probe of a store when it is opened: one that ignores the condition of `create` is refused."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor

from octavo.domain.ports import Store
from octavo.errors import StoreUnfit

_WRITERS = 4
_ROUNDS = 2


def probe(store: Store) -> None:
    """See that of several writers of one key exactly one wins, and that a late one changes nothing."""
    with ThreadPoolExecutor(_WRITERS) as threads:
        for _ in range(_ROUNDS):
            key = f"probe/{secrets.token_hex(8)}"
            try:
                written = [b"%d" % number for number in range(_WRITERS)]
                won = list(threads.map(lambda data, key=key: store.create(key, data), written))
                is_late_refused = not store.create(key, b"late")
                kept = store.read(key)
            finally:
                store.delete(key)
            if won.count(True) != 1 or not is_late_refused or kept != written[won.index(True)]:
                raise StoreUnfit("the store overwrites what is there when it is told not to")
