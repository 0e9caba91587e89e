"""The table of operations, and that every door has every one of them."""

from __future__ import annotations

import inspect
import shlex
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import octavo
from octavo.domain.brief import FORMATS
from octavo.domain.recall import STREAMS
from octavo.errors import BadInput, HumanOnly, NotFound, OctavoError
from octavo.interfaces import cli_commands, cli_program, formats, render
from octavo.interfaces.operation import perform
from octavo.interfaces.operations import OPERATIONS
from octavo.interfaces.parameters import Parameter, time_of, value_of
from octavo.interfaces.plain import plain
from octavo.interfaces.settings import Settings

BY_NAME = {operation.name: operation for operation in OPERATIONS}


def settings(root: Path, **more: str | None) -> Settings:
    return Settings(root=root, **{"actor": "human:somchai", **more})


def do(operation: str, where: Settings, /, **values: object) -> object:
    return perform(BY_NAME[operation], where, values)


def test_every_operation_has_a_command_and_every_command_an_operation() -> None:
    commands = set(typer.main.get_command(cli_program.app()).commands)
    assert commands == {operation.name.replace("_", "-") for operation in OPERATIONS}


def test_every_parameter_is_an_argument_or_option_of_its_command() -> None:
    commands = typer.main.get_command(cli_program.app()).commands
    for operation in OPERATIONS:
        taken = {param.name for param in commands[cli_commands.spelt(operation)].params}
        assert {p.name for p in operation.parameters} <= taken, operation.name
        assert {"root", "account", "scope", "actor", "json"} <= taken, operation.name


def test_every_operation_can_be_shown() -> None:
    assert set(render.VIEWS) == set(BY_NAME)


def test_the_choices_of_the_table_are_those_of_the_engine() -> None:
    choices = {(p.name, p.choices) for o in OPERATIONS for p in o.parameters if p.choices}
    assert choices == {
        *((name, octavo.KINDS) for name in ("kind", "kinds")),
        *((name, octavo.LAYERS) for name in ("layer", "layers")),
        ("format", tuple(sorted(formats.FORMATS))),
        ("format", FORMATS),
        ("streams", (*STREAMS, "hept")),
        ("unit", ("episode", "turn")),
        ("strategy", ("mixed", "layered")),
    }


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_the_example_of_an_operation_is_a_command_line_it_accepts(operation) -> None:
    program, name, *rest = shlex.split(operation.example)
    command = typer.main.get_command(cli_program.app()).commands[name]
    assert (program, name) == ("octavo", cli_commands.spelt(operation))
    assert command.make_context(name, rest).params


def test_an_operation_without_an_act_of_its_own_names_a_method_of_the_engine() -> None:
    for operation in OPERATIONS:
        if operation.run is None:
            holder = octavo.Sandbox if operation.on == "sandbox" else octavo.Account
            assert inspect.isfunction(getattr(holder, operation.name, None)), operation.name


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.who == "human"], ids=lambda o: o.name)
def test_an_agent_may_not_do_what_is_for_humans(operation, tmp_path: Path) -> None:
    do("init", settings(tmp_path))
    values = {p.name: "0" if p.form == "when" else "x" for p in operation.parameters if p.required}
    with pytest.raises(HumanOnly):
        perform(operation, settings(tmp_path, actor="agent:orion"), values)


READS = [o for o in OPERATIONS if not o.writes and o.name != "accounts"]


@pytest.mark.parametrize("operation", READS, ids=lambda o: o.name)
def test_an_operation_that_reads_begins_no_account(operation, tmp_path: Path) -> None:
    values = {p.name: "0" if p.form == "when" else "x" for p in operation.parameters if p.required}
    values |= {p.name: p.default for p in operation.parameters if p.choices and p.default}
    with pytest.raises(NotFound, match="no account"):
        perform(operation, settings(tmp_path / "none"), values)
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


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("time", "yesterday"),
        ("when", "v1"),
        ("object", "[1]"),
        ("object", "{"),
        ("objects", "3"),
        ("links", ["x"]),
    ],
)
def test_what_cannot_be_read_is_named(form: str, text: object) -> None:
    with pytest.raises(BadInput, match="thing"):
        value_of(Parameter(name="thing", summary="", form=form), text)


def test_a_value_outside_the_choices_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="use one of msp"):
        value_of(Parameter(name="format", summary="", choices=("msp",)), "zip")


def test_edges_are_gathered_by_name() -> None:
    links = Parameter(name="links", summary="", form="links")
    assert value_of(links, ["about=a", "part=b", "about=c"]) == {"about": ["a", "c"], "part": ["b"]}


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_comes_back_from_its_json(moment: datetime) -> None:
    assert plain(moment).endswith("Z")
    assert time_of(plain(moment)) == moment
