"""Operations on sandboxes: a conversation before it counts."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

from octavo.domain import buffer as buffers
from octavo.doors.operations.performing import taken
from octavo.doors.operations.table import operation
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox


@operation('octavo sandbox "Sandbox 09:30"', writes=True, begins=True, like=Account.sandbox)
def sandbox(account: Account, **said: Any) -> dict[str, Any]:
    """Open a sandbox on the newest version; prints its id."""
    scope = account.scope or "shared"
    # It is let go at once, for others to take up.
    with closing(account.sandbox(scope=scope, **said)) as held:
        return {"id": held.id, "name": held.name, "scope": scope, "parent_version": held.parent_version}


sandboxes = operation("octavo sandboxes", result="sandboxes")(Account.sandboxes)
turn = operation('octavo turn "Sandbox 09:30" user "I moved to Chiang Mai."', writes=True, result="episode")(
    Sandbox.turn
)
write_episode = operation('octavo write-episode "Sandbox 09:30" episode.json', writes=True, result="episode")(
    Sandbox.write_episode
)
update_state = operation("""octavo update-state "Sandbox 09:30" ire_state '{"calm": 0.8}'""", writes=True)(
    Sandbox.update_state
)
use = operation('octavo use "Sandbox 09:30" 01kajx2f6w9m4d8c7t5s --feedback 0.5', writes=True, result="used")(
    Sandbox.use
)


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


consolidate = operation('octavo consolidate "Sandbox 09:30"', writes=True)(Sandbox.consolidate)


@operation('octavo discard "Sandbox 09:30"', writes=True, result="discarded")
def discard(sandbox: Sandbox) -> str:
    """Throw a sandbox away; the account stays as it is."""
    sandbox.discard()
    return sandbox.id
