"""The reference of the policy, made from its records; a key without a sentence here is an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from octavo.domain.compression import CompressionPolicy, Level
from octavo.domain.memory import KINDS
from octavo.domain.policy import KindPolicy, Policy

# What each key does. A row of `kinds` and of `compression.levels` is described once, under `*`.
SENTENCES = {
    "kinds.*.rule": "By which rule it becomes part of the next version; leave it as it is.",
    "kinds.*.decay": "By which factor a day recall lets it weaken; 1.0 does not weaken it.",
    "kinds.*.max_length": "How many characters its text may have.",
    "kinds.*.capacity": "How many live memories of the kind an account may have.",
    "kinds.*.min_confidence": "It must be surer than this to be kept.",
    "kinds.*.noise": "Whether the gate keeps journal noise out.",
    "kinds.*.secrets": "What happens to secrets and personal data in it.",
    "kinds.*.duplicates": "Whether a restatement merges into the memory it restates.",
    "sandbox.max_episodes": "How many episodes a sandbox may hold; seed 000 says 30.",
    "sandbox.write_levels": "Whether seed 000's write levels decide which episodes are kept.",
    "canon.pass_confidence": "From which confidence an agent may write canon that clashes with nothing.",
    "gate.token_overlap": "From which share of common words two texts look alike.",
    "gate.sequence_ratio": "From which share of common sequences two texts look alike.",
    "gate.signals": "Words that make a text noise when hardly anything else is said.",
    "gate.refusals_kept": "How many refusals are kept to be looked at.",
    "privacy.phone": "What happens to phone numbers.",
    "privacy.email": "What happens to e-mail addresses.",
    "review.expire_days": "After how many days without an answer a proposal lapses.",
    "review.stale_days": "After how many days without a write a register is worth asking about.",
    "compression.levels": "The table of levels; it stays as it is once the first core is made.",
    "compression.levels.*.kind": "The kind of what is made.",
    "compression.levels.*.name": "What its ids begin with.",
    "compression.levels.*.letters": "What it is called in seed 001's names of sessions.",
    "compression.levels.*.radix": "How many sessions, or members of the level below, fold into one.",
    "compression.levels.*.summary_length": "How many characters its summary may have.",
    "compression.digest_length": "How many characters a core says about one session.",
    "compression.milestone_salience": "Above which salience an episode stays whole.",
    "compression.routine_salience": "From which average salience a session's originals are never retired.",
    "compression.mode": "When cores and spheres are made: beside the conversation, at once, or when asked.",
    "compression.retire": "Whether routine originals go to the archive once their core is verified.",
    "compression.attempts": "How often failed background work is tried again before it is reported.",
    "commit.attempts": "How often a commit tries again when others are first.",
    "commit.wait_seconds": "How long a commit waits in line before it goes on without the lock.",
    "assemblies.mode": "When memories are grouped: beside a conversation, at once, when asked, or never.",
    "assemblies.likeness": "From which mean cosine with its members a memory joins an assembly.",
    "assemblies.max_per_memory": "How many assemblies a memory joins by itself.",
    "assemblies.max_members": "How many members an assembly may have.",
    "assemblies.max_assemblies": "At how many assemblies no more are begun; `check` says so.",
    "assemblies.merging": "Whether assemblies that are alike become one, by themselves or by a proposal.",
    "assemblies.merge_likeness": "From which cosine two assemblies become one.",
    "assemblies.merges_per_pass": "How many pairs become one at a time.",
    "assemblies.activation": "From which cosine with the question an assembly lifts its members.",
    "assemblies.boost": "How much an assembly that fits wholly adds to a member's score; 0 adds nothing.",
    "assemblies.boost_mode": "How the lift follows from the cosine.",
    "assemblies.explain": "Whether activations, merges and lineages are explained to whoever asks.",
    "emotion.gate": "Whether a recall with a mood leaves out memories that would weigh on it.",
    "index.max_allowed_drift_seconds": "For how long vectors count as fresh after they were last verified.",
    "index.rerank": "Whether recall takes a second look at the best hits, where the extra is installed.",
    "retention.mode": "Whether upkeep moves episodes past their limits to the archive.",
    "retention.conversation_days": "How old a conversation may get that a core holds.",
    "retention.conversation_files": "How many conversations stay.",
    "retention.event_days": "How old an event may get.",
    "retention.event_megabytes": "How much events may take.",
    "retention.run_days": "How old a robot's run may get.",
    "retention.run_files": "How many runs stay.",
    "retention.versions_shown": "How many versions of a knowledge page are listed; the ledger keeps all.",
    "patterns.days": "How far back patterns are looked for.",
    "patterns.min_count": "How often a sequence must be seen to become knowledge.",
    "patterns.min_sources": "In how many episodes it must be seen.",
    "patterns.min_denials": "How often a denial must be seen.",
    "patterns.min_outcomes": "How often an outcome must be seen.",
    "patterns.consistency": "Which share of outcomes must agree.",
    "patterns.denial_confidence": "How sure a denial is that was seen so often.",
    "patterns.stable_days": "After how many days unchanged knowledge is proposed as procedure.",
    "patterns.min_uses": "How often it must have been used until then.",
    "mirror.mode": "Whether a mirror follows every commit, or only `octavo mirror`, `sync` and `upkeep`.",
}


def reference() -> str:
    """Every key with its default, what it may be and what it does, in Markdown."""
    parts = []
    for section in fields(Policy):
        hint = get_type_hints(Policy)[section.name]
        if section.name == "kinds":
            tables = ", ".join(f"`[kinds.{kind}]`" for kind in KINDS)
            parts.append(f"## Kinds\n\nOne table a kind: {tables}.")
            parts += [_table("kinds.*", KindPolicy, bare=True), _kinds()]
        else:
            parts.append(f"## `[{section.name}]`\n\n{_first_sentence(hint)}")
            parts.append(_table(section.name, hint))
        if hint is CompressionPolicy:
            parts += [
                "### `[[compression.levels]]`",
                _table("compression.levels.*", Level, bare=True),
                _levels(),
            ]
    return "\n\n".join(parts)


def all_keys(kind: Any = Policy, path: str = "") -> Iterator[str]:
    """Every key of the policy, dotted; a row of a table is written `*`."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        hint, name = hints[field.name], f"{path}{field.name}"
        row = next((item for item in get_args(hint) if _is_record(item)), None)
        if hint is KindPolicy:
            continue
        if not _is_record(hint):
            yield name
        if _is_record(hint):
            yield from all_keys(hint, f"{name}.")
        elif row is not None:
            yield from all_keys(row, f"{name}.*.")
    if any(hint is KindPolicy for hint in hints.values()):
        yield from all_keys(KindPolicy, f"{path}*.")


