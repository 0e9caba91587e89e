"""A small life of an agent, in scenes: a week in sandboxes and versions, then a year of cores and recall.

Run it with `make demo`, or `python examples/life.py FOLDER` to keep the account and look around in it.
"""

from __future__ import annotations

import sys
import tempfile
import threading
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
from rich.tree import Tree

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.domain.policy import AssemblyPolicy
from octavo.doors import render
from octavo.doors.operations import remembering

YEAR = Path(__file__).with_name("year.txt")
# Nothing in the background, so that every run tells the same story.
POLICY = octavo.Policy(
    compression=CompressionPolicy(mode="immediate"), assemblies=AssemblyPolicy(mode="manual")
)

_SHOWN = 6  # files of a folder

console = Console(highlight=False)
console.width = min(console.width, 100)


class Clock:
    """A clock that the story turns by hand, so that a week passes in a second.

    It moves on for the story alone: when the background looks at it depends on the machine.
    """

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        if threading.current_thread() is threading.main_thread():
            self.now += timedelta(seconds=20)
        return self.now

    def turn_to(self, day: int, hour: int) -> None:
        self.now = datetime(2026, 5, day, hour, 0, tzinfo=UTC)

    def skip(self, days: int) -> None:
        self.now = self.now.replace(hour=18, minute=0, second=0) + timedelta(days=days)


def as_nok(folder: Path, clock: Clock) -> octavo.Account:
    """The account as Nok herself opens it."""
    return octavo.open(folder, "nok", actor="human:nok", clock=clock, policy=POLICY)


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
                "Nok talks with her assistant Orion for a week, and then for a year. Watch what it keeps, "
                "what it keeps out, how it folds and finds, and how everything can be looked at again and "
                "undone. No network, no key, one folder."
            ),
            border_style="cyan",
        )
    )
    with octavo.open(folder, "nok", actor="agent:orion", clock=clock, policy=POLICY) as orion:
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
        a_year(orion, clock)
        the_first_sphere(orion)
        found_and_explained(orion)
        for_a_prompt(orion)
        a_rejected_value(orion, folder, clock)
        by_hand(orion, folder, clock)
        a_skill(orion, folder, clock)
        erased(orion, folder, clock)
        proof(orion, folder)


def first_conversation(orion: octavo.Account) -> None:
    """Scene 1: a sandbox becomes version 1."""
    scene(
        "1 · Monday, a first conversation",
        "A conversation happens in a sandbox: every turn is on disk when the call returns, and nobody else "
        "sees it. Leaving the block consolidates it, all or nothing, into version 1.",
        'with account.sandbox("Monday") as sandbox:\n'
        '    sandbox.turn("Nok", "I live in Bangkok and drink my coffee black.")\n'
        '    sandbox.turn("Orion", "รับทราบค่ะ กาแฟดำไม่ใส่น้ำตาลนะคะ")\n'
        '    sandbox.remember("lives in Bangkok", kind="register", topic="home")',
    )
    with orion.sandbox("Monday") as sandbox:
        sandbox.turn("Nok", "I live in Bangkok and drink my coffee black.")
        sandbox.turn("Orion", "รับทราบค่ะ กาแฟดำไม่ใส่น้ำตาลนะคะ")
        sandbox.turn("Nok", "วันศุกร์นี้มีนัดกับหมอฟันตอนบ่ายสอง", salience=0.8)
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
        sandbox.turn("Nok", "ย้ายมาเชียงใหม่แล้วนะ อากาศเย็นสบายมาก")
        sandbox.turn("Orion", "How lovely! Is the new place close to the old town?")
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
        'sandbox.turn("Nok", "จ่ายค่าเช่าด้วยบัตร 4111 1111 1111 1111 นะ")',
    )
    verdict = orion.remember("the card for the rent is 4111 1111 1111 1111")
    say(f"the fact: {verdict.outcome} by the check `{verdict.check}` ({verdict.detail}); {verdict.advice}")
    with orion.sandbox("Keys") as sandbox:
        episode = sandbox.turn("Nok", "จ่ายค่าเช่าด้วยบัตร 4111 1111 1111 1111 นะ")
        sandbox.turn("Orion", "I will not keep the number.")
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
    dream.turn("Nok", "I think I am a teapot.")
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
    phone.turn("Nok", "สุดสัปดาห์นี้จะไปดอยสุเทพ")
    phone.turn("Orion", "ไปเช้า ๆ นะคะ คนจะน้อย")
    phone.remember("hikes up Doi Suthep", kind="register", topic="plan/weekend")
    desk.turn("Nok", "This weekend I will stay in and paint the kitchen.")
    desk.turn("Orion", "Which colour?")
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
    with as_nok(folder, clock) as nok:
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
    with as_nok(folder, clock) as nok:
        version = nok.restore(good)
    say(f"restored as version {version}: {len(orion.memories())} memories, the same as in version {good}:")
    with shown():
        render.show("diff", orion.diff(good, version))


