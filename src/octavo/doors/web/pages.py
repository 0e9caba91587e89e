"""The pages: what each address shows of an account, and what its forms do to it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, time
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from octavo.domain.episodes import moment
from octavo.domain.hits import Hit
from octavo.domain.memory import Memory
from octavo.doors.operations.performing import store_of
from octavo.doors.rest import Server
from octavo.doors.web import telling
from octavo.doors.web.visits import HEADERS, HERE, Visit, endpoint
from octavo.engine.account import Account
from octavo.engine.reading import Reader, Revision
from octavo.errors import BadInput, NotFound, Stale
from octavo.storage.state_log import Commit

_STANDING = ("register", "canon")
_PLACES = {
    "all": ("episode", "fact", "skill", *_STANDING),  # a page only repeats what was said
    "said": ("episode",),
    "stands": _STANDING,
    "pages": ("core", "sphere"),
}
_SHOWN = 5  # hits at first, and how many more at a time
_LISTED = 25  # versions on a page of the timeline
_LOOKED_AT = 400  # versions that are looked through for those a chip asks for
_HOLDS = 0.14  # what holds now answers a question if its meaning is so near, or its topic or words are asked
_POINTS = 12  # of the chart
_STEPS, _MOST = 3, 60  # of the graph: how far from its memory, and how many memories in all


def add(server: Server) -> None:
    """Add all accounts' pages, below `/@account/`, to a server; each visitor sees what the server says."""
    from starlette.responses import RedirectResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    def home(request: Any) -> Any:
        named = request.path_params.get("account") or server.visitors.of(request, proof="").account
        return RedirectResponse(f"{request.scope.get('root_path', '')}/@{quote(named, safe='')}/ask")

    routes = [Route(path, home) for path in ("/", "/@{account}", "/@{account}/")]
    routes += [Route("/@{account}/theme/{theme}", _theme)]
    for method, table in (("GET", _PAGES), ("POST", _ACTS)):
        for path, page in table.items():
            answer = endpoint(server.pool, server.visitors, page)
            routes.append(Route(f"/@{{account}}/{path}", answer, methods=[method]))
    server.app.router.routes.extend([*routes, Mount("/static", StaticFiles(directory=HERE / "static"))])


def _theme(request: Any) -> Any:
    """The page one came from, in light, in dark or as the device is; it changes nothing but a cookie."""
    from starlette.responses import RedirectResponse

    theme = request.path_params["theme"] if request.path_params["theme"] in ("light", "dark") else "auto"
    back = request.headers.get("referer", "").partition(request.headers.get("host", "\n"))[2]
    back = back if back.startswith("/@") else request.url.path.rpartition("/theme/")[0] + "/ask"
    answer = RedirectResponse(back, status_code=303, headers=HEADERS)
    answer.set_cookie("theme", theme, httponly=True, samesite="strict")
    return answer


def _nowhere(visit: Visit) -> Any:
    """What no page answers is said on one, with a way back."""
    raise NotFound(f"there is no page {visit.at['path'][:80]!r}", hint="go on from one of the pages below")


def _ask(visit: Visit) -> Any:
    """A question and what answers it, with reasons; without one, what holds now."""
    query, at = (visit.query.get(name, "").strip() for name in ("q", "at"))
    place, day = visit.query.get("in", "all"), moment(at)
    if place not in _PLACES:
        raise BadInput(f"there is no place {place[:40]!r} to look in", hint="choose one that is shown")
    account = visit.account
    reader = account if day is None else account.at(datetime.combine(day, time.max, tzinfo=UTC))
    values = {"q": query, "place": place, "at": at, "reader": reader}
    if not query:
        is_empty = account.version == 0 and not telling.held(reader)
        return visit.page("empty.html" if is_empty else "ask-start.html", **values)
    k = min(visit.number("k", _SHOWN), 100)
    hits = reader.recall(query, k=k, kinds=_PLACES[place])
    holds = _answering(reader, query) if place == "all" else []
    shown = [hit for hit in hits if hit.memory.id not in {memory.id for memory in holds}]
    return visit.page(
        "ask.html",
        **values,
        holds=holds,
        hits=shown,
        scale=max([1.0, *(abs(value) for hit in shown for _, value in telling.parts(hit))]),
        answers=any(_is_near(hit) for hit in hits),
        notes=hits.notes,
        more=k + _SHOWN if len(hits) == k else None,
        known=sum(n for kind, n in reader.stats().by_kind.items() if kind in _PLACES[place]),
    )


def _answering(reader: Reader, query: str) -> list[Memory]:
    """What holds now and answers a question, at most two: of the topic asked about, else near enough."""
    asked = telling.terms(query)
    named = [memory for memory in telling.held(reader) if asked & telling.terms(telling.label(memory))]
    return (named or [hit.memory for hit in reader.recall(query, k=2, kinds=_STANDING) if _is_near(hit)])[:2]


def _is_near(hit: Hit) -> bool:
    return ("words" in hit.parts and hit.shares_words) or hit.parts.get("meaning", 0) >= _HOLDS


