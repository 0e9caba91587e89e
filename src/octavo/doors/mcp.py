"""The MCP door: ten tools, pages and files as resources, the brief as a prompt; over stdio or HTTP.

The SDK loads when a server is made, a model when something is first recalled: a handshake waits for neither.
"""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, unquote

from octavo.domain import mirror, mirror_places
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import Place
from octavo.doors import conversations
from octavo.doors.conversations import agent_settings
from octavo.doors.operations import BY_NAME, call
from octavo.doors.plain import unsaid
from octavo.doors.pool import Pool
from octavo.doors.rest import Server
from octavo.doors.settings import Settings
from octavo.doors.tools import INSTRUCTIONS, TOOLS, advice
from octavo.engine.account import Account
from octavo.errors import BadInput, NotFound, OctavoError, Unavailable

LOG = logging.getLogger(__name__)
_PAGE, _FILE = "octavo://pages/", "octavo://files/"
_SHOWN = ("canon", "register", "fact", "skill", "assembly")  # in files; the rest has pages and tools
_STOPS = (signal.SIGINT, signal.SIGTERM)
_MOST_SHOWN = 2_000  # memories, the newest
_PROMPT = {
    "name": "brief",
    "description": "What Octavo remembers: what stands, and what is relevant to a question.",
    "arguments": [{"name": "query", "description": "What it shall be relevant to."}],
}

# Whose account a request means, from the client's name and, over HTTP, the request that carries the token.
Holding = Callable[[str, Any], AbstractContextManager[Account]]
Act = Callable[[Account, Any], Any]  # what is said of an account to a request's parameters


def server(holding: Holding) -> Any:
    """An MCP server (the SDK's low-level one) whose requests are answered from what `holding` hands out."""
    try:
        from mcp import types
        from mcp.server.lowlevel import Server
    except ImportError as error:
        hint = "install the extra: pip install 'octavo[mcp]'"
        raise Unavailable("the MCP door needs the package mcp", hint=hint) from error
    from anyio import to_thread

    def answering(kind: Any, act: Act, failing: Callable[[Any, Exception], Any]) -> Any:
        async def handler(ctx: Any, params: Any) -> Any:
            client = ctx.session.client_params

            def acted() -> Any:
                with holding("client" if client is None else client.client_info.name, ctx.request) as account:
                    return act(account, params)

            try:
                return kind.model_validate(await to_thread.run_sync(acted))
            except Exception as error:  # the outermost door: the client must stay connected
                return kind.model_validate(failing(params, error))

        return handler

    def telling(kind: Any, **what: Any) -> Any:
        async def handler(ctx: Any, params: Any) -> Any:
            return kind.model_validate(what)

        return handler

    return Server(
        "octavo",
        version=metadata.version("octavo"),
        title="Octavo",
        instructions=INSTRUCTIONS,
        on_list_tools=telling(types.ListToolsResult, tools=[tool.listed for tool in TOOLS]),
        on_call_tool=answering(types.CallToolResult, _called, _failed),
        on_list_resources=answering(types.ListResourcesResult, _resources, _refused),
        on_read_resource=answering(types.ReadResourceResult, _resource, _refused),
        on_list_prompts=telling(types.ListPromptsResult, prompts=[_PROMPT]),
        on_get_prompt=answering(types.GetPromptResult, _brief, _refused),
    )


def _refused(params: Any, error: Exception) -> Any:
    """What is wrong with a request is the protocol's error."""
    from mcp import MCPError

    if not isinstance(error, OctavoError):
        raise error
    code = -32602 if isinstance(error, BadInput | NotFound) else -32603
    raise MCPError(code=code, message=advice(error)) from error


def _failed(params: Any, error: Exception) -> Any:
    """What is wrong with a call of a tool is its answer."""
    if isinstance(error, OctavoError):
        text = advice(error)
    else:  # its message may hold a memory's text
        LOG.error("tool failed name=%s error=%s", params.name, type(error).__name__)
        text = f"{params.name} failed: {type(error).__name__}. Next: go on without it, and tell the user"
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _called(account: Account, params: Any) -> Any:
    tools = {tool.name: tool for tool in TOOLS}
    if params.name not in tools:
        raise NotFound(f"there is no tool {params.name[:80]!r}", hint=f"there are {', '.join(tools)}")
    answer = tools[params.name](account, params.arguments or {})
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return {"content": [{"type": "text", "text": text}]}


def _brief(account: Account, params: Any) -> Any:
    if params.name != "brief":
        raise NotFound(f"there is no prompt {params.name[:80]}", hint="there is one: brief")
    told = call(BY_NAME["brief"], account, {"query": (params.arguments or {}).get("query")})
    content = {"type": "text", "text": told.text or unsaid(told)}
    return {"messages": [{"role": "user", "content": content}]}


