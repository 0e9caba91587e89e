"""An account is a folder: copied, cloned or backed up, it checks and reads the same."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import octavo
from octavo.errors import BadInput, NotFound


@pytest.fixture
def root(tmp_path) -> Path:
    with octavo.open(tmp_path / "root", "User01", actor="human:ann") as account:
        with account.sandbox("เช้า", scope="orion") as sandbox:
            sandbox.turn("user", "I moved to Chiang Mai last week.")
            sandbox.turn("assistant", "ยินดีด้วยค่ะ")
            sandbox.update_state("ire_state", {"calm": 0.8})
        account.remember("lives in Chiang Mai", kind="register", topic="home")
        account.remember("มะลิชอบชาเขียว")
        account.remember("not sure at all", confidence=0.2)
        account.forget(account.memories(kind="fact")[0].id)
        left = account.sandbox("บ่าย")
        left.turn("user", "แล้วเจอกัน")
        left.close()
    (tmp_path / "root" / "+user01" / "policy.toml").write_text("[sandbox]\nmax_episodes = 30\n")
    return tmp_path / "root"


def everything(root: Path, *, read_only: bool = False) -> dict[str, object]:
    with octavo.open(root, "User01", read_only=read_only) as account:
        report = account.check()
        assert report, report.problems
        return {
            "versions": account.versions(),
            "memories": [account.at(v).memories() for v in range(account.version + 1)],
            "histories": [account.history(m.id) for m in account.memories()],
            "sessions": account.sessions(),
            "refusals": account.refusals(),
            "sandboxes": [(s.id, s.name, s.lines) for s in account.sandboxes()],
            "stats": account.stats(),
            "policy": account.policy,
            "diff": account.diff(1, 3),
        }


def test_a_copied_folder_checks_and_reads_the_same(root, tmp_path):
    wanted = everything(root)
    shutil.copytree(root, tmp_path / "copy")
    assert everything(tmp_path / "copy") == wanted
    subprocess.run(["cp", "-r", str(root), str(tmp_path / "cp")], check=True)
    assert everything(tmp_path / "cp") == wanted
    assert everything(tmp_path / "cp", read_only=True) == wanted


def git(*words: str, at: Path) -> str:
    who = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_CONFIG_GLOBAL": os.devnull}
    who |= {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t", "PATH": os.environ["PATH"]}
    return subprocess.run(["git", *words], cwd=at, env=who, check=True, capture_output=True, text=True).stdout


def test_a_git_clone_without_the_index_checks_and_reads_the_same(root, tmp_path):
    wanted = everything(root)
    git("init", "-q", ".", at=root)
    git("add", ".", at=root)
    git("commit", "-q", "-m", "my memory", at=root)
    assert "index/" not in git("ls-files", at=root)
    git("clone", "-q", str(root), str(tmp_path / "clone"), at=tmp_path)
    assert not (tmp_path / "clone" / "+user01" / "index").exists()
    assert everything(tmp_path / "clone", read_only=True) == wanted
    assert not (tmp_path / "clone" / "+user01" / "index").exists()
    assert everything(tmp_path / "clone") == wanted
    assert git("status", "--porcelain", at=tmp_path / "clone") == ""


def test_a_clone_goes_on_where_the_original_stood(root, tmp_path):
    shutil.copytree(root, tmp_path / "copy", ignore=shutil.ignore_patterns("index"))
    with octavo.open(tmp_path / "copy", "User01") as account:
        before = account.version
        [left] = account.sandboxes()
        assert account.resume(left.id).consolidate().version == before + 1
    with octavo.open(root, "User01") as account:
        assert account.version == before
        assert len(account.sandboxes()) == 1


def test_a_backup_opens_like_the_original(root, tmp_path):
    wanted = everything(root)
    with octavo.open(root, "User01") as account:
        account.backup(tmp_path / "backup")
        with pytest.raises(BadInput, match="exists already"):
            account.backup(tmp_path / "backup")
    assert not (tmp_path / "backup" / "+user01" / "index").exists()
    assert everything(tmp_path / "backup") == wanted


def test_accounts_lie_side_by_side_in_any_case(tmp_path):
    names = ["User01", "user01", "มะลิ", "a.b", "CON", "me@home"]
    for name in names:
        with octavo.open(tmp_path, name, actor="human:ann") as account:
            account.remember(f"I am {name}", kind="register", topic="me")
    assert sorted(octavo.accounts(tmp_path)) == sorted(names)
    folders = [path.name for path in tmp_path.iterdir()]
    assert len({name.lower() for name in folders}) == len(names)
    for name in names:
        with octavo.open(tmp_path, name, read_only=True) as account:
            assert [m.text for m in account.memories()] == [f"I am {name}"]


def test_a_deleted_account_is_gone_and_the_others_stay(tmp_path):
    for name in ("one", "สอง"):
        octavo.open(tmp_path, name).close()
    octavo.delete_account(tmp_path, "one")
    assert octavo.accounts(tmp_path) == ["สอง"]
    with pytest.raises(NotFound):
        octavo.delete_account(tmp_path, "one")
    with pytest.raises(NotFound):
        octavo.open(tmp_path, "one", read_only=True)


def traces(root: Path) -> dict[Path, int]:
    """When each file was changed; what is derived aside, where SQLite keeps its locks."""
    return {p: p.stat().st_mtime_ns for p in sorted(root.rglob("*")) if "index" not in p.parts}


def test_opening_to_read_touches_nothing_but_what_is_derived(root):
    before = traces(root)
    with octavo.open(root, "User01", read_only=True) as account:
        assert account.memories()
        assert account.check()
    assert traces(root) == before