def _timeline(visit: Visit) -> Any:
    """The versions as a line, newest first, and the difference of two of them."""
    head, show = visit.account.version, visit.query.get("show", "all")
    if head == 0:
        return visit.page("empty.html")
    last = min(visit.number("to", head), head)
    first = min(visit.number("from", max(last - 1, 0)), head)
    end = min(visit.number("before", head + 1), head + 1) - 1
    begin = max(end - (_LISTED if show == "all" else _LOOKED_AT), 0)
    commits = reversed(visit.account.versions(after=begin, limit=end - begin))
    listed = [commit for commit in commits if _is_asked_for(commit, show)][:_LISTED]
    days = [(day, list(rows)) for day, rows in groupby(listed, lambda commit: telling.day(commit.at))]
    return visit.page("timeline.html", days=days, show=show, first=first, last=last)


def _is_asked_for(commit: Commit, show: str) -> bool:
    is_back = commit.cause.startswith(("restore", "revert", "reopen"))
    told = {"all": True, "talk": commit.session is not None, "back": is_back}
    return told.get(show, telling.look(commit) == {"me": "you", "agents": "agent"}.get(show))


def _undo(visit: Visit) -> Any:
    """What taking one version back would change, before it is done."""
    version = visit.number("version")
    if not 0 < version <= visit.account.version:
        raise NotFound(f"there is no version {version}")
    back = visit.account.diff(version, version - 1)
    later = []
    for memory in (*back.added, *back.removed, *(new for _, new in back.changed)):
        history = visit.account.history(memory.id)
        then, now = [r.memory for r in history if r.version <= version][-1], history[-1].memory
        later += [now] if replace(now, rev=then.rev, actor=then.actor) != then else []
    return visit.page("undo.html", target=version, changes=back, later=later)


def _restore(visit: Visit) -> Any:
    """What going back to a version would change, before it is done."""
    version = visit.number("version")
    if version > visit.account.version:
        raise NotFound(f"there is no version {version}")
    return visit.page("restore.html", target=version)


def _review(visit: Visit, *, changed: bool = False) -> Any:
    """What waits for your word, oldest first, and what was kept out."""
    waiting = [visit.account.proposal(proposal.id) for proposal in visit.account.proposals()]
    asked = [(one, *_grounds(visit.account, one.proposal.memory)) for one in waiting]
    return visit.page("review.html", status=409 if changed else 200, asked=asked, changed=changed)


def _grounds(account: Account, memory: Memory) -> tuple[bool, list[Memory]]:
    """Whether a proposal names what it rests on, and that, or else what was said in its conversation."""
    if evidence := [m for id_ in memory.linked("evidence") if (m := account.get(id_)) is not None]:
        return True, evidence
    talk = memory.sandbox and account.memories(from_sandbox=memory.sandbox, kind="episode", limit=2)
    return False, talk or []


def _memory(visit: Visit) -> Any:
    """One memory: what it says, how it came to be, where it comes from and where it went."""
    history = _history(visit)
    spoken = [revision for revision in history if not revision.memory.gone] or history
    links = _sources(visit.account, history)
    return visit.page("memory.html", memory=spoken[-1].memory, history=history, spoken=spoken, links=links)


def _history(visit: Visit) -> list[Revision]:
    history = visit.account.history(visit.id)
    if not history:
        raise NotFound(f"there is no memory {visit.id!r}")
    return history


def _sources(account: Account, history: list[Revision]) -> list[tuple[str, Memory]]:
    """What a memory links to, and the conversations in which it got its wordings; each with a link's name."""
    now = history[-1].memory
    linked = [(link.name, account.get(link.to)) for link in now.links]
    if not now.turns:
        said_in = dict.fromkeys(r.memory.sandbox for r in history if r.memory.sandbox and not r.memory.gone)
        talks = [m for s in said_in for m in account.memories(from_sandbox=s, kind="episode", limit=1)]
        linked += [("talk", talk) for talk in talks if all(talk.id != link.to for link in now.links)]
    return [(name, target) for name, target in linked if target is not None]


def _graph(visit: Visit) -> Any:
    """What led to a memory and what came of it, some steps far: columns, what came first to the left."""
    account, history = visit.account, _history(visit)
    now = history[-1].memory
    memories, column, ahead = {now.id: now}, {now.id: 0}, [now.id]
    edges: dict[tuple[str, str], str] = {}
    left_out = 0
    while ahead:
        here = ahead.pop(0)
        # What came of it has other sources too; they are no part of its story.
        before = _sources(account, account.history(here)) if column[here] < 1 else []
        near = [(name, memory, (memory.id, here)) for name, memory in before]
        near += [("", memory, (here, memory.id)) for memory in account.referring(here)]
        for name, memory, edge in near:
            if memory.id not in column:
                if len(column) >= _MOST:
                    left_out += 1
                    continue
                memories[memory.id] = memory
                column[memory.id] = column[here] - 1 if edge[1] == here else max(column[here], 0) + 1
                ahead += [memory.id] if abs(column[memory.id]) < _STEPS else []
            edges[edge] = name or edges.get(edge, "")
    columns = [[id_ for id_ in column if column[id_] == c] for c in sorted(set(column.values()))]
    at = {id_: (x, ids.index(id_)) for x, ids in enumerate(columns) for id_ in ids}
    values: dict[str, Any] = {"memories": memories, "columns": columns, "at": at, "edges": edges}
    return visit.page("graph.html", memory=telling.first_to_say(history), left_out=left_out, **values)