def _resources(account: Account, params: Any) -> Any:
    """What can be read, each with its first line or what it holds."""
    there = _readable(account).items()
    told = ({**_at(quote(uri, ":/")), "name": name, "description": about} for uri, (name, about, _) in there)
    return {"resources": list(told)}


def _resource(account: Account, params: Any) -> Any:
    uri, there = str(params.uri), _readable(account)
    if unquote(uri) not in there:
        hint = "list the resources to see which there are"
        raise NotFound(f"there is no resource {uri[:200]!r}", hint=hint)
    return {"contents": [{**_at(uri), "text": there[unquote(uri)][2]()}]}


def _at(uri: str) -> dict[str, str]:
    return {"uri": uri, "mimeType": "application/json" if uri.endswith(".json") else "text/markdown"}


def _readable(account: Account) -> dict[str, tuple[str, str, Callable[[], str]]]:
    """What can be read by its address: its name, what it is in a line, and how its text is made."""
    told: dict[str, tuple[str, str, Callable[[], str]]] = {}
    for page in [page for name in ("spheres", "cores") for page in call(BY_NAME[name], account, {})[name]]:
        told[_PAGE + page.id] = page.id, page.text.partition("\n")[0][:200], partial(str, page.text)
    memories = reversed(account.memories(kind=_SHOWN, newest=True, limit=_MOST_SHOWN))
    for place, there in mirror_places.grouped(memories).values():
        for path, some in mirror_places.apart(place, there).items():
            told[_FILE + path] = path, f"{len(some)} memories", partial(_file, account, place, path, some)
    return told


def _file(account: Account, place: Place, path: str, some: list[Memory]) -> str:
    """A file of the mirror as this handle may see it."""
    return mirror.render(place, path, some, account.uses(*(memory.id for memory in some))).decode()


def add(door: Server) -> None:
    """Add MCP to the server, if its extra is there; the token of a request says whose account it means."""
    if find_spec("mcp") is None:
        return
    from mcp.server.transport_security import TransportSecuritySettings

    def holding(client: str, request: Any) -> AbstractContextManager[Account]:
        return door.pool.account(agent_settings(door.visitors.of(request), client), begins=True)

    # The server's own guard knows by which names it may be called.
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    # No state: who asks is told by each request's token, and a stranger leaves nothing behind.
    how: dict[str, Any] = {"stateless_http": True, "json_response": True, "transport_security": unguarded}
    own, router = server(holding).streamable_http_app(streamable_http_path="/mcp", **how), door.app.router
    own.routes[0].methods = {"POST"}  # without state there is nothing to listen to
    router.routes.extend(own.routes)
    outer, inner = router.lifespan_context, own.router.lifespan_context

    @asynccontextmanager
    async def lifespan(running: Any) -> AsyncIterator[Any]:
        async with inner(own), outer(running) as state:
            yield state

    router.lifespan_context = lifespan


def serve_stdio(settings: Settings) -> None:
    """Answer one client on standard input and output until it ends or says stop."""
    # A client takes anything on standard error for a failure; without a handler logging would write there.
    logging.getLogger().addHandler(logging.NullHandler())
    held = Held(settings)
    made = server(held)
    import anyio
    from mcp.server.stdio import stdio_server

    async def answer() -> None:
        async with stdio_server() as (receive, send):
            await made.run(receive, send, made.create_initialization_options())

    def end(number: int, _: Any) -> None:
        _finish(held)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # the thread that reads standard input cannot be woken

    for told in _STOPS:
        signal.signal(told, end)
    anyio.run(answer)
    _finish(held)


def _finish(held: Held) -> None:
    """Close what one client had; it may say stop twice, a moment apart."""
    for told in _STOPS:
        signal.signal(told, signal.SIG_IGN)
    held.close()


class Held(Pool):
    """The pool of one client, the account being its own; its conversations end with it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings, self._since = settings, datetime.now(UTC)
        self._met: list[Settings] = []  # as whom the client came

    @contextmanager
    def __call__(self, client: str, request: Any) -> Iterator[Account]:
        """The account, for the client of that name."""
        who = agent_settings(self._settings, client)
        with self.account(who, begins=True) as account:
            if who not in self._met:
                self._met.append(who)
                conversations.end_idle(account)
            yield account

    def close(self) -> None:
        """End the conversations that this client began, and let go of the account."""
        while self._met:
            with self.account(self._met.pop()) as account:
                conversations.end_begun(account, self._since)
        super().close()
