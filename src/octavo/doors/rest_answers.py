"""What is answered by HTTP: values, verdicts, pages and errors, and the headers that go with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.doors import problems
from octavo.doors.operations import Operation
from octavo.doors.plain import plain
from octavo.errors import BadInput, NotFound, OctavoError, Stale

Shape = Callable[[Any], tuple[Any, int]]  # a value as another document says it, and its status


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    """A value as a JSON answer; what is one's memory stays in no cache."""
    from fastapi import Response

    own = {"Cache-Control": "no-store", **(headers or {})}
    if status == 304:
        return Response(None, status, own)
    return Response(msgspec.json.encode(plain(value)), status, own, "application/json")


def answer_errors(made: Any) -> None:
    """Let an app answer every error as a problem, the framework's own too."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    def told(request: Any, error: OctavoError, status: int | None = None, **more: Any) -> Any:
        from fastapi import Response

        shown = {**problems.problem(error, status=status, instance=request.url.path), **more}
        headers = {"WWW-Authenticate": "Bearer"} if shown["status"] == 401 else {}
        return Response(msgspec.json.encode(shown), shown["status"], headers, problems.MEDIA_TYPE)

    def known(request: Any, error: OctavoError) -> Any:
        # If-Match has a status of its own for what has changed since.
        is_match = isinstance(error, Stale) and "if-match" in request.headers
        return told(request, error, 412 if is_match else None)

    def unfit(request: Any, error: Any) -> Any:
        faults = [
            {"where": ".".join(map(str, fault["loc"])), "what": fault["msg"]} for fault in error.errors()[:20]
        ]
        first = f"{faults[0]['where']}: {faults[0]['what']}"
        return told(request, BadInput(f"the request does not fit: {first}"), errors=faults)

    def plainly(request: Any, error: Any) -> Any:
        if error.status_code == 404:
            return told(
                request, NotFound(f"there is nothing at {request.url.path}", hint="see /openapi.json")
            )
        reply = told(
            request,
            BadInput(f"{request.method} {request.url.path}: {error.detail}", hint="see /openapi.json"),
            error.status_code,
        )
        reply.headers.update(error.headers or {})
        return reply

    def unforeseen(request: Any, error: Exception) -> Any:
        # The message of an error nobody foresaw may hold a memory's text; the log names its place alone.
        return told(request, OctavoError(f"{type(error).__name__} while answering"))

    handlers = {
        OctavoError: known,
        RequestValidationError: unfit,
        HTTPException: plainly,
        Exception: unforeseen,
    }
    for kind, handler in handlers.items():
        made.add_exception_handler(kind, handler)


def condition(request: Any, operation: Operation) -> dict[str, Any]:
    """The revision that `If-Match` insists on, where one can be insisted on."""
    tag = request.headers.get("if-match")
    if tag is None or tag.strip() == "*" or "rev" not in {p.name for p in operation.parameters}:
        return {}
    text = tag.strip().strip('"')
    if not text.isdecimal():
        raise BadInput(f"If-Match {tag[:80]!r} is no revision", hint='send the ETag as it came, such as "3"')
    return {"rev": int(text)}


def idempotency(request: Any, operation: Operation) -> dict[str, Any]:
    """The key that makes a retry safe."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return {}
    if "key" not in {p.name for p in operation.parameters}:
        hint = "only `remember` takes one; consolidating twice is safe without"
        raise BadInput(f"{operation.name} takes no Idempotency-Key", hint=hint)
    return {"key": key}


def shown(request: Any, operation: Operation, value: Any, shape: Shape | None) -> Any:
    """The answer: its status from a verdict, its ETag from a revision, the next page as a link."""
    status, headers = 200, {}
    verdict = value if isinstance(value, Verdict) else None
    if request.method == "DELETE" and operation.name == "forget":
        (verdict,) = value["verdicts"]
    memory = value if isinstance(value, Memory) else None
    if verdict is not None:
        if verdict.outcome == "refused" and verdict.check == "missing":
            raise NotFound(verdict.detail)
        if verdict.outcome == "refused":
            verdict.or_raise()
        status, memory = (202 if verdict.outcome == "proposed" else 200), verdict.memory
        if verdict.outcome == "admitted" and operation.name == "remember":
            status = 201
    if memory is not None and operation.name != "forget":
        headers["ETag"] = f'"{memory.rev}"'
        if request.method == "GET" and request.headers.get("if-none-match") == headers["ETag"]:
            return answer(None, 304, headers)
    if request.method == "GET" and isinstance(value, Mapping) and value.get("next") is not None:
        following = request.url.include_query_params(after=value["next"])
        headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    if shape is not None:
        value, status = shape(value)
    return answer(value, status, headers)
