"""Skills and behaviours of one account as a folder for another: approval does not travel with them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from octavo.documents import trees
from octavo.documents.transfer import Exported, Imported, Tally
from octavo.domain import mirror
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import BEHAVIOR, SKILLS, Place, apart, place_of, skill_name
from octavo.engine.account import Account
from octavo.errors import OctavoError

FILE, TAUGHT = "SKILL.md", mirror.TAUGHT.path
_SKILL = Place(path=f"semantic/skills/x/{FILE}", form="skill", kind="skill")


def export(account: Account, path: Path) -> Exported:
    """Write every skill as a folder with its SKILL.md, and the behaviours as one file; rules stay here."""
    everything, named = account.memories(kind="skill"), defaultdict[str, list[Memory]](list)
    taught = [memory for memory in everything if memory.category == BEHAVIOR]
    for memory in everything:
        if (place := place_of(memory)) is not None and place.form == "skill":
            named[skill_name(memory.topic or memory.id)].append(memory)
    files: dict[str, bytes] = {}
    for name, some in named.items():
        for file, shown in apart(Place(path=f"{name}/{FILE}", form="skill", kind="skill"), some).items():
            files[file] = mirror.render(_SKILL, file, shown, {})
    rules = len(everything) - len(taught) - len(files)
    counts = {"skill": len(files), BEHAVIOR: len(taught)}
    if taught:
        files[TAUGHT] = mirror.render(mirror.TAUGHT, TAUGHT, taught, account.uses(*(m.id for m in taught)))
    trees.write_all(path, files)
    return Exported(
        format="skills",
        version=account.version,
        account=account.name,
        counts=counts,
        left_out={"rule": rules} if rules else {},
        files=tuple(files),
    )


def import_(account: Account, path: Path) -> Imported:
    """Take skills in as learned ones; for each that was approved elsewhere a proposal asks for it here."""
    files, links = trees.files_below(path)
    tally, items, approved = Tally(left_out=links), list[dict[str, Any]](), list[str]()
    for name in files:
        try:
            data = trees.read_bytes(path / name)
            if Path(name).name == FILE:
                topic = f"{SKILLS}{Path(name).parent.name or path.name}"
                (one,) = mirror.read(_SKILL, name, data)
                items.append({**mirror.fields_of(_SKILL, one.said, None), "topic": topic})
                approved += [topic] * (b"octavo-approved:" in data.partition(b"\n---")[0])
            elif Path(name).name == TAUGHT:
                found = mirror.read(mirror.TAUGHT, name, data)
                items += [mirror.fields_of(mirror.TAUGHT, one.said, None) for one in found]
        except OctavoError as error:
            tally.leave_out(name, error.message)
    learner = account.intake.as_agent()
    verdicts = learner.remember_many([{**item, "source": "operator"} for item in items]) if items else []
    for item, verdict in zip(items, verdicts, strict=True):
        is_new = tally.note(item["topic"], None, verdict)
        if is_new and item["topic"] in approved and verdict.memory:
            learner.promote(verdict.memory.id)
    return tally.imported(account, "skills")
