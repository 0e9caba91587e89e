"""What memory is worth to a robot: success and denials on unseen levels, with Octavo and without."""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import msgspec

from bench import harness
from octavo.documents.brain import FilesystemMemory
from octavo.robotgrid import environment, levels
from octavo.robotgrid.learner import Learner, bring_skill
from octavo.robotgrid.levels import Level

_TITLE = "A robot that learns"
_PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
_STEPS = 60
_SLEEP = 5  # episodes between two consolidations
_WINDOW = 5
_TRAINING = 30
_ALL = ("episodic", "semantic", "procedural")
_ARMS = {
    "none": "no memory",
    "notes": "notes within an episode, no memory",
    "episodes": "episodes only",
    "consolidated": "episodes and consolidation",
    "skills": "skills of another robot",
    "both": "notes, episodes and consolidation",
}
_COLOURS = {
    "none": "#8a8a8a",
    "notes": "#c9a66b",
    "episodes": "#2e86ab",
    "consolidated": "#76b041",
    "skills": "#e4572e",
    "both": "#7b5ea7",
}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How one episode went."""

    success: bool
    denials: int
    moves: int


def main(argv: Sequence[str] | None = None) -> None:
    """Let the same robots play the same unseen levels in each arm; write figures, plot and animation."""
    bench = harness.begin("robotgrid", _TITLE, argv)
    robots, episodes = bench.pick(bench.options.rounds or 8, 1), bench.pick(40, 3)
    training = bench.pick(_TRAINING, 2)
    jobs = [(arm, robot) for robot in range(robots) for arm in _ARMS]
    results: dict[str, list[list[Seen]]] = {arm: [] for arm in _ARMS}
    with get_context("spawn").Pool(2) as pool, harness.progress("robots", len(jobs)) as step:
        for (arm, _), seen in zip(
            jobs, pool.imap(partial(_run, episodes=episodes, training=training), jobs), strict=True
        ):
            results[arm].append(seen)
            step(1)
    _figures(bench, results)
    copied = _after_copy(bench.pick(20, 2), training)
    bench.figure("levels played alike after cp -r", copied, "%", at_least=100)
    bench.note(
        f"{robots} robots, {episodes} episodes each, that is {robots * episodes} an arm; generated levels of "
        f"difficulty 1 to 10, each played once, alike in every arm; a 3 × 3 view, at most {_STEPS} actions. "
        "Spread is over robots. All arms keep a map of what they saw within an episode; those with notes "
        "also what happened within it. Nothing stays between episodes but what Octavo recalls."
    )
    if not bench.smoke and not bench.options.dry:
        _PICTURES.mkdir(exist_ok=True)
        _plot(results, _PICTURES / "robotgrid.png")
        _animation(_PICTURES / "robotgrid.gif")
    bench.finish()


def _run(job: tuple[str, int], *, episodes: int, training: int) -> list[Seen]:
    """One robot's life in one arm."""
    arm, robot = job
    if arm in ("none", "notes"):
        return _lived(Learner(None, seed=robot, notes=arm == "notes"), _unseen(robot, episodes))
    known = {"episodes": ("episodic",), "skills": ("semantic", "procedural")}.get(arm, _ALL)
    with _robot() as memory:
        if arm == "skills":
            _schooled(memory, robot, training)
        learner = Learner(memory, levels=known, seed=robot, notes=arm == "both")
        sleeper = memory if arm in ("consolidated", "both") else None
        return _lived(learner, _unseen(robot, episodes), sleeper)


@contextmanager
def _robot() -> Iterator[FilesystemMemory]:
    """A fresh memory, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, FilesystemMemory(folder, embedder=False) as memory:
        yield memory


def _lived(learner: Learner, chosen: Sequence[Level], sleeper: FilesystemMemory | None = None) -> list[Seen]:
    seen = []
    for number, level in enumerate(chosen, start=1):
        metadata = learner.play(level, max_steps=_STEPS)["metadata"]
        seen.append(
            Seen(
                success=metadata["success"],
                denials=metadata["sandbox_denials"],
                moves=metadata["total_moves"],
            )
        )
        if sleeper is not None and number % _SLEEP == 0:
            sleeper.consolidate_memory()
    return seen


def _unseen(robot: int, count: int, first: int = 0) -> list[Level]:
    """Levels of difficulty 1 to 10 in a shuffled order, no two the same for any robot."""
    hard = [1 + n % 10 for n in range(count)]
    random.Random(robot).shuffle(hard)
    return [levels.generate(d, 1_000_000 * (robot + 1) + first + n) for n, d in enumerate(hard)]


def _schooled(memory: FilesystemMemory, robot: int, training: int) -> None:
    """Let another robot learn on levels of its own, and bring its skill."""
    with _robot() as teacher:
        _lived(Learner(teacher, levels=_ALL, seed=1000 + robot), _unseen(500 + robot, training), teacher)
        bring_skill(teacher, memory)


def _after_copy(count: int, training: int) -> float:
    """How many levels go exactly alike on an account and on a copy of its folder, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder) / "robot", Path(folder) / "copy"
        with FilesystemMemory(here, embedder=False) as memory:
            _schooled(memory, 77, training)
        shutil.copytree(here, there)
        lives = []
        for place in (here, there):
            with FilesystemMemory(place, embedder=False) as memory:
                lives.append(_lived(Learner(memory, seed=7), _unseen(901, count)))
        return 100 * statistics.mean(one == other for one, other in zip(*lives, strict=True))


