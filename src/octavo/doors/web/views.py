"""The pages: what each shows of an account, at every address that it has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time
from itertools import groupby, takewhile
from typing import Any

from msgspec.structs import replace

from octavo.domain.cores import Core, KeyEvent, Sphere, Statement, core_from_json, sphere_from_json
from octavo.domain.hits import Hit
from octavo.domain.memory import STATE, Memory, Proposal
from octavo.doors.web import lineage, telling
from octavo.doors.web.visits import Visit
from octavo.engine.reading import Reader, Revision
from octavo.errors import BadInput, NotFound
from octavo.storage.state_log import Commit

STANDING = ("register", "canon")
_PLACES = {
    "all": ("episode", "fact", "skill", *STANDING),  # a page only repeats what was said
    "said": ("episode",),
    "stands": STANDING,
    "pages": ("core", "sphere"),
}
_SHOWN = 5  # hits at first, and how many more at a time
_LISTED = 25  # versions on a page of the timeline
_LOOKED_AT = 400  # versions that are looked through for those a chip asks for
_HOLDS = 0.14  # what holds now answers a question if its meaning is so near, or its topic or words are asked
_POINTS = 12  # of the chart
_PART_LEAST = 0.02
_VERBS = ("shares", "stands", "means", "was", "is", "matters", "felt", "belongs", "fits")  # begin a reason
_ANSWERS = ("approve", "decline", "reject")  # what can be undone though no memory may have changed


def ask(visit: Visit) -> Any:
    """A question and what answers it, with reasons; without one, what holds now."""
    query, account = visit.query.get("q", "").strip(), visit.account
    place = visit.query.get("in", "all")
    if place not in _PLACES:
        raise BadInput(f"there is no place {place[:40]!r} to look in", hint="choose one that is shown")
    reader, at = _reader(visit)
    values: dict[str, Any] = {"q": query, "place": place, "at": at, "asks_when": "at" in visit.query}
    if not query:
        standing = [_standing(reader, memory) for memory in _held(reader)]
        is_empty = account.version == 0 and not standing
        return visit.page("empty.html" if is_empty else "ask-start.html", **values, standing=standing)
    k = min(visit.number("k", _SHOWN), 100)
    hits = reader.recall(query, k=k, kinds=_PLACES[place])
    first = _answering(reader, query) if place == "all" else []
    ids = {memory.id for memory in first}
    shown = [_hit(visit, hit) for hit in hits if hit.memory.id not in ids]
    return visit.page(
        "ask.html",
        **values,
        holds=[_standing(reader, memory) for memory in first],
        hits=shown,
        scale=max([1.0, *(abs(value) for hit in shown for _, value in hit["parts"])]),
        marks=telling.terms(query),
        answers=any(_is_near(hit) for hit in hits),
        notes=hits.notes,
        more=k + _SHOWN if len(hits) == k else None,
        all=reader.stats().memories,
        standing=[] if shown or first else [_standing(reader, memory) for memory in _held(reader)],
    )


def _reader(visit: Visit) -> tuple[Reader, str]:
    """The account, or how it was at the end of a day."""
    at = visit.query.get("at", "").strip()
    if not at:
        return visit.account, ""
    try:
        day = datetime.combine(datetime.fromisoformat(at).date(), time.max, tzinfo=UTC)
    except ValueError as error:
        raise BadInput(f"{at[:40]!r} is no day", hint="choose a day like 2026-05-04") from error
    return visit.account.at(day), at


def _held(reader: Reader) -> list[Memory]:
    """What holds now: who you are, then what was said last of each topic."""
    found = [m for kind in ("canon", "register") for m in reader.memories(kind=kind, limit=100, newest=True)]
    return [memory for memory in found if memory.category != STATE and memory.text]


def _standing(reader: Reader, memory: Memory) -> dict[str, Any]:
    history = reader.history(memory.id)
    wordings = {revision.memory.text for revision in history if not revision.memory.gone}
    label = telling.label(memory)
    return {"memory": memory, "label": label, "changed": len(wordings) - 1, "wrote": _first_to_say(history)}


def _first_to_say(history: list[Revision]) -> Memory:
    """The revision that gave a memory the wording it has: who brings it back later did not write it."""
    spoken = [r.memory for r in history if not r.memory.gone] or [history[-1].memory]
    return list(takewhile(lambda memory: memory.text == spoken[-1].text, reversed(spoken)))[-1]


def _answering(reader: Reader, query: str) -> list[Memory]:
    """What holds now and answers a question, at most two: of the topic asked about, else near enough."""
    asked = telling.terms(query)
    named = [memory for memory in _held(reader) if asked & telling.terms(telling.label(memory))]
    return (named or [hit.memory for hit in reader.recall(query, k=2, kinds=STANDING) if _is_near(hit)])[:2]


def _is_near(hit: Hit) -> bool:
    shares = "words" in hit.parts and hit.shares_words
    return shares or hit.parts.get("meaning", 0) >= _HOLDS


def _hit(visit: Visit, hit: Hit) -> dict[str, Any]:
    """One hit as the page shows it."""
    turns, turn = hit.memory.turns, hit.turn
    after = turns[turn + 1] if turn is not None and turn + 1 < len(turns) else None
    reasons = [words for value, words in hit.reasons if value > 0 and words.split()[0] in _VERBS]
    parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    return {
        "memory": hit.memory,
        "text": hit.text if turn is not None else telling.gist(hit.memory),
        "speaker": turns[turn].speaker if turn is not None else None,
        "answer": after,
        "why": telling.sentence(reasons[:3]) if reasons else "Nothing in particular speaks for it.",
        "parts": [(telling.words("parts").get(n, n), v) for n, v in parts if abs(v) >= _PART_LEAST][:5],
        "replaced": hit.replaced,
        "version": hit.version,
        "conversation": _commit(visit, hit.version).session if turns else None,
        "core": next((m for m in visit.account.referring(hit.memory.id) if m.kind == "core"), None),
    }


def _commit(visit: Visit, version: int) -> Commit:
    (commit,) = visit.account.versions(after=version - 1, limit=1)
    return commit


def timeline(visit: Visit) -> Any:
    """The versions as a line, newest first, and the difference of two of them."""
    account, head, show = visit.account, visit.account.version, visit.query.get("show", "all")
    if head == 0:
        return visit.page("empty.html")
    before = min(visit.number("before", head + 1), head + 1)
    last = min(visit.number("to", head), head)
    first = min(visit.number("from", max(last - 1, 0)), head)
    listed = list(_listed(visit, before, show))
    oldest = listed[-1]["commit"].version if listed else 0
    return visit.page(
        "timeline.html",
        days=[(day, list(rows)) for day, rows in groupby(listed, lambda row: telling.day(row["commit"].at))],
        show=show,
        earlier=oldest if oldest > 1 else None,
        first=first,
        last=last,
        head=head,
        changes=account.diff(first, last),
    )


def _listed(visit: Visit, before: int, show: str) -> Iterator[dict[str, Any]]:
    """A page of versions before one, those that a chip asks for."""
    begin = max(before - 1 - (_LISTED if show == "all" else _LOOKED_AT), 0)
    count = 0
    for commit in reversed(visit.account.versions(after=begin, limit=before - 1 - begin)):
        if count < _LISTED and _is_asked_for(commit, show):
            difference = visit.account.diff(commit.version - 1, commit.version)
            lead, said = telling.told(commit, difference)
            verb = commit.cause.partition(" ")[0]
            can_undo = verb in _ANSWERS or (bool(difference) and verb not in ("compress", "redact"))
            count += 1
            yield {"commit": commit, "lead": lead, "said": said, "can_undo": can_undo}


def _is_asked_for(commit: Commit, show: str) -> bool:
    if show == "talk":
        return commit.session is not None
    if show == "back":
        return commit.cause.startswith(("restore", "revert", "reopen"))
    return show == "all" or telling.look(commit) == {"me": "you", "agents": "agent"}.get(show)


def undo(visit: Visit) -> Any:
    """What taking one version back would change, before it is done."""
    version = visit.number("version")
    if not 0 < version <= visit.account.version:
        raise NotFound(f"there is no version {version}")
    difference = visit.account.diff(version, version - 1)
    touched = [*difference.added, *difference.removed, *(new for _, new in difference.changed)]
    histories = [visit.account.history(m.id) for m in touched]
    later = [history[-1].memory for history in histories if _has_moved_on(history, version)]
    commit = _commit(visit, version)
    lead, said = telling.told(commit, visit.account.diff(version - 1, version))
    verb = commit.cause.partition(" ")[0]
    return visit.page(
        "undo.html",
        target=version,
        head=visit.account.version,
        changes=difference,
        lead=lead,
        said=said,
        later=later,
        answers=verb in _ANSWERS,
        erased=verb in ("redact", "swept"),
    )


def _has_moved_on(history: list[Revision], version: int) -> bool:
    """Whether a memory says something else now than it did after a version."""
    then, now = [r.memory for r in history if r.version <= version][-1], history[-1].memory
    return replace(now, rev=then.rev, actor=then.actor) != then


def restore(visit: Visit) -> Any:
    """What going back to a version would change, before it is done."""
    version, head = visit.number("version"), visit.account.version
    if version > head:
        raise NotFound(f"there is no version {version}")
    at = _commit(visit, version).at if version else None
    return visit.page(
        "restore.html", target=version, head=head, changes=visit.account.diff(head, version), at=at
    )


def review(visit: Visit, *, changed: bool = False) -> Any:
    """What waits for your word, oldest first, and what was kept out."""
    return visit.page(
        "review.html",
        status=409 if changed else 200,
        proposals=[_asked(visit, proposal) for proposal in visit.account.proposals()],
        edit=visit.query.get("edit"),
        refusals=visit.account.refusals()[:-11:-1],
        rejections=visit.account.rejections()[:-11:-1],
        changed=changed,
    )


def _asked(visit: Visit, proposal: Proposal) -> dict[str, Any]:
    waiting = visit.account.proposal(proposal.id)
    memory = proposal.memory
    evidence = [visit.account.get(id_) for id_ in memory.linked("evidence")]
    talk = (
        visit.account.memories(from_sandbox=memory.sandbox, kind="episode", limit=2) if memory.sandbox else []
    )
    return {
        "proposal": proposal,
        "asks": telling.asks(proposal),
        "digest": waiting.digest,
        "old": next((old for old, _ in waiting.diff.changed), None),
        "ends": waiting.diff.removed,
        "evidence": [m for m in evidence if m is not None] or talk,
        "is_evidence": any(evidence),
        "reason": proposal.reason.partition(": ")[2]
        or (proposal.reason if proposal.action != "write" else ""),
    }


def memory(visit: Visit) -> Any:
    """One memory: what it says, how it came to be, where it comes from and where it went."""
    account, history = visit.account, _history(visit)
    spoken = [r for r in history if not r.memory.gone] or history
    return visit.page(
        "memory.html",
        memory=spoken[-1].memory,
        wrote=_first_to_say(history),
        wordings=list(dict.fromkeys(telling.gist(r.memory) for r in spoken)),
        gone=history[-1].memory.gone,
        at_version=history[-1].version,
        act=visit.query.get("act"),
        history=[
            {"now": r.memory, "before": before, "version": r.version, "at": _commit(visit, r.version).at}
            for before, r in reversed(list(zip([None, *(h.memory for h in history)], history, strict=False)))
        ],
        links=lineage.sources(account, history),
        made=account.referring(visit.at["id"]),
        conversation=_commit(visit, spoken[-1].version).session,
        uses=account.uses(visit.at["id"]).get(visit.at["id"], 0),
    )


def _history(visit: Visit) -> list[Revision]:
    history = visit.account.history(visit.at["id"])
    if not history:
        raise NotFound(f"there is no memory {visit.at['id']!r}")
    return history


def graph(visit: Visit) -> Any:
    """Everything that led to a memory and came of it, some steps far, drawn and as a list."""
    memory = _first_to_say(_history(visit))
    return visit.page("graph.html", memory=memory, **lineage.drawn(visit.account, memory.id))


def reading(visit: Visit) -> Any:
    """The reading room: cores as pages, and the spheres that hold eight of them."""
    cores, spheres = visit.account.memories(kind="core"), visit.account.memories(kind="sphere")
    if not cores:
        return visit.page("reading-empty.html")
    leaf = visit.query.get("leaf") or cores[-1].id
    open_ = next((m for m in (*cores, *spheres) if m.id == leaf), None)
    if open_ is None:
        raise NotFound(f"there is no core or sphere {leaf[:96]!r}", hint="choose one from the shelf")
    place = cores.index(open_) if open_ in cores else None
    return visit.page(
        "reading.html",
        cores=[(core, _themes(core)) for core in reversed(cores)],
        spheres=spheres[::-1],
        open=open_,
        themes=_themes(open_),
        place=place,
        parts=_parts(open_),
        older=cores[place - 1] if place else None,
        newer=cores[place + 1] if place is not None and place + 1 < len(cores) else None,
    )


def _content(page: Memory) -> Core | Sphere | None:
    """What a core or sphere holds, None if it came from elsewhere in another shape."""
    try:
        return core_from_json(page.data) if page.kind == "core" else sphere_from_json(page.data)
    except BadInput:
        return None


def _themes(page: Memory) -> str:
    content = _content(page)
    return ", ".join(content.compressed_narrative.recurring_themes[:3]) if isinstance(content, Core) else ""


def _parts(page: Memory) -> list[tuple[str, list[dict[str, Any]]]]:
    """The headings of a page with their dated quotations; a text of unknown shape has none."""
    content = _content(page)
    if content is None:
        return []
    if isinstance(content, Core):
        told = content.compressed_narrative
        first, events, said = "Conversation by conversation", told.key_events, told.statements
    else:
        known = content.abstracted_knowledge
        first, events, said = "What mattered most", known.milestones, known.statements
    kinds = telling.words("statements")
    parts = [(first, [_entry(e, e.event, is_key=(e.ri or 0) > 0.8) for e in events])]
    parts += [(head, [_entry(s, s.text) for s in said if s.kind == kind]) for kind, head in kinds.items()]
    return [(heading, rows) for heading, rows in parts if rows]


def _entry(row: KeyEvent | Statement, text: str, *, is_key: bool = False) -> dict[str, Any]:
    at = datetime.fromisoformat(row.at) if row.at else None
    return {"at": at, "text": text, "episode": row.episode, "key": is_key}


def health(visit: Visit) -> Any:
    """Whether the memory is sound, how much there is and how it grew; `check` reads every byte again."""
    account = visit.account
    points = list(_growth(visit, account.version))
    return visit.page(
        "health.html",
        report=account.check() if "check" in visit.query else None,
        stats=account.stats(),
        lag_versions=account.lag().versions,
        points=points,
        sandboxes=len(account.sandboxes()),
        sizes=visit.sizes(),
    )


def _growth(visit: Visit, head: int) -> Iterator[dict[str, Any]]:
    """How much there was at some versions, for the chart and its table."""
    steps = {1 + (head - 1) * step // (_POINTS - 1) for step in range(_POINTS)} if head else ()
    for version in sorted(steps):
        counted = visit.account.at(version).stats()
        at, said = _commit(visit, version).at, sum(counted.sessions.values())
        yield {"at": at, "version": version, "memories": counted.memories, "conversations": said}
