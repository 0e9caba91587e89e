"""The command line: what it prints, what it asks, and the exit codes it leaves with."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import octavo
from octavo.doors import cli
from octavo.doors.operations import BY_NAME
from octavo.doors.operations.table import TABLE
from octavo.doors.plain import advised, clean
from octavo.doors.render.diff import changed_words
from octavo.errors import HumanOnly, NotFound, OctavoError


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line against a folder of its own."""
    for name in [name for name in os.environ if name.startswith(("OCTAVO_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OCTAVO_ROOT", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path)

    def octavo_(*arguments: str, stdin: str | bytes = "") -> Outcome:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = cli.run(arguments)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return octavo_


def test_without_a_command_the_help_lists_every_section(run: Run) -> None:
    shown = run()
    assert shown.code == 0
    for word in ("Accounts:", "consolidate", "remember", "restore", "check"):
        assert word in shown.out


def test_help_of_a_command_shows_its_example(run: Run) -> None:
    assert 'octavo remember "lives in Chiang Mai"' in run("remember", "--help").out


def test_a_conversation_from_the_shell(run: Run) -> None:
    sandbox = run("sandbox", "Sandbox 09:30").out.strip()
    run("turn", sandbox, "user", "ย้ายมาเชียงใหม่แล้ว")
    run("turn", sandbox, "assistant", "ดีจังเลย")
    run("remember", "lives in Chiang Mai", "--sandbox", sandbox)
    assert "Sandbox 09:30" in run("sandboxes").out
    assert "nothing found" in run("memories").out
    assert "เชียงใหม่" in run("memories", "--sandbox", sandbox).out
    assert "version 1, session 1" in run("consolidate", sandbox).out
    assert "ย้ายมาเชียงใหม่แล้ว" in run("memories", "--kind", "episode").out
    assert run("sessions", "--json").json["sessions"][0]["sandbox"] == sandbox


def test_a_sandbox_prints_its_id_alone_for_scripts(run: Run) -> None:
    opened = run("sandbox", "talk")
    assert opened.out.strip().startswith("sandbox_")
    assert "talk on version 0" in opened.err


def test_a_discarded_sandbox_leaves_nothing(run: Run) -> None:
    run("sandbox", "talk")
    run("turn", "talk", "user", "never mind")
    assert run("discard", "talk").code == 0
    assert run("stats", "--json").json["memories"] == 0


@pytest.mark.parametrize("before", [True, False])
def test_common_options_stand_before_or_after_the_command(run: Run, tmp_path: Path, before: bool) -> None:
    common = ["--root", str(tmp_path / "other"), "--account", "User01", "--scope", "orion", "--json"]
    command = ["remember", "plays chess badly"]
    done = run(*common, *command) if before else run(*command, *common)
    assert done.json["memory"]["scope"] == "orion"
    assert octavo.accounts(tmp_path / "other") == ["User01"]


def test_the_environment_names_account_scope_and_actor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_ACCOUNT", "ผู้ใช้")
    monkeypatch.setenv("OCTAVO_SCOPE", "elysia")
    monkeypatch.setenv("OCTAVO_ACTOR", "agent:elysia")
    memory = run("remember", "ชอบกาแฟดำ", "--json").json["memory"]
    assert (memory["scope"], memory["actor"]) == ("elysia", "agent:elysia")
    assert run("accounts").out.strip() == "ผู้ใช้"


def test_the_person_at_the_keyboard_is_the_actor(run: Run) -> None:
    assert run("remember", "plays chess badly", "--json").json["memory"]["actor"].startswith("human:")


def test_text_comes_from_standard_input(run: Run) -> None:
    assert run("remember", "-", "--json", stdin="ชอบกาแฟดำ\n").json["memory"]["text"] == "ชอบกาแฟดำ"


def test_several_memories_come_from_a_file_of_lines(run: Run, tmp_path: Path) -> None:
    lines = ['{"text": "owns a red bicycle", "at": "2026-01-02"}', '{"text": "is 44"}']
    (tmp_path / "facts.jsonl").write_text("\n".join(lines))
    verdicts = run("remember-many", "facts.jsonl", "--json").json["verdicts"]
    assert [v["outcome"] for v in verdicts] == ["admitted", "admitted"]
    assert verdicts[0]["memory"]["at"] == "2026-01-02T00:00:00Z"


def test_json_is_one_document_with_times_in_utc(run: Run) -> None:
    run("remember", "plays chess badly", "--at", "2026-05-04T09:30+07:00")
    page = run("memories", "--json").json
    assert page["next"] is None
    assert page["memories"][0]["at"] == "2026-05-04T02:30:00Z"


def test_a_refused_memory_leaves_with_five_and_says_what_to_do(run: Run) -> None:
    refused = run("remember", "my card is 4111 1111 1111 1111")
    assert refused.code == 5
    assert "refused by secret" in refused.err
    assert "4111" not in refused.out + refused.err
    assert run("remember", "my card is 4111 1111 1111 1111", "--json").json["check"] == "secret"
    assert "secret" in run("refusals").out


def test_a_proposal_leaves_with_five_and_can_be_approved(run: Run) -> None:
    asked = run("--actor", "agent:orion", "remember", "speaks Thai at home", "--kind", "canon", "--json")
    assert (asked.code, asked.json["outcome"]) == (5, "proposed")
    proposal = asked.json["proposal"]
    assert "speaks Thai" in run("proposals").out
    seen = run("proposal", proposal, "--json").json["digest"]
    assert run("approve", proposal, "--seen", seen).code == 0
    assert "speaks Thai" in run("memories", "--kind", "canon").out


def test_what_a_person_rejects_stays_out(run: Run) -> None:
    run("remember", "แพ้ถั่วลิสง", "--id", "nuts")
    assert "ended 1" in run("reject", "แพ้ถั่วลิสง", "--reason", "never true").out
    assert "never true" in run("rejections").out
    assert run("remember", "แพ้ถั่วลิสง").code == 5
    assert run("unreject", "แพ้ถั่วลิสง").code == 0
    assert run("remember", "แพ้ถั่วลิสง").code == 0


def test_a_redaction_asks_before_it_erases(run: Run, tmp_path: Path) -> None:
    run("remember", "แพ้ถั่วลิสง", "--id", "nuts")
    assert run("redact", "nuts", "--reason", "asked to").code == 2
    assert run("redact", "nuts", "--reason", "asked to", "--yes").code == 0
    assert not any("แพ้ถั่วลิสง" in p.read_text() for p in (tmp_path / "root").rglob("*.jsonl"))


def test_a_misspelt_account_is_an_error_that_lists_those_there_are(run: Run) -> None:
    run("init", "--account", "User01")
    missed = run("stats", "--account", "Usr01")
    assert missed.code == 3
    assert "there are: User01" in missed.err
    assert run("accounts").out.split() == ["User01"]


def test_errors_are_json_when_json_is_asked_for(run: Run) -> None:
    for line in (["get", "nothing", "--json"], ["--json", "remember"], ["nonsense", "--json"]):
        failed = run(*line)
        fault = json.loads(failed.err)["error"]
        assert fault["exit_code"] == failed.code != 0
        assert fault["message"]
        assert fault["advice"]
        assert failed.out == ""


def test_a_wrong_command_suggests_the_right_one(run: Run) -> None:
    missed = run("remembr", "x")
    assert missed.code == 2
    assert "'remember'" in missed.err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (["remember", "x", "--kind", "tier"], 2),
        (["remember", "x", "--at", "yesterday"], 2),
        (["remember", "x", "--data", "{"], 2),
        (["update-state", "talk", "calm", "no file"], 2),
        (["get", "nothing"], 3),
        (["history", "nothing"], 3),
        (["stats", "--at", "99"], 3),
        (["turn", "nowhere", "user", "hello"], 3),
        (["export", "out", "--format", "zip"], 2),
        (["--actor", "agent:orion", "restore", "0"], 6),
        (["--scope", "orion", "restore", "0"], 6),
        (["delete-account", "default"], 2),
        (["--account", "", "stats"], 2),
        (["stats", "--account", ""], 2),
        (["stats", "--actor", "root"], 2),
    ],
)
def test_exit_codes_come_from_the_tree_of_errors(run: Run, line: list[str], code: int) -> None:
    run("init")
    failed = run(*line)
    assert failed.code == code
    assert failed.err.startswith("Error: ")
    assert "→" in failed.err


