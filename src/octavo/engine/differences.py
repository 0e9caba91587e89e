"""What differs between two versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from octavo.domain.memory import Memory

if TYPE_CHECKING:
    from octavo.engine.reading import Reader
    from octavo.engine.spine import Spine
    from octavo.storage.state_view import DbView


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What differs between two versions."""

    before: int
    after: int
    added: tuple[Memory, ...] = ()
    changed: tuple[tuple[Memory, Memory], ...] = ()
    removed: tuple[Memory, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def difference(spine: Spine, reader: Reader, before: int, after: int) -> Diff:
    """What changed between two versions, within what the reader sees."""
    low, high = spine.state.at(before), spine.state.at(after)
    added, changed, removed = [], [], []
    for id_ in sorted(spine.state.ids_changed(min(before, after), max(before, after))):
        old, new = _live(low, id_, reader), _live(high, id_, reader)
        if old is None and new is not None:
            added.append(new)
        elif old is not None and new is None:
            removed.append(old)
        elif old is not None and new is not None and old != new:
            changed.append((old, new))
    return Diff(
        before=before, after=after, added=tuple(added), changed=tuple(changed), removed=tuple(removed)
    )


def _live(view: DbView, id_: str, reader: Reader) -> Memory | None:
    memory = view.get(id_)
    return memory if memory and not memory.gone and reader.sees(memory.scope) else None
