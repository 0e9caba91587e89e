"""Peers side by side: the same turns, the same questions, the same vectors, in one run.

    python -m bench.peers <folder with locomo-dev.json>

Each peer works in a process of its own on one core, and only one works at a time. Peers that are not
installed are named and left out; bench/requirements-peers.txt lists them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench import harness
from bench.peers_crew import PeerFailed, Worker, bytes_of, cold_start
from bench.peers_data import Document, Question, Talk, Vectors, conversations, marked, synthetic
from bench.peers_table import HYBRID, OURS, PEERS, Figures, Peer, Sizes, markdown, plot
from bench.peers_worker import ONE_THREAD

_TITLE = "Peers side by side"
_K, _DEEP = 10, 50  # hits of a timed query; hits asked for to see five sessions
_BATCH = 1_000
_KEPT = 20  # writes before the kill
_OPTIONS: dict[str, dict[str, Any]] = {
    "data": {
        "default": None,
        "help": "the folder that holds locomo-dev.json; may stand first without --data",
    },
    "peers": {
        "default": "octavo,octavo_extra,lancedb,lancedb_exact,bm25s,chroma,langgraph,mem0",
        "help": "who takes part",
    },
    "size": {"type": int, "default": 100_000, "help": "turns of the synthetic store"},
    "budget": {
        "type": float,
        "default": 200.0,
        "help": "seconds of writing after which a peer stops filling it",
    },
}


class Crew:
    """The peers that take part, their figures, and what happened to those that failed."""

    def __init__(self, names: Sequence[str], scratch: Path) -> None:
        self.figures = {name: Figures() for name in names}
        self.scratch = scratch
        self._out: set[tuple[str, str]] = set()

    def do(self, part: str, act: Callable[..., None], *arguments: Any) -> None:
        """Let every peer do something, in a new order each time; who fails is out of this part."""
        names = [name for name in self.figures if (name, part) not in self._out]
        random.shuffle(names)
        for name in names:
            try:
                act(name, *arguments)
            except PeerFailed as failure:
                self._out.add((name, part))
                self.figures[name].failures.append(f"{part}: {failure}")

    def sizes(self, name: str, part: str) -> Sizes:
        """Where a part's figures of a peer go."""
        return self.figures[name].small if part == "locomo" else self.figures[name].big


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every peer that is installed; keep JSON, tables and a plot."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and not given[0].startswith("-"):
        given.insert(0, "--data")  # as the other benchmarks that need data take it
    bench = harness.begin("peers", _TITLE, given, **_OPTIONS)
    wanted = [PEERS[name] for name in bench.options.peers.split(",")]
    present = [peer for peer in wanted if peer.installed]
    missing = ", ".join(peer.package for peer in wanted if not peer.installed)
    if missing:
        missing = f"Not installed, so not measured: {missing} (bench/requirements-peers.txt lists all)."
        print(missing)
        bench.note(missing)
    if all(peer.name in OURS for peer in present):
        print("No peer is installed: there is nothing to compare Octavo with.")
        return
    random.seed(8)
    os.environ |= ONE_THREAD
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["MEM0_DIR"] = scratch  # it keeps settings in the home folder otherwise
        crew = Crew([peer.name for peer in present], Path(scratch))
        _conversations(bench, crew)
        _synthetic(bench, crew)
        crew.do("update", _update, crew)
        crew.do("kill", _kill, crew)
    _keep(bench, present, crew)


def _conversations(bench: harness.Bench, crew: Crew) -> None:
    """LoCoMo: a store a conversation; what is found, and how long a query takes."""
    if not bench.options.data:
        bench.note("LoCoMo was not measured, so nothing is kept: hand in the folder with locomo-dev.json.")
        bench.options.dry = True
        return
    bench.cache.mkdir(parents=True, exist_ok=True)
    vectors, known = Vectors(), bench.cache / "peers-locomo"
    vectors.load(known)
    talks = conversations(Path(bench.options.data))
    for talk in talks:
        vectors([text for document in talk.documents for text in (document.text, document.dated)])
        vectors([question.text for question in talk.questions])
    vectors.save(known)
    _embedding(bench, [question.text for question in talks[0].questions[:50]])
    for talk in talks:
        workers: dict[str, Worker] = {}
        crew.do("locomo", _open, crew, workers, talk, known, False)
        for _, session in groupby(talk.documents, key=lambda document: document.session):
            crew.do("locomo", _write, crew, workers, list(session))
        crew.do("locomo", _finish, crew, workers, "locomo")
        crew.do("locomo", _look, crew, workers, talk)
        _time(crew, workers, "locomo", talk.questions[::4])
        crew.do("locomo", _close, crew, workers, "locomo")