def _table(path: str, kind: Any, *, bare: bool = False) -> str:
    hints, made = get_type_hints(kind), None if bare else kind()
    head = ["| key | may be | does |", "|---|---|---|"] if bare else _HEAD
    rows = []
    for field in fields(kind):
        name = f"{path}.{field.name}"
        default = "" if made is None else f" {_default(getattr(made, field.name))} |"
        rows.append(f"| `{field.name}` |{default} {_form(hints[field.name])} | {SENTENCES[name]} |")
    return "\n".join([*head, *rows])


_HEAD = ["| key | default | may be | does |", "|---|---|---|---|"]


def _kinds() -> str:
    """The rows of the kinds side by side."""
    names = [field.name for field in fields(KindPolicy)]
    rows = [f"| key | {' | '.join(f'`{kind}`' for kind in KINDS)} |", f"|---|{'---|' * len(KINDS)}"]
    policy = Policy()
    for name in names:
        values = (_default(getattr(policy.kinds.of(kind), name)) for kind in KINDS)
        rows.append(f"| `{name}` | {' | '.join(values)} |")
    return "\n".join(rows)


def _levels() -> str:
    names = [field.name for field in fields(Level)]
    rows = [f"| {' | '.join(f'`{name}`' for name in names)} |", f"|{'---|' * len(names)}"]
    for level in CompressionPolicy().levels:
        rows.append(f"| {' | '.join(_default(getattr(level, name)) for name in names)} |")
    return "\n".join(rows)


def _is_record(value: Any) -> bool:
    return isinstance(value, Struct) or (isinstance(value, type) and issubclass(value, Struct))


def _first_sentence(kind: Any) -> str:
    return (kind.__doc__ or "").partition("\n")[0].replace("None", "–")


def _default(value: Any) -> str:
    """A value as TOML would say it; what has no value in TOML is written `–`."""
    match value:
        case None:
            return "–"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple() if value and _is_record(value[0]):
            return "see below"
        case tuple():
            return "<br>".join(f"`{json.dumps(item)}`" for item in value)
        case _:
            return f"`{json.dumps(value)}`"


def _form(hint: Any) -> str:
    """What a key may be, in words."""
    options = get_args(hint)
    if hint is bool:
        return "true or false"
    if type(None) in options:
        return _form(next(option for option in options if option is not type(None)))
    if options and get_origin(hint) is tuple:
        return "tables" if _is_record(options[0]) else "a list of texts"
    if options:
        return ", ".join(f"`{option}`" for option in options)
    return {int: "a whole number", float: "a number", str: "a text"}[hint]
