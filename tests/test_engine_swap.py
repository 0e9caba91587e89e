"""An index is made beside the old one and swapped in: who recalls meanwhile is answered, and rightly."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from octavo.engine import assemble
from octavo.engine.indexing import Indexing
from octavo.errors import Damaged
from octavo.models.embedders import CallableEmbedder
from octavo.storage.columns import writing
from octavo.storage.index import beside, clear, current, swap

TEXTS = ["mango and harbour", "the violin in winter", "กาแฟที่ทะเล", "แมวชอบนอนบนโซฟา"]


def lengths(texts):
    return [[len(text) % 7 + 1.0, text.count("a") + 1.0, text.count("า") + 1.0] for text in texts]


LENGTHS = CallableEmbedder(name="lengths", dimension=3, function=lengths)


def filled(account):
    for text in TEXTS:
        account.remember(text, kind="register", topic=text)
    for session in range(3):
        with account.sandbox() as sandbox:
            for number in range(40):
                sandbox.turn("user", f"talk number {number} of session {session}")
    account.catch_up()


@pytest.mark.parametrize("embedder", [False, LENGTHS], ids=["words", "vectors"])
@pytest.mark.parametrize("act", ["reindex", "redact"])
def test_recall_is_right_while_another_handle_reindexes_or_redacts(opened, act, embedder):
    writer, reader = opened(embedder=embedder), opened(embedder=embedder)
    filled(writer)
    wrong, asked, done = [], 0, threading.Event()

    def work():
        try:
            for number in range(6):
                if act == "reindex":
                    writer.reindex()
                else:
                    secret = writer.remember(f"to be erased {number}", kind="register", topic=f"e{number}")
                    writer.redact(secret.memory.id, reason="a test")
        finally:
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set() or asked < 20:
        for text in TEXTS:
            hits = reader.recall(text, streams=None if embedder else "words")
            asked += 1
            if not hits or hits[0].text != text:
                wrong.append((text, [hit.text for hit in hits]))
    thread.join()
    assert wrong == []
    assert not reader.check().problems


def test_an_index_answers_while_the_next_one_is_made(opened):
    account = opened(embedder=False)
    filled(account)
    answers = []
    account.reindex(progress=lambda done, total: answers.append(account.recall("violin")[0].text))
    assert answers
    assert set(answers) == {TEXTS[1]}
    assert account.lag().versions == 0


def test_a_rebuild_that_was_swept_away_begins_again(opened):
    account = opened(embedder=False)
    filled(account)
    root = account._spine.index
    swept = []

    def sweep(done, total):
        if not swept:
            swept.append(True)
            clear(root)

    account._indexing.rebuild(sweep)
    assert account.recall("violin")[0].text == TEXTS[1]
    assert account._indexing.folder == current(root)
    assert not account.check().problems


def test_only_one_index_stays_on_disk(opened):
    account = opened(embedder=False)
    filled(account)
    for _ in range(3):
        account.reindex()
    root = account._spine.index
    assert [path.name for path in sorted(root.iterdir()) if path.is_dir()] == [current(root).name]
    assert not list(root.glob("*.bin"))
    assert Indexing(account._spine, root, None).lag().versions == 0


def test_what_somebody_removed_is_not_swapped_in(tmp_path):
    made = beside(tmp_path)
    made.rmdir()
    assert swap(tmp_path, made) is False
    assert current(tmp_path) == tmp_path


@pytest.mark.parametrize("name", ["", "../elsewhere", "gx", "กาแฟ"])
def test_a_damaged_pointer_is_no_way_out_of_the_folder(tmp_path, name):
    (tmp_path / "current").write_text(name)
    assert current(tmp_path) == tmp_path


def test_a_held_handle_indexes_by_itself_after_a_write(opened):
    account = opened(embedder=LENGTHS)
    account.remember("the violin in winter")
    assert account.wait(30)
    assert account.lag().versions == 0
    account.recall("violin")
    with account.sandbox() as sandbox:
        sandbox.turn("user", "แมวชอบนอนบนโซฟา")
    assert account.wait(30)
    lag = account.lag()
    assert (lag.versions, lag.passages) == (0, 0)
    assert account.recall("แมว")[0].is_fresh


def test_a_question_never_embeds_a_new_memory_twice(opened):
    embedded: list[str] = []

    def noting(texts):
        embedded.extend(texts)
        return lengths(texts)

    account = opened(embedder=CallableEmbedder(name="noting", dimension=3, function=noting))
    account.remember("the violin in winter")
    sandbox = account.sandbox()
    sandbox.turn("user", "แมวชอบนอนบนโซฟา")
    for _ in range(3):
        sandbox.recall("cat")
        account.recall("dog")
    account.catch_up()
    assert embedded.count("the violin in winter") == 1
    assert embedded.count("แมวชอบนอนบนโซฟา") == 1


def test_who_stands_in_line_for_an_index_that_is_replaced_finds_it_gone(tmp_path: Path) -> None:
    old, told = beside(tmp_path), list[type[BaseException]]()

    def stand_in_line() -> None:
        try:
            with writing(old):
                told.append(AssertionError)
        except FileNotFoundError as error:
            told.append(type(error))

    waiting = threading.Thread(target=stand_in_line)
    with writing(old):
        waiting.start()
        time.sleep(0.1)  # most runs are in line by now; those that are not find no folder
        shutil.rmtree(old)
    waiting.join()
    assert told == [FileNotFoundError]
    assert not old.exists()


def test_a_swap_leaves_no_half_of_an_index_that_is_being_made(tmp_path: Path) -> None:
    making, new = beside(tmp_path), beside(tmp_path)
    swapping = threading.Thread(target=swap, args=(tmp_path, new))
    with writing(making):
        swapping.start()
        time.sleep(0.1)
        (making / "words").mkdir()  # the pass under way writes on, undisturbed
        (making / "words" / "meta.json").write_text("{}")
    swapping.join()
    assert not making.exists()
    assert current(tmp_path) == new


def test_proving_an_index_that_was_replaced_meanwhile_is_no_error(opened):
    account, other = opened(embedder=LENGTHS), opened(embedder=LENGTHS)
    filled(account)
    facts = account.memories(kind="episode", limit=3)
    account.assemble(*(fact.id for fact in facts))
    account.reindex()  # from now on the index lies in a folder that goes when it is replaced
    account.catch_up()
    indexing = account._indexing
    folder = indexing.folder
    assert indexing.verify(stamp=True) == []
    other.remember("one more for the group")
    other.reindex()
    shutil.rmtree(folder, ignore_errors=True)
    assert indexing.verify(stamp=True) == []
    assert account.check().problems == ()
    assert [hit.memory.text for hit in account.recall("mango harbour", k=1)] == ["mango and harbour"]


def test_what_was_indexed_is_open_before_the_next_question_comes(opened):
    account = opened(embedder=False)
    account.remember("mango and harbour")
    account.catch_up()
    index = account._indexing.index
    assert index.units().searched is None  # who never asked has nothing opened
    account.recall("harbour")
    account.remember("the violin in winter")
    account.catch_up()
    assert index.units().searched is not None


@pytest.mark.parametrize("act", ["reindex", "catch_up", "upkeep"])
def test_work_on_an_index_that_others_throw_away_meanwhile_is_done_again_and_nobody_is_told(
    opened, monkeypatch, act
):
    account, other = opened(embedder=LENGTHS), opened(embedder=LENGTHS)
    filled(account)
    name = "merge_alike" if act == "upkeep" else "add_vectors"
    where, calls = (assemble if act == "upkeep" else Indexing), []
    whole = getattr(where, name)

    def thrown_away(*args, **named):
        calls.append(name)
        if len(calls) == 1:
            other._indexing.clear()
            raise Damaged("the index file rows.bin cannot be used: it is missing")
        return whole(*args, **named)

    monkeypatch.setattr(where, name, thrown_away)
    account.remember("one more", kind="register", topic="more")
    account.recall("one more")
    getattr(account, act)()
    assert len(calls) >= 2
    assert [hit.text for hit in account.recall("violin", k=1)] == ["the violin in winter"]
    assert account.check().problems == ()
