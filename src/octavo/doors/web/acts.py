"""The acts: what a form does to an account, and the page that says so, with the way to take it back."""

from __future__ import annotations

import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

from octavo.doors.web import views
from octavo.doors.web.visits import Answer, Download, Redirect, Visit
from octavo.engine.account import Account
from octavo.errors import BadInput, NotFound, Stale


def remember(visit: Visit) -> Answer:
    """Write a memory by hand."""
    visit.account.remember(_said(visit, "text"), kind="fact").or_raise()
    return Redirect(to="timeline", done="wrote", undo=visit.account.version)


def decide(visit: Visit) -> Answer:
    """Yes, no, or yes in other words, to what was seen; what changed meanwhile is shown again."""
    account, id_, say = visit.account, visit.at["id"], visit.form.get("say")
    try:
        if account.proposal(id_).digest != visit.form.get("seen"):
            return views.review(visit, changed=True)
        if say == "no":
            account.decline(id_, reason=visit.form.get("reason", ""))
            return Redirect(to="review", done="no", undo=account.version)
        if say not in ("yes", "other"):
            raise BadInput("the answer was neither yes nor no", hint="use one of the buttons")
        text = _said(visit, "text") if say == "other" else None
        account.approve(id_, seen=visit.form.get("seen"), text=text)
        return Redirect(to="review", done=say, undo=account.version)
    except (Stale, NotFound):
        return views.review(visit, changed=True)


def undo(visit: Visit) -> Answer:
    """Take one version's changes back."""
    return _back(visit.account, visit.account.revert(visit.number("version")), "undone")


def restore(visit: Visit) -> Answer:
    """Go back to a version."""
    return _back(visit.account, visit.account.restore(visit.number("version")), "restored")


def correct(visit: Visit) -> Answer:
    """Give a memory another wording."""
    visit.account.revise(visit.at["id"], text=_said(visit, "text")).or_raise()
    return Redirect(to=f"memory/{visit.at['id']}", done="corrected", undo=visit.account.version)


def forget(visit: Visit) -> Answer:
    """End a memory; its history stays."""
    for verdict in visit.account.forget(visit.at["id"]):
        verdict.or_raise()
    return Redirect(to=f"memory/{visit.at['id']}", done="forgotten", undo=visit.account.version)


def erase(visit: Visit) -> Answer:
    """Erase a text from every version and every copy; nothing brings it back."""
    visit.account.redact(visit.at["id"], reason=_said(visit, "reason"))
    return Redirect(to="ask", done="erased")


def copy(visit: Visit) -> Answer:
    """The account as a file that opens like the original when it is unpacked."""
    packed = BytesIO()
    with tempfile.TemporaryDirectory(prefix="octavo-copy-") as folder:
        visit.account.backup(folder)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).rglob("*")):
                archive.write(path, path.relative_to(folder))
    return Download(name=f"octavo-version-{visit.account.version}.zip", data=packed.getvalue())


def _back(account: Account, version: int, done: str) -> Redirect:
    return Redirect(to="timeline", done=done, undo=version)


def _said(visit: Visit, name: str) -> str:
    text = visit.form.get(name, "").strip()
    if not text:
        raise BadInput("there was nothing in the field", hint="write something and send it again")
    return text