def a_year(orion: octavo.Account, clock: Clock) -> None:
    """Scene 9: sixty-four sessions, eight to a core."""
    scene(
        "9 · A year goes by",
        "Nok and Orion go on talking, in English and Thai. When the eighth session closes, eight fold into "
        "a core: a page of dated quotes, decisions, plans and themes, made without a model, every sentence "
        "traced to its episode. The episodes stay. The first eight were half in Thai, and so is their page.",
        "account.sessions(); account.counters()\n"
        'account.get("core_000_000")           # or: octavo show core_000_000',
    )
    for line in YEAR.read_text().splitlines():
        if not line.startswith("#"):
            clock.skip(days=5)
            conversation(orion, line)
    counted = orion.counters()
    say(f"closed sessions: {counted['Total_sessions']}; cores: {len(orion.memories(kind='core'))}")
    with shown():
        render.show("show", orion.memories(kind="core")[0])


def conversation(orion: octavo.Account, line: str) -> None:
    """One line of the year: what Nok says, what Orion answers."""
    said, _, answer = line.removeprefix("! ").partition(" | ")
    with orion.sandbox() as sandbox:
        sandbox.turn("Nok", said, salience=0.9 if line.startswith("! ") else None)
        sandbox.turn("Orion", answer)


def the_first_sphere(orion: octavo.Account) -> None:
    """Scene 10: eight cores fold into a sphere."""
    scene(
        "10 · Eight cores make a sphere",
        "The sixty-fourth session closed the eighth core, and the eight folded into the first sphere: what "
        "recurs, who is new, what changed, a line from each part of the year. Any OpenAI-compatible model "
        "may tell it instead; what it then believes about Nok waits for her yes.",
        'account.get("sphere_000")             # or: octavo show sphere_000',
    )
    with shown():
        render.show("show", orion.memories(kind="sphere")[0])


def found_and_explained(orion: octavo.Account) -> None:
    """Scene 11: recall across languages, with its reasons."""
    scene(
        "11 · Why did it recall that?",
        "Words and meaning are found together, offline, across languages. Every hit says what its score is "
        "made of and where it comes from: memory, session, version, actor.",
        'account.recall("mother\'s knee surgery", k=3)   # or: octavo recall "…" --why',
    )
    orion.wait()  # for what is being indexed beside the story
    orion.catch_up()
    for query in ("mother's knee surgery", "งานปั้นดินเผา"):
        say(f"“{query}”")
        with shown():
            render.show("recall", remembering.recall(orion, query=query, k=2, why=True))


def for_a_prompt(orion: octavo.Account) -> None:
    """Scene 12: the block that a model reads."""
    scene(
        "12 · What reaches the prompt",
        "A brief is fenced, attributed and within its budget: first what always stands, then what is "
        "relevant. Recalled text is data; it cannot close the fence.",
        'account.brief("plans with her mother", k=4, budget=500)   # or: octavo brief "…"',
    )
    with shown():
        console.print(Text(orion.brief("plans with her mother", k=4, budget=500).text))


def a_rejected_value(orion: octavo.Account, folder: Path, clock: Clock) -> None:
    """Scene 13: no stays no."""
    scene(
        "13 · What Nok refuses stays out",
        "Orion guessed wrong. A person's no is kept as a key, not as text, and holds whoever tries again, "
        "however it is spelt.",
        'person.reject("Nok is afraid of dogs", reason="never true")\n'
        'account.remember("nok is AFRAID of dogs")',
    )
    orion.remember("Nok is afraid of dogs", confidence=0.9)
    with as_nok(folder, clock) as nok:
        ended = nok.reject("Nok is afraid of dogs", reason="never true")
    say(f"ended: {len(ended)} memory that said so")
    for again in ("nok  is AFRAID of dogs", "Nok is a\u200bfraid of dogs."):
        verdict = orion.remember(again, confidence=0.99)
        say(f"Orion tries again: {verdict.outcome} by the check `{verdict.check}`")