def _synthetic(bench: harness.Bench, crew: Crew) -> None:
    """One big store of seeded small talk: speed and bytes only."""
    talk = synthetic(bench.pick(bench.options.size, 120), bench.pick(120, 4))
    known, workers = crew.scratch / "first", dict[str, Worker]()
    first = Vectors(synthetic=True)
    first([talk.questions[0].text])
    first.save(known)
    crew.do("synthetic", _open, crew, workers, talk, known, True)
    for start in range(0, len(talk.documents), _BATCH):
        batch = talk.documents[start : start + _BATCH]
        crew.do("synthetic", _load, crew, workers, batch, bench.options.budget)
    crew.do("synthetic", _finish, crew, workers, "synthetic")
    _time(crew, workers, "synthetic", talk.questions)
    crew.do("synthetic", _close, crew, workers, "synthetic")
    for _ in range(bench.options.rounds or bench.pick(5, 1)):
        crew.do("synthetic", _start_cold, crew, workers, known, talk.questions[0].text)
    for worker in workers.values():
        shutil.rmtree(worker.folder, ignore_errors=True)


def _open(
    name: str, crew: Crew, workers: dict[str, Worker], talk: Talk, known: Path, is_synthetic: bool
) -> None:
    workers[name] = Worker(name, crew.scratch / talk.name / name, known, synthetic=is_synthetic)


def _write(name: str, crew: Crew, workers: Mapping[str, Worker], session: Sequence[Document]) -> None:
    crew.figures[name].small.writing_seconds += workers[name].add(session)
    crew.figures[name].small.documents += len(session)


def _load(
    name: str, crew: Crew, workers: Mapping[str, Worker], batch: Sequence[Document], budget: float
) -> None:
    """Write a batch, unless the peer has spent its budget or has enough: then it stays as big as it is."""
    sizes = crew.figures[name].big
    if sizes.writing_seconds < budget and sizes.documents < PEERS[name].most:
        sizes.writing_seconds += workers[name].load(batch)
        sizes.documents += len(batch)


def _finish(name: str, crew: Crew, workers: Mapping[str, Worker], part: str) -> None:
    crew.sizes(name, part).finishing_seconds += workers[name].ready()


def _look(name: str, crew: Crew, workers: Mapping[str, Worker], talk: Talk) -> None:
    """How much of the evidence a peer finds; a first query too, so that nothing is timed cold."""
    session_of = {document.id: document.session for document in talk.documents}
    for question in talk.questions:
        found, evidence = workers[name].find(question.text, _DEEP), question.evidence
        sessions = set(list(dict.fromkeys(session_of[turn] for turn in found))[:5])
        wanted = {session_of[turn] for turn in evidence}
        crew.figures[name].recall.append(len(evidence & set(found[:_K])) / len(evidence))
        crew.figures[name].sessions.append(len(wanted & sessions) / len(wanted))