def _reading(visit: Visit) -> Any:
    """The reading room: cores as pages, and the spheres that hold eight of them."""
    cores, spheres = visit.account.memories(kind="core"), visit.account.memories(kind="sphere")
    if not cores:
        return visit.page("reading-empty.html")
    leaf = visit.query.get("leaf") or cores[-1].id
    open_ = next((m for m in (*cores, *spheres) if m.id == leaf), None)
    if open_ is None:
        raise NotFound(f"there is no core or sphere {leaf[:96]!r}", hint="choose one from the shelf")
    place = cores.index(open_) if open_ in cores else None
    return visit.page("reading.html", cores=cores, spheres=spheres, open=open_, place=place)


def _health(visit: Visit) -> Any:
    """Whether the memory is sound, how much there is and how it grew; `check` reads every byte again."""
    account, head, folder = visit.account, visit.account.version, store_of(visit.settings).folder
    versions = sorted({1 + (head - 1) * step // (_POINTS - 1) for step in range(_POINTS)}) if head else []
    points = [(visit.commit(version), account.at(version).stats()) for version in versions]
    files = [file for file in folder.rglob("*") if file.is_file()] if folder else []
    sizes = [sum(f.stat().st_size for f in files if part in f.parts) for part in ("ledger", "index")]
    report = account.check() if "check" in visit.query else None
    return visit.page("health.html", report=report, stats=account.stats(), points=points, sizes=sizes)


def _decide(visit: Visit) -> Any:
    """Yes, no, or yes in other words, to what was seen; what changed meanwhile is shown again."""
    account, id_, say, seen = visit.account, visit.id, visit.form.get("say"), visit.form.get("seen")
    if say not in ("yes", "no", "other"):
        raise BadInput("the answer was neither yes nor no", hint="use one of the buttons")
    try:
        if account.proposal(id_).digest != seen:
            raise Stale("it changed while it was read")
        if say == "no":
            account.decline(id_, reason=visit.form.get("reason", ""))
        else:
            account.approve(id_, seen=seen, text=visit.said("text") if say == "other" else None)
    except (Stale, NotFound):
        return _review(visit, changed=True)
    return visit.go("review", say)


def _copy(visit: Visit) -> Any:
    """The account as a file that opens like the original when it is unpacked."""
    from starlette.responses import Response

    with tempfile.TemporaryDirectory(prefix="octavo-copy-") as folder:
        visit.account.backup(f"{folder}/copy")
        packed = Path(shutil.make_archive(f"{folder}/packed", "zip", f"{folder}/copy")).read_bytes()
    name = {"Content-Disposition": f'attachment; filename="octavo-version-{visit.account.version}.zip"'}
    return Response(packed, media_type="application/zip", headers=HEADERS | name)


def _act(act: Callable[[Visit], Any], to: str, done: str, visit: Visit) -> Any:
    """Do what a form asks, then show the page that says with a word of its own that it was done."""
    act(visit)
    return visit.go(to.format(**visit.at), done)


_PAGES: dict[str, Callable[[Visit], Any]] = {
    "ask": _ask,
    "timeline": _timeline,
    "undo/{version}": _undo,
    "restore/{version}": _restore,
    "review": _review,
    "memory/{id}": _memory,
    "graph/{id}": _graph,
    "reading": _reading,
    "health": _health,
    "{path:path}": _nowhere,
}
# Where a form is sent: what it does, where that leads, and the word that says it was done.
_DONE: dict[str, tuple[Callable[[Visit], Any], str, str]] = {
    "remember": (lambda v: v.account.remember(v.said("text")).or_raise(), "timeline", "wrote"),
    "undo/{version}": (lambda v: v.account.revert(v.number("version")), "timeline", "undone"),
    "restore/{version}": (lambda v: v.account.restore(v.number("version")), "timeline", "restored"),
    "memory/{id}/correct": (
        lambda v: v.account.revise(v.id, text=v.said("text")).or_raise(),
        "memory/{id}",
        "corrected",
    ),
    "memory/{id}/forget": (lambda v: v.account.forget(v.id)[0].or_raise(), "memory/{id}", "forgotten"),
    "memory/{id}/erase": (lambda v: v.account.redact(v.id, reason=v.said("reason")), "ask", "erased"),
}
_ACTS: dict[str, Callable[[Visit], Any]] = {path: partial(_act, *row) for path, row in _DONE.items()}
_ACTS |= {"review/{id}": _decide, "copy": _copy, "{path:path}": _nowhere}
