"""Operations on assemblies: what belongs together, why it came up, and where it comes from."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from octavo.documents.synthians import explaining
from octavo.domain.memory import Memory
from octavo.doors.operations.table import operation
from octavo.engine.account import Account
from octavo.engine.explain import Explainer

_explained = attrgetter("explained")
_A, _B = "asm_01kajx2f6w9m4d8c7t5s", "asm_01kajx2f6w9m4d8c7t5t"

assemblies = operation("octavo assemblies", part=_explained, result="assemblies")(Explainer.assemblies)
assembly = operation(f"octavo assembly {_A}", part=_explained)(Explainer.assembly)


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


merge_assemblies = operation(f"octavo merge-assemblies {_A} {_B}", writes=True)(Account.merge_assemblies)
unmerge = operation(f"octavo unmerge {_A}", writes=True, result="revived")(Account.unmerge)
lineage = operation(f"octavo lineage {_A}", part=_explained)(Explainer.lineage)
explain_activation = operation(f"octavo explain-activation {_A} 01kajx2f6w9m4d8c7t5s")(explaining.activation)
explain_merge = operation(f"octavo explain-merge {_A}")(explaining.merge)
merge_log = operation("octavo merge-log --limit 10")(explaining.log)
