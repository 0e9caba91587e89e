"""What every act on an open account needs: who acts, in which scope, its index and its background work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from octavo.domain.memory import SHARED, check_actor, check_scope, check_time, is_human
from octavo.domain.ports import Formats
from octavo.domain.rules import Candidate
from octavo.domain.verdicts import Guard, Verdict
from octavo.engine import (
    assemble,
    boosts,
    compress,
    embedding,
    explain,
    indexing,
    judging,
    mirror,
    recall,
    writing,
)
from octavo.engine.explain import Explainer
from octavo.engine.health import ChainProof
from octavo.engine.indexing import Indexing
from octavo.engine.reading import Reader
from octavo.engine.recall import Recaller
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.engine.worker import Worker
from octavo.engine.writing import Writer, commit_writes
from octavo.errors import HumanOnly, NotFound, OutOfScope
from octavo.models import summarisers
from octavo.models.embedders import Embedder
from octavo.models.rerank import Reranker, TokenReranker
from octavo.models.summarisers import ModelSummariser, Summariser

_TOGETHER_SECONDS = 0.25  # what is written within it is indexed together
_CORES = 8
_ENCODED = 64  # passages that are encoded for a second look before somebody may close the account


@public
class Handle(Reader):
    """An account held by one actor, within one scope or (scope=None) all of them."""

    def __init__(
        self,
        spine: Spine,
        *,
        actor: str,
        scope: str | None,
        embedder: Embedder | None = None,
        reranker: Callable[[], Reranker | None] | None = None,
        summariser: Summariser | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._guard = guard
        self._proof = ChainProof(spine)
        self._worker = Worker(
            self._work, attempts=spine.policy.compression.attempts, delay_seconds=_TOGETHER_SECONDS
        )
        self._embedder, self._reranker = embedder, reranker
        self._made: tuple[Indexing, Recaller] | None = None
        self._making = threading.Lock()
        super().__init__(spine, scope, self._recall)
        if embedder is not None and not spine.read_only:
            spine.dimensions[embedder.name] = embedder.dimension
        self.actor = check_actor(actor)
        self.name = spine.identity.account
        self.policy = spine.policy
        self.formats: Formats | None = None
        self._given_summariser = summariser
        self._judged = spine.state.watermark()[0] if isinstance(summariser, ModelSummariser) else 0

    def __repr__(self) -> str:
        scope = "" if self.scope is None else f", scope={self.scope!r}"
        return f"Account({self.name!r}, actor={self.actor!r}{scope})"

    @property
    def explained(self) -> Explainer:
        """What assemblies are, why they were activated or merged, and where they come from."""
        return explain.Explainer(self._spine, self, self._indexing)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the background work that is under way; False if the time ran out."""
        return self._worker.wait(seconds)

    def close(self) -> None:
        """Finish background work and let go of the account."""
        self._worker.stop()
        self._spine.state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, writes: Sequence[Candidate | Verdict], cause: str, **more: Any) -> list[Verdict]:
        written = commit_writes(self._writer(None), writes, cause=cause, scope=self.scope, **more)
        self._worker.wake()
        return written

    def _writer(self, scope: str | None) -> Writer:
        name = check_scope(scope or self.scope or SHARED)
        self._must_see(name)
        visible = None if self.scope is None else frozenset({SHARED, self.scope})
        return writing.Writer(
            spine=self._spine,
            actor=self.actor,
            scope=name,
            visible=visible,
            guard=self._guard,
            may_name=self.scope is None,
        )

    @property
    def _indexing(self) -> Indexing:
        return self._recalling()[0]

    def _recall(self) -> Recaller:
        return self._recalling()[1]

    def _recalling(self) -> tuple[Indexing, Recaller]:
        """What recall needs, made when it is first needed: who lists memories never loads it."""
        with self._making:
            if self._made is None:
                again = self._reranker() if self._reranker else None
                tokens, scorer = (again, None) if isinstance(again, TokenReranker) else (None, again)
                made = indexing.Indexing(self._spine, self._spine.index, self._embedder, tokens)
                lifting = boosts.assemblies(self._spine, made, self._worker.wake)
                asked = recall.Recaller(self._spine, made, self._worker.wake, scorer, [lifting])
                self._made = made, asked
            return self._made

    @property
    def _summariser(self) -> Summariser:
        """The summariser asked for, or the statistical one."""
        return self._given_summariser or summarisers.StatisticalSummariser(policy=self.policy.compression)

    def _work(self) -> None:
        """What the worker does when it is woken: due cores and spheres, and what recall is waiting for."""
        if self.policy.compression.mode == "background":
            self._compress()
            if isinstance(self._summariser, ModelSummariser):
                self._judged = judging.judge(self._spine, self._summariser, self._judged)
        if self.policy.mirror.mode == "after_commit":
            for tree in mirror.listed(self._spine) or [mirror.Mirror(self._spine)]:
                tree.follow()
        self._indexing.add_words()
        self._proof.go_on(2, small=True)  # faster than commits come, or it never goes round
        if not self._indexing.is_used:
            return
        # A batch at a time: who closes the account does not wait for all of them.
        while not self._worker.is_stopping and self._indexing.add_vectors(limit=embedding.BATCH):
            pass
        while not self._worker.is_stopping and self._indexing.add_orders(limit=embedding.BATCH):
            pass
        while not self._worker.is_stopping and self._indexing.add_tokens(limit=_ENCODED):
            pass
        self._group()

    def _compress(self) -> None:
        """Make what is due; words follow every few cores, for what they lack every question reads itself."""
        for made, _ in enumerate(compress.compress(self._spine, self._summariser)):
            if made % _CORES == 0:
                self._indexing.add_words()

    def _group(self) -> None:
        """Bring composites up to the vectors, and group what gathered meanwhile, as the policy says."""
        least = {"background": assemble.GATHERED, "immediate": 1}.get(self.policy.assemblies.mode)
        if not self._worker.is_stopping:
            self._indexing.compose()
        if least is not None:
            worker = self._worker
            assemble.assemble(self._spine, self._indexing, least, lambda: worker.is_stopping)

    def _must_see(self, scope: str) -> None:
        if not self.sees(check_scope(scope)):
            raise OutOfScope(f"a handle bound to {self.scope!r} tried to write to scope {scope!r}")

    def _must_be_owner(self, what: str) -> None:
        if self.scope is not None:
            raise OutOfScope(f"a handle bound to {self.scope!r} tried to {what} the whole account")

    def _must_be_human(self, what: str) -> None:
        if not is_human(self.actor):
            raise HumanOnly(f"{self.actor} tried to {what}")

    def _number(self, when: int | datetime) -> int:
        head = self._spine.head().version
        if isinstance(when, datetime):
            return self._spine.state.version_at(check_time(when))
        if isinstance(when, bool) or not isinstance(when, int) or not 0 <= when <= head:
            raise NotFound(
                f"there is no version {when!r}; the account is at {head}", hint="`octavo versions`"
            )
        return when
