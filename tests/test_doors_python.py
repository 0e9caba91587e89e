"""The Python door: what `octavo.open` adds to the engine."""

from __future__ import annotations

import pytest

import octavo
from octavo.engine import opening
from octavo.errors import BadInput, Unavailable


def test_an_account_exports_and_imports_itself(account, tmp_path):
    with account.sandbox() as sandbox:
        sandbox.turn("user", "สวัสดี EVA")
        sandbox.turn("eva", "สวัสดีค่ะ")
    account.export(tmp_path / "out", format="msp")
    copy = octavo.open(tmp_path / "copy", "User01", actor="human:you")
    copy.import_(tmp_path / "out", format="msp")
    assert [m.text for m in copy.memories(kind="episode")] == [
        m.text for m in account.memories(kind="episode")
    ]
    with pytest.raises(BadInput, match="format"):
        account.export(tmp_path / "x", format="carrier pigeon")
    copy.close()


def test_the_engine_alone_knows_no_formats(tmp_path):
    with opening.open(tmp_path) as bare, pytest.raises(Unavailable):
        bare.export(tmp_path / "out")


def test_half_a_character_is_refused_everywhere_text_comes_in(account):
    bad = "half \ud800"
    sandbox = account.sandbox()
    for act in (
        lambda: account.remember(bad),
        lambda: account.remember("x y z", tags=[bad]),
        lambda: account.remember("x y z", data={"deep": [bad]}),
        lambda: sandbox.turn("user", bad),
        lambda: sandbox.turn(bad, "text"),
        lambda: sandbox.update_state("s", {bad: 1}),
        lambda: sandbox.write_episode({"turn_1": {"text": bad}}),
        lambda: account.sandbox(bad),
    ):
        with pytest.raises(BadInput, match="half a character"):
            act()


def test_a_misfit_is_told_in_the_words_of_the_signature(root):
    with octavo.open(root, "User01", embedder=False) as account:
        for act, told in (
            (lambda: account.remember("x", salience="a"), "salience is float | None, between 0 and 1"),
            (lambda: account.recall("x", k="3"), "k is int | None, at least 0"),
            (
                lambda: account.memories(layer=3),
                "layer is str | Sequence[str] | None, one of episodic, semantic, procedural",
            ),
            (lambda: account.promote("x", tags=3), "tags is Sequence[str] | None"),
        ):
            with pytest.raises(BadInput) as misfit:
                act()
            assert misfit.value.advice == told
