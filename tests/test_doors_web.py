"""The web page: what each address shows, what each form does, and what must never get in or out."""

from __future__ import annotations

import os
import re
import signal
import socket
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import httpx2 as httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.testclient import TestClient

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.domain.hits import Hit
from octavo.domain.memory import Link
from octavo.domain.policy import Policy
from octavo.doors import cli, rest
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Tokens
from octavo.doors.web import pages, telling
from octavo.doors.web.visits import HEADERS
from test_engine_freshness import Fragile

CANARY = "<script>alert('ได้')</script><img src=x onerror=alert(1)>"


class Held:
    """The test's accounts, held open."""

    def __init__(self, opened):
        self.opened, self.accounts = opened, {}

    @contextmanager
    def account(self, who: Settings, *, begins: bool = False) -> Iterator:
        if who.account not in self.accounts:
            self.accounts[who.account] = self.opened(who.actor, who.account, embedder=False)
        yield self.accounts[who.account]


@pytest.fixture
def settings(root):
    return Settings(root=root, account="User01", actor="human:nok")


class Anybody:
    """Takes every request for the same person's; the pages themselves must prove what a form sends."""

    same_origin = "a token of this server"

    def __init__(self, settings):
        self.settings = settings

    def of(self, request, account=None, proof=None):
        return replace(self.settings, account=account or self.settings.account)


@pytest.fixture
def client(opened, settings):
    app = Starlette()
    pages.add(SimpleNamespace(app=app, pool=Held(opened), visitors=Anybody(settings)))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def nok(opened):
    return opened("human:nok", embedder=False)


@pytest.fixture
def orion(opened):
    return opened("agent:orion", embedder=False)


def seen(client, path, status=200, **query):
    answer = client.get(f"/@User01/{path}", params=query)
    assert answer.status_code == status, answer.text
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    return answer.text


