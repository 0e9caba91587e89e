"""The table of operations, and that every door has every one of them."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import octavo
from octavo.documents import formats
from octavo.domain.brief_page import FORMATS
from octavo.domain.hits import STREAM_NAMES
from octavo.domain.memory import SOURCES
from octavo.doors import cli, commands, render
from octavo.doors.operations import OPERATIONS, Parameter, perform, table
from octavo.doors.operations.values import time_of, value_of
from octavo.doors.plain import plain
from octavo.doors.settings import Settings
from octavo.engine.account import Account
from octavo.engine.fields import Count, Unit
from octavo.engine.reading import Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, HumanOnly, NotFound, OctavoError

BY_NAME = {operation.name: operation for operation in OPERATIONS}


def settings(root: Path, **more: str | None) -> Settings:
    return Settings(root=root, **{"actor": "human:somchai", **more})


def do(operation: str, where: Settings, /, **values: object) -> object:
    return perform(BY_NAME[operation], where, values)


def command(operation):
    return commands.command(operation, cli.act)


def test_every_operation_has_a_command_and_every_command_an_operation() -> None:
    program = typer.main.get_command(commands.program(cli.act))
    names = program.list_commands(None)
    assert names == [operation.name.replace("_", "-") for operation in commands.COMMANDS]
    assert [program.get_command(None, name).name for name in names] == names
    assert program.get_command(None, "nonsense") is None


def test_every_parameter_is_an_argument_or_option_of_its_command() -> None:
    for operation in commands.COMMANDS:
        taken = {param.name for param in command(operation).params}
        assert {p.name for p in operation.parameters} <= taken, operation.name
        assert {"root", "account", "scope", "actor", "json"} <= taken, operation.name


def test_no_two_options_of_a_command_share_a_letter() -> None:
    for operation in commands.COMMANDS:
        letters = [o for param in command(operation).params for o in param.opts if len(o) == 2]
        assert len(letters) == len(set(letters)), operation.name


def test_a_letter_stands_for_the_same_option_in_every_command() -> None:
    named = {}
    for operation in commands.COMMANDS:
        for param in command(operation).params:
            for letter in (o for o in param.opts if len(o) == 2 and o != "-h"):
                named.setdefault(letter, set()).add(max(param.opts, key=len))
    assert {"-k", "-n", "-t"} <= set(named)
    assert {letter: len(options) for letter, options in named.items()} == dict.fromkeys(named, 1)
    limited = {
        o.name: command(o).params for o in commands.COMMANDS if any(p.name == "limit" for p in o.parameters)
    }
    assert all(any("-n" in param.opts for param in params) for params in limited.values())


def test_a_view_belongs_to_an_operation() -> None:
    assert set(render.VIEWS) <= {operation.name for operation in commands.COMMANDS}


def test_the_choices_of_the_table_are_those_of_the_engine() -> None:
    choices = {(p.name, p.choices) for o in OPERATIONS for p in o.parameters if p.choices}
    assert choices == {
        *((name, octavo.KINDS) for name in ("kind", "kinds")),
        *((name, octavo.LAYERS) for name in ("layer", "layers")),
        ("format", tuple(sorted(formats.IMPORTS))),
        ("format", tuple(sorted(formats.EXPORTS))),
        ("format", FORMATS),
        ("source", SOURCES),
        ("streams", STREAM_NAMES),
        ("unit", ("episode", "turn")),
        ("strategy", ("mixed", "layered")),
    }


def test_the_ten_everyday_commands_are_operations() -> None:
    assert len(commands.EVERYDAY) == 10
    assert set(commands.EVERYDAY) <= set(BY_NAME)


def test_the_help_names_every_command_once_and_the_everyday_ones_first(capfd) -> None:
    assert cli.run(["--help"]) == 0
    listed = re.findall(r"^  ([a-z][a-z-]*)  ", capfd.readouterr().out, re.MULTILINE)
    assert listed[:10] == list(commands.EVERYDAY)
    assert sorted(listed) == sorted(commands.spelt(operation) for operation in commands.COMMANDS)


def test_what_takes_files_of_this_machine_is_local() -> None:
    to_a_place = {"backup"}  # a folder of this machine, or a URL with its password
    assert {o.name for o in OPERATIONS if any(p.type is Path for p in o.parameters)} | to_a_place == {
        o.name for o in OPERATIONS if o.local
    }


def test_an_operation_is_read_from_its_signature() -> None:
    @table.operation("octavo sing la --loud 1", writes=True, result="sung")
    def sing(
        target: Account | Sandbox,
        note: Annotated[str, "Which."],
        *,
        loud: Annotated[Unit, "How loud."] = 0.5,
        limit: Annotated[Count | None, "How often."] = None,
    ) -> str:
        """Sing a note.

        Nobody need listen.
        """
        return f"{note} {loud} {limit}"

    assert (sing.name, sing.summary, sing.subjects) == ("sing", "Sing a note.", (Account, Sandbox))
    note, loud, limit, sandbox = sing.parameters
    assert note == Parameter(name="note", summary="Which.", is_required=True, is_positional=True)
    assert (loud.short, loud.default, loud.least, loud.most) == (None, 0.5, 0, 1)
    assert (limit.type, limit.least, limit.most, limit.is_required) == (int, 0, None, False)
    assert limit.short == "-n"
    assert (sandbox.name, sandbox.short) == ("sandbox", "-s")
    assert sing(None, "la") == "la 0.5 None"


def test_a_method_is_an_operation_whose_parameters_have_sentences() -> None:
    reject = BY_NAME["reject"]
    assert reject.subjects == (Account,)
    assert [(p.name, p.is_positional) for p in reject.parameters] == [("value", True), ("reason", False)]
    (sandbox, id_, feedback) = BY_NAME["use"].parameters
    assert [p.name for p in (sandbox, id_, feedback)] == ["sandbox", "id", "feedback"]
    assert (feedback.is_positional, feedback.least, feedback.most) == (False, -1, 1)
    assert "vector" not in {p.name for p in BY_NAME["remember"].parameters}
    assert [o.name for o in OPERATIONS for p in o.parameters if not p.summary] == []


def test_the_summary_of_a_method_leaves_out_what_it_returns() -> None:
    assert BY_NAME["restore"].summary == "Make the memories what they were, as a new version."
    assert [o.name for o in OPERATIONS if "; returns" in o.summary] == []


def test_what_gives_nothing_back_names_what_it_was_told(tmp_path: Path) -> None:
    where = settings(tmp_path)
    do("init", where)
    do("reject", where, value="allergic to peanuts")
    assert do("unreject", where, value="allergic to peanuts") == {"lifted": "allergic to peanuts"}


def test_what_an_operation_is_asked_of_says_where_it_reads_and_writes() -> None:
    names = {o.name: {p.name for p in o.parameters} for o in OPERATIONS}
    assert {"at", "sandbox"} <= names["get"]
    assert BY_NAME["history"].subjects == (Account, Snapshot)
    assert "sandbox" not in names["history"]
    assert BY_NAME["turn"].parameters[0].is_positional
    assert {"words", "once"} <= names["recall"]
    assert "once" not in names["catch_up"]


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_the_example_of_an_operation_is_a_command_line_it_accepts(operation) -> None:
    program, name, *rest = shlex.split(operation.example)
    assert (program, name) == ("octavo", commands.spelt(operation))
    assert command(operation).make_context(name, rest).params


def needed(operation):
    """Something for every parameter that must be said."""
    least = {int | datetime: "0", int: 0}
    return {p.name: least.get(p.type, "x") for p in operation.parameters if p.is_required}


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.human], ids=lambda o: o.name)
def test_an_agent_may_not_do_what_is_for_humans(operation, tmp_path: Path) -> None:
    do("init", settings(tmp_path))
    with pytest.raises(HumanOnly):
        perform(operation, settings(tmp_path, actor="agent:orion"), needed(operation))


READS = [o for o in OPERATIONS if not o.writes and o.name != "accounts"]


@pytest.mark.parametrize("operation", READS, ids=lambda o: o.name)
def test_an_operation_that_reads_begins_no_account(operation, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no account"):
        perform(operation, settings(tmp_path / "none"), needed(operation))
    assert not (tmp_path / "none").exists()


def test_a_first_write_begins_the_first_account_of_a_folder(tmp_path: Path) -> None:
    assert do("remember", settings(tmp_path / "new"), text="ชอบกาแฟดำ")
    assert octavo.accounts(tmp_path / "new") == ["default"]


def test_a_write_to_an_unknown_account_beside_others_is_an_error_that_names_them(tmp_path: Path) -> None:
    do("init", settings(tmp_path, account="User01"))
    with pytest.raises(NotFound, match=r"no account 'Usr01'.*User01"):
        do("remember", settings(tmp_path, account="Usr01"), text="likes tea")
    assert octavo.accounts(tmp_path) == ["User01"]


def test_an_import_of_what_is_not_there_begins_no_account(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no file or folder"):
        do("import", settings(tmp_path / "new"), path=str(tmp_path / "missing"), format="msp")
    assert not (tmp_path / "new").exists()


def test_a_page_of_memories_says_where_the_next_one_begins(tmp_path: Path) -> None:
    where = settings(tmp_path)
    texts = ["owns a red bicycle", "works at the harbour", "เรียนทำอาหารไทย", "plays chess badly", "is 44"]
    do("remember_many", where, items=[{"text": text} for text in texts])
    seen, after = [], None
    while True:
        page = do("memories", where, limit=2, after=after)
        seen += [memory.text for memory in page["memories"]]
        after = page["next"]
        if after is None:
            break
    assert seen == texts


def test_versions_are_the_newest_ones_unless_a_beginning_is_named(tmp_path: Path) -> None:
    where = settings(tmp_path)
    for text in ("owns a red bicycle", "works at the harbour", "plays chess badly"):
        do("remember", where, text=text)
    assert [v.version for v in do("versions", where, limit=2)["versions"]] == [2, 3]
    page = do("versions", where, after=0, limit=2)
    assert ([v.version for v in page["versions"]], page["next"]) == ([1, 2], 2)


def test_a_sandbox_is_found_by_its_name_unless_two_share_it(tmp_path: Path) -> None:
    where = settings(tmp_path)
    first = do("sandbox", where, name="คุยตอนเช้า")
    assert do("turn", where, sandbox="คุยตอนเช้า", role="user", text="สวัสดี")["episode"]
    do("sandbox", where, name="คุยตอนเช้า")
    with pytest.raises(BadInput, match=r"2 sandboxes.*" + first["id"]):
        do("turn", where, sandbox="คุยตอนเช้า", role="user", text="สวัสดี")


def test_a_consolidated_sandbox_gives_its_result_again(tmp_path: Path) -> None:
    where = settings(tmp_path)
    held = do("sandbox", where, name="a")
    do("remember", where, sandbox="a", text="owns a red bicycle")
    assert do("consolidate", where, sandbox="a") == do("consolidate", where, sandbox=held["id"])


def test_a_sandbox_has_no_older_versions(tmp_path: Path) -> None:
    where = settings(tmp_path)
    do("sandbox", where, name="a")
    with pytest.raises(BadInput, match="no older versions"):
        do("memories", where, sandbox="a", at="0")


def test_a_bad_policy_begins_no_account(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("[gate]\nnonsense = 1\n")
    with pytest.raises(BadInput, match="nonsense"):
        do("init", settings(tmp_path / "root"), policy=str(tmp_path / "policy.toml"))
    assert not (tmp_path / "root").exists()


def test_an_account_begins_with_the_policy_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("[sandbox]\nmax_episodes = 30\n")
    do("init", settings(tmp_path / "root"), policy=str(tmp_path / "policy.toml"))
    assert octavo.open(tmp_path / "root").policy.sandbox.max_episodes == 30


def test_repair_accepts_the_loss_of_the_newest_version_only_when_told(tmp_path: Path) -> None:
    where = settings(tmp_path)
    do("remember", where, text="owns a red bicycle")
    do("remember", where, text="works at the harbour")
    max((tmp_path / "default" / "ledger").iterdir()).unlink()
    with pytest.raises(OctavoError, match="repair --accept"):
        do("repair", where)
    assert do("repair", where, accept=True)
    assert do("stats", where).version == 1


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-05-04", datetime(2026, 5, 4, tzinfo=UTC)),
        ("2026-05-04T09:30", datetime(2026, 5, 4, 9, 30, tzinfo=UTC)),
        ("2026-05-04T09:30Z", datetime(2026, 5, 4, 9, 30, tzinfo=UTC)),
        ("2026-05-04T09:30+07:00", datetime(2026, 5, 4, 9, 30, tzinfo=timezone(timedelta(hours=7)))),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, moment: datetime) -> None:
    assert time_of(text) == moment


OBJECT, OBJECTS, LINKS = dict[str, Any], list[dict[str, Any]], dict[str, list[str]]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (datetime, "yesterday"),
        (int | datetime, "v1"),
        (OBJECT, "[1]"),
        (OBJECT, "{"),
        (OBJECTS, "3"),
        (LINKS, ["x"]),
    ],
)
def test_what_cannot_be_read_is_named(type_: object, text: object) -> None:
    with pytest.raises(BadInput, match="thing"):
        value_of(Parameter(name="thing", summary="", type=type_), text)


def test_a_value_outside_choices_and_bounds_is_refused_by_what_it_is_handed_to(tmp_path: Path) -> None:
    where = settings(tmp_path, actor="human:you")
    do("remember", where, text="likes tea")
    with pytest.raises(BadInput) as unknown:
        do("memories", where, kind=["fact", "zip"])
    assert ("'zip'" in unknown.value.message, "episode, fact" in unknown.value.advice) == (True, True)
    with pytest.raises(BadInput, match=r"salience is 1\.5"):
        do("remember", where, text="likes coffee", salience=1.5)


def test_edges_are_gathered_by_name() -> None:
    links = Parameter(name="links", summary="", type=LINKS)
    assert value_of(links, ["about=a", "part=b", "about=c"]) == {"about": ["a", "c"], "part": ["b"]}


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_comes_back_from_its_json(moment: datetime) -> None:
    assert plain(moment).endswith("Z")
    assert time_of(plain(moment)) == moment
