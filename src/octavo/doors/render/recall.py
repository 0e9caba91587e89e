"""Hits, explanations and briefs as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo.domain.brief import Brief
from octavo.doors.render.console import write
from octavo.doors.render.shapes import Line, Shown, Table, dim, grid, line, moment, plural, table
from octavo.doors.render.text import one_line, topic

_FRESH = "the index holds this revision"
_DRIFTED = "the index holds this revision; drifted: its vectors were last verified too long ago"
_ABOVE = "newer than the index; found by looking at it directly"


def recall_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """Hits as a table; with their reasons and where they come from, if these were asked for."""
    if not value["hits"]:
        yield dim("nothing found")
    elif value["explained"]:
        yield _explained(value["hits"])
    else:
        yield _listed(value["hits"])
    for order in value["orders"]:
        yield line(("asked for  ", "bold"), f"{order.at:%Y-%m-%d}  {order.memory}  ", one_line(order.text))
    for step in value["trail"]:
        ending = "that sufficed" if step.sufficed else "that did not suffice"
        yield dim(f"looked among {plural(step.layer, 2)[2:]}: best {step.best:.2f}, {ending}")
    for note in value["notes"]:
        # Beside the answer, not in it: a script that reads the hits does not want it.
        write(line(("note  ", "yellow"), note), stderr=not value["explained"])


def freshness_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What the index holds of a memory, or how far it is behind."""
    yield grid(_of_memory(value) if "memory" in value else _of_index(value))


def _of_memory(value: Mapping[str, Any]) -> dict[str, Any]:
    updated, verified = value["vector_index_updated_at"], value["verified_at"]
    held = value["indexed_rev"]
    state = "fresh" if value["is_fresh"] else "drifted" if value["has_words"] else "newer than the index"
    return {
        "memory": f"{value['memory']}, revision {value['rev']}",
        "state": line((state, "green" if value["is_fresh"] else "yellow")),
        "index": "holds nothing of it" if held is None else f"holds revision {held}",
        "vectors": "none" if updated is None else f"since {moment(updated)}",
        "verified": moment(verified) if verified else None,
    }


def _of_index(value: Mapping[str, Any]) -> dict[str, Any]:
    missing = value["passages"]
    return {
        "version": str(value["version"]),
        "words": f"{plural('version', value['versions'])} behind" if value["versions"] else "up to date",
        "vectors": f"{plural('passage', missing)} without" if missing else "up to date",
        "waiting": plural("passage", value["waiting"]) if value["waiting"] else None,
        "given up": plural("passage", value["dead"]) if value["dead"] else None,
        "verified": moment(value["verified_at"]) if value["verified_at"] else "never",
    }


def brief_lines(brief: Brief) -> Iterator[Shown]:
    """The text for the prompt alone on standard output; what it costs and lacks beside it."""
    yield brief.text if brief.text else dim("nothing to say")
    left = brief.left_out
    missing = {
        "canon line": left.canon,
        "register": left.registers,
        "relevant memory": left.relevant,
        "order": left.orders,
    }
    out = ", ".join(plural(noun, n) for noun, n in missing.items() if n)
    told = f"about {plural('token', brief.tokens)}" + (f"; left out: {out}" if out else "")
    write(dim(told), stderr=True)


def _listed(hits: list[dict[str, Any]]) -> Table:
    rows = table("score", "at", "id", "kind", "text", numbers=("score",))
    for hit in hits:
        memory = hit["memory"]
        rows.add(f"{hit['score']:.2f}", f"{memory.at:%Y-%m-%d}", memory.id, memory.kind, _matched(hit))
    return rows


def _explained(hits: list[dict[str, Any]]) -> Table:
    """A line for the hit, one for each part of its score, and one each for its origin and its index."""
    rows = table("hit", "score", "text", numbers=("hit", "score"))
    for rank, hit in enumerate(hits, start=1):
        memory = hit["memory"]
        rows.add(line((str(rank), "bold")), line((f"{hit['score']:.2f}", "bold")), _matched(hit))
        for reason in hit["reasons"]:
            colour = "green" if reason["value"] > 0 else "red"
            rows.add("", line((f"{reason['value']:+.2f}", colour)), dim(reason["part"]))
        origin = (
            f"{memory.kind} {memory.id}",
            memory.sandbox or "written outside a session",
            f"version {hit['version']}" if hit["version"] else "not yet consolidated",
            memory.actor,
        )
        rows.add("", dim("from"), dim(f"{' → '.join(origin)}, {moment(memory.at)}"))
        held = _ABOVE if not hit["is_fresh"] else _DRIFTED if hit["is_drifted"] else _FRESH
        rows.add("", dim("index"), dim(held))
        for note in hit["notes"]:
            rows.add("", line(("note", "yellow")), line((note, "yellow")))
        rows.add()
    return rows


def _matched(hit: Mapping[str, Any]) -> Line:
    """What matched: one turn with its speaker, or the memory with its topic."""
    memory, turn = hit["memory"], hit["turn"]
    if turn is not None and memory.turns:
        return line((f"{one_line(memory.turns[turn].speaker)}: ", "cyan"), one_line(hit["text"]))
    return line(topic(memory), one_line(hit["text"]))
