"""The commands of the server: `octavo serve`, and the tokens of those who may come in."""

from __future__ import annotations

import socket
import sys
import threading
import webbrowser
from collections.abc import Iterable
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta
from msgspec.structs import asdict

from octavo.doors import hooks, mcp, rest, rest_seeds
from octavo.doors.operations.table import Operation, operation
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Token, Tokens, Visitors
from octavo.doors.web import pages
from octavo.errors import BadInput, Unavailable
from octavo.storage.stores.places import place_of

_GRACE_SECONDS = 5
_HELD = 100


@operation("octavo serve --port 8787", writes=True)
def serve(
    settings: Settings,
    *,
    host: Annotated[str, "Where to listen; beyond this machine a token is needed."] = "127.0.0.1",
    port: Annotated[int, Meta(ge=0, le=65535), "The port; 0 takes a free one."] = 8787,
    allow_hosts: Annotated[list[str] | None, "A name by which it may be called; may be repeated."] = None,
    held: Annotated[int, Meta(ge=1, le=10_000), "At most so many accounts stay open."] = _HELD,
) -> dict[str, Any]:
    """Serve REST, the pages and MCP on one port until told to stop (the extra `server`)."""
    return _served(settings, host, port, allow_hosts or (), held)


def _served(
    settings: Settings,
    host: str,
    port: int,
    hosts: Iterable[str] = (),
    held: int = _HELD,
    *,
    is_shown: bool = False,
) -> dict[str, Any]:
    """Serve until told to stop, and show the account's pages in the browser if asked to."""
    try:
        import fastapi  # noqa: F401  # both come with the extra
        import uvicorn
    except ImportError as error:
        hint = "install it: pip install 'octavo[server]'"
        raise Unavailable("the server needs the packages fastapi and uvicorn", hint=hint) from error
    pool, visitors = Pool(most=held), Visitors(settings, host=host, hosts=hosts)
    app = rest.app(pool, settings, visitors=visitors, mounts=MOUNTS)
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    how = {"proxy_headers": False, "timeout_graceful_shutdown": _GRACE_SECONDS, **quiet}
    server = uvicorn.Server(uvicorn.Config(app, **how))
    app.state.is_ending = lambda: server.should_exit
    place = place_of(settings.root).name
    with _listening(host, port) as socket_, pool.until_told():
        where = f"http://{f'[{host}]' if ':' in host else host}:{socket_.getsockname()[1]}"
        print(f"octavo serves {place} on {where} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if is_shown:  # who connects now is answered as soon as the server runs
            page = f"{where}/@{quote(settings.account, safe='')}/ask"
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        server.run(sockets=[socket_])
    return {"served": place, **pool.counts}


MOUNTS = (rest_seeds.add, hooks.add, pages.add, mcp.add)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
        # An answer is sent in two pieces; the second must not wait until the first is acknowledged (40 ms).
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        hint = f"if this is Octavo, open http://{host}:{port}/; else say another --port (0: a free one)"
        raise Unavailable(f"listening on {host} port {port}: {error.strerror}", hint=hint) from error


@operation("octavo open", writes=True)
def open_(
    settings: Settings, *, port: Annotated[int, Meta(ge=0, le=65535), "The port; 0 takes a free one."] = 8787
) -> dict[str, Any]:
    """Open the account's pages in the browser, and serve them until told to stop (the extra `server`)."""
    return _served(settings, "127.0.0.1", port, is_shown=True)


@operation("octavo token add agent:helper --scope orion", writes=True, human=True)
def token(
    settings: Settings,
    action: Annotated[Literal["add", "list", "revoke"], "What to do."],
    name: Annotated[str | None, "To add: who acts by it. To revoke: its id."] = None,
    *,
    owner: Annotated[bool, "It sees every scope; only a person's may."] = False,
) -> dict[str, Any]:
    """Give, list or revoke the tokens by which others come in over the network.

    A token is bound to the account, to its actor and to the scope (`shared` if none is said).
    """
    tokens = Tokens(settings.root)
    if action == "list":
        return {"tokens": [_shown(one) for one in tokens.all()]}
    if name is None:
        raise BadInput(f"{action} which?", hint="say the actor to add, or the id to revoke")
    if action == "revoke":
        return {"revoked": _shown(tokens.revoke(name, by=settings.actor))}
    scope = None if owner else settings.scope or "shared"
    made, text = tokens.add(settings.account, name, scope, by=settings.actor)
    return {"token": text, **_shown(made)}


def _shown(one: Token) -> dict[str, Any]:
    """A token as people see it: everything but its hash."""
    return {name: value for name, value in asdict(one).items() if name != "hash"}


COMMANDS: tuple[Operation, ...] = (open_, serve, token)
