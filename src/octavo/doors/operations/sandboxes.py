"""Operations on sandboxes: a conversation before it counts."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from octavo.domain import buffer as buffers
from octavo.domain.verdicts import Consolidation, Verdict
from octavo.doors.operations.performing import taken
from octavo.doors.operations.table import Unit, operation
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.engine.sandboxes import SandboxInfo


@operation('octavo sandbox "Sandbox 09:30"', writes=True, begins=True)
def sandbox(
    account: Account,
    name: Annotated[str | None, "What to call it (the time if not said)."] = None,
    *,
    started_at: Annotated[datetime | None, "When the conversation began (now if not said)."] = None,
    strict: Annotated[bool, "Refuse to consolidate if the account has moved on."] = False,
) -> dict[str, Any]:
    """Open a sandbox on the newest version; prints its id."""
    scope = account.scope or "shared"
    # It is let go at once, for others to take up.
    with closing(account.sandbox(name, scope=scope, started_at=started_at, strict=strict)) as held:
        return {"id": held.id, "name": held.name, "scope": scope, "parent_version": held.parent_version}


@operation("octavo sandboxes", result="sandboxes")
def sandboxes(account: Account) -> list[SandboxInfo]:
    """List the open sandboxes with their age."""
    return account.sandboxes()


@operation('octavo turn "Sandbox 09:30" user "I moved to Chiang Mai."', writes=True, result="episode")
def turn(
    sandbox: Sandbox,
    role: Annotated[str, "Who spoke: user, assistant, or any name."],
    text: Annotated[str, "What was said; - reads standard input."],
    *,
    at: Annotated[datetime | None, "When it happened (now if not said)."] = None,
    salience: Annotated[Unit | None, "How much it matters, 0 to 1."] = None,
    emotion: Annotated[str | None, "How it felt, in a word."] = None,
    data: Annotated[dict[str, Any] | None, "What it carries besides text, a JSON object."] = None,
) -> str:
    """Add what one speaker said; durable when it returns."""
    return sandbox.turn(role, text, at=at, salience=salience, emotion=emotion, data=data)


@operation('octavo write-episode "Sandbox 09:30" episode.json', writes=True, result="episode")
def write_episode(
    sandbox: Sandbox,
    episode: Annotated[dict[str, Any], "A JSON object (turn_1, turn_2 …), its file, or -."],
    *,
    ri_level: Annotated[str | None, "Its write level, if the policy has them."] = None,
) -> str:
    """Add a whole episode in the documents' form."""
    return sandbox.write_episode(episode, ri_level=ri_level)


@operation("""octavo update-state "Sandbox 09:30" ire_state '{"calm": 0.8}'""", writes=True)
def update_state(
    sandbox: Sandbox,
    name: Annotated[str, "The state's name."],
    data: Annotated[dict[str, Any], "A JSON object, its file, or -."],
    *,
    patch: Annotated[bool, "Merge into what is there instead of replacing it."] = False,
) -> Verdict:
    """Replace a named state, or patch it by RFC 7396."""
    return sandbox.update_state(name, data, patch=patch)


@operation('octavo use "Sandbox 09:30" 01kajx2f6w9m4d8c7t5s --feedback 0.5', writes=True, result="used")
def use(
    sandbox: Sandbox,
    id: Annotated[str, "The memory's id."],  # noqa: A002  # the glossary's word
    *,
    feedback: Annotated[float, Meta(ge=-1, le=1), "From -1 to 1."] = 0.0,
) -> str:
    """Note that a memory was used, and how well it served."""
    sandbox.use(id, feedback)
    return id


@operation('octavo buffer "Sandbox 09:30"')
def buffer(
    account: Account, sandbox: Annotated[str, "The sandbox's id, or its name if only one has it."]
) -> dict[str, Any]:
    """Show what a sandbox has written so far."""
    read = taken(account, sandbox, account.buffer)  # its owner is not disturbed
    return {
        "sandbox": read.opened,
        "entries": [{"t": buffers.TAGS[type(entry)], "entry": entry} for entry in read.entries],
        "torn_bytes": read.torn,
    }


@operation('octavo consolidate "Sandbox 09:30"', writes=True)
def consolidate(sandbox: Sandbox) -> Consolidation:
    """Turn a sandbox into the next version, all or nothing."""
    return sandbox.consolidate()


@operation('octavo discard "Sandbox 09:30"', writes=True, result="discarded")
def discard(sandbox: Sandbox) -> str:
    """Throw a sandbox away; the account stays as it is."""
    sandbox.discard()
    return sandbox.id
