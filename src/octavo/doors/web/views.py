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
from octavo.doors.web import telling
from octavo.doors.web.visits import Answer, Page, Visit
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


def ask(visit: Visit) -> Answer:
    """A question and what answers it, with reasons; without one, what holds now."""
    query, account = visit.query.get("q", "").strip(), visit.account
    place = visit.query.get("in", "all")
    if place not in _PLACES:
        raise BadInput(f"there is no place {place[:40]!r} to look in", hint="choose one that is shown")
    reader, at = _reader(visit)
    values = {"q": query, "place": place, "at": at, "asks_when": "at" in visit.query}
    if not query:
        standing = [_standing(reader, memory) for memory in _held(reader)]
        is_empty = account.version == 0 and not standing
        return Page(
            template="empty.html" if is_empty else "ask-start.html", values={**values, "standing": standing}
        )
    k = min(visit.number("k", _SHOWN), 100)
    hits = reader.recall(query, k=k, kinds=_PLACES[place])
    first = _answering(reader, query) if place == "all" else []
    ids = {memory.id for memory in first}
    shown = [_hit(visit, hit) for hit in hits if hit.memory.id not in ids]
    values |= {
        "holds": [_standing(reader, memory) for memory in first],
        "hits": shown,
        "marks": telling.terms(query),
        "notes": hits.notes,
        "more": k + _SHOWN if len(hits) == k else None,
        "all": reader.stats().memories,
        "standing": [] if shown or first else [_standing(reader, memory) for memory in _held(reader)],
    }
    return Page(template="ask.html", values=values)


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
        "why": f"It {'; '.join(reasons[:3])}." if reasons else "Nothing in particular speaks for it.",
        "parts": [(telling.words("parts").get(n, n), v) for n, v in parts if abs(v) >= _PART_LEAST][:5],
        "replaced": hit.replaced,
        "version": hit.version,
        "conversation": _commit(visit, hit.version).session if turns else None,
        "core": next((m for m in visit.account.referring(hit.memory.id) if m.kind == "core"), None),
    }


def _commit(visit: Visit, version: int) -> Commit:
    (commit,) = visit.account.versions(after=version - 1, limit=1)
    return commit


def timeline(visit: Visit) -> Answer:
    """The versions as a line, newest first, and the difference of two of them."""
    account, head, show = visit.account, visit.account.version, visit.query.get("show", "all")
    if head == 0:
        return Page(template="empty.html", values={})
    before = min(visit.number("before", head + 1), head + 1)
    last = min(visit.number("to", head), head)
    first = min(visit.number("from", max(last - 1, 0)), head)
    listed = list(_listed(visit, before, show))
    days = [
        {"title": telling.day(at), "versions": list(versions)}
        for at, versions in groupby(
            listed, key=lambda row: row["commit"].at.replace(hour=0, minute=0, second=0, microsecond=0)
        )
    ]
    values = {
        "days": days,
        "show": show,
        "earlier": listed[-1]["commit"].version if listed and listed[-1]["commit"].version > 1 else None,
        "first": first,
        "last": last,
        "head": head,
        "changes": account.diff(first, last),
        "at": _commit(visit, first).at if first else None,
    }
    return Page(template="timeline.html", values=values)


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
            yield {
                "commit": commit,
                "lead": lead,
                "said": said,
                "can_undo": can_undo,
                "look": telling.look(commit),
            }


def _is_asked_for(commit: Commit, show: str) -> bool:
    if show == "talk":
        return commit.session is not None
    if show == "back":
        return commit.cause.startswith(("restore", "revert", "reopen"))
    return show == "all" or telling.look(commit) == {"me": "you", "agents": "agent"}.get(show)


def undo(visit: Visit) -> Answer:
    """What taking one version back would change, before it is done."""
    version = visit.number("version")
    if not 0 < version <= visit.account.version:
        raise NotFound(f"there is no version {version}")
    difference = visit.account.diff(version, version - 1)
    touched = [*difference.added, *difference.removed, *(new for _, new in difference.changed)]
    later = [m for m in touched if _has_moved_on(visit.account.history(m.id), version)]
    commit = _commit(visit, version)
    lead, said = telling.told(commit, visit.account.diff(version - 1, version))
    verb = commit.cause.partition(" ")[0]
    values = {
        "target": version,
        "head": visit.account.version,
        "changes": difference,
        "lead": lead,
        "said": said,
        "later": later,
        "answers": verb in _ANSWERS,
        "erased": verb in ("redact", "swept"),
    }
    return Page(template="undo.html", values=values)


def _has_moved_on(history: list[Revision], version: int) -> bool:
    """Whether a memory says something else now than it did after a version."""
    then, now = [r.memory for r in history if r.version <= version][-1], history[-1].memory
    return replace(now, rev=then.rev, actor=then.actor) != then


def restore(visit: Visit) -> Answer:
    """What going back to a version would change, before it is done."""
    version, head = visit.number("version"), visit.account.version
    if version > head:
        raise NotFound(f"there is no version {version}")
    values = {
        "target": version,
        "head": head,
        "changes": visit.account.diff(head, version),
        "at": _commit(visit, version).at if version else None,
    }
    return Page(template="restore.html", values=values)


def review(visit: Visit, *, changed: bool = False) -> Answer:
    """What waits for your word, oldest first, and what was kept out."""
    values = {
        "proposals": [_asked(visit, proposal) for proposal in visit.account.proposals()],
        "edit": visit.query.get("edit"),
        "refusals": list(reversed(visit.account.refusals()[-10:])),
        "rejections": list(reversed(visit.account.rejections()[-10:])),
        "changed": changed,
    }
    return Page(template="review.html", values=values, status=409 if changed else 200)


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


