"""The pages tell the truth: their snippets run, and every command and option is in them.

In README.md and docs/*.md a ```python block is executed, in one namespace a page, and each line of a
```console block that begins with `$ octavo` is run; `# exit 5` behind it says that it must fail so.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs import references

import octavo
from llm_server import Reply, llm_server
from octavo import errors
from octavo.doors import cli, commands, models, settings
from octavo.errors import OctavoError
from octavo.storage import codec

HOME = Path(__file__).parent.parent
PAGES = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"#\s*exit (\d+)\s*$")


def snippets(page: Path) -> Iterator[tuple[str, str, int]]:
    """The blocks of a page: language, text, and the line they begin in."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        yield found[1], found[2], text.count("\n", 0, found.start()) + 2


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run a page in, with nothing of the environment."""
    for name in [name for name in os.environ if name.startswith("OCTAVO_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OCTAVO_ROOT", str(tmp_path / "octavo"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run(page: Path, elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for language, text, line in snippets(page):
        if language == "python":
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), namespace)
        elif language == "console":
            for command in re.findall(r"^\$ octavo (.*)$", text, re.MULTILINE):
                wanted = EXIT.search(command)
                code = cli.run(shlex.split(command, comments=True))
                assert code == int(wanted[1] if wanted else 0), (command, capfd.readouterr().err)


def test_the_chat_loop_of_the_readme_knows_tomorrow_what_was_said_today(elsewhere: Path) -> None:
    (loop,) = (text for _, text, _ in snippets(HOME / "README.md") if "def chat(" in text)
    assert len([line for line in loop.splitlines() if line.startswith(" ")]) <= 20
    namespace: dict[str, Any] = {}
    exec(loop, namespace)
    told: list[str] = []
    with llm_server(Reply(text="Good to know.")) as server:
        for said in ("My sister Ploy lives in Nan.", "Where does Ploy live?"):
            namespace["chat"](server.base_url, "any", iter([said, ""]).__next__, told.append)
        today, tomorrow = (request["messages"][0]["content"] for request in server.requests)
    assert told == ["Good to know."] * 2
    assert "Ploy" not in today
    assert "My sister Ploy lives in Nan." in tomorrow


def test_the_figures_of_the_readme_are_those_of_the_page_about_peers() -> None:
    peers = (HOME / "docs" / "peers.md").read_text()
    rows = re.findall(r"^\| \w+ \| (?:words|vectors).*$", (HOME / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 6
    for row in rows:
        _, name, _, turns, sessions, query, *_ = [cell.strip() for cell in row.split("|")]
        (measured,) = re.findall(rf"^\| {name} \| [\d.]+ \|.*$", peers, re.MULTILINE)
        assert f"| {turns} | {sessions} |" in measured
        assert re.search(rf"^\|[^|]*\| [\d,]+ \| {re.escape(query)} \|", peers, re.MULTILINE), (name, query)


def test_the_pages_have_snippets_in_both_languages() -> None:
    found = {language for page in PAGES for language, _, _ in snippets(page)}
    assert {"python", "console"} <= found


@pytest.mark.parametrize("name", references.PAGES)
def test_the_generated_part_of_a_page_is_current(name: str) -> None:
    _, _, below = (HOME / "docs" / name).read_text().partition(references.MARK)
    assert below.strip() == references.PAGES[name]().strip(), "run `make docs`"


def test_every_key_of_the_policy_has_a_sentence_and_no_sentence_is_without_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = set()

    class Noted(dict[str, str]):
        def __getitem__(self, key: str) -> str:
            asked.add(key)
            return super().__getitem__(key)

    monkeypatch.setattr(references, "SENTENCES", Noted(references.SENTENCES))
    references.policy()
    assert asked == set(references.SENTENCES)


def test_every_key_of_the_policy_is_documented_and_can_be_set() -> None:
    page = (HOME / "docs" / "policy.md").read_text()
    for key in references.SENTENCES:
        assert f"| `{key.rpartition('.')[2]}` |" in page, key
    for text in FENCE.findall(page):
        if text[0] == "toml":
            assert codec.decode_policy(text[1].encode(), "policy.md") != octavo.Policy()


def test_every_error_is_documented_with_its_codes() -> None:
    page = (HOME / "docs" / "errors.md").read_text()
    kinds = [kind for _, kind in references.tree()]
    assert {kind.__name__ for kind in kinds} == {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, OctavoError)
    }
    for kind in kinds:
        assert f"`{kind.__name__}` | {kind.exit_code} | {kind.http_status} |" in page
        assert kind.hint in page


def test_a_page_is_written_anew_only_below_its_mark(tmp_path: Path) -> None:
    for name in references.PAGES:
        (tmp_path / name).write_text(f"# Kept\n\n{references.MARK}\nold")
    references.write(tmp_path)
    for name in references.PAGES:
        text = (tmp_path / name).read_text()
        assert text.startswith(f"# Kept\n\n{references.MARK}\n\n")
        assert "old" not in text.splitlines()


def test_every_command_and_option_is_documented() -> None:
    page = (HOME / "docs" / "cli.md").read_text()
    above = page.partition(references.MARK)[0]
    for operation in commands.COMMANDS:
        name, command = commands.spelt(operation), commands.command(operation, cli.act)
        part = re.search(rf"^### `octavo {name}[ `].*?(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        assert part, f"octavo {name} is not documented"
        for param in command.params:
            for option in param.opts:
                shown = option if option.startswith("-") else option.upper()
                assert f"`{shown}" in part[0] or f"`{shown}" in above, f"octavo {name}: {shown}"


def test_every_variable_and_exit_code_is_documented() -> None:
    page = (HOME / "docs" / "cli.md").read_text()
    of_models = (*models.VARIABLES, *models.EMBED_VARIABLES, *models.RERANK_VARIABLES)
    for variable in (*settings.VARIABLES.values(), *of_models, "OCTAVO_DEBUG"):
        assert f"`{variable}" in page
    for code in range(9):
        assert f"\n| {code} |" in page


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in [
        *PAGES,
        *(HOME / name for name in ("CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md", "llms.txt")),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_operation_says_what_it_does_in_a_sentence() -> None:
    for operation in commands.COMMANDS:
        assert operation.summary.endswith(".")
        assert all(p.summary.endswith((".", ")")) for p in operation.parameters), operation.name


def test_the_walks_through_the_house_name_files_and_functions_that_are_there():
    page = re.sub(r"```.*?```", "", (HOME / "docs" / "architecture.md").read_text(), flags=re.DOTALL)
    source = Path(octavo.__file__).parent
    paths = {str(path.relative_to(source)) for path in source.rglob("*.py")} | {"tests/test_house.py"}
    defined = {
        node.name
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    for said in re.findall(r"`([\w./]+)`", page):
        if said.endswith(".py"):
            assert any(path == said or path.endswith(f"/{said}") for path in paths), said
        elif "." in said and not said.endswith(("jsonl", "Struct")):
            assert said.rpartition(".")[2] in defined, said
