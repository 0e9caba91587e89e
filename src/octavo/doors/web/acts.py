"""The acts: what a form does to an account, and the page that says so, with the way to take it back."""

from __future__ import annotations

import tempfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from octavo.doors.web import views
from octavo.doors.web.visits import HEADERS, Visit
from octavo.errors import BadInput, NotFound, Stale


def remember(visit: Visit) -> Any:
    """Write a memory by hand."""
    visit.account.remember(visit.said("text"), kind="fact").or_raise()
    return visit.go("timeline", "wrote")


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


def undo(visit: Visit) -> Any:
    """Take one version's changes back."""
    visit.account.revert(visit.number("version"))
    return visit.go("timeline", "undone")


def restore(visit: Visit) -> Any:
    """Go back to a version."""
    visit.account.restore(visit.number("version"))
    return visit.go("timeline", "restored")


def correct(visit: Visit) -> Any:
    """Give a memory another wording."""
    visit.account.revise(visit.at["id"], text=visit.said("text")).or_raise()
    return visit.go(f"memory/{visit.at['id']}", "corrected")


def forget(visit: Visit) -> Any:
    """End a memory; its history stays."""
    for verdict in visit.account.forget(visit.at["id"]):
        verdict.or_raise()
    return visit.go(f"memory/{visit.at['id']}", "forgotten")


def erase(visit: Visit) -> Any:
    """Erase a text from every version and every copy; nothing brings it back."""
    visit.account.redact(visit.at["id"], reason=visit.said("reason"))
    return visit.go("ask", "erased", can_undo=False)


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
