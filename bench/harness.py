"""What every benchmark shares: options, interleaved rounds, a progress bar, a table, results as JSON."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
# Between these two the page's table of figures is written anew with every kept run.
BEGIN, END = "<!-- figures: `python -m bench.harness` writes them -->", "<!-- end of the figures -->"
ORDER = ("writes", "consolidate", "opening", "importing", "size", "startup", "gate")
_PARTS = ("octavo", "apsw", "msgspec", "tantivy", "faiss-cpu", "numpy", "PyStemmer", "rich", "typer")

console = Console(stderr=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: what it is, how much, and what was wished."""

    what: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None
    spread: tuple[float, float] | None = None


@dataclass(slots=True, kw_only=True)
class Bench:
    """One benchmark's run: its options and the figures so far."""

    name: str
    title: str
    options: argparse.Namespace
    command: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def smoke(self) -> bool:
        """Whether this is only a run to see that the benchmark still works."""
        return bool(self.options.smoke)

    @property
    def cache(self) -> Path:
        """Where the big accounts are kept between runs."""
        return Path(self.options.cache)

    def pick(self, full: int, smoke: int) -> int:
        """A size that is tiny in a smoke run."""
        return smoke if self.smoke else full

    def figure(
        self,
        what: str,
        value: float,
        unit: str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        samples: Sequence[float] = (),
    ) -> None:
        """Note a figure, with its target and the span between the tenth and the ninetieth percentile."""
        target, met = "", None
        if at_most is not None:
            target, met = f"≤ {at_most:,g} {unit}", value <= at_most
        elif at_least is not None:
            target, met = f"≥ {at_least:,g} {unit}", value >= at_least
        spread = (percentile(samples, 10), percentile(samples, 90)) if len(samples) > 2 else None
        self.rows.append(Row(what=what, value=value, unit=unit, target=target, met=met, spread=spread))

    def note(self, text: str) -> None:
        """Add a sentence below the figures."""
        self.notes.append(text)

    def finish(self) -> None:
        """Show the table; keep the results unless this was a smoke run."""
        _show(self)
        if self.smoke or self.options.dry:
            return
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(_result(self), indent=2, ensure_ascii=False)
        (RESULTS / f"{self.name}.json").write_text(text + "\n")
        write_pages()


def begin(name: str, title: str, argv: Sequence[str] | None = None, **more: Mapping[str, Any]) -> Bench:
    """Read the options that all benchmarks have, and a benchmark's own."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=title)
    parser.add_argument("--smoke", action="store_true", help="a tiny run of seconds; keeps no results")
    parser.add_argument("--dry", action="store_true", help="a full run that keeps no results")
    parser.add_argument("--rounds", type=int, default=None, help="how many interleaved rounds")
    default = str(Path(tempfile.gettempdir()) / "octavo-bench")
    parser.add_argument("--cache", default=default, help="where big accounts are kept between runs")
    for option, settings in more.items():
        parser.add_argument(f"--{option}", **settings)
    given = list(sys.argv[1:] if argv is None else argv)
    options = parser.parse_args(given)
    shown = [a for a in given if not a.startswith("--cache=")]
    if "--cache" in shown:
        at = shown.index("--cache")
        del shown[at : at + 2]
    command = shlex.join(["python", "-m", f"bench.{name}", *shown])
    return Bench(name=name, title=title, options=options, command=command)


def interleaved(
    rounds: int, runs: Mapping[str, Callable[[], float | None]], *, what: str = "rounds"
) -> dict[str, list[float]]:
    """Run each in turn, round after round, so that a busy machine disturbs all alike; seconds of each.

    A run that returns a number has taken its own time; otherwise the whole call counts.
    """
    samples: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    with progress(what, rounds) as step:
        for number in range(rounds):
            turned = names[number % len(names) :] + names[: number % len(names)]
            for name in turned:
                samples[name].append(timed(runs[name]))
            step(1)
    return samples


def timed(run: Callable[[], float | None]) -> float:
    """Seconds of one call, collected garbage first so that nobody pays for another's."""
    gc.collect()
    began = time.perf_counter()
    own = run()
    took = time.perf_counter() - began
    return took if own is None else own


def ratio(samples: Mapping[str, Sequence[float]], above: str, below: str) -> float:
    """The median of one over the median of the other."""
    return statistics.median(samples[above]) / statistics.median(samples[below])


