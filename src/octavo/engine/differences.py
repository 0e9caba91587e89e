"""What differs between two versions."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain.memory import Memory
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine

_AT_ONCE = 500


class Diff(Struct, frozen=True, kw_only=True):
    """What differs between two versions."""

    before: int
    after: int
    added: tuple[Memory, ...] = ()
    changed: tuple[tuple[Memory, Memory], ...] = ()
    removed: tuple[Memory, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def difference(spine: Spine, reader: Reader, before: int, after: int) -> Diff:
    """What changed between two versions, within what the reader sees; the same said again is none."""
    added, changed, removed = [], [], []
    ids = sorted(spine.state.ids_changed(min(before, after), max(before, after)))
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        older, newer = (spine.state.at(version).many(some) for version in (before, after))
        for id_ in some:
            old, new = _live(older, id_, reader), _live(newer, id_, reader)
            if old is None and new is not None:
                added.append(new)
            elif old is not None and new is None:
                removed.append(old)
            elif old is not None and new is not None and replace(old, rev=new.rev, actor=new.actor) != new:
                changed.append((old, new))
    return Diff(
        before=before, after=after, added=tuple(added), changed=tuple(changed), removed=tuple(removed)
    )


def _live(memories: Mapping[str, tuple[int, Memory]], id_: str, reader: Reader) -> Memory | None:
    _, memory = memories.get(id_, (0, None))
    return memory if memory and not memory.gone and reader.sees(memory.scope) else None