def words(page):
    """What a person reads."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())


def send(client, path, *, page="ask", token=None, headers=None, **fields):
    """Send a form as a page of ours has it; the answer is the page it leads to."""
    if token is None:
        found = re.search(r'name="token" value="([^"]+)"', seen(client, page))
        token = found[1]
    return client.post(f"/@User01/{path}", data={"token": token, **fields}, headers=headers or {})


def life(orion):
    with orion.sandbox() as sandbox:
        said = sandbox.turn("Nok", "My mother decided to have her knee operated on in August.")
        sandbox.turn("Orion", "ขอให้หายไว ๆ นะคะ")
        sandbox.remember("lives in Bangkok", kind="register", topic="home")
    with orion.sandbox() as sandbox:
        sandbox.turn("Nok", "ย้ายมาเชียงใหม่แล้วนะ อากาศเย็นสบายมาก")
        sandbox.remember("lives in Chiang Mai", kind="register", topic="home")
    return said


def test_the_graph_shows_what_led_to_a_memory_and_what_came_of_it_and_is_bounded(client, nok, orion):
    said = life(orion)
    home = nok.memories(topic="home")[0].id
    made = nok.remember(CANARY, links=[Link(name="evidence", to=said)]).or_raise()
    page = seen(client, f"graph/{home}")
    assert page.count("<rect class") == 4  # two conversations, what rests on one, and itself
    assert "ย้ายมาเชียงใหม่แล้วนะ" in words(page)
    page = seen(client, f"graph/{said}")
    assert f"/memory/{made.id}" in page
    assert "<script>alert" not in page
    for n in range(70):
        nok.remember(f"note number {n} on the knee", links=[Link(name="about", to=said)]).or_raise()
    page = seen(client, f"graph/{said}")
    assert page.count("<rect class") <= 60
    report = words(seen(client, "graph/nobody", status=404))
    assert re.search(r"NotFound, there is no memory 'nobody', \d+ \w+ \d{4} at \d\d:\d\d UTC", report)


def test_the_first_address_leads_to_the_accounts_own_page(client):
    assert str(client.get("/").url) == "http://127.0.0.1/@User01/ask"
    assert str(client.get("/@User01/").url) == "http://127.0.0.1/@User01/ask"


def test_what_a_recall_notes_is_a_sentence_for_a_person(client, orion):
    life(orion)
    read = words(seen(client, "ask", q="where does she live?"))
    assert "Only words were compared this time, not what they mean." in read
    assert "embedder" not in read
    long = words(seen(client, "ask", q="where does she live? " * 200))
    assert "only its beginning was looked for" in long
    engine = "".join(path.read_text() for path in Path(octavo.__file__).parent.rglob("engine/*.py"))
    assert [sign for sign in telling.words()["notes"] if sign not in engine] == []


def test_what_is_not_compared_by_meaning_yet_is_told_in_a_sentence(opened, settings):
    account = opened("human:nok", embedder=Fragile("ชอบชาอู่หลง"))
    for text in ("ชอบชาอู่หลง", "likes green tea"):
        account.remember(text, kind="register", topic=text)
    account.catch_up()
    app, held = Starlette(), Held(opened)
    held.accounts["User01"] = account
    pages.add(SimpleNamespace(app=app, pool=held, visitors=Anybody(settings)))
    with TestClient(app, base_url="http://127.0.0.1") as here:
        read = words(seen(here, "ask", q="ชาอู่หลง"))
    assert "What is newest (1) is known by its words so far, and soon by its meaning, too." in read
    assert "vector" not in read


def test_from_an_address_of_no_account_a_person_comes_back_to_one_that_is_there(settings, nok):
    app = rest.app(Pool(), settings, mounts=(pages.add,))
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as here:
        lost = here.get("/@Nobody/ask")
        assert lost.status_code == 404
        acts = re.findall(r'<a class="button[^>]*href="([^"]+)"', lost.text.partition("</h1>")[2])
        assert acts == ["/"]
        assert here.get(acts[0]).status_code == 200
        assert "/@User01/timeline" in here.get("/@User01/memory/nobody").text


def test_the_health_of_one_memory_is_told_in_the_singular(client, nok):
    nok.remember("likes tea")
    read = words(seen(client, "health", check="1"))
    assert "The one version was read again just now." in read
    assert "The one version stands; 1 line agrees with its seal." in read


def test_an_empty_account_says_how_to_begin_and_takes_a_first_memory(client, nok):
    assert "A blank first leaf" in seen(client, "ask")
    answer = send(client, "remember", text="likes tea ชอบชา")
    assert "It is remembered." in answer.text
    assert [memory.text for memory in nok.memories()] == ["likes tea ชอบชา"]
    assert "No page is written yet" in seen(client, "reading")


def test_a_question_is_answered_with_its_reasons_and_where_it_comes_from(client, orion):
    life(orion)
    page = seen(client, "ask", q="mother's knee")
    assert "<mark>knee</mark>" in page
    read = words(page)
    assert "It shares words with the question" in read
    assert "You said it" in read
    assert "in conversation 1" in read


def test_hits_that_share_no_word_and_little_meaning_are_said_to_be_no_answer(client, orion, monkeypatch):
    life(orion)
    assert "The best" in words(seen(client, "ask", q="mother's knee"))
    monkeypatch.setattr(pages, "_HOLDS", 2.0)
    monkeypatch.setattr(Hit, "shares_words", False)
    page = words(seen(client, "ask", q="mother's knee"))
    assert "Nothing you remember answers this well. What comes nearest:" in page


def test_an_undo_that_is_too_late_names_what_stands_there_now(client, orion, nok):
    nok.remember("lives in Bangkok", kind="register", topic="home")
    nok.remember("lives in Nan", kind="register", topic="home")
    nok.remember("lives in Lampang", kind="register", topic="home")
    page = words(seen(client, "undo/2"))
    assert "It was changed again since" in page
    assert "lives in Lampang" in page.partition("changed again since")[2]


def test_what_holds_now_goes_before_what_was_said(client, orion):
    life(orion)
    page = seen(client, "ask", q="lives Chiang Mai")
    assert page.index("Holds now") < page.index("<mark>Chiang</mark>")
    assert "Holds now lives in Chiang Mai" in words(seen(client, "ask", q="where is my home?"))
    assert "changed 1 time" in words(page)
    start = words(seen(client, "ask"))
    assert "lives in Chiang Mai" in start
    assert "lives in Bangkok" not in start


def test_what_was_corrected_since_is_marked_and_leads_to_what_holds(client, nok):
    nok.remember("Nora lives in Porto")
    nok.remember("Nora moved to Braga in March")
    read = words(seen(client, "ask", q="where does Nora live?"))
    assert read.index("moved to Braga") < read.index("lives in Porto")
    assert "ot so any more: something newer was said" in read


def test_what_a_question_looked_through_leaves_out_what_is_never_a_hit(client, nok):
    ids = [nok.remember(f"the {what} is in the kitchen").memory.id for what in ("kettle", "red chair")]
    before = re.search(r"of (\d+) memories", words(seen(client, "ask", q="kettle in the kitchen")))
    nok.assemble(*ids, name="kitchen")
    assert nok.stats().by_kind["assembly"] == 1
    after = re.search(r"of (\d+) memories", words(seen(client, "ask", q="kettle in the kitchen")))
    assert before
    assert after
    assert before[1] == after[1]


def test_chips_narrow_a_question_and_a_day_asks_an_older_version(client, orion):
    life(orion)
    assert "Nothing answers this" in seen(client, "ask", q="knee", **{"in": "pages"})
    assert "knee" in words(seen(client, "ask", q="knee", **{"in": "said"}))
    assert "Nothing answers this" in seen(client, "ask", q="knee", at="2020-01-01")
    seen(client, "ask", 400, q="knee", at="yesterday")
    seen(client, "ask", 400, q="knee", **{"in": "everywhere"})
    seen(client, "ask", 400, q="knee", k="many")


def test_thai_is_named_as_thai_and_asked_words_are_marked_in_it(client, orion):
    life(orion)
    page = seen(client, "ask", q="เชียงใหม่")
    assert re.search(r'<span lang="th">[^<]*<mark>เชียงใหม่</mark>', page)


def test_the_timeline_tells_every_version_and_shows_any_difference(client, orion):
    life(orion)
    read = words(seen(client, "timeline"))
    assert "Conversation 2 with Orion: ย้ายมาเชียงใหม่แล้วนะ" in read
    page = seen(client, "timeline", **{"from": 1, "to": 2})
    assert "lives in <del>Bangkok</del><ins>Chiang Mai</ins>" in page
    assert "No version like this" in words(seen(client, "timeline", show="me"))
    assert "From version 0 to 2" in words(seen(client, "timeline", **{"from": 0, "to": 2}))


def test_a_version_is_taken_back_after_a_look_and_so_is_that(client, orion, nok):
    life(orion)
    read = words(seen(client, "undo/2"))
    assert "Take version 2 back?" in read
    answer = send(client, "undo/2", page="undo/2")
    assert "It is taken back." in answer.text
    assert [m.text for m in nok.memories(kind="register")] == ["lives in Bangkok"]
    undo = re.search(r'action="/@User01/(undo/3)"', answer.text)[1]
    send(client, undo)
    assert [m.text for m in nok.memories(kind="register")] == ["lives in Chiang Mai"]
    assert "It was changed again since" not in seen(client, "undo/2")  # it says the same as then


def test_an_undo_under_a_later_change_is_explained_and_refused(client, orion):
    life(orion)
    page = seen(client, "undo/1")
    assert "It was changed again since" in page
    refused = send(client, "undo/1")
    assert refused.status_code == 409
    assert "cannot be taken back by itself" in refused.text


def test_going_back_says_what_will_change_and_does_it(client, orion, nok):
    life(orion)
    assert "<del>Chiang Mai</del><ins>Bangkok</ins>" in seen(client, "restore/1")
    assert "You went back." in send(client, "restore/1", page="restore/1").text
    assert [m.text for m in nok.memories(kind="register")] == ["lives in Bangkok"]
    seen(client, "restore/99", 404)
    seen(client, "undo/99", 404)


def proposed(orion, **more):
    return orion.remember("Nok is a vegetarian", kind="canon", topic="identity/diet", **more).proposal


def decided(client, id_, say, **fields):
    page = seen(client, "review")
    digest = re.search(rf'review/{id_}">.*?name="seen" value="([^"]+)"', page, re.DOTALL)[1]
    return send(client, f"review/{id_}", page="review", say=say, seen=digest, **fields)


def test_a_proposal_waits_with_its_reason_and_its_evidence(client, orion):
    said = life(orion)
    proposed(orion, links=[Link(name="evidence", to=said)], data={"reason": "she told me"})
    read = words(seen(client, "review"))
    assert "One thing waits for your word" in read
    assert "Orion would like to remember" in read
    assert "she told me" in read
    assert "knee operated on" in read
    orion.remember("นกใจดี", kind="canon")
    assert "Orion gave no reason and no source." in words(seen(client, "review"))


def test_yes_is_said_and_taken_back(client, orion, nok):
    answer = decided(client, proposed(orion), "yes")
    assert "You said yes." in answer.text
    assert [m.text for m in nok.memories(kind="canon")] == ["Nok is a vegetarian"]
    send(client, re.search(r'action="/@User01/(undo/\d+)"', answer.text)[1])
    assert (nok.memories(kind="canon"), len(nok.proposals())) == ([], 1)


def test_no_is_said_and_taken_back(client, orion, nok):
    answer = decided(client, proposed(orion), "no")
    assert "You said no. It stays out." in answer.text
    assert len(nok.rejections()) == 1
    send(client, re.search(r'action="/@User01/(undo/\d+)"', answer.text)[1])
    assert (nok.rejections(), len(nok.proposals())) == ([], 1)


def test_yes_in_other_words_keeps_the_persons_wording(client, orion, nok):
    id_ = proposed(orion)
    assert "In your words" in seen(client, "review", edit=id_)
    answer = decided(client, id_, "other", text="กินมังสวิรัติวันพระ")
    assert [m.text for m in nok.memories(kind="canon")] == ["กินมังสวิรัติวันพระ"]
    send(client, re.search(r'action="/@User01/(undo/\d+)"', answer.text)[1])
    assert [p.memory.text for p in nok.proposals()] == ["Nok is a vegetarian"]


def test_a_proposal_that_changed_is_never_approved_unread(client, orion, nok):
    id_ = proposed(orion)
    answer = send(client, f"review/{id_}", page="review", say="yes", seen="0" * 64)
    assert (answer.status_code, nok.memories(kind="canon")) == (409, [])
    assert "This changed while you read" in answer.text
    assert decided(client, id_, "maybe").status_code == 400


def test_what_was_kept_out_is_told_without_its_text(client, orion, nok):
    orion.remember("the card for the rent is 4111 1111 1111 1111")
    nok.reject("afraid of dogs", reason="never true")
    page = seen(client, "review")
    assert "4111" not in page
    read = words(page)
    assert "looked like a secret" in read
    assert "never true" in read


def test_a_memory_is_corrected_forgotten_brought_back_and_erased(client, orion, nok):
    life(orion)
    (home,) = nok.memories(kind="register")
    path = f"memory/{home.id}"
    assert "lives in <del>Bangkok</del><ins>Chiang Mai</ins>" in seen(client, path)
    for act, sign in (
        ("correct", "What it shall say"),
        ("forget", "Forget it?"),
        ("erase", "Nothing can bring it back"),
    ):
        assert sign in seen(client, path, act=act)
    assert "It is corrected." in send(client, f"{path}/correct", text="lives in Lampang ลำปาง").text
    gone = send(client, f"{path}/forget").text
    assert "This is forgotten" in gone
    assert nok.get(home.id) is None
    send(client, re.search(r'action="/@User01/(undo/\d+)"', gone)[1])
    assert nok.get(home.id).text == "lives in Lampang ลำปาง"
    assert send(client, f"{path}/erase", reason=" ").status_code == 400
    assert "erased for good" in send(client, f"{path}/erase", reason="told in confidence").text
    assert "Lampang" not in seen(client, path)
    seen(client, "memory/nobody", 404)


def test_who_brings_a_wording_back_did_not_write_it(client, orion, nok):
    life(orion)
    (home,) = nok.memories(kind="register")
    nok.forget(home.id)
    nok.restore(nok.version - 1)
    assert nok.get(home.id).actor == nok.actor
    assert "Orion wrote this" in words(seen(client, f"memory/{home.id}"))
    assert "Orion wrote it" in words(seen(client, "ask"))


def test_a_memory_stands_between_what_it_comes_from_and_what_it_went_into(client, orion, nok):
    life(orion)
    (home,) = nok.memories(kind="register")
    lanes = words(seen(client, f"memory/{home.id}").partition('class="lanes"')[2])
    assert lanes.index("Was said then") < lanes.index("lives in Bangkok") < lanes.index("lives in Chiang Mai")


def test_where_nothing_changed_there_is_nothing_to_take_back(client, orion, nok):
    said = life(orion)
    nok.redact(said, reason="told in confidence")
    page = seen(client, f"undo/{nok.version}")
    assert "nothing to take back" in page
    assert "gone for good" in page
    assert "<button" not in page.partition("<main")[2].partition("</main")[0]


def test_a_conversation_shows_its_turns_and_cannot_be_corrected(client, orion):
    said = life(orion)
    page = seen(client, f"memory/{said}")
    assert "knee operated on" in words(page)
    assert "ขอให้หายไว" in words(page)
    assert "Correct…" not in page
    assert send(client, f"memory/{said}/correct", text="no").status_code == 422


def test_the_reading_room_holds_cores_and_their_quotations_open_what_was_said(client, opened):
    policy = Policy(compression=CompressionPolicy(mode="immediate"))
    orion = opened("agent:orion", embedder=False, policy=policy)
    for said in (
        "I adopted a dog",
        "I decided to learn pottery",
        "my mother visits in May",
        "โมจิกลัวฟ้าร้องมาก",
    ):
        for when in ("today, before breakfast", "again, after work"):
            with orion.sandbox() as sandbox:
                sandbox.turn("Nok", f"{said} {when}.")
    page = seen(client, "reading")
    assert "Core 1 of 8" in words(page)
    assert "learn pottery" in words(page)
    episode = re.search(r'class="when"><a href="/@User01/(memory/[^"]+)"', page)[1]
    assert "Said first" in seen(client, episode)
    seen(client, "reading", 404, leaf="core_999_999")


def test_health_counts_checks_and_hands_out_a_copy(client, orion):
    life(orion)
    assert "Is your memory sound?" in seen(client, "health")
    assert "Your memory is sound" in seen(client, "health", check=1)
    copy = send(client, "copy", page="health")
    names = ZipFile(BytesIO(copy.content)).namelist()
    assert any(name.endswith("/ledger/00000000000000000002.jsonl") for name in names)


def test_every_string_is_escaped_wherever_it_is_shown(client, orion, nok):
    nok.remember(f"canary {CANARY}")
    nok.remember(f"home {CANARY}", kind="register", topic="home")
    nok.remember(f"home again {CANARY}", kind="register", topic="home")
    with orion.sandbox() as sandbox:
        sandbox.turn(CANARY, f"canary {CANARY}")
    orion.remember(f"am {CANARY}", kind="canon", data={"reason": CANARY})
    nok.reject("whatever", reason=CANARY)
    ids = [memory.id for memory in nok.memories()]
    addresses = ["ask", "timeline", "timeline?from=0&to=3", "review", "health", "undo/3", "restore/1"]
    addresses += [f"memory/{id_}" for id_ in ids] + [f"ask?q=canary {CANARY}", f"memory/{ids[0]}?act=correct"]
    for address in addresses:
        page = client.get(f"/@User01/{address}")
        assert page.status_code == 200
        assert "<script>alert" not in page.text, address
        assert "<img" not in page.text, address
    for address in (
        f"ask?in={CANARY}",
        f"timeline?from={CANARY}",
        f"memory/{CANARY}",
        f"reading?leaf={CANARY}",
    ):
        assert "<script>alert" not in client.get(f"/@User01/{address}").text


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("", {}),
        ("x" * 32, {}),
        (None, {"sec-fetch-site": "cross-site"}),
        (None, {"sec-fetch-site": "same-site"}),
    ],
)
def test_a_form_of_another_page_changes_nothing(client, nok, token, headers):
    answer = send(client, "remember", text="planted", token=token, headers=headers)
    assert (answer.status_code, nok.version) == (403, 0)


def test_a_form_that_is_too_long_changes_nothing(client, nok):
    assert send(client, "remember", text="ก" * 40_000).status_code == 403
    assert nok.version == 0


def test_reading_a_page_never_writes_and_an_act_is_never_a_link(client, orion, nok):
    life(orion)
    proposed(orion)
    before = nok.version
    for address in (
        "ask",
        "ask?q=home",
        "timeline",
        "review",
        "reading",
        "health?check=1",
        "undo/2",
        "restore/1",
    ):
        assert client.get(f"/@User01/{address}").status_code == 200
    for address in ("remember", "copy", "memory/x/forget", "memory/x/erase", "review/x"):
        assert client.get(f"/@User01/{address}").status_code in (404, 405)
    assert nok.version == before


def served(settings):
    """The pages as the server has them, for a person on this machine."""
    pool = Pool()
    app = rest.app(pool, settings, mounts=(pages.add,))
    return TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000))


def test_the_server_shows_the_pages_to_the_person_at_the_machine(nok, orion, settings):
    life(orion)
    with served(settings) as client:
        assert str(client.get("/").url) == "http://127.0.0.1/@User01/ask"
        assert "lives in Chiang Mai" in words(seen(client, "ask"))
        assert send(client, "remember", text="likes tea").status_code == 200
        assert send(client, "remember", text="planted", token="x").status_code == 403
        assert client.get("/@User01/ask", headers={"host": "evil.example"}).status_code == 403
        assert client.get("/@User01/ask", headers={"x-forwarded-for": "10.0.0.1"}).status_code == 401
        assert client.get("/@nobody/ask").status_code == 404
    assert [m.text for m in nok.memories(kind="fact")] == ["likes tea"]


def test_a_token_shows_the_pages_of_its_own_account_alone(nok, settings):
    nok.remember("likes tea")
    _, token = Tokens(settings.root).add("User01", "human:nok", None, by="human:nok")
    bearer = {"authorization": f"Bearer {token}"}
    with served(settings) as client:
        assert client.get("/@User01/timeline", headers=bearer).status_code == 200
        assert client.get("/@Other/timeline", headers=bearer).status_code == 403
        assert client.get("/@User01/timeline", headers={"authorization": "Bearer x"}).status_code == 401


@pytest.mark.parametrize("is_first", [True, False])
def test_open_serves_the_page_and_shows_it_in_the_browser(root, monkeypatch, capfd, is_first):
    if not is_first:
        octavo.open(root, "นก", embedder=False).close()
    shown = []

    def browse(url):
        answer = httpx.get(url)
        shown.append((url, answer.status_code))
        assert "A blank first leaf" in answer.text
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(webbrowser, "open", browse)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert cli.run(["open", "--port", str(port), "--root", str(root), "--account", "นก"]) == 0
    assert shown == [(f"http://127.0.0.1:{port}/@%E0%B8%99%E0%B8%81/ask", 200)]


@pytest.mark.parametrize("path", ["nowhere", "memory", "ask/more", "undo/1/x", "ไม่มี"])
def test_an_unknown_address_is_a_page_for_a_person_and_a_problem_for_a_program(client, nok, path):
    token = Anybody.same_origin
    nok.remember("likes tea")
    shown = client.get(f"/@User01/{path}")
    assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing at this address" in shown.text
    assert 'href="/@User01/ask"' in shown.text
    assert client.head(f"/@User01/{path}").status_code == 404
    sent = client.post(f"/@User01/{path}", data={"token": token})
    assert (sent.status_code, sent.headers["content-type"]) == (404, "text/html; charset=utf-8")
    told = client.get(f"/@User01/{path}", headers={"Accept": "application/json"})
    assert (told.status_code, told.headers["content-type"]) == (404, "application/problem+json")
    assert told.json()["type"] == "/problems/NotFound"


def test_a_program_gets_every_error_of_a_page_as_a_problem(client, nok):
    for path, status in (("memory/nobody", 404), ("undo/x", 400), ("ask?q=tea&in=nowhere", 400)):
        told = client.get(f"/@User01/{path}", headers={"Accept": "application/problem+json"})
        assert (told.status_code, told.json()["status"]) == (status, status)
        assert client.get(f"/@User01/{path}").headers["content-type"].startswith("text/html")
    assert client.get("/@User01/remember").status_code == 404  # only a form is sent there


def test_the_theme_is_a_cookie_and_leads_back_to_our_own_pages_only(client, nok):
    nok.remember("likes tea")
    answer = client.get("/@User01/theme/dark", headers={"referer": "http://127.0.0.1/@User01/health"})
    assert str(answer.url).endswith("/@User01/health")
    assert 'data-theme="dark"' in answer.text
    away = client.get(
        "/@User01/theme/x", headers={"referer": "http://127.0.0.1//evil.example/"}, follow_redirects=False
    )
    assert away.headers["location"] == "/@User01/ask"


def test_styles_icons_and_script_are_files_of_our_own_and_pages_hold_none_inline(client, orion):
    life(orion)
    page = seen(client, "ask", q="home")
    for name in re.findall(r'(?:href|src)="(/static/[^"#]+)', page):
        assert client.get(name).status_code == 200
    assert not re.search(r"<style|style=|<script>| on\w+=", page)


def test_a_person_sees_what_their_agents_are_told_of_them(client, opened):
    agent = opened("agent:orion", embedder=False)
    with agent.sandbox() as sandbox:
        sandbox.turn("user", "My sister Ploy lives in Nan.")
        sandbox.turn("user", "แพ้กุ้งนะ")
        sandbox.turn("user", "Always run the tests before you say you're done.")
        sandbox.turn("assistant", "I live in a server, always call me Orion.")
    page = words(seen(client, "ask"))
    assert "What you said of yourself" in page
    told = page.partition("What you said of yourself")[2].partition("Write something down")[0]
    for said in ("My sister Ploy lives in Nan.", "แพ้กุ้งนะ", "What you asked for Always run the tests"):
        assert said in told
    assert "Orion" not in told
