"""Giving a coding agent this memory: the difference is shown first, other settings stay, undoing restores."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from octavo.doors import agents, cli
from octavo.doors.settings import Settings
from octavo.errors import BadFile, BadInput

CLIENTS = ("claude-code", "codex", "cursor")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a person's own settings, laid out in their own way."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    hook = {"hooks": [{"type": "command", "command": "say done"}]}
    own = {
        ".claude.json": json.dumps({"theme": "dark", "mcpServers": {"other": {"command": "x"}}}),
        ".claude/settings.json": json.dumps({"hooks": {"Stop": [hook]}, "model": "ไทย"}, ensure_ascii=False),
        ".codex/config.toml": 'model = "o"\n[mcp_servers.other]\ncommand = "x"\n\n\n[tui]\na = 1',
        ".cursor/mcp.json": '{"mcpServers": {"other": {"command": "x"}}}',
        ".cursor/hooks.json": json.dumps(
            {"version": 1, "hooks": {"stop": [{"command": "say done"}], "sessionEnd": [{"command": "b"}]}}
        ),
    }
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def files(home: Path) -> dict[str, str]:
    return {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}


@pytest.fixture
def settings(root: Path) -> Settings:
    return Settings(root=root, account="User 01", scope="orion")


@pytest.mark.parametrize("client", CLIENTS)
def test_undoing_restores_every_byte(home: Path, settings: Settings, client: agents.Client, capsys) -> None:
    before = files(home)
    agents.install(settings, client, undo=False, yes=True)
    shown = capsys.readouterr().out
    assert "+++" in shown
    assert '"other"' not in "".join(line for line in shown.splitlines() if line.startswith("-  "))
    assert files(home) != before
    assert agents.install(settings, client, undo=False, yes=True)["written"] == []
    agents.install(settings, client, undo=True, yes=True)
    assert files(home) == before
    assert agents.install(settings, client, undo=True, yes=True)["undone"] == []


def test_claude_code_gets_tools_hooks_and_a_skill_beside_what_is_there(
    home: Path, settings: Settings
) -> None:
    agents.install(settings, "claude-code", undo=False, yes=True)
    servers = json.loads((home / ".claude.json").read_text())["mcpServers"]
    assert set(servers) == {"other", "octavo"}
    assert servers["octavo"]["args"][-3:] == ["--scope", "orion", "mcp"]
    hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"}
    assert [len(groups) for groups in hooks.values()].count(2) == 1
    assert hooks["Stop"][0]["hooks"][0]["command"] == "say done"
    skill = (home / ".claude/skills/octavo/SKILL.md").read_text()
    assert skill.startswith("---\nname: octavo\ndescription: ")
    assert len(skill.split("description: ")[1].partition("\n")[0]) < 1024


def test_what_was_changed_since_stays_when_it_is_undone(home: Path, settings: Settings) -> None:
    agents.install(settings, "claude-code", undo=False, yes=True)
    path = home / ".claude.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "theme": "light"}))
    agents.install(settings, "claude-code", undo=True, yes=True)
    assert json.loads(path.read_text()) == {"theme": "light", "mcpServers": {"other": {"command": "x"}}}


@pytest.mark.parametrize("client", CLIENTS)
def test_in_an_empty_home_only_its_own_files_come_and_all_of_them_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings, client: agents.Client
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    done = agents.install(settings, client, undo=False, yes=True)
    assert sorted(files(home)) == sorted(str(Path(path).relative_to(home)) for path in done["written"])
    agents.install(settings, client, undo=True, yes=True)
    assert list(home.iterdir()) == []


def test_what_a_person_added_to_codexs_entry_goes_with_it(home: Path, settings: Settings) -> None:
    agents.install(settings, "codex", undo=False, yes=True)
    path = home / ".codex/config.toml"
    path.write_text(
        path.read_text() + '\n[mcp_servers.octavo.env]\nOCTAVO_EMBEDDER = "none"\n\n[own]\nb = 2\n'
    )
    agents.install(Settings(root=settings.root, account="other"), "codex", undo=False, yes=True)
    config = tomllib.loads(path.read_text())
    assert config["mcp_servers"]["octavo"]["env"] == {"OCTAVO_EMBEDDER": "none"}
    assert "other" in config["mcp_servers"]["octavo"]["args"]
    agents.install(settings, "codex", undo=True, yes=True)
    config = tomllib.loads(path.read_text())
    assert set(config["mcp_servers"]) == {"other"}  # half an entry would keep Codex from starting
    assert (config["tui"], config["own"]) == ({"a": 1}, {"b": 2})


def test_codex_reads_the_same_command(home: Path, settings: Settings) -> None:
    agents.install(settings, "codex", undo=False, yes=True)
    config = tomllib.loads((home / ".codex/config.toml").read_text())
    assert config["mcp_servers"]["octavo"]["args"][:2] == ["-m", "octavo"]
    assert config["tui"] == {"a": 1}
    assert config["mcp_servers"]["other"] == {"command": "x"}
    hooks = json.loads((home / ".codex/hooks.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"}
    assert "--actor agent:codex hook stop" in hooks["SessionEnd"][0]["hooks"][0]["command"]


def test_cursor_gets_hooks_in_its_own_form_beside_what_is_there(home: Path, settings: Settings) -> None:
    agents.install(settings, "cursor", undo=False, yes=True)
    written = json.loads((home / ".cursor/hooks.json").read_text())
    hooks = written["hooks"]
    assert written["version"] == 1
    assert set(hooks) == {"sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "sessionEnd", "stop"}
    assert (hooks["stop"], hooks["sessionEnd"][0]) == ([{"command": "say done"}], {"command": "b"})
    (start,) = hooks["sessionStart"]
    assert start["command"].endswith("--scope orion --actor agent:cursor hook session-start")
    assert hooks["sessionEnd"][1]["command"].endswith("hook stop")
    other = {"version": 1, "hooks": {"sessionStart": [start, {"command": "mine"}]}}
    (home / ".cursor/hooks.json").write_text(json.dumps(other))
    agents.install(settings, "cursor", undo=True, yes=True)
    left = json.loads((home / ".cursor/hooks.json").read_text())
    assert left == {"version": 1, "hooks": {"sessionStart": [{"command": "mine"}]}}


def test_another_account_replaces_the_entry_instead_of_adding_one(home: Path, root: Path) -> None:
    for name in ("first", "second"):
        agents.install(Settings(root=root, account=name), "claude-code", undo=False, yes=True)
    text = (home / ".claude/settings.json").read_text()
    assert "first" not in text
    assert text.count("--account second") == 5


def test_no_password_is_written_into_a_clients_configuration(home: Path) -> None:
    place = Settings(root="postgresql://octavo:hunter2@db.example/memory", cache=home / "cache")
    agents.install(place, "cursor", undo=False, yes=True)
    written = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["octavo"]["args"]
    assert "postgresql://octavo@db.example/memory" in written
    assert "hunter2" not in "".join(files(home).values())


def test_nothing_is_written_without_a_yes(home: Path, settings: Settings) -> None:
    before = files(home)
    with pytest.raises(BadInput, match="--yes"):
        agents.install(settings, "cursor", undo=False, yes=False)
    (home / ".cursor/mcp.json").write_text("{broken")
    with pytest.raises(BadFile, match=r"\.cursor/mcp\.json cannot be read"):
        agents.install(settings, "cursor", undo=False, yes=True)
    (home / ".cursor/mcp.json").write_text(before[".cursor/mcp.json"])
    assert files(home) == before


def test_the_command_line_says_what_was_written(home: Path, root: Path, capfd) -> None:
    assert cli.run(["--root", str(root), "install", "cursor", "--yes"]) == 0
    assert "mcp.json" in capfd.readouterr().out
    assert cli.run(["--root", str(root), "install", "emacs"]) == 2
