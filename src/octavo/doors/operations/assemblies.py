"""Operations on assemblies: what belongs together, why it came up, and where it comes from."""

# ruff: noqa: A002  # a memory's id is `id`, in every door
from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from octavo.documents.synthians import explaining
from octavo.documents.synthians.explaining import Explained
from octavo.domain.lineage import DEEPEST, Lineage
from octavo.domain.memory import Memory
from octavo.doors.operations.table import Count, operation
from octavo.engine.account import Account
from octavo.engine.explain import LONGEST_LOG, Assembly

Depth = Annotated[int, Meta(ge=1, le=DEEPEST)]
Id = Annotated[str, "The assembly's id."]


@operation("octavo assemblies", result="assemblies")
def assemblies(
    account: Account,
    *,
    tags: Annotated[list[str] | None, "Only those with all of these tags."] = None,
    limit: Annotated[Count | None, "At most so many."] = None,
) -> list[Assembly]:
    """List the assemblies: memories that belong together, the largest first."""
    return account.explained.assemblies(tags=tags, limit=limit)


@operation("octavo assembly asm_01kajx2f6w9m4d8c7t5s")
def assembly(account: Account, id: Id) -> Assembly:
    """Show an assembly with its members, its topics, and whether it may lift them."""
    return account.explained.assembly(id)


@operation(
    "octavo assemble 01kajx2f6w9m4d8c7t5s 01kajx2f6w9m4d8c7t5t --name pottery",
    writes=True,
    result="assemblies",
)
def assemble(
    account: Account,
    ids: Annotated[list[str] | None, "The memories to group; without any, all that are alike."] = None,
    *,
    name: Annotated[str | None, "What to call it; otherwise what its members share."] = None,
    tags: Annotated[list[str] | None, "Tags for it."] = None,
) -> list[Memory]:
    """Group the memories named, or everything new that is alike."""
    return account.assemble(*(ids or ()), name=name, tags=tags or ())


@operation("octavo merge-assemblies asm_01kajx2f6w9m4d8c7t5s asm_01kajx2f6w9m4d8c7t5t", writes=True)
def merge_assemblies(
    account: Account, first: Id, second: Annotated[str, "The other assembly's id."]
) -> Memory:
    """Make one assembly of two; `unmerge` takes it back."""
    return account.merge_assemblies(first, second)


@operation("octavo unmerge asm_01kajx2f6w9m4d8c7t5s", writes=True, result="revived")
def unmerge(account: Account, id: Id) -> list[str]:
    """End an assembly that a merge made; those it was made of live again."""
    return account.unmerge(id)


@operation("octavo lineage asm_01kajx2f6w9m4d8c7t5s")
def lineage(
    account: Account, id: Id, *, max_depth: Annotated[Depth, "How many merges back."] = 10
) -> Lineage:
    """Show the assemblies that one was merged from, as a tree."""
    return account.explained.lineage(id, max_depth)


@operation("octavo explain-activation asm_01kajx2f6w9m4d8c7t5s 01kajx2f6w9m4d8c7t5s")
def explain_activation(
    account: Account,
    id: Id,
    memory_id: Annotated[str, "The memory's id."],
    *,
    query: Annotated[str | None, "The question; without one the memory itself is compared."] = None,
) -> Explained:
    """Say whether an assembly is activated, and what that gives a memory."""
    return explaining.activation(account, id, memory_id, query)


@operation("octavo explain-merge asm_01kajx2f6w9m4d8c7t5s")
def explain_merge(account: Account, id: Id) -> Explained:
    """Say which merge made an assembly, of what, and how alike they were."""
    return explaining.merge(account, id)


@operation("octavo merge-log --limit 10")
def merge_log(
    account: Account, *, limit: Annotated[int, Meta(ge=1, le=LONGEST_LOG), "At most so many."] = 50
) -> Explained:
    """List the merges there were, newest first."""
    return explaining.log(account, limit)