def _time(crew: Crew, workers: Mapping[str, Worker], part: str, questions: Sequence[Question]) -> None:
    """Ask every peer a question before the next one comes; the first tenth only warms up."""
    for number, question in enumerate(questions):
        crew.do(part, _ask, crew, workers, part, question, number >= len(questions) // 10)


def _ask(
    name: str, crew: Crew, workers: Mapping[str, Worker], part: str, question: Question, counts: bool
) -> None:
    wall, cpu = workers[name].ask(question.text, _K)
    if counts:
        crew.sizes(name, part).wall_ms.append(wall)
        crew.sizes(name, part).cpu_ms.append(cpu)


def _close(name: str, crew: Crew, workers: Mapping[str, Worker], part: str) -> None:
    workers[name].close()
    crew.sizes(name, part).disk_bytes += bytes_of(workers[name].folder)


def _start_cold(name: str, crew: Crew, workers: Mapping[str, Worker], known: Path, question: str) -> None:
    took = cold_start(name, workers[name].folder, known, question)
    crew.figures[name].big.cold_seconds.append(took)


def _update(name: str, crew: Crew) -> None:
    """Write a document into a small store and ask for it at once, a few times."""
    folder = crew.scratch / "update" / name
    worker = Worker(name, folder, folder, synthetic=True)
    worker.add(synthetic(300, 0).documents)
    worker.ready()
    answers = [worker.call("update", marked(number)) for number in range(11)]
    worker.close()
    found = sum(1 for seen, _ in answers if seen)
    crew.figures[name].seen_at_once = "yes" if found == len(answers) else f"no ({found} of {len(answers)})"
    crew.figures[name].write_to_found_ms = [took for seen, took in answers[1:] if seen]


def _kill(name: str, crew: Crew) -> None:
    """Kill the peer right after an acknowledgement, and look for every write in a new process."""
    if not PEERS[name].has_updates:
        crew.figures[name].survives_kill = "– (is built, not written to)"
        return
    folder = crew.scratch / "kill" / name
    worker = Worker(name, folder, folder, synthetic=True)
    for number in range(_KEPT):
        worker.call("add_one", marked(number))
    worker.kill()
    again = Worker(name, folder, folder, synthetic=True)
    again.ready()
    kept = sum(marked(number).id in again.find(marked(number).dated, 5) for number in range(_KEPT))
    again.close()
    crew.figures[name].survives_kill = f"{kept} of {_KEPT}"


def _embedding(bench: harness.Bench, texts: Sequence[str]) -> None:
    """What a query vector costs before any peer is asked."""
    fresh = Vectors()
    fresh(["warm up"])
    taken = []
    for text in texts:
        began = time.perf_counter()
        fresh([text])
        taken.append((time.perf_counter() - began) * 1e3)
    bench.figure("embedding a question, the same for all", harness.percentile(taken, 50), "ms", samples=taken)


def _keep(bench: harness.Bench, present: Sequence[Peer], crew: Crew) -> None:
    """Compare and print; keep the results unless this was a smoke run."""
    peers = [crew.figures[peer.name].plain(peer) for peer in present]
    _targets(bench, peers)
    bench.note(markdown(peers))
    bench.command = bench.command.replace(f"--data {bench.options.data}", "DATA")
    bench.finish()
    if bench.smoke or bench.options.dry:
        return
    path = harness.RESULTS / "peers.json"
    kept = json.loads(path.read_text())
    kept["versions"] |= {peer.package: peer.installed for peer in present}
    path.write_text(json.dumps({**kept, "peers": peers}, indent=2, ensure_ascii=False) + "\n")
    plot(peers, harness.RESULTS / "peers.png")


def _targets(bench: harness.Bench, peers: Sequence[Mapping[str, Any]]) -> None:
    """Whether Octavo is ahead: of all in recall, of those that search both ways and take updates in p50."""
    ours = next((peer for peer in peers if peer["name"] == "octavo"), None)
    others = [peer for peer in peers if peer["name"] not in OURS]
    if ours is None:
        return
    found = [peer["recall@10 %"] for peer in others if "recall@10 %" in peer]
    if found and "recall@10 %" in ours:
        ahead = ours["recall@10 %"] - max(found)
        bench.figure("Octavo's turn recall@10 above the best peer's", ahead, "points", at_least=0)
    rivals = [
        peer["big"]["p50 ms"]
        for peer in others
        if peer["search"] == HYBRID and peer["has_updates"] and "p50 ms" in peer["big"]
    ]
    if rivals and "p50 ms" in ours["big"]:
        times = ours["big"]["p50 ms"] / min(rivals)
        bench.figure("Octavo's p50 on the big store / the fastest hybrid peer's", times, "×", at_most=1)


if __name__ == "__main__":
    main()
