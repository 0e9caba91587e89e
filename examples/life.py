"""A small life of an agent, in scenes: through sandboxes, versions, time travel and back.

Run it with `make demo`, or `python examples/life.py FOLDER` to keep the account and look around in it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

import octavo
from octavo.interfaces import render

console = Console(highlight=False)
console.width = min(console.width, 100)


class Clock:
    """A clock that the story turns by hand, so that a week passes in a second."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=20)
        return self.now

    def turn_to(self, day: int, hour: int) -> None:
        self.now = datetime(2026, 5, day, hour, 0, tzinfo=UTC)


def scene(title: str, story: str, code: str) -> None:
    """Open a scene: what happens, and the call that does it."""
    console.print()
    console.print(Rule(f"[bold]{title}", align="left", style="cyan"))
    told = Text(story)
    shown = Syntax(code, "python", background_color="default", word_wrap=True)
    console.print(Panel(Group(told, "", shown), border_style="dim", padding=(0, 1)))


def say(text: str) -> None:
    """Say what just came of it."""
    console.print(Padding(Text.assemble(("→ ", "bold green"), text), (0, 1)))


@contextmanager
def shown() -> Iterator[None]:
    """A little air around what the command line would show."""
    console.print()
    yield
    console.print()


def main() -> None:
    """Play the life, in the folder that was named or in one that goes away."""
    if len(sys.argv) > 1:
        play(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory(prefix="octavo-demo-") as folder:
        play(Path(folder))


def play(folder: Path) -> None:
    """All scenes in order."""
    clock = Clock()
    console.print(
        Panel(
            Text.from_markup(
                "[bold]Octavo[/bold]: long-term memory for AI agents.\n"
                "Nok talks with her assistant Orion for a week. Watch what it keeps, what it keeps out, and "
                "how everything can be looked at again and undone. No network, no key, one folder."
            ),
            border_style="cyan",
        )
    )
    with octavo.open(folder, "nok", actor="agent:orion", clock=clock) as orion:
        first_conversation(orion)
        clock.turn_to(6, 19)
        a_change(orion)
        time_travel(orion)
        secrets(orion)
        discarded(orion)
        clock.turn_to(8, 10)
        two_at_once(orion)
        canon(orion, folder, clock)
        clock.turn_to(9, 8)
        a_mistake_and_the_way_back(orion, folder, clock)
        proof(orion, folder)


def first_conversation(orion: octavo.Account) -> None:
    """Scene 1: a sandbox becomes version 1."""
    scene(
        "1 · Monday, a first conversation",
        "A conversation happens in a sandbox: every turn is on disk when the call returns, and nobody else "
        "sees it. Leaving the block consolidates it, all or nothing, into version 1.",
        'with account.sandbox("Monday") as sandbox:\n'
        '    sandbox.turn("user", "I live in Bangkok and drink my coffee black.")\n'
        '    sandbox.turn("assistant", "รับทราบค่ะ กาแฟดำไม่ใส่น้ำตาลนะคะ")\n'
        '    sandbox.remember("lives in Bangkok", kind="register", topic="home")',
    )
    with orion.sandbox("Monday") as sandbox:
        sandbox.turn("user", "I live in Bangkok and drink my coffee black.")
        sandbox.turn("assistant", "รับทราบค่ะ กาแฟดำไม่ใส่น้ำตาลนะคะ")
        sandbox.turn("user", "วันศุกร์นี้มีนัดกับหมอฟันตอนบ่ายสอง", salience=0.8)
        sandbox.remember("lives in Bangkok", kind="register", topic="home")
        sandbox.remember("ชอบกาแฟดำไม่ใส่น้ำตาล", confidence=0.9, tags=["drink"])
        sandbox.remember("has a dentist appointment on Friday at two", confidence=0.9)
        sandbox.update_state("mood", {"calm": 0.8, "curious": 0.6})
        say(f"inside, the sandbox sees {len(sandbox.memories())} memories; outside there are still 0")
    with shown():
        render.show("consolidate", sandbox.result)
    with shown():
        render.show("memories", {"memories": orion.memories(), "next": None})


def a_change(orion: octavo.Account) -> None:
    """Scene 2: a new version, and the difference."""
    scene(
        "2 · Wednesday, Nok has moved",
        "A register holds one truth a topic: the new one supersedes, the old one stays in its history. "
        "Saying a known fact again adds nothing. The difference of two versions goes down to the words.",
        'sandbox.remember("lives in Chiang Mai", kind="register", topic="home")\n'
        "account.diff(1, 2)                    # or: octavo diff 1 2",
    )
    with orion.sandbox("Wednesday") as sandbox:
        sandbox.turn("user", "ย้ายมาเชียงใหม่แล้วนะ อากาศเย็นสบายมาก")
        sandbox.turn("assistant", "How lovely! Is the new place close to the old town?")
        sandbox.remember("lives in Chiang Mai", kind="register", topic="home")
        again = sandbox.remember("ชอบกาแฟดำไม่ใส่น้ำตาล", confidence=0.9)
        sandbox.update_state("mood", {"calm": 0.9, "homesick": 0.3})
        say(f"the coffee again: {again.outcome}, there is still one memory of it")
    with shown():
        render.show("diff", orion.diff(1, 2))


def time_travel(orion: octavo.Account) -> None:
    """Scene 3: the same questions to an older version."""
    scene(
        "3 · Time travel",
        "Every version can be asked what any other can: by its number or by a time.",
        'account.at(1).memories(topic="home")  # or: octavo memories --topic home --at 1\n'
        'account.memories(topic="home")',
    )
    for name, reader in (("version 1", orion.at(1)), ("today", orion)):
        say(f"{name}: {reader.memories(topic='home')[0].text}")


def secrets(orion: octavo.Account) -> None:
    """Scene 4: a refused secret and a masked one."""
    scene(
        "4 · Secrets stay out",
        "The gate checks every write before a byte of it is kept. A fact with a secret is refused; in a "
        "conversation the secret alone is masked, because what was said must not be lost.",
        'account.remember("the card for the rent is 4111 1111 1111 1111")\n'
        'sandbox.turn("user", "จ่ายค่าเช่าด้วยบัตร 4111 1111 1111 1111 นะ")',
    )
    verdict = orion.remember("the card for the rent is 4111 1111 1111 1111")
    say(f"the fact: {verdict.outcome} by the check `{verdict.check}` ({verdict.detail}); {verdict.advice}")
    with orion.sandbox("Keys") as sandbox:
        episode = sandbox.turn("user", "จ่ายค่าเช่าด้วยบัตร 4111 1111 1111 1111 นะ")
        sandbox.turn("assistant", "I will not keep the number.")
    said = orion.get(episode)
    say(f"the turn: {said.turns[0].text if said else 'lost'}")


def discarded(orion: octavo.Account) -> None:
    """Scene 5: a sandbox that never was."""
    scene(
        "5 · Never mind",
        "A conversation that should not count is discarded: the account is as if it had never been.",
        'sandbox = account.sandbox("a bad dream")\n'
        'sandbox.discard()                     # or: octavo discard "a bad dream"',
    )
    before = orion.version
    dream = orion.sandbox("a bad dream")
    dream.turn("user", "I think I am a teapot.")
    dream.remember("is a teapot")
    dream.discard()
    say(f"still version {before}; open sandboxes: {len(orion.sandboxes())}; teapots: {_teapots(orion)}")


def two_at_once(orion: octavo.Account) -> None:
    """Scene 6: two sandboxes on one version, both consolidated."""
    scene(
        "6 · Friday, two conversations at once",
        "Nok talks on the phone and at her desk. Both sandboxes begin on the same version and both are "
        "consolidated. Nothing of either is lost; where they disagree, the later one is current and the "
        "clash is reported.",
        'phone, desk = account.sandbox("phone"), account.sandbox("desk")\n'
        "phone.consolidate(); desk.consolidate()",
    )
    phone, desk = orion.sandbox("phone"), orion.sandbox("desk")
    phone.turn("user", "สุดสัปดาห์นี้จะไปดอยสุเทพ")
    phone.turn("assistant", "ไปเช้า ๆ นะคะ คนจะน้อย")
    phone.remember("hikes up Doi Suthep", kind="register", topic="plan/weekend")
    desk.turn("user", "This weekend I will stay in and paint the kitchen.")
    desk.turn("assistant", "Which colour?")
    desk.remember("paints the kitchen", kind="register", topic="plan/weekend")
    for sandbox in (phone, desk):
        with shown():
            render.show("consolidate", sandbox.consolidate())
    plan = orion.memories(topic="plan/weekend")[0]
    say("both plans are in the history (octavo history …):")
    with shown():
        render.show("history", {"revisions": orion.history(plan.id)})


def canon(orion: octavo.Account, folder: Path, clock: Clock) -> None:
    """Scene 7: what an agent may not decide alone."""
    scene(
        "7 · What Orion may not decide alone",
        "Who somebody is, is canon: an agent's word about it waits for a person.",
        'verdict = account.remember("Nok is a vegetarian", kind="canon", topic="identity/diet")\n'
        "person.approve(verdict.proposal)      # or: octavo approve …",
    )
    verdict = orion.remember("Nok is a vegetarian", kind="canon", topic="identity/diet")
    say(f"Orion: {verdict.outcome} ({verdict.detail})")
    with octavo.open(folder, "nok", actor="human:nok", clock=clock) as nok:
        approved = nok.approve(str(verdict.proposal))
    say(f"Nok approves: {approved.text if approved else 'nothing'}, version {orion.version}")


def a_mistake_and_the_way_back(orion: octavo.Account, folder: Path, clock: Clock) -> None:
    """Scene 8: a restore is a new version."""
    scene(
        "8 · Saturday, a mistake and the way back",
        "Somebody tidies up too well. History is never rewritten: a restore is a new version whose "
        "memories are those of the old one. Only a person may do it.",
        "account.forget(*ids)\nperson.restore(version)               # or: octavo restore …",
    )
    good = orion.version
    facts = [memory.id for memory in orion.memories(kind=["fact", "register"])]
    orion.forget(*facts)
    say(f"forgotten: {len(facts)} memories; {len(orion.memories())} are left")
    with octavo.open(folder, "nok", actor="human:nok", clock=clock) as nok:
        version = nok.restore(good)
    say(f"restored as version {version}: {len(orion.memories())} memories, the same as in version {good}:")
    with shown():
        render.show("diff", orion.diff(good, version))


def proof(orion: octavo.Account, folder: Path) -> None:
    """Scene 9: the whole week, proved."""
    scene(
        "9 · The whole week",
        "One file a version, plain text, each standing on the hash of the one before. `check` reads every "
        "byte again.",
        "account.versions(); account.check()   # or: octavo versions; octavo check",
    )
    with shown():
        render.show("versions", {"versions": orion.versions(), "next": None})
        render.show("check", orion.check())
    files = sorted((folder / "nok" / "ledger").iterdir())
    size = sum(file.stat().st_size for file in files)
    say(f"{len(files)} files in nok/ledger, {size:,} bytes in all")
    console.print()
    console.print(
        Panel(
            Text.from_markup(
                "Your turn:  [bold].venv/bin/octavo --help[/bold]   and README.md\n"
                "Look around in this account:\n"
                "  [bold].venv/bin/python examples/life.py demo-data[/bold]\n"
                "  [bold].venv/bin/octavo --root demo-data --account nok memories[/bold]"
            ),
            border_style="cyan",
        )
    )


def _teapots(orion: octavo.Account) -> int:
    return sum("teapot" in memory.text for memory in orion.memories())


if __name__ == "__main__":
    main()
