"""Recall, brief and compression from the command line."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import octavo
from llm_server import LlmServer, llm_server, refuses
from octavo.doors import cli, models
from octavo.doors.operations import performing
from octavo.doors.settings import Settings
from octavo.engine.worker import Worker
from octavo.errors import BadInput
from octavo.models import rerank
from octavo.models.embedders import CallableEmbedder, EndpointEmbedder, OfflineEmbedder

Run = Callable[..., "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a command line left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line against a folder of its own, with words alone unless a test says otherwise."""
    for name in [name for name in os.environ if name.startswith(("OCTAVO_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OCTAVO_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("OCTAVO_EMBEDDER", "none")
    monkeypatch.chdir(tmp_path)

    def octavo_(*arguments: str, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = cli.run(arguments)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return octavo_


SAID = (
    ("I adopted a greyhound called Juno on Saturday.", "How lovely!"),
    ("เมื่อวานไปเดินป่าที่ดอยสุเทพกับพี่สาว", "อากาศดีไหมคะ"),
    ("I decided to sell the old car before June.", "Good idea."),
    ("ตั้งใจว่าจะเรียนทำขนมปังทุกวันเสาร์", "น่าสนุกจังเลยค่ะ"),
    ("The pottery class at the mill is on Mondays.", "Shall I remind you?"),
    ("ชอบกาแฟดำไม่ใส่น้ำตาล", "จำได้แล้วค่ะ"),
    ("Juno ran along the river for an hour.", "She must be tired."),
    ("I finished the half marathon and I am so proud.", "Congratulations!"),
)


@pytest.fixture
def lived(run: Run, tmp_path: Path) -> Run:
    """The command line over an account with eight closed sessions and nothing made of them yet."""
    policy = octavo.Policy(compression=models.CompressionPolicy(mode="manual"))
    (tmp_path / "root" / "default").mkdir(parents=True)
    (tmp_path / "root" / "default" / "policy.toml").write_text('[compression]\nmode = "manual"\n')
    hours = iter(range(10_000))

    def clock() -> datetime:
        return datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(hours=next(hours))

    with octavo.open(
        tmp_path / "root", actor="human:nok", clock=clock, embedder=False, policy=policy
    ) as account:
        for user, assistant in SAID:
            with account.sandbox() as sandbox:
                sandbox.turn("user", user)
                sandbox.turn("assistant", assistant)
        account.remember("has a greyhound", topic="pet", kind="register", id="dog")
    return run


def test_recall_finds_what_was_said_and_prints_its_id(lived: Run) -> None:
    found = lived("recall", "Juno the greyhound", "--k", "2")
    assert found.code == 0
    assert "I adopted a greyhound called Juno" in found.out
    assert "found by words alone" in found.err
    first = lived("recall", "ทำขนมปัง", "--json").json["hits"][0]
    assert "ขนมปัง" in first["text"]
    assert lived("get", first["memory"]["id"]).code == 0


def test_why_shows_parts_origin_freshness_and_notes(lived: Run, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "root" / "default" / "index" / "recall", ignore_errors=True)
    shown = lived("recall", "กาแฟดำ", "--why", "--k", "1").out
    assert "shares words with the question" in shown
    assert "→ sandbox_" in shown
    assert "→ version 6 → human:nok" in shown
    assert "newer than the index" in shown
    assert "found by words alone" in shown
    lived("catch-up")
    assert "the index holds this revision" in lived("recall", "กาแฟดำ", "--why", "--k", "1").out


def test_the_json_of_recall_holds_everything_whether_asked_why_or_not(lived: Run) -> None:
    hit = lived("recall", "half marathon", "--json").json["hits"][0]
    assert hit["parts"]["words"] > 0
    assert hit["reasons"][0]["part"] == "shares words with the question"
    assert (hit["version"], hit["turn"]) == (8, 0)
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"])


def test_recall_says_until_when_a_replaced_fact_held(lived: Run) -> None:
    lived("remember", "Ana lives in Paris")
    lived("remember", "Ana moved to Rome")
    shown = lived("recall", "where does Ana live?").out
    assert f"Ana lives in Paris  until {datetime.now(UTC):%Y-%m-%d}" in shown
    assert "Ana moved to Rome  until" not in shown


def test_a_layered_recall_shows_its_trail(lived: Run) -> None:
    shown = lived("recall", "pottery", "--strategy", "layered").out
    assert "looked among spheres" in shown
    assert "looked among episodes" in shown


def test_filters_of_recall_are_those_of_the_engine(lived: Run) -> None:
    kinds = {
        h["memory"]["kind"] for h in lived("recall", "greyhound", "--kind", "register", "--json").json["hits"]
    }
    assert kinds == {"register"}
    late = lived("recall", "greyhound", "--since", "2027-01-01", "--json").json
    assert late["hits"] == []
    assert lived("recall", "greyhound", "--until", "2027-01-01", "--at", "1", "--json").json["hits"]
    assert lived("recall", "greyhound", "--at", "0", "--json").json["hits"] == []
    assert len(lived("recall", "Juno", "--unit", "turn", "--k", "3", "--json").json["hits"]) <= 3
    assert lived("recall", "greyhound", "--stream", "words", "--json").code == 0
    assert lived("recall", "greyhound", "--stream", "hept", "--json").code == 0
    assert lived("recall", "greyhound", "--stream", "smell").code == 2


def test_a_recall_inside_a_sandbox_finds_its_own_buffer(lived: Run) -> None:
    lived("sandbox", "now")
    lived("turn", "now", "user", "ซื้อจักรยานสีแดงมาใหม่")
    assert "จักรยาน" in lived("recall", "จักรยานสีแดง", "--sandbox", "now").out
    assert "จักรยาน" not in lived("recall", "จักรยานสีแดง").out
    assert (
        "not yet consolidated" in lived("recall", "จักรยานสีแดง", "--sandbox", "now", "--why", "--k", "1").out
    )


def test_nothing_found_is_no_error(run: Run) -> None:
    run("init")
    assert (run("recall", "anything").code, run("recall", "anything").out.strip()) == (0, "nothing found")


def test_explain_says_why_a_memory_came_and_why_it_did_not(lived: Run) -> None:
    assert "shares words" in lived("explain", "greyhound", "dog").out
    assert "not among the live memories" in lived("explain", "greyhound", "nobody").out


def test_recall_brief_and_explain_begin_no_account_and_change_no_memory(lived: Run, tmp_path: Path) -> None:
    for line in (["recall", "x"], ["brief", "x"], ["explain", "x", "y"]):
        assert lived(*line, "--root", "elsewhere").code == 3
    assert not (tmp_path / "elsewhere").exists()
    before = {p: p.read_bytes() for p in (tmp_path / "root").rglob("ledger/*")}
    lived("recall", "greyhound")
    lived("brief", "greyhound")
    assert {p: p.read_bytes() for p in (tmp_path / "root").rglob("ledger/*")} == before


def test_recall_reads_where_nothing_can_be_written(lived: Run, tmp_path: Path) -> None:
    # A link to a disk that is not there: nobody, not even root, can write below it.
    index = tmp_path / "root" / "default" / "index"
    index.rename(tmp_path / "moved")
    index.symlink_to(tmp_path / "unmounted")
    found = lived("recall", "half marathon")
    assert found.code == 0
    assert "so proud" in found.out
    assert lived("remember", "owns a red bicycle").code == 8


@contextmanager
def as_somebody_without_rights() -> Iterator[None]:
    """Root may write anywhere; then let it be nobody for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_recall_reads_where_the_account_belongs_to_somebody_else(lived: Run, tmp_path: Path) -> None:
    lived("recall", "half marathon")  # everything is loaded: nobody may not be allowed to read our packages
    with tempfile.TemporaryDirectory() as folder:
        theirs = Path(folder) / "theirs"
        shutil.copytree(tmp_path / "root", theirs)
        places = [theirs, *theirs.rglob("*"), theirs.parent]
        for place in places:
            place.chmod(0o555 if place.is_dir() else 0o444)
        with as_somebody_without_rights():
            found = lived("recall", "half marathon", "--root", str(theirs))
            refused = lived("remember", "owns a red bicycle", "--root", str(theirs))
        for place in places:
            place.chmod(0o755)
    assert (found.code, refused.code) == (0, 8)
    assert "so proud" in found.out


def test_a_brief_is_the_text_alone_on_standard_output(lived: Run) -> None:
    brief = lived("brief", "running with the dog", "--k", "2")
    assert brief.out.startswith("<memory>")
    assert brief.out.rstrip().endswith("</memory>")
    assert "has a greyhound" in brief.out
    assert "token" in brief.err
    assert json.loads(lived("brief", "--format", "json").out)["registers"][0]["id"] == "dog"
    assert lived("brief", "--json").json["tokens"] > 0
    tight = lived("brief", "Juno", "--budget", "90")
    assert "left out" in tight.err
    assert lived("brief", "--budget", "5").out == "nothing fits so small a budget\n"
    lived("init", "--account", "Empty")
    assert lived("brief", "--account", "Empty").out == "nothing to say\n"


def test_eight_sessions_fold_into_a_core_that_reads_like_a_page(lived: Run) -> None:
    assert "no core yet" in lived("cores").out
    made = lived("compress")
    assert "made  core_000_000" in made.out
    id_ = lived("cores", "--json").json["cores"][0]["id"]
    page = lived("show", id_).out
    assert page.startswith(id_)
    assert "2026" in page.splitlines()[0]
    assert "made of" in page
    assert "8 sessions" in page
    assert "statistical_aggregation" in page
    assert any(word in page for word in ("ขนมปัง", "ดอยสุเทพ", "กาแฟ"))
    assert lived("show", id_, "--json").json["data"]["session_count"] == 8
    assert "nothing was due" in lived("compress").out
    assert "no sphere yet" in lived("spheres").out


def test_the_page_of_a_core_speaks_one_language(lived: Run) -> None:
    lived("compress")
    page = lived("show", "core_000_000").out
    english = "What happened" in page
    assert english == (": 8 sessions" in page)
    assert english != ("เกิดอะไรขึ้น" in page)


def test_a_removed_core_stays_removed_until_it_is_asked_for(lived: Run) -> None:
    lived("compress")
    id_ = lived("cores", "--json").json["cores"][0]["id"]
    page = lived("show", id_).out
    assert f"octavo compress {id_}" in lived("uncompress", id_).out
    lived("compress")
    assert lived("show", id_).code == 3
    assert f"made  {id_}" in lived("compress", id_).out
    assert lived("show", id_).out == page


def test_show_of_another_kind_is_the_view_of_get(lived: Run) -> None:
    assert lived("show", "dog").out == lived("get", "dog").out


def test_counters_and_sessions_show_the_odometer(lived: Run) -> None:
    counters = lived("counters", "--json").json["counters"]
    assert (counters["Session_seq"], counters["Core_seq"], counters["Total_sessions"]) == (0, 1, 8)
    assert "Total_sessions  8" in lived("counters").out
    assert "sphere 0, core 0, session 7" in lived("sessions").out
    assert lived("counters", "--scope", "orion", "--json").json["counters"]["Total_sessions"] == 0


def test_upkeep_says_what_it_did(lived: Run, tmp_path: Path) -> None:
    assert "nothing was due" in lived("upkeep").out
    (tmp_path / "root" / "default" / "policy.toml").unlink()
    assert lived("upkeep").out == "made  core_000_000\n"


def test_look_alikes_and_doubts_are_put_before_a_person(run: Run) -> None:
    run("remember", "drinks green tea in the morning", "--id", "a")
    run("remember", "drinks green tea in the evening", "--id", "b")
    run("remember", "ok", "--id", "short", "--kind", "register", "--topic", "note")
    assert "propose-merge a b" in run("merge-candidates").out
    proposal = run("propose-merge", "a", "b", "drinks green tea all day", "--json").json["proposal"]
    assert run("approve", proposal).code == 0
    assert "all day" in run("memories").out
    assert "very short" in run("deletion-candidates").out
    assert "waits for a person" in run("propose-deletions").out
    assert "nothing new to ask" in run("propose-deletions").out
    assert run("get", "short").code == 0


def test_a_revision_of_a_memory_without_a_topic_is_named_by_its_id(account: octavo.Account) -> None:
    account.remember("ชอบชาเขียว", id="tea")
    assert account.revise("tea", text="ชอบชาดำ").detail == "revision 2 of tea"


def test_reindex_makes_the_index_anew(lived: Run, tmp_path: Path) -> None:
    assert "up to version 9" in lived("reindex").out
    assert lived("recall", "กาแฟดำ", "--json").json["hits"][0]["is_fresh"] is True
    assert lived("check").code == 0


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with llm_server(refuses()) as running:
        yield running


def test_a_model_named_by_the_environment_tells_the_cores(
    lived: Run, monkeypatch: pytest.MonkeyPatch, server: LlmServer
) -> None:
    monkeypatch.setenv("OCTAVO_LLM_BASE_URL", server.base_url)
    monkeypatch.setenv("OCTAVO_LLM_MODEL", "small")
    made = lived("compress")
    assert made.code == 0
    assert server.requests
    assert "a model's summary:" in made.out  # it answers nothing valid here, and that is said


def test_half_a_model_is_an_error_that_names_the_other_half(
    lived: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_LLM_MODEL", "small")
    assert "OCTAVO_LLM_BASE_URL" in lived("compress").err


ENDPOINT = {
    "OCTAVO_EMBED_BASE_URL": "http://localhost:1/v1",
    "OCTAVO_EMBED_MODEL": "m",
    "OCTAVO_EMBED_DIMENSION": "8",
    "OCTAVO_EMBED_API_KEY": "k",
}


def test_the_environment_names_the_embedder() -> None:
    assert models.embedder({}) is None
    assert models.embedder({"OCTAVO_EMBEDDER": "none"}) is False
    assert isinstance(models.embedder({"OCTAVO_EMBEDDER": "offline"}), OfflineEmbedder)
    assert models.embedder({**ENDPOINT, "OCTAVO_EMBEDDER": "none"}) is False
    found = models.embedder(ENDPOINT)
    assert isinstance(found, EndpointEmbedder)
    assert (found.name, found.dimension, found.key) == ("m-8", 8, "k")
    assert models.embedder({**ENDPOINT, "OCTAVO_EMBEDDER": "endpoint"}) == found


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"OCTAVO_EMBEDDER": "magic"}, "OCTAVO_EMBEDDER"),
        ({"OCTAVO_EMBEDDER": "endpoint"}, "OCTAVO_EMBED_BASE_URL"),
        ({**ENDPOINT, "OCTAVO_EMBED_MODEL": ""}, "OCTAVO_EMBED_MODEL"),
        ({**ENDPOINT, "OCTAVO_EMBED_DIMENSION": "many"}, "OCTAVO_EMBED_DIMENSION"),
        ({**ENDPOINT, "OCTAVO_EMBED_BASE_URL": "localhost"}, "no http or https address"),
    ],
)
def test_a_wrong_embedder_is_an_error_that_names_its_variable(given: dict[str, str], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        models.embedder(given)


def test_a_key_never_shows_in_the_settings(tmp_path: Path) -> None:
    assert "sk-very" not in repr(Settings(root=tmp_path, models={"OCTAVO_LLM_API_KEY": "sk-very"}))


def test_an_unreachable_embedder_costs_its_part_and_not_the_answer(
    lived: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OCTAVO_EMBEDDER")
    for name, value in ENDPOINT.items():
        monkeypatch.setenv(name, value)
    found = lived("recall", "half marathon")
    assert found.code == 0
    assert "so proud" in found.out
    assert "found by words alone" in found.err


def test_many_new_memories_are_compared_by_meaning_too(account: octavo.Account, root: Path) -> None:
    items = [{"text": f"owns a thing called {n}{n * 7919} of sort {n % 13}"} for n in range(100)]
    account.remember_many(items)
    embedder = CallableEmbedder(
        name="ends", dimension=2, function=lambda texts: [[1.0, len(t)] for t in texts]
    )
    with octavo.open(root, "User01", embedder=embedder) as reader:
        hits = reader.recall("a thing of sort 5")
    assert hits
    assert not any("compared by words only" in note for note in hits.notes)


def test_background_work_ends_early_when_the_account_is_closed() -> None:
    runs: list[int] = []

    def job() -> None:
        while not worker.is_stopping:
            runs.append(1)

    worker = Worker(job, attempts=1)
    worker.wake()
    worker.stop()
    assert worker.is_stopping
    assert worker.failure is None


def test_words_alone_never_ask_the_embedder(lived: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_EMBEDDER", "magic")
    assert lived("recall", "half marathon", "--words").code == 0
    assert lived("recall", "half marathon").code == 2


def test_the_default_way_of_opening_only_reads(tmp_path: Path) -> None:
    octavo.open(tmp_path, actor="human:you").close()
    with (
        performing.open_account(Settings(root=tmp_path)) as account,
        pytest.raises(octavo.OctavoError, match="read"),
    ):
        account.remember("owns a red bicycle")


def test_freshness_shows_what_the_index_holds_of_a_memory(lived: Run) -> None:
    before = lived("freshness", "dog", "--json").json
    assert (before["indexed_rev"], before["is_fresh"], before["has_words"]) == (None, False, False)
    assert "newer than the index" in lived("freshness", "dog").out
    assert lived("catch-up").code == 0
    after = lived("freshness", "dog", "--json").json
    assert set(after) >= {
        "memory",
        "rev",
        "vector_index_updated_at",
        "verified_at",
        "age_seconds",
        "is_drifted",
    }
    assert (after["rev"], after["indexed_rev"], after["is_fresh"], after["has_vector"]) == (1, 1, True, False)
    shown = lived("freshness", "dog").out
    assert "holds revision 1" in shown
    assert "fresh" in shown
    assert lived("remember", "has two greyhounds", "--kind", "register", "--topic", "pet").code == 0
    assert lived("freshness", "dog", "--json").json["is_fresh"] is False
    missing = lived("freshness", "cat")
    assert missing.code == 3
    assert "'cat'" in missing.err


def test_freshness_without_an_id_shows_how_far_the_index_is_behind(lived: Run) -> None:
    lag = lived("freshness", "--json").json
    assert (lag["version"], lag["waiting"], lag["dead"]) == (9, 0, 0)
    behind = lag["versions"]  # a handle that is held for a while indexes by itself
    assert ("up to date" if behind == 0 else f"{behind} version") in lived("freshness").out
    lived("catch-up")
    assert lived("freshness", "--json").json["versions"] == 0
    shown = lived("freshness").out
    assert "up to date" in shown
    assert "never" in shown


def test_freshness_and_recall_say_what_has_drifted_until_upkeep_verifies_it(
    lived: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OCTAVO_EMBEDDER", "offline")
    embedder = CallableEmbedder(
        name="use-multilingual-3", dimension=512, function=lambda texts: [[len(t)] * 512 for t in texts]
    )
    long_ago = datetime(2026, 3, 9, tzinfo=UTC)
    with octavo.open(
        tmp_path / "root", actor="human:nok", embedder=embedder, clock=lambda: long_ago
    ) as account:
        account.catch_up()
    drifted = lived("freshness", "dog", "--json").json
    assert (drifted["has_vector"], drifted["is_drifted"], drifted["is_fresh"]) == (True, True, False)
    assert "drifted" in lived("freshness", "dog").out
    hits = lived("recall", "greyhound", "--why", "--json").json["hits"]
    assert {hit["is_drifted"] for hit in hits} == {True}
    assert "drifted" in lived("recall", "greyhound", "--why").out
    assert {hit["is_drifted"] for hit in lived("recall", "greyhound", "--json").json["hits"]} == {None}
    assert lived("upkeep").code == 0
    assert lived("freshness", "dog", "--json").json["is_fresh"] is True
    assert "drifted" not in lived("recall", "greyhound", "--why").out
    (floats,) = tmp_path.rglob("vectors-*/floats.bin")
    floats.write_bytes(bytes(floats.stat().st_size))
    damaged = lived("upkeep")
    assert damaged.code == 7
    assert "its checksum is wrong" in damaged.out


def test_the_environment_names_the_reranker() -> None:
    assert models.reranker({}) is None
    assert models.reranker({"OCTAVO_RERANKER": " none "}) is False
    assert isinstance(models.reranker({"OCTAVO_RERANKER": "offline"}), rerank.TokenReranker)
    where = {"OCTAVO_RERANK_BASE_URL": "http://localhost:8080/v1", "OCTAVO_RERANK_MODEL": "judge"}
    assert models.reranker(where) == rerank.EndpointReranker(url="http://localhost:8080/v1", model="judge")
    with pytest.raises(BadInput, match="OCTAVO_RERANK_MODEL is not set"):
        models.reranker({"OCTAVO_RERANK_BASE_URL": "http://localhost:8080/v1"})
    with pytest.raises(BadInput, match="OCTAVO_RERANKER 'magic' is unknown"):
        models.reranker({"OCTAVO_RERANKER": "magic"})


@pytest.mark.parametrize("command", [("recall", "Juno"), ("explain", "Juno", "dog"), ("brief", "Juno")])
def test_a_second_look_is_taken_unless_it_is_not_wanted(
    lived: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    looked: list[str] = []
    found = rerank.TokenReranker(
        name="letters",
        dimension=64,
        encode=lambda texts: looked.extend(texts) or [_tokens(text) for text in texts],
    )
    monkeypatch.setattr(models, "offline_reranker", lambda: found)
    monkeypatch.setenv("OCTAVO_RERANKER", "none")
    assert lived(*command).code == 0
    assert looked == []
    monkeypatch.setenv("OCTAVO_RERANKER", "offline")
    assert lived(*command).code == 0
    assert "Juno" in looked
    looked.clear()
    assert lived(*command, "--words").code == 0
    assert looked == []
    assert lived("recall", "Juno", "--once").code == 0
    assert "Juno" not in looked


def _tokens(text: str) -> Any:
    ids = [ord(letter) % 64 for letter in text]
    return np.array(ids, dtype=np.int64), np.eye(64, dtype=np.float32)[ids]


def test_a_second_look_without_its_extra_says_what_to_install(
    lived: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerank, "find_spec", lambda name: None)
    monkeypatch.setenv("OCTAVO_RERANKER", "offline")
    asked = lived("recall", "Juno")
    assert asked.code == 8
    assert "octavo[rerank]" in asked.err
    assert lived("recall", "Juno", "--words").code == 0
    assert lived("memories").code == 0


def test_a_brief_that_finds_no_room_does_not_say_that_there_is_nothing(run: Run) -> None:
    run("init")
    assert "nothing to say" in run("brief").out
    run("remember", "อยู่เชียงใหม่", "--kind", "register", "--topic", "home")
    assert "nothing fits so small a budget" in run("brief", "--budget", "10").out


@pytest.mark.parametrize("named", ["lives in Leeds", "ลำปาง", "nobody"])
def test_who_names_a_memory_by_its_text_is_told_where_its_id_is(run: Run, named: str) -> None:
    run("remember", "lives in Leeds")
    assert "`octavo recall`" in run("forget", named).err
