"""A plain command line means the same read from the table as read by typer."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.interfaces import cli, cli_line, cli_program
from octavo.interfaces.operations import OPERATIONS

PLAIN = ["x", "ชอบกาแฟดำ", "lives in Lampang", "3", "0.5", "a=b", "{}"]
WORDS = st.sampled_from([*PLAIN, *PLAIN, *PLAIN, "", "-", "--k", "-5", "--"])
COMMON = ("--root", "--account", "--scope", "--actor")


def told(line: Any) -> Any:
    """What a reading says, without the difference between nothing said and an empty list."""
    operation, before, given_ = line
    return operation.name, before, {name: None if value == [] else value for name, value in given_.items()}


def by_typer(arguments: list[str]) -> Any:
    """What typer makes of a line, None if it runs no command."""
    heard: list[Any] = []
    program = cli_program.app(cli_program.meant(arguments), act=lambda *line: heard.append(told(line)) or 0)
    cli.run(arguments, program=program)
    return heard[0] if heard else None


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Lines of which a good part is plain."""
    operation = draw(st.sampled_from(OPERATIONS))
    needed = sum(p.positional and p.required for p in operation.parameters)
    words = [[draw(WORDS)] for _ in range(needed + draw(st.sampled_from([0, 0, 0, 1])))]
    flags = {cli_line.option_of(p) for p in operation.parameters if p.form == "flag"} | {"--json", "--yes"}
    options = [cli_line.option_of(p) for p in operation.parameters if not p.positional]
    for option in draw(st.lists(st.sampled_from([*options, *COMMON, *flags]), max_size=3)):
        value = draw(WORDS)
        said = draw(st.sampled_from([[option, value], [f"{option}={value}"]]))
        words.insert(draw(st.integers(0, len(words))), [option] if option in flags else said)
    before = draw(st.sampled_from([[], [], ["--json"], ["--scope", "orion"], ["--root=x"], ["--version"]]))
    return [*before, cli_line.spelt(operation), *(word for said in words for word in said)]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines())
def test_what_is_read_plainly_is_what_typer_reads(
    capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    plain = cli_line.read(arguments)
    if plain is not None:
        assert told(plain) == by_typer(arguments)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_the_example_of_an_operation_means_the_same_to_both(operation: Any) -> None:
    arguments = shlex.split(operation.example)[1:]
    plain = cli_line.read(arguments)
    takes_many = any(p.positional and p.form == "texts" for p in operation.parameters)
    assert (plain is None) is takes_many
    if plain is not None:
        assert told(plain) == by_typer(arguments)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "",
            "--help",
            "recall --help",
            "recall",
            "nothing",
            "recall x y",
            "recall x --nope",
            "recall x --k many",
        ),
        *(
            "recall x --k -5",
            "recall x --k 1 --k 2",
            "recall x --why=yes",
            "recall -- x",
            "recall x --k",
            "-h",
        ),
    ],
)
def test_what_is_not_plain_is_left_to_typer(line: str) -> None:
    assert cli_line.read(shlex.split(line)) is None


def test_completion_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli_line.read(["memories"]) is not None
    monkeypatch.setenv("_OCTAVO_COMPLETE", "complete_bash")
    assert cli_line.read(["memories"]) is None