def test_a_busy_sandbox_leaves_with_four(run: Run, tmp_path: Path) -> None:
    sandbox = run("sandbox", "talk").out.strip()
    with octavo.open(tmp_path / "root") as account:
        held = account.resume(sandbox)
        assert run("turn", sandbox, "user", "hello").code == 4
        assert "talk" in run("buffer", sandbox).out
        held.close()
    assert run("turn", sandbox, "user", "hello").code == 0


def test_damage_leaves_with_seven_and_names_the_file(run: Run, tmp_path: Path) -> None:
    run("remember", "owns a red bicycle")
    assert "sound: 1 version," in run("check").out
    path = next((tmp_path / "root").rglob("ledger/*.jsonl"))
    path.write_text(path.read_text().replace("bicycle", "motorbike"))
    found = run("check")
    assert found.code == 7
    assert "00000000000000000001.jsonl, line 2" in found.out


def test_a_folder_that_cannot_be_written_is_no_defect(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run("--root", str(tmp_path / "file"), "accounts").code == 2
    assert run("--root", str(tmp_path / "file"), "init").code == 8


def program_failing_with(error: Exception) -> Callable[..., int]:
    def program(**_: object) -> int:
        raise error

    return program


def test_an_unexpected_error_is_one_line_and_a_hint(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = program_failing_with(ZeroDivisionError("oh"))
    assert cli.run(["stats"], program) == 1
    err = capfd.readouterr().err
    assert err.startswith("Error: ZeroDivisionError: oh\n  → ")
    assert "Traceback" not in err
    monkeypatch.setenv("OCTAVO_DEBUG", "1")
    cli.run(["stats"], program)
    assert "Traceback" in capfd.readouterr().err


def errors(kind: type[OctavoError] = OctavoError) -> list[type[OctavoError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in errors(child))]


@pytest.mark.parametrize("kind", errors(), ids=lambda kind: kind.__name__)
def test_every_error_leaves_with_its_code_and_its_hint(
    kind: type[OctavoError], capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["stats"], program_failing_with(kind("tried and failed"))) == kind.exit_code
    advice = advised(kind("tried and failed"), "command")
    assert capfd.readouterr().err == f"Error: tried and failed\n  → {advice}\n"


def test_advice_speaks_of_options_and_never_of_python_arguments(capfd: pytest.CaptureFixture[str]) -> None:
    for kind in errors():
        cli.run(["stats"], program_failing_with(kind("tried and failed")))
        assert not re.search(r"\w+=", capfd.readouterr().err), kind.__name__


def test_advice_that_an_error_brings_itself_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    cli.run(["stats"], program_failing_with(HumanOnly("tried", hint="wait for Nok")))
    assert "wait for Nok" in capfd.readouterr().err


def test_forgetting_what_is_not_there_leaves_like_reading_it(run: Run) -> None:
    run("remember", "likes tea", "--id", "tea")
    assert run("forget", "nothing").code == run("get", "nothing").code == 3
    assert run("forget", "tea", "nothing").code == 3
    assert run("get", "tea").code == 3


def test_what_a_verdict_advises_can_be_typed(run: Run) -> None:
    run("remember", "lives in Bangkok")
    advice = run("remember", "moved from Bangkok, lives in Lampang now").err
    (said,) = re.findall(r"--supersedes (\w+);", advice)
    assert f"in place of {said}" in run("remember", "lives in Lampang", "--supersedes", said).out


def test_time_travel_and_the_way_back(run: Run) -> None:
    run("remember", "lives in Chiang Mai", "--kind", "register", "--topic", "home")
    run("remember", "lives in Lampang", "--kind", "register", "--topic", "home")
    assert "Chiang Mai" in run("memories", "--at", "1").out
    assert "[-Chiang Mai-]{+Lampang+}" in run("diff", "1", "2").out
    assert run("diff").out == run("diff", "1", "2").out
    assert "version 3" in run("restore", "1").out
    assert "Chiang Mai" in run("memories").out
    assert "restore 1" in run("versions").out


def test_a_memory_is_revised_forgotten_and_its_history_stays(run: Run) -> None:
    run("remember", "ชอบชาเขียว", "--id", "tea")
    assert "revision 2" in run("revise", "tea", "--text", "ชอบชาดำ", "--tag", "drink").out
    assert "ชอบชาดำ" in run("get", "tea").out
    assert "forgotten" in run("forget", "tea").out
    assert run("get", "tea").code == 3
    history = run("history", "tea").out
    assert all(text in history for text in ("ชอบชาเขียว", "ชอบชาดำ", "forgotten"))


def test_a_table_shows_topic_text_and_tags_of_a_memory_beside_each_other(run: Run) -> None:
    run(
        "remember", "ชอบกาแฟดำ", "--kind", "register", "--topic", "drink", "-t", "taste", "--at", "2026-05-04"
    )
    id_ = run("memories", "--json").json["memories"][0]["id"]
    header, row = run("memories").out.splitlines()
    assert header.split() == ["id", "kind", "at", "text"]
    assert row == f"{id_}  register  2026-05-04 00:00  drink  ชอบกาแฟดำ  #taste"
    assert run("history", id_).out.splitlines()[1].endswith("  drink  ชอบกาแฟดำ  #taste")


def test_short_options_mean_what_the_long_ones_do(run: Run) -> None:
    run("sandbox", "talk", "-a", "nok")
    run("remember", "owns a red bicycle", "-s", "talk", "-a", "nok")
    assert "bicycle" in run("memories", "-s", "talk", "-n", "1", "-a", "nok").out
    assert run("recall", "bicycle", "-k", "1", "-w", "--words", "-a", "nok", "-s", "talk").code == 0
    assert run("delete-account", "nok", "-y").code == 0


def test_a_backup_opens_like_the_original(run: Run) -> None:
    run("remember", "owns a red bicycle")
    assert run("backup", "copy").code == 0
    assert "bicycle" in run("memories", "--root", "copy").out


def test_an_account_travels_as_the_documents_tree(run: Run) -> None:
    run("remember", "ชอบกาแฟดำ", "--confidence", "0.9")
    assert run("export", "tree").code == 0
    done = run("import", "tree", "--root", "elsewhere", "--json")
    assert (done.code, done.json["format"]) == (0, "msp")
    assert "ชอบกาแฟดำ" in run("memories", "--root", "elsewhere").out


def test_an_account_is_deleted_only_with_a_yes(run: Run) -> None:
    run("init")
    assert run("delete-account", "default").code == 2
    assert run("delete-account", "default", "--yes").code == 0
    assert run("accounts", "--json").json == {"accounts": []}


def test_a_memory_cannot_steer_the_terminal(run: Run) -> None:
    run("remember", "evil \x1b[2J [red]not markup[/red] :smile: \u202e turned")
    shown = run("memories").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[2J [red]not markup[/red] :smile:" in shown


def test_a_topic_is_never_read_as_markup(run: Run) -> None:
    run("remember", "owns a red bicycle", "--topic", "[bold]x[/bold]", "--id", "b")
    assert "[bold]x[/bold]" in run("get", "b").out


def test_clean_keeps_lines_and_thai_marks() -> None:
    assert clean("บรรทัด\nที่สอง\tน้ำ") == "บรรทัด\nที่สอง\tน้ำ"


def test_a_thai_difference_never_splits_a_letter_from_its_marks() -> None:
    assert changed_words("ชอบน้ำชา", "ชอบน้ำส้ม").plain == "ชอบน้ำ[-ชา-]{+ส้ม+}"


def test_colours_come_only_to_a_terminal_that_wants_them(run: Run) -> None:
    assert "\x1b[" not in run("remember", "owns a red bicycle").out


def octavo_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "octavo.doors.cli", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_completion_offers_commands_options_kinds_accounts_and_open_sandboxes(tmp_path: Path) -> None:
    with octavo.open(tmp_path, "User01") as account:
        account.sandbox("talk").close()
        account.sandbox("steers \x1b[2J").close()

    def completed(line: str) -> list[str]:
        words = {"_OCTAVO_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        return octavo_process(OCTAVO_ROOT=str(tmp_path), **words).stdout.split("\n")

    assert "remember" in completed("octavo rem")
    assert "--kind" in completed("octavo remember x --ki")
    assert "fact" in completed("octavo remember x --kind fa")
    assert "register" in completed("octavo memories --kind re")
    assert "User01" in completed("octavo stats --account Us")
    offered = completed("octavo --account User01 turn ")
    assert "talk" in offered
    assert len([name for name in offered if name.startswith("sandbox_")]) == 2
    assert not [name for name in offered if "\x1b" in name]
    assert not "".join(completed("octavo stats --account nobody"))


def test_ctrl_c_says_that_it_stopped_and_leaves_with_130(tmp_path: Path) -> None:
    for asks, name in (((), "Error: stopped"), (("--json",), '"type": "Interrupted"')):
        playing = subprocess.Popen(
            [sys.executable, "-m", "octavo", *asks, "robotgrid", "play"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OCTAVO_ROOT": str(tmp_path), "PYTHONUNBUFFERED": "1"},
            text=True,
        )
        assert playing.stdout is not None
        assert playing.stdout.readline().startswith("Tutorial")  # it waits for what is typed
        playing.send_signal(signal.SIGINT)
        assert name in playing.communicate()[1]
        assert playing.returncode == 130


def test_python_runs_the_package_as_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "octavo", "--root", str(tmp_path)]
    done = subprocess.run([*command, "get", "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == NotFound.exit_code
    assert "Traceback" not in done.stderr
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == octavo_process("--version").stdout


def test_the_version_is_the_package_s() -> None:
    assert octavo_process("--version").stdout.strip().count(".") == 2


def test_what_is_misspelt_is_answered_with_what_there_is(run: Run, tmp_path: Path) -> None:
    run("remember", "plays chess badly")
    kind = run("memories", "--kind", "fct")
    assert (kind.code, "'fct' is not one of 'episode', 'fact'" in kind.err) == (2, True)
    number = run("recall", "chess", "-k", "many")
    assert "'many' is not a valid number" in number.err
    assert "`octavo recall --help`" in number.err
    assert "`octavo remember --help`" in run("remember", "x", "--emotion").err
    assert "`octavo versions` lists" in run("restore", "9").err
    assert "'v1' is no version's number and no time" in run("diff", "v1").err


def test_a_file_that_stands_where_a_folder_should_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("[]")
    for command in (("memories",), ("remember", "plays chess badly"), ("accounts",)):
        shown = run("--root", str(tmp_path / "notes.json"), *command)
        assert (shown.code, "notes.json is no folder" in shown.err) == (2, True)
    shown = run("import", str(tmp_path / "notes.json"))
    assert (shown.code, "the shape of no format" in shown.err, "chatgpt" in shown.err) == (2, True, True)


@pytest.mark.parametrize(("typed", "meant"), [("list", "memories"), ("search", "recall"), ("undo", "revert")])
def test_a_command_as_other_programs_call_it_is_answered_with_ours(run: Run, typed: str, meant: str) -> None:
    shown = run(typed)
    assert shown.code == 2
    assert f"no command '{typed}'" in shown.err
    assert f"octavo {meant} --help" in shown.err
    assert run(meant, "--help").code == 0


def test_every_command_that_may_be_meant_is_there() -> None:
    assert set(TABLE["_meant"].values()) <= set(BY_NAME)
    assert not set(TABLE["_meant"]) & set(BY_NAME)
