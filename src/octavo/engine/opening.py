"""Opening, listing and deleting accounts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from octavo.domain import screening
from octavo.domain.memory import check_actor, check_scope, is_human
from octavo.domain.policy import Policy
from octavo.domain.ports import Place
from octavo.domain.verdicts import Guard
from octavo.engine import redaction
from octavo.engine.account import Account
from octavo.engine.spine import Spine
from octavo.engine.spines import open_spine
from octavo.engine.surface import fitted
from octavo.errors import BadInput, Busy, Damaged, HumanOnly, IndexDamaged, Unavailable
from octavo.models import embedders, rerank
from octavo.models.embedders import Embedder
from octavo.models.rerank import Reranker
from octavo.models.summarisers import Summariser
from octavo.storage.stores.places import place_of

_log = logging.getLogger(__name__)


@fitted
def open(  # noqa: A001  # octavo.open is the public name
    root: str | Path | Place,
    account: str = "default",
    *,
    actor: str = "agent",
    scope: str | None = None,
    read_only: bool = False,
    policy: Policy | str | Path | None = None,
    embedder: Embedder | Literal[False] | None = None,
    reranker: Reranker | Literal[False] | None = None,
    summariser: Summariser | None = None,
    clock: Callable[[], datetime] | None = None,
    accept_loss: bool = False,
    guard: Guard | None = None,
    cache: Path | None = None,
) -> Account:
    """Open an account in a folder or at a URL; it comes to be if it is not there, unless opened to read.

    `policy` is a Policy, or the path of a TOML file used instead of the account's own policy.toml.
    `reranker` takes a second look at the best hits: the extra's if None and it is installed, none if False,
    `octavo.offline_reranker()`, or any function of a question and some texts that gives each a score.
    `embedder` turns text into vectors for recall: the offline default if None, words alone if False.
    `accept_loss` opens an account whose ledger has lost its end, at what is left of it.
    `guard` is a check of the caller's own for what is remembered outside a sandbox: `(state, memory, policy)`
    gives a refused Verdict or None, at the commit itself, so that it holds however many writers there are.
    `cache` is the folder for what is derived from an account at a URL; it can be deleted at any time.
    """
    if screening.check_name(account, "account").startswith("."):  # tokens are kept beside the accounts
        raise BadInput(f"account {account!r} cannot be used", hint="begin its name with a letter or a digit")
    check_actor(screening.check_name(actor, "actor"))
    if scope is not None:
        check_scope(screening.check_name(scope, "scope"))
    if accept_loss and not read_only and not is_human(actor):
        raise HumanOnly(f"{actor} tried to accept the loss of versions")
    spine = open_spine(
        root,
        account,
        read_only=read_only,
        policy=policy,
        clock=clock,
        accept_loss=accept_loss,
        cache_root=cache,
    )
    handle = Account(
        spine,
        actor=actor,
        scope=scope,
        embedder=_embedder(embedder),
        reranker=partial(_reranker, reranker, spine.policy, embedder is not False),
        summariser=summariser,
        guard=guard,
    )
    if not read_only:
        _finish_sweeps(spine)
    return handle


@fitted
def accounts(root: str | Path | Place, after: str = "", limit: int | None = None) -> list[str]:
    """The accounts in a place, or those beyond one of them, at most so many."""
    place, names = place_of(root), list[str]()
    while limit is None or len(names) < limit:
        page = 1000 if limit is None else min(limit - len(names), 1000)
        more = place.accounts(after, page)
        names += more
        if len(more) < page:
            break
        after = more[-1]
    return names


@fitted
def delete_account(root: str | Path | Place, account: str) -> None:
    """Delete an account whole, with its history; nothing can bring it back."""
    place_of(root).delete(account)


def _embedder(given: Embedder | Literal[False] | None) -> Embedder | None:
    """The embedder asked for, or the offline default if installed; nothing loads before its first use."""
    if given is None:
        return embedders.offline_embedder() if embedders.is_offline_installed() else None
    return given or None


def _reranker(given: Reranker | Literal[False] | None, policy: Policy, has_models: bool) -> Reranker | None:
    """Who looks twice: the one asked for, or the extra's if it is there; nobody where the policy says so."""
    if not policy.index.rerank or given is False:
        return None
    if given is None:
        return rerank.offline_reranker() if has_models and rerank.is_rerank_installed() else None
    return given


def _finish_sweeps(spine: Spine) -> None:
    """Finish a redaction that was interrupted, before anybody reads."""
    try:
        if spine.state.has("redaction"):
            redaction.sweep(spine)
    except IndexDamaged:
        spine.state.rebuild()
        redaction.sweep(spine)
    except (Busy, Damaged, Unavailable) as error:  # others are at work: `check` says that it is not swept yet
        _log.warning("sweep put off reason=%s", type(error).__name__)