def percentile(samples: Sequence[float], percent: float) -> float:
    """The value that this share of the samples does not exceed."""
    ordered = sorted(samples)
    return ordered[min(round(percent / 100 * (len(ordered) - 1)), len(ordered) - 1)]


def resident_bytes() -> int:
    """How much memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, on a terminal only; yields how to advance it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.update(task, advance=n)


def versions() -> dict[str, str]:
    """The versions of everything that takes part."""
    found = {"python": platform.python_version()}
    for part in _PARTS:
        try:
            found[part] = version(part)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """What the figures were measured on; neither its name nor its paths."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "cores": os.cpu_count(),
        "cpu": model,
        "system": platform.system(),
        "python": platform.python_version(),
    }


def write_pages() -> None:
    """Write the page of all results anew, and the table of figures in the page that people read."""
    (RESULTS / "README.md").write_text(markdown())
    above, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{above}{BEGIN}\n\n{promises()}\n\n{END}{rest.partition(END)[2]}")


def promises() -> str:
    """What was promised, what was measured, when and by which command: every figure that has a target."""
    lines = ["| what | target | measured | | on | by |", "|---|---:|---:|---|---|---|"]
    machines: dict[str, None] = {}
    for found in _kept():
        machines[f"{found['machine']['cores']} cores ({found['machine']['cpu']})"] = None
        for row in found["rows"]:
            if row["target"]:
                met = {None: "", True: "met", False: "**missed**"}[row["met"]]
                measured = f"{spoken(row['value'])} {row['unit']}".strip()
                when, told = found["at"][:10], f"{found['title']}: {row['what']}"
                by = f"`{found['command']}`"
                lines.append(f"| {told} | {row['target'].strip()} | {measured} | {met} | {when} | {by} |")
    return "\n".join([*lines, "", f"Measured on {', '.join(machines)}."])


def _kept() -> list[dict[str, Any]]:
    """The kept results in the order in which they are shown."""
    known = {path.stem: path for path in RESULTS.glob("*.json")}
    names = sorted(known, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))
    return [json.loads(known[name].read_text()) for name in names]


def markdown() -> str:
    """All kept results as one page."""
    lines = [
        "# Results",
        "",
        "Written by the benchmarks themselves; [docs/benchmarks.md](../../docs/benchmarks.md) says what",
        "each one measures. Spread is the tenth to the ninetieth percentile.",
    ]
    for found in _kept():
        lines += ["", *_section(found)]
    return "\n".join(lines) + "\n"


def _section(found: Mapping[str, Any]) -> list[str]:
    host = found["machine"]
    lines = [
        f"## {found['title']}",
        "",
        f"`{found['command']}`, {found['at'][:10]}, {host['cores']} cores ({host['cpu']}), "
        f"Python {host['python']}, octavo {found['versions'].get('octavo', '?')}",
        "",
        "| what | measured | spread | target | met |",
        "|---|---:|---:|---:|---|",
    ]
    for row in found["rows"]:
        spread = row["spread"]
        span = f"{spoken(spread[0])}–{spoken(spread[1])}" if spread else ""
        met = {None: "", True: "yes", False: "no"}[row["met"]]
        measured = f"{spoken(row['value'])} {row['unit']}"
        lines.append(f"| {row['what']} | {measured} | {span} | {row['target']} | {met} |")
    return [*lines, *(["", *found["notes"]] if found["notes"] else [])]


def spoken(value: float) -> str:
    """A figure with three significant digits, thousands apart."""
    if value == 0:
        return "0"
    digits = max(0, 2 - len(str(int(abs(value)))) + 1) if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def _result(bench: Bench) -> dict[str, Any]:
    return {
        "bench": bench.name,
        "title": bench.title,
        "command": bench.command,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 2),
        "versions": versions(),
        "rows": [asdict(row) for row in bench.rows],
        "notes": bench.notes,
    }


def _show(bench: Bench) -> None:
    table = Table(title=bench.title, title_justify="left")
    for name in ("what", "measured", "spread", "target", "met"):
        table.add_column(name, justify="left" if name in ("what", "met") else "right")
    for row in bench.rows:
        span = f"{spoken(row.spread[0])}–{spoken(row.spread[1])}" if row.spread else ""
        met = {None: "", True: "[green]yes[/]", False: "[red]no[/]"}[row.met]
        table.add_row(row.what, f"{spoken(row.value)} {row.unit}", span, row.target, met)
    out = Console()
    out.print(table)
    for text in bench.notes:
        out.print(text)


if __name__ == "__main__":
    write_pages()