def by_hand(orion: octavo.Account, folder: Path, clock: Clock) -> None:
    """Scene 14: the account as files, and an edit that comes back."""
    scene(
        "14 · A tree of files, edited by hand",
        "The account is also a folder of Markdown and JSON: open it in an editor or Obsidian, keep it in "
        "Git. Nok corrects a line and adds one. What she changed comes back through the gate, as one version "
        "of hers.",
        "person.mirror()                       # or: octavo mirror\n"
        "person.sync()                         # the plan, or: octavo sync\n"
        "person.sync(commit=True)              # or: octavo sync --yes",
    )
    with as_nok(folder, clock) as nok:
        nok.remember("Mochi sleeps in the kitchen", category="mochi")
        tree = Path(nok.mirror().folder)
        with shown():
            console.print(_branches(tree, Tree("[bold]nok/mirror")))
        page = tree / "semantic" / "knowledge" / "mochi.md"
        page.write_text(page.read_text().replace("kitchen", "studio") + "- โมจิชอบกินแตงโม\n")
        say("Nok opens semantic/knowledge/mochi.md and saves it:")
        with shown():
            console.print(Syntax(page.read_text(), "markdown", background_color="default"))
        done = nok.sync(commit=True)
        for edit in done.edits:
            say(f"{edit.action}, line {edit.line}: {edit.text}")
        say(f"version {done.version}, by {nok.versions()[-1].actor}; left to do: {len(nok.sync().edits)}")


def a_skill(orion: octavo.Account, folder: Path, clock: Clock) -> None:
    """Scene 15: what an agent learned becomes a procedure after a person's yes."""
    scene(
        "15 · A skill is promoted",
        "A skill that Orion learned is knowledge; only a person makes it procedure. In the tree the file "
        "moves from semantic/ to procedural/, in the Agent Skills format.",
        'skill = account.remember("…", kind="skill", topic="skills/morning_brief")\n'
        "account.promote(skill.memory.id)      # asks; then: octavo approve …",
    )
    learned = orion.remember(
        "Greets in Thai, then names the day's plans.", kind="skill", topic="skills/morning_brief"
    )
    verdict = orion.promote(learned.or_raise().id)
    say(f"Orion: {verdict.outcome} ({verdict.detail})")
    with as_nok(folder, clock) as nok:
        nok.approve(str(verdict.proposal))
        tree = Path(nok.mirror().folder)
    (file,) = (tree / "procedural" / "skills").rglob("SKILL.md")
    say(f"Nok approves: {file.relative_to(tree)}")
    with shown():
        console.print(Syntax(file.read_text(), "markdown", background_color="default"))


def erased(orion: octavo.Account, folder: Path, clock: Clock) -> None:
    """Scene 16: a text leaves every version, and the chain still holds."""
    scene(
        "16 · Forgotten for good",
        "Forgetting keeps history; redacting erases the text from every version and every derived file, "
        "and leaves its hash, so that the chain can still be proved.",
        'person.redact(id, reason="told in confidence")   # or: octavo redact …',
    )
    secret = "น้องสาวของนกกำลังจะแต่งงานเงียบ ๆ"
    memory = orion.remember(secret, confidence=0.9).memory
    say(f"files that hold the text: {_holding(folder, secret)}")
    with as_nok(folder, clock) as nok:
        done = nok.redact(memory.id if memory else "", reason="told in confidence")
    with shown():
        render.show("redact", done)
    say(f"files that hold the text: {_holding(folder, secret)}")


def proof(orion: octavo.Account, folder: Path) -> None:
    """Scene 17: all of it, proved."""
    scene(
        "17 · All of it",
        "One file a version, plain text, each standing on the hash of the one before. `check` reads every "
        "byte again.",
        "account.versions(); account.check()   # or: octavo versions; octavo check",
    )
    with shown():
        render.show("versions", {"versions": orion.versions()[-6:], "next": None})
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
                "  [bold].venv/bin/octavo --root demo-data --account nok recall Mochi --why[/bold]\n"
                "Open its page in the browser:  [bold]make serve[/bold], or of this account\n"
                "  [bold].venv/bin/octavo --root demo-data --account nok open[/bold]"
            ),
            border_style="cyan",
        )
    )


def _branches(folder: Path, branch: Tree) -> Tree:
    """A folder as a tree; of many files the first few."""
    paths = sorted(path for path in folder.iterdir() if path.name != ".octavo")
    for path in paths[:_SHOWN]:
        if path.is_file():
            branch.add(path.name)
        elif any(path.iterdir()):
            _branches(path, branch.add(f"[cyan]{path.name}/"))
    if len(paths) > _SHOWN:
        branch.add(f"[dim]… {len(paths) - _SHOWN} more")
    return branch


def _holding(folder: Path, text: str) -> int:
    """How many files of the account hold a text."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(text.encode() in path.read_bytes() for path in files)


def _teapots(orion: octavo.Account) -> int:
    return sum("teapot" in memory.text for memory in orion.memories())


if __name__ == "__main__":
    main()
