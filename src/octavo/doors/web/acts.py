"""The acts: what a form does to an account, and the page that says so, with the way to take it back."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from octavo.doors.web import views
from octavo.doors.web.visits import HEADERS, Visit
from octavo.errors import BadInput, NotFound, Stale

Act = Callable[[Visit], Any]


def decide(visit: Visit) -> Any:
    """Yes, no, or yes in other words, to what was seen; what changed meanwhile is shown again."""
    account, id_, say, seen = visit.account, visit.at["id"], visit.form.get("say"), visit.form.get("seen")
    try:
        if account.proposal(id_).digest != seen:
            return views.review(visit, changed=True)
        if say == "no":
            account.decline(id_, reason=visit.form.get("reason", ""))
        elif say in ("yes", "other"):
            account.approve(id_, seen=seen, text=visit.said("text") if say == "other" else None)
        else:
            raise BadInput("the answer was neither yes nor no", hint="use one of the buttons")
    except (Stale, NotFound):
        return views.review(visit, changed=True)
    return visit.go("review", say)


def copy(visit: Visit) -> Any:
    """The account as a file that opens like the original when it is unpacked."""
    from starlette.responses import Response

    packed = BytesIO()
    with tempfile.TemporaryDirectory(prefix="octavo-copy-") as folder:
        visit.account.backup(folder)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).rglob("*")):
                archive.write(path, path.relative_to(folder))
    name = f'attachment; filename="octavo-version-{visit.account.version}.zip"'
    headers = {**HEADERS, "Content-Disposition": name}
    return Response(packed.getvalue(), media_type="application/zip", headers=headers)


def _then(to: str, word: str, act: Act, *, can_undo: bool = True) -> Act:
    """An act, and the page that says with a word of its own that it was done."""

    def answer(visit: Visit) -> Any:
        act(visit)
        return visit.go(to.format(**visit.at), word, can_undo=can_undo)

    return answer


ACTS: dict[str, Act] = {
    "remember": _then("timeline", "wrote", lambda v: v.account.remember(v.said("text")).or_raise()),
    "review/{id}": decide,
    "undo/{version}": _then("timeline", "undone", lambda v: v.account.revert(v.number("version"))),
    "restore/{version}": _then("timeline", "restored", lambda v: v.account.restore(v.number("version"))),
    "memory/{id}/correct": _then(
        "memory/{id}", "corrected", lambda v: v.account.revise(v.at["id"], text=v.said("text")).or_raise()
    ),
    "memory/{id}/forget": _then(
        "memory/{id}", "forgotten", lambda v: v.account.forget(v.at["id"])[0].or_raise()
    ),
    "memory/{id}/erase": _then(
        "ask", "erased", lambda v: v.account.redact(v.at["id"], reason=v.said("reason")), can_undo=False
    ),
    "copy": copy,
}
