"""What a person refused, ended or erased stays away by every way in and out; its neighbour survives."""

from __future__ import annotations

import pytest

import octavo

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
    account.export(tmp_path / "old", format="msp")
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
