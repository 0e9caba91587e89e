"""Operations on the place that accounts lie in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from octavo.doors import python
from octavo.doors.operations.performing import accounts_in, exists, missing, policy_name, store_of
from octavo.doors.operations.table import operation
from octavo.doors.settings import Settings
from octavo.engine import copies, opening
from octavo.errors import BadInput, NotFound
from octavo.storage import codec
from octavo.storage.stores.places import place_of


@operation('octavo init --account "User01"', writes=True, local=True)
def init(
    settings: Settings, *, policy: Annotated[Path | None, "A TOML file to begin with as policy.toml."] = None
) -> dict[str, Any]:
    """Begin an account, with its policy if one is given."""
    is_new = not exists(settings)
    if policy is not None and not is_new:
        raise BadInput(f"account {settings.account!r} is there already", hint=f"edit {policy_name(settings)}")
    rules = None if policy is None else _usable(policy)
    with python.open(settings.root, settings.account, actor=settings.actor, cache=settings.cache) as account:
        if rules is not None:
            store_of(settings).replace("policy.toml", rules)
        return {
            "account": account.name,
            "root": place_of(settings.root).name,
            "version": account.version,
            "is_new": is_new,
        }


@operation("octavo accounts", result="accounts")
def accounts(settings: Settings) -> list[str]:
    """List the accounts there are."""
    return accounts_in(settings.root)


@operation(
    "octavo delete-account User01 --yes",
    writes=True,
    asks="Delete account {name} with its whole history? Nothing can bring it back.",
    result="deleted",
)
def delete_account(settings: Settings, name: Annotated[str, "The account to delete."]) -> str:
    """Delete an account whole, with its history."""
    if not exists(replace(settings, account=name)):
        raise missing(settings.root, name)
    opening.delete_account(settings.root, name)
    return name


@operation("octavo salvage /mnt/rescued", local=True, result="path")
def salvage(settings: Settings, path: Annotated[Path, "The folder to make the new account in."]) -> str:
    """Copy what lies before the first damage of an account's ledger into a new account."""
    with python.open(settings.root, settings.account, read_only=True, accept_loss=True) as account:
        return account.salvage(path)


@operation(
    "octavo move User01 postgresql://db.example/octavo",
    writes=True,
    local=True,
    result="path",
)
def move(
    settings: Settings,
    name: Annotated[str, "The account to move."],
    to: Annotated[str, "The folder or the URL it goes to."],
) -> str:
    """Move an account with its history to another place; nobody may be writing to it."""
    if not exists(replace(settings, account=name)):
        raise missing(settings.root, name)
    return copies.move(settings.root, name, to)


def _usable(path: Path) -> bytes:
    """A policy file that can be used, so that a bad one begins no account."""
    if not path.is_file():
        raise NotFound(f"there is no policy file {path}", hint="name a TOML file")
    rules = path.read_bytes()
    codec.decode_policy(rules, str(path))
    return rules