def _figures(bench: harness.Bench, results: Mapping[str, Sequence[Sequence[Seen]]]) -> None:
    means: dict[str, tuple[float, float]] = {}
    for arm, lives in results.items():
        success = [100 * statistics.mean(s.success for s in life) for life in lives]
        denials = [statistics.mean(s.denials for s in life) for life in lives]
        moves = [statistics.mean(s.moves for s in life) for life in lives]
        means[arm] = statistics.mean(success), statistics.mean(denials)
        bench.figure(f"success, {_ARMS[arm]}", means[arm][0], "%", samples=success)
        bench.figure(f"denials an episode, {_ARMS[arm]}", means[arm][1], "", samples=denials)
        bench.figure(f"actions an episode, {_ARMS[arm]}", statistics.mean(moves), "", samples=moves)
    for arm in ("episodes", "consolidated", "skills", "both"):
        gained = means[arm][0] - means["none"][0]
        bench.figure(f"success gained over no memory, {_ARMS[arm]}", gained, "points", at_least=25)
        share = means[arm][1] / means["none"][1] if means["none"][1] else 0.0
        bench.figure(f"denials / those without memory, {_ARMS[arm]}", share, "×", at_most=0.25)
        tamed = means[arm][1] / means["notes"][1] if means["notes"][1] else 0.0
        bench.figure(f"denials / those with notes alone, {_ARMS[arm]}", tamed, "×")


def _wilson(good: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    z = 1.96
    centre = (good + z * z / 2) / (count + z * z)
    half = z * (good * (count - good) / count + z * z / 4) ** 0.5 / (count + z * z)
    return centre - half, centre + half


def _plot(results: Mapping[str, Sequence[Sequence[Seen]]], path: Path) -> None:
    """Success and denials over a robot's life, with 95 % bands."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 7), sharex=True)
    for arm, lives in results.items():
        starts = range(len(lives[0]) - _WINDOW + 1)
        x = [start + _WINDOW for start in starts]
        windows = [[s for life in lives for s in life[start : start + _WINDOW]] for start in starts]
        shares = [[float(s.success) for s in window] for window in windows]
        bands = [_wilson(round(sum(share)), len(share)) for share in shares]
        above.plot(
            x, [100 * statistics.mean(share) for share in shares], color=_COLOURS[arm], label=_ARMS[arm]
        )
        low, high = zip(*bands, strict=True)
        above.fill_between(
            x, [100 * v for v in low], [100 * v for v in high], color=_COLOURS[arm], alpha=0.15
        )
        denials = [[float(s.denials) for s in window] for window in windows]
        means = [statistics.mean(values) for values in denials]
        error = [1.96 * statistics.stdev(values) / len(values) ** 0.5 for values in denials]
        below.plot(x, means, color=_COLOURS[arm])
        upper = [m + e for m, e in zip(means, error, strict=True)]
        lower = [max(m - e, 0.0) for m, e in zip(means, error, strict=True)]
        below.fill_between(x, lower, upper, color=_COLOURS[arm], alpha=0.15)
    above.set_ylabel(f"levels solved, % (last {_WINDOW} episodes)")
    above.set_ylim(0, 102)
    above.legend(loc="center right", fontsize=8)
    below.set_ylabel("sandbox denials an episode")
    below.set_xlabel("episodes played, each on an unseen level")
    figure.suptitle("RobotGrid, 3 × 3 view: what memory is worth (bands: 95 %)")
    figure.tight_layout()
    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot.close(figure)


def _animation(path: Path) -> None:
    """One unseen level of difficulty 9, played with another robot's skill."""
    with _robot() as memory:
        _schooled(memory, 3, _TRAINING)
        level = levels.generate(9, 12_345)
        steps = Learner(memory, seed=1).play(level, max_steps=_STEPS)["steps"]
    environment.animate(level.start, [step["action"]["command"] for step in steps if step["action"]], path)


if __name__ == "__main__":
    main()
