"""Secrets: whatever field of whatever call they are handed in by, they reach no file, log or error."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from msgspec import Struct

import octavo
from canaries import holding
from octavo import documents
from octavo.domain.policy import PrivacyPolicy
from octavo.domain.privacy import find
from octavo.doors.adapters.anthropic import OctavoMemoryTool
from octavo.engine.intake import Intake
from octavo.errors import BadInput, OctavoError
from surface import (
    ENDING,
    OF_ACCOUNT,
    OF_DOCUMENTS,
    OF_HANDLE,
    OF_INTAKE,
    OF_SANDBOX,
    acts,
    call,
    holder,
    methods,
    needed,
    variants,
    world,
)

KEY = "AKIAIOSFODNN7Q2XMPLE"
SAID = "password: Hunter2-zebra-9"
CANARIES = {KEY: KEY, SAID: "Hunter2-zebra-9"}  # what is handed in, and what must be nowhere


def shapes(canary: str) -> list[Any]:
    """A canary in every shape that a caller could hand it in."""
    return [
        canary,
        [canary],
        {"a": canary},
        {canary: "a"},
        {"about": [canary]},
        {"label": canary},
        (canary, [0.5, 0.5]),
        [{"text": "a fact", "topic": canary}],
        [{canary: 1}],
        {"turn_1": {"speaker": canary, "raw_text": "hello"}, "RI_global": 0.5},
    ]


def tried(handle: Any, name: str, base: dict[str, Any]) -> Iterator[str]:
    """What a call says when it fails, for each canary in each parameter."""
    for canary in CANARIES:
        for arguments in variants(handle, name, base, shapes(canary)):
            try:
                call(handle, name, arguments)
            except OctavoError as error:
                yield "".join(traceback.format_exception(error, chain=True)).rpartition("octavo.errors")[2]
                yield f"{error} {error!r} {error.__cause__!r} {error.advice}"


def silent(root: Path, said: str) -> None:
    for secret in CANARIES.values():
        assert secret not in said
        assert holding(root, secret) == []
        assert not [path for path in root.rglob("*") if secret.lower() in path.name.replace("+", "")]


@pytest.mark.parametrize("name", sorted(set(OF_HANDLE) - {"close"}))
def test_a_secret_in_any_argument_of_an_account_stays_nowhere(
    opened, root, tmp_path, monkeypatch, caplog, name
):
    monkeypatch.chdir(tmp_path)
    w = world(opened, tmp_path)
    said = list(tried(holder(w.account, name), name, OF_HANDLE[name](w)))
    assert w.account.wait(60)
    silent(root, "\n".join(said) + caplog.text)
    assert "green tea" in w.account.get(w.fact).text


@pytest.mark.parametrize("name", sorted(set(OF_SANDBOX) - set(ENDING)))
def test_a_secret_in_any_argument_of_a_sandbox_stays_nowhere(opened, root, tmp_path, caplog, name):
    w = world(opened, tmp_path)
    said = list(tried(w.sandbox, name, OF_SANDBOX[name](w)))
    assert w.account.wait(60)
    silent(root, "\n".join(said) + caplog.text)
    assert w.sandbox.consolidate().version
    assert w.account.wait(60)
    silent(root, caplog.text)


@pytest.mark.parametrize("name", sorted(OF_DOCUMENTS))
def test_a_secret_in_any_argument_of_a_documents_interface_stays_nowhere(tmp_path, caplog, name):
    handle = OF_DOCUMENTS[name](tmp_path)
    said = []
    for method in sorted(acts(handle)):
        said += tried(handle, method, needed(getattr(handle, method)))
    (handle if hasattr(handle, "close") else handle.account).close()
    silent(tmp_path, "\n".join(said) + caplog.text)


def test_a_path_with_a_secret_is_not_repeated_by_the_memory_tool(account, root):
    tool = OctavoMemoryTool(account)
    for canary, secret in CANARIES.items():
        path = f"/memories/{canary}"
        for command in ("view", "delete", "create"):
            with pytest.raises(ToolError) as told:
                tool.call({"command": command, "path": path, "file_text": canary})
            assert secret not in str(told.value)
    assert "README" in tool.call(
        {"command": "create", "path": "/memories/README", "file_text": "hello there"}
    )
    silent(root, "")


def test_no_documents_interface_escapes_the_table():
    classes = [one for name in documents.__all__ if inspect.isclass(one := getattr(documents, name))]
    living = {c.__name__ for c in classes if not issubclass(c, Struct | dict)}
    values = {"MemoryEntry", "MemoryAssembly"}
    assert living - values == {*OF_DOCUMENTS, "AsyncMemoryCore"}  # which hands on to the other one


def test_no_public_method_escapes_the_table():
    assert methods(octavo.Account) == set(OF_ACCOUNT)
    assert methods(octavo.Sandbox) == set(OF_SANDBOX)
    assert methods(Intake) == set(OF_INTAKE)


@pytest.mark.parametrize("what", ["account", "actor", "scope"])
def test_a_secret_in_a_name_that_opens_an_account_stays_nowhere(root, what):
    for canary, secret in CANARIES.items():
        value = f"human:{canary}" if what == "actor" else canary
        with pytest.raises(BadInput) as refused:
            octavo.open(root, **{what: value})
        assert secret not in str(refused.value)
    assert not root.exists()
    octavo.open(root, "mali", actor="human:mali@example.com", scope="orion").close()


def test_a_text_refused_for_its_length_is_noted_without_its_secret(account, root):
    verdict = account.remember(f"{SAID} " + "and a long story " * 200)
    assert verdict.outcome == "refused"
    silent(root, "")


@pytest.mark.parametrize(
    "text",
    [
        "密码：hunter2x9",
        "我的密码是hunter2，请记住",
        "パスワードは hunter2x9 です",
        "비밀번호는 qwer1234 입니다",
        "пароль от почты Qwerty12",
        "كلمة السر هي hunter2x9",
        "मेरा पासवर्ड hunter2x9 है",
        "รหัสผ่านคือ hunter2x9",
        "secret key: abcdefgh",
        "access_token: qwertyuiop",
        "api key: 12345",
        "密钥: abcd1234efgh",
        "合言葉はhunter2x9",
        "пароль — Qwerty12",
        "пин-код 1234",
        "كلمة السر الخاصة بي هي hunter2x9",
        "mật khẩu là hunter2x9",
        "wachtwoord: hunter2x9",
        "รหัสคือ abc12345",
        "พินคือ 1234",
    ],
)
def test_a_password_is_known_by_its_name_in_many_languages(text):
    assert find(text, PrivacyPolicy())


@pytest.mark.parametrize(
    "text",
    [
        "密码是必须的",
        "密码至少需要8位",
        "パスワードを忘れました",
        "Пароль должен быть от 8 символов",
        "비밀번호는 8자리 이상",
        "token: 4096",
        "the secret: chocolate",
        "secret key: required",
        "รหัสคือสิ่งจำเป็น",
        "the author: Smith2020",
        "session = 12 minutes",
        "| password | string |",
    ],
)
def test_what_only_speaks_of_passwords_is_none(text):
    assert not find(text, PrivacyPolicy())


@pytest.mark.parametrize(
    "text",
    [
        "hvs.CAESIJ1234567890abcdefghijklmnopqrstuvwxyz",
        "gsk_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOP",
        "xai-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH",
        "key-0123456789abcdef0123456789abcdef",
        "Authorization: Basic dXNlcjpwYXNz",
        "curl -u admin:hunter2 https://x.example",
        "mysql -u root -phunter2x9",
        "export SECRET_KEY_BASE=abcdef1234",
        "Set-Cookie: session=abc123def456ghi7",
        "license key: ABCDE-FGHIJ-KLMNO-PQRST-12345",
        "4111.1111.1111.1111",
        "| password | hunter2x9 |",
        "password\nhunter2x9",
        "password \u2192 hunter2x9",
        "The recovery phrase is abandon abandon abandon abandon abandon abandon abandon abandon abandon "
        "abandon abandon about",
    ],
)
def test_a_key_is_known_by_its_make_or_by_where_it_stands(text):
    assert find(text, PrivacyPolicy())


@pytest.mark.parametrize(
    "text",
    [
        "ls -u admin: the list",
        "git log -p lists every patch",
        "version 4.11.1111.1111",
        "our secret_garden_with_a_very_long_name",
        "the key-word is in the dapi documentation",
        "password\nThe field is required.",
        "the recovery phrase is what you write down and never tell",
    ],
)
def test_what_only_looks_like_a_command_or_a_key_is_none(text):
    assert not find(text, PrivacyPolicy())
