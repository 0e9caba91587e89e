"""Places: where accounts lie, named by a folder's path or a URL."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from octavo.domain.ports import Place
from octavo.errors import BadInput, NotFound
from octavo.libraries import shutil
from octavo.storage.stores.local import LocalStore
from octavo.storage.stores.names import account_of, folder_of, shown
from octavo.storage.stores.objects import ObjectsPlace
from octavo.storage.stores.postgres import PostgresPlace

_PLACES = 16


class LocalPlace:
    """Accounts in one folder, a folder each."""

    def __init__(self, root: Path) -> None:
        self.name = str(root)
        try:
            self.root = root.absolute()  # the same folder wherever this process goes later
        except FileNotFoundError as error:
            hint = "name the folder by its whole path"
            raise NotFound(f"{root} is relative to a folder that is gone", hint=hint) from error

    def open(self, account: str) -> LocalStore:
        """The store of one account."""
        return LocalStore(self.root / folder_of(account))

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the folder, at most so many."""
        start = folder_of(after) if after else ""
        try:
            folders = sorted(path for path in self.root.iterdir() if path.name > start)
        except FileNotFoundError as error:
            hint = "name the folder that holds the accounts"
            raise NotFound(f"there is no folder {self.root}", hint=hint) from error
        names = (account_of(path.name) for path in folders if (path / "account.json").exists())
        return [name for name in names if name is not None][:limit]

    def delete(self, account: str) -> None:
        """Remove an account whole."""
        folder = self.root / folder_of(account)
        if not (folder / "account.json").exists():
            raise NotFound(f"there is no account {account!r} in {self.root}")
        doomed = folder.with_name(f".deleted-{folder.name}")
        folder.rename(doomed)  # gone at once for everybody, even if the removal is interrupted
        shutil.rmtree(doomed)


def place_of(root: str | Path | Place) -> Place:
    """The place that a path or a URL names; a place is one already."""
    if isinstance(root, Path):
        return LocalPlace(root)
    if not isinstance(root, str):
        if not isinstance(root, Place):
            raise BadInput(
                f"a {type(root).__name__} is no place for accounts", hint="a folder's path or a URL"
            )
        return root
    return _remote(root) if "://" in root else LocalPlace(Path(root))


@lru_cache(maxsize=_PLACES)  # a pool of connections a place, not one an account
def _remote(url: str) -> Place:
    match url.partition("://")[0]:
        case "postgresql" | "postgres":
            return PostgresPlace(url)
        case "s3" | "gs" | "az":
            return ObjectsPlace(url)
    hint = "a folder's path, postgresql://…, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix?account=…"
    raise BadInput(f"{shown(url)} is no place for accounts", hint=hint)
