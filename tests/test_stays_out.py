"""What a person refused, ended or erased stays away by every way in and out; its neighbour survives."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import octavo
from canaries import holding
from octavo.errors import NotFound, OctavoError
from surface import OF_ACCOUNT, OF_SANDBOX, READING, call, variants, world

VALUES = ["keeps a zebraquux in the garden", "เลี้ยงนกขมิ้นลับไว้ในสวน"]
NEIGHBOUR = "plays the guitar on Sundays"


def texts(reader):
    return [memory.text for memory in reader.memories()]


def reject(account, memory):
    account.reject(memory.text, reason="not true")


def forget(account, memory):
    account.forget(memory.id)


def redact(account, memory):
    account.redact(memory.id, reason="asked to")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("act", [reject, forget, redact])
def test_it_is_gone_from_everything_that_reads(account, opened, tmp_path, act, value):
    memory = account.remember(value).memory
    account.remember(NEIGHBOUR)
    assert value in str(account.brief("garden สวน"))
    act(account, memory)
    reader = opened()
    with reader.sandbox() as sandbox:
        assert texts(sandbox) == [NEIGHBOUR]
        assert value not in str(sandbox.brief("garden สวน"))
    for handle in (account, reader):
        for _ in range(2):
            assert texts(handle) == [NEIGHBOUR]
            assert value not in [hit.memory.text for hit in handle.recall("garden สวน")]
            assert handle.recall("guitar")[0].memory.text == NEIGHBOUR
            handle.reindex()
        handle.repair()
        assert texts(handle) == [NEIGHBOUR]
    account.export(tmp_path / "out", format="vault")
    account.export(tmp_path / "tree", format="msp")
    written = "".join(path.read_text() for path in _files(tmp_path / "out", tmp_path / "tree"))
    assert value not in written
    assert NEIGHBOUR in written


def _files(*places):
    return [p for place in places for p in (place, *place.rglob("*")) if p.is_file()]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("act", [reject, redact])
def test_it_cannot_come_back_while_its_neighbour_can(account, agent, tmp_path, act, value):
    memory = account.remember(value).memory
    neighbour = account.remember(NEIGHBOUR).memory
    account.export(tmp_path / "first", format="msp")
    (tmp_path / "first").rename(tmp_path / "old")  # where it lies now, no redaction follows it
    act(account, memory)
    account.forget(neighbour.id)
    assert agent.remember(value).check in ("rejection", "redaction")
    assert agent.remember(value.upper() + " \u200b!").check in ("rejection", "redaction")
    assert not account.remember(value, kind="canon")
    with agent.sandbox() as sandbox:
        sandbox.remember(value)
    assert sandbox.result.added == ()
    account.restore(2)
    assert texts(account) == [NEIGHBOUR]
    account.forget(neighbour.id)
    account.import_(tmp_path / "old", format="msp")
    assert value not in texts(account)
    fresh = octavo.open(tmp_path / "fresh", "User01", actor="human:you")
    fresh.import_(tmp_path / "old", format="msp")
    assert {value, NEIGHBOUR} <= set(texts(fresh))
    fresh.close()


SAID = "the code is quillon7734"
WORD = "quillon7734"


def spread(account, agent, tmp_path) -> str:
    """A fact, and the same words in every other place that an account has for them; returns its id."""
    fact = account.remember(SAID, data={"note": f"{WORD} again"}, tags=[f"t-{WORD}"]).memory
    other = account.remember(f"I think {SAID} today").memory
    account.remember("a register", kind="register", topic=f"whether {SAID}")
    for n in range(8):
        with account.sandbox(f"s{n}") as sandbox:
            sandbox.turn("user", f"{SAID.capitalize()}!" if n == 0 else f"Day {n}: I decided that {SAID}.")
            sandbox.turn("assistant", f"Right, {SAID}, จำไว้แล้ว", data={"heard": SAID})
            sandbox.update_state("mood", {"last": SAID})
    left = account.sandbox("open")
    left.turn("user", SAID, data={"heard": f"so {SAID}"})
    left.remember(f"he says {SAID} at home", data={"why": SAID})
    left.update_state("place", {"seen": f"where {SAID}"})
    left.close()
    account.remember(f"perhaps {SAID}", confidence=0.2)
    account.remember("a neighbour", supersedes=f"that {SAID}")
    agent.remember(f"believes that {SAID}", kind="canon")
    account.compress()
    account.assemble(fact.id, other.id, name=f"group {SAID}")
    account.mirror()
    account.mirror(tmp_path / "tree")
    return fact.id


def test_what_contains_an_erased_text_is_named_wherever_it_stands(account, agent, tmp_path):
    fact = spread(account, agent, tmp_path)
    done = account.redact(fact, reason="asked to")
    assert (done.unreached, done.waiting, account.check().problems) == ((), (), ())
    named = set(done.also_in)
    # A core is made anew in the background, of episodes that are named.
    kept = [m.id for m in account.memories() if WORD in repr(m) and m.kind != "core"]
    assert kept
    assert set(kept) <= named
    assert {r.id for r in account.refusals()} | {p.id for p in account.proposals()} <= named
    assert {info.id for info in account.sandboxes()} <= named
    assert not any(t.text == SAID for m in account.memories(kind="episode") for t in m.turns)
    with pytest.raises(NotFound, match="also_in"):
        account.redact(fact, reason="and the rest", everywhere=True)


def test_everywhere_leaves_the_words_in_no_file_that_follows_the_account(account, agent, root, tmp_path):
    fact = spread(account, agent, tmp_path)
    account.remember("ชอบน้ำชาที่ริมแม่น้ำ")
    done = account.redact(fact, reason="asked to", everywhere=True)
    assert (done.unreached, done.waiting, done.also_in) == ((), (), ())
    assert account.wait(60)
    assert holding(root, WORD) == []
    assert holding(tmp_path / "tree", WORD) == []
    assert account.check().problems == ()
    [info] = account.sandboxes()
    assert account.resume(info.id).consolidate()
    assert not any(WORD in repr(m) for m in account.memories())
    assert [hit.text for hit in account.recall("น้ำชา", k=1)] == ["ชอบน้ำชาที่ริมแม่น้ำ"]


def shapes(text: str) -> list[Any]:
    """A text in every shape that a caller could hand it in."""
    return [
        text, f"well, {text} indeed", [text], {"a": text}, {text: "a"}, {"about": [text]}, {"label": text},
        [{"text": "a fact", "topic": text}], [{"text": text, "tags": [text]}],
        {"turn_1": {"speaker": text, "raw_text": text}, "summary": text},
    ]  # fmt: skip


def test_everywhere_reaches_every_field_of_every_write(opened, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    w = world(opened, tmp_path)
    fact, kept = w.account.remember(SAID).memory, w.account.remember(NEIGHBOUR).memory
    tried = [(w.account, name, OF_ACCOUNT[name](w)) for name in sorted(set(OF_ACCOUNT) - set(READING))]
    tried += [(w.sandbox, name, OF_SANDBOX[name](w)) for name in sorted(set(OF_SANDBOX) - set(READING))]
    for handle, name, base in tried:
        if name in (
            "close",
            "consolidate",
            "discard",
            "backup",
            "export",
            "mirror",
            "salvage",
            "restore",
            "revert",
        ):
            continue
        for arguments in variants(handle, name, base, shapes(SAID)):
            with suppress(OctavoError):
                call(handle, name, arguments)
    w.sandbox.close()
    assert w.account.wait(60)
    assert len(holding(root, WORD)) > 20
    done = w.account.redact(fact.id, reason=f"because {SAID}", everywhere=True)
    assert (done.unreached, done.waiting, done.also_in) == ((), (), ())
    assert w.account.wait(60)
    assert holding(root, WORD) == []
    assert w.account.check().problems == ()
    assert w.account.get(kept.id) == kept


def test_what_also_holds_it_can_be_erased_by_the_id_it_was_named_by(account, agent, root):
    fact = account.remember(SAID).memory
    account.remember(f"perhaps {SAID}", confidence=0.2)
    agent.remember(f"believes that {SAID}", kind="canon")
    account.remember("perhaps another", confidence=0.2)
    done = account.redact(fact.id, reason="asked to")
    assert len(done.also_in) == 2
    for name in done.also_in:
        account.redact(name, reason="that too")
    assert account.wait(60)
    assert holding(root, WORD) == []
    assert [r.text for r in account.refusals() if r.text] == ["perhaps another"]
    with pytest.raises(NotFound):
        account.redact("nothing-of-that-name", reason="x")