def memory(visit: Visit) -> Answer:
    """One memory: what it says, how it came to be, where it comes from and where it went."""
    history = visit.account.history(visit.at["id"])
    if not history:
        raise NotFound(f"there is no memory {visit.at['id']!r}")
    spoken = [r for r in history if not r.memory.gone]
    links = [(link.name, visit.account.get(link.to)) for link in history[-1].memory.links]
    if not history[-1].memory.turns:
        said_in = dict.fromkeys(r.memory.sandbox for r in spoken if r.memory.sandbox)
        talks = [m for s in said_in for m in visit.account.memories(from_sandbox=s, kind="episode", limit=1)]
        known = {target.id for _, target in links if target is not None}
        links += [("talk", talk) for talk in talks if talk.id not in known]
    values = {
        "memory": (spoken or history)[-1].memory,
        "wrote": _first_to_say(history),
        "wordings": list(dict.fromkeys(telling.gist(r.memory) for r in spoken)),
        "gone": history[-1].memory.gone,
        "at_version": history[-1].version,
        "act": visit.query.get("act"),
        "history": [
            {
                "now": r.memory,
                "before": before.memory if before else None,
                "version": r.version,
                "at": _commit(visit, r.version).at,
            }
            for before, r in reversed(list(zip([None, *history], history, strict=False)))
        ],
        "links": [(name, target) for name, target in links if target is not None],
        "made": visit.account.referring(visit.at["id"]),
        "conversation": _commit(visit, (spoken or history)[-1].version).session,
        "uses": visit.account.uses(visit.at["id"]).get(visit.at["id"], 0),
    }
    return Page(template="memory.html", values=values)


def reading(visit: Visit) -> Answer:
    """The reading room: cores as pages, and the spheres that hold eight of them."""
    cores, spheres = visit.account.memories(kind="core"), visit.account.memories(kind="sphere")
    if not cores:
        return Page(template="reading-empty.html", values={})
    leaf = visit.query.get("leaf") or cores[-1].id
    open_ = next((m for m in (*cores, *spheres) if m.id == leaf), None)
    if open_ is None:
        raise NotFound(f"there is no core or sphere {leaf[:96]!r}", hint="choose one from the shelf")
    place = cores.index(open_) if open_ in cores else None
    values = {
        "cores": [{"memory": m, "span": _span(m), "themes": ", ".join(_themes(m))} for m in reversed(cores)],
        "spheres": [{"memory": m, "span": _span(m)} for m in reversed(spheres)],
        "open": open_,
        "span": _span(open_),
        "themes": ", ".join(_themes(open_)),
        "place": place,
        "parts": _parts(open_),
        "older": cores[place - 1] if place else None,
        "newer": cores[place + 1] if place is not None and place + 1 < len(cores) else None,
        "title": _span,
    }
    return Page(template="reading.html", values=values)


def _span(page: Memory) -> str:
    return page.text.partition("\n")[0].partition(":")[0]


def _content(page: Memory) -> Core | Sphere | None:
    """What a core or sphere holds, None if it came from elsewhere in another shape."""
    try:
        return core_from_json(page.data) if page.kind == "core" else sphere_from_json(page.data)
    except BadInput:
        return None


def _themes(page: Memory) -> tuple[str, ...]:
    content = _content(page)
    return content.compressed_narrative.recurring_themes[:3] if isinstance(content, Core) else ()


def _parts(page: Memory) -> list[tuple[str, list[dict[str, Any]]]]:
    """The headings of a page with their dated quotations; a text of unknown shape has none."""
    content = _content(page)
    if content is None:
        return []
    if isinstance(content, Core):
        told = content.compressed_narrative
        first, rows, said = "Conversation by conversation", told.key_events, told.statements
    else:
        known = content.abstracted_knowledge
        first, rows, said = "What mattered most", known.milestones, known.statements
    parts: list[tuple[str, list[KeyEvent] | list[Statement]]] = [(first, list(rows))]
    parts += [
        (heading, [s for s in said if s.kind == kind])
        for kind, heading in telling.words("statements").items()
    ]
    return [(heading, [_entry(row) for row in rows]) for heading, rows in parts if rows]


def _entry(row: KeyEvent | Statement) -> dict[str, Any]:
    return {
        "at": datetime.fromisoformat(row.at) if row.at else None,
        "text": row.event if isinstance(row, KeyEvent) else row.text,
        "speaker": row.speaker,
        "episode": row.episode,
        "key": isinstance(row, KeyEvent) and (row.ri or 0) > 0.8,
    }


def health(visit: Visit) -> Answer:
    """Whether the memory is sound, how much there is and how it grew; `check` reads every byte again."""
    account, head = visit.account, visit.account.version
    values = {
        "report": account.check() if "check" in visit.query else None,
        "stats": account.stats(),
        "lag_versions": account.lag().versions,
        "points": list(_growth(visit, head)),
        "sandboxes": len(account.sandboxes()),
    }
    return Page(template="health.html", values=values)


def _growth(visit: Visit, head: int) -> Iterator[dict[str, Any]]:
    """How many memories there were at some versions, for the chart and its table."""
    for version in sorted(
        {1 + (head - 1) * step // (_POINTS - 1) for step in range(_POINTS)} if head else ()
    ):
        counted = visit.account.at(version).stats()
        yield {
            "at": _commit(visit, version).at,
            "version": version,
            "memories": counted.memories,
            "conversations": sum(counted.sessions.values()),
        }
