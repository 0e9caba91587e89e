"""The pages in a real browser: a person asks, sees why, approves, compares, restores and undoes.

With OCTAVO_PICTURES=folder the pictures of docs/web.md are made anew in that folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn
from PIL import Image
from playwright.sync_api import expect, sync_playwright
from starlette.applications import Starlette

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.domain.memory import Link
from octavo.doors.settings import Settings
from octavo.doors.web import pages
from octavo.testing import SettableClock

YEAR = Path(__file__).parent.parent / "examples" / "year.txt"
BUILD = Path(__file__).parent.parent / "build" / "axe"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
VIEWS = {"light": ("light", 1200), "dark": ("dark", 1200), "360": ("light", 360)}


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    assert chromium, "there is no Chromium: install the Debian package `chromium` (as root: make test does)"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def axe():
    """The accessibility checker, installed once from npm into the folder of things that are made."""
    script = BUILD / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        assert shutil.which("npm"), "there is no npm: install the Debian package `npm`"
        BUILD.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-save", "--silent", "--prefix", str(BUILD), "axe-core@4"]
        subprocess.run(install, check=True, capture_output=True)
    return script.read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Nok's account after a summer with Orion, served on a free port."""
    root = tmp_path_factory.mktemp("site")
    clock = SettableClock()
    how = {"clock": clock, "embedder": None if "OCTAVO_PICTURES" in os.environ else False}
    policy = octavo.Policy(compression=CompressionPolicy(mode="immediate"))
    with octavo.open(root, "nok", actor="agent:orion", policy=policy, **how) as orion:
        live(orion, clock)
    nok = octavo.open(root, "nok", actor="human:nok", **how)
    nok.remember("lives in Chiang Mai, near the old town", kind="register", topic="home")
    nok.catch_up()
    with served(root, nok) as address:
        yield address, nok
    nok.close()


def live(orion, clock):
    with orion.sandbox() as sandbox:
        sandbox.turn("Nok", "I live in Bangkok and drink my coffee black.")
        sandbox.turn("Orion", "รับทราบค่ะ กาแฟดำไม่ใส่น้ำตาลนะคะ")
        sandbox.remember("lives in Bangkok", kind="register", topic="home")
    clock.advance(days=2)
    with orion.sandbox() as sandbox:
        moved = sandbox.turn("Nok", "ย้ายมาเชียงใหม่แล้วนะ อากาศเย็นสบายมาก")
        sandbox.turn("Orion", "How lovely! Is the new place close to the old town?")
        sandbox.remember("lives in Chiang Mai", kind="register", topic="home")
    for line in [line for line in YEAR.read_text().splitlines() if not line.startswith("#")][:22]:
        clock.advance(days=5)
        said, _, answer = line.removeprefix("! ").partition(" | ")
        with orion.sandbox() as sandbox:
            sandbox.turn("Nok", said, salience=0.9 if line.startswith("! ") else None)
            sandbox.turn("Orion", answer)
    orion.remember("the card for the rent is 4111 1111 1111 1111")
    reason, evidence = "she told me so when she moved", [Link(name="evidence", to=moved)]
    orion.remember(
        "Nok is at home in the north",
        kind="canon",
        topic="identity/home",
        links=evidence,
        data={"reason": reason},
    )
    orion.remember("ชอบกาแฟดำไม่ใส่น้ำตาล", kind="canon", topic="identity/taste")


@contextmanager
def served(root, account):
    class Held:
        @contextmanager
        def account(self, who, *, begins=False):
            yield account

    class Nok:
        same_origin = "the token of this test"
        settings = Settings(root=root, account="nok", actor="human:nok")

        def of(self, request, account=None, proof=None):
            return self.settings

    app = Starlette()
    pages.add(SimpleNamespace(app=app, pool=Held(), visitors=Nok()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/@nok"
    server.should_exit = True
    thread.join()


@contextmanager
def page_in(browser, view="light"):
    """A fresh page in one of the views; whatever the console complains of is an error."""
    scheme, width = VIEWS[view]
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    # The page of an error has its status, and the browser says so.
    assert [text for text in complaints if "404 (Not Found)" not in text] == []
    context.close()


def addresses(nok):
    home = nok.memories(topic="home")[0].id
    waiting = nok.proposals()[0].id if nok.proposals() else ""
    return {
        "ask": "ask?q=mother's knee surgery",
        "now": "ask?q=where is home now?",
        "start": "ask",
        "then": "ask?q=home&at=2026-01-01",
        "timeline": f"timeline?from={nok.version - 3}&to={nok.version}",
        "undo": f"undo/{nok.version}",
        "restore": f"restore/{nok.version - 1}",
        "review": "review",
        "words": f"review?edit={waiting}",
        "memory": f"memory/{home}",
        "erase": f"memory/{home}?act=erase",
        "graph": f"graph/{home}",
        "reading": "reading",
        "health": "health?check=1",
        "error": "memory/nobody",
    }


PICTURES = (
    "ask-light",
    "ask-dark",
    "now-light",
    "timeline-dark",
    "review-360",
    "memory-light",
    "reading-light",
)
# Everything is looked at once; what another light or width can change is looked at again.
LOOKED_AT = {
    "light": "axe.run({resultTypes: ['violations']})",
    "dark": "axe.run({runOnly: ['color-contrast'], resultTypes: ['violations']})",
    "360": "axe.run({runOnly: ['target-size', 'link-in-text-block'], resultTypes: ['violations']})",
}


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_is_accessible_quiet_and_never_wider_than_the_screen(browser, axe, site, view):
    address, nok = site
    with page_in(browser, view) as page:
        for name, path in addresses(nok).items():
            page.goto(f"{address}/{path}")
            page.evaluate(axe)
            found = page.evaluate(
                f"{LOOKED_AT[view]}.then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
            )
            assert found == [], f"{name} in {view}"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} in {view}"
            if f"{name}-{view}" in PICTURES and "OCTAVO_PICTURES" in os.environ:
                picture(page, Path(os.environ["OCTAVO_PICTURES"]) / f"web-{name}-{view}.png")


def test_what_has_no_gap_breaks_before_the_screen_ends(browser, tmp_path):
    long = "https://example.com/" + "averylongpath" * 40
    with octavo.open(tmp_path, "nok", actor="human:nok", embedder=False) as nok:
        id_ = nok.remember(long).or_raise().id
        nok.revise(id_, text=f"{long}/ความจำ")
        with nok.sandbox("W" * 90) as sandbox:
            sandbox.turn("Nok", "W" * 500)
        with octavo.open(tmp_path, "nok", actor=f"agent:{'o' * 50}", scope="shared", embedder=False) as orion:
            orion.remember("values " + "honesty" * 60, kind="canon", topic="v")
        with served(tmp_path, nok) as address, page_in(browser, "360") as page:
            for path in (
                *("ask?q=example", f"memory/{id_}", f"graph/{id_}", "timeline?from=1&to=2", "review"),
                *("undo/2", "restore/1"),
            ):
                page.goto(f"{address}/{path}")
                assert page.evaluate("document.documentElement.scrollWidth") == 360, path


@pytest.mark.parametrize("view", VIEWS)
def test_what_a_question_field_suggests_is_read_to_its_end(browser, site, view):
    address, _ = site
    with page_in(browser, view) as page:
        page.goto(f"{address}/ask")
        room, needed = page.evaluate("""() => {
            const field = document.querySelector("#q"), own = getComputedStyle(field);
            const told = getComputedStyle(field, "::placeholder");
            const pen = document.createElement("canvas").getContext("2d");
            pen.font = `${told.fontSize} ${own.fontFamily}`;
            const sides = parseFloat(own.paddingLeft) + parseFloat(own.paddingRight);
            return [field.clientWidth - sides, pen.measureText(field.placeholder).width];
        }""")
        assert 0 < needed <= room - 20  # where the browser draws the cross that empties it


def picture(page, path):
    """A picture of what is seen, in few colours and so in few bytes."""
    shot = Image.open(BytesIO(page.screenshot()))
    shot.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def test_a_person_asks_sees_why_approves_compares_restores_and_undoes(browser, site):
    address, nok = site
    with page_in(browser) as page:
        page.goto(address.rpartition("/@")[0])
        page.keyboard.press("/")
        page.keyboard.type("mother's knee surgery")
        page.keyboard.press("Enter")
        hit = page.locator("article.hit").first
        expect(hit).to_contain_text("My mother decided to have her knee operated on")
        expect(hit).to_contain_text("shares words with the question")
        expect(hit.locator("dl.parts")).to_contain_text("words")

        page.get_by_role("link", name="Review").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("2 things wait for your word")
        wish = page.locator("article.proposal").filter(has_text="Nok is at home in the north")
        expect(wish).to_contain_text("she told me so when she moved")
        wish.get_by_role("button", name="Yes").click()
        expect(page.get_by_role("status")).to_contain_text("You said yes.")
        assert [m.text for m in nok.memories(kind="canon")] == ["Nok is at home in the north"]
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status")).to_contain_text("It is taken back.")
        assert (nok.memories(kind="canon"), len(nok.proposals())) == ([], 2)

        page.get_by_role("link", name="My changes").click()
        wrote = page.locator("ol.line li").filter(has_text="near the old town")
        wrote.get_by_role("link", name="version").first.click()
        expect(page.locator("#difference ins").first).to_have_text(", near the old town")
        page.get_by_role("link", name="Go back to version").click()
        expect(page.locator(".confirm del").first).to_have_text(", near the old town")
        page.get_by_role("button", name="Go back to version").click()
        expect(page.get_by_role("status")).to_contain_text("You went back.")
        assert nok.memories(topic="home")[0].text == "lives in Chiang Mai"
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status")).to_contain_text("It is taken back.")
        assert nok.memories(topic="home")[0].text == "lives in Chiang Mai, near the old town"


def test_only_the_part_that_was_asked_for_changes_and_the_address_goes_along(browser, site):
    address, nok = site
    with page_in(browser) as page:
        page.goto(f"{address}/ask")
        page.evaluate("window.isTheSame = true")
        page.get_by_label("Ask your memory").fill("mother's knee surgery")
        page.keyboard.press("Enter")
        expect(page.locator("article.hit").first).to_contain_text("knee")
        expect(page.locator("#q")).to_be_focused()
        expect(page.locator("#told")).to_have_text(re.compile("[1-9] found"))
        page.get_by_role("link", name="What I said").click()
        expect(page).to_have_url(re.compile("in=said"))
        expect(page.get_by_role("link", name="What I said")).to_have_attribute("aria-current", "true")
        page.evaluate("history.back()")
        expect(page).not_to_have_url(re.compile("in=said"))
        expect(page.locator("article.hit").first).to_contain_text("knee")
        page.evaluate("history.back()")
        expect(page.get_by_role("heading", name="What holds now")).to_be_visible()

        page.goto(f"{address}/timeline")
        page.evaluate("window.isTheSame = true")
        page.locator("ol.line .meta a").nth(2).click()
        expect(page.locator("#dh")).to_be_focused()
        expect(page).to_have_url(re.compile("from="))

        page.get_by_role("link", name="Review").click()
        page.evaluate("window.isTheSame = true")
        page.get_by_role("button", name="No").first.click()
        expect(page.get_by_role("status")).to_contain_text("You said no.")
        expect(page.locator("nav.pages .count")).to_contain_text("1")
        expect(page.locator("article.proposal button.primary")).to_be_focused()
        assert page.evaluate("window.isTheSame")
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status")).to_contain_text("It is taken back.")
        assert len(nok.proposals()) == 2

        page.goto(f"{address}/health")
        page.evaluate("window.isTheSame = true")
        page.get_by_role("link", name="Check it").click()
        expect(page.get_by_role("heading", name="Your memory is sound")).to_be_visible()
        expect(page.get_by_role("link", name="Check again")).to_be_focused()
        assert page.evaluate("window.isTheSame")


def test_the_whole_graph_leads_from_memory_to_memory(browser, site):
    address, nok = site
    home = nok.memories(topic="home")[0].id
    with page_in(browser) as page:
        page.goto(f"{address}/memory/{home}")
        page.get_by_role("link", name="Open the whole graph").click()
        boxes = page.locator("svg a")
        assert boxes.count() > 3  # two conversations, the core they are in, and itself
        page.locator("svg a").filter(has_text="I live in Bangkok").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("I live in Bangkok")


def test_keys_lead_about_and_can_be_switched_off(browser, site):
    address, nok = site
    with page_in(browser) as page:
        page.goto(f"{address}/ask?q=mother")
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(page.locator("article.hit").nth(1).locator("a").first).to_be_focused()
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/memory/"))
        for key, name in (("t", "timeline"), ("b", "reading"), ("h", "health"), ("r", "review")):
            page.keyboard.press("g")
            page.keyboard.press(key)
            expect(page).to_have_url(re.compile(f"/{name}$"))
        page.keyboard.press("n")
        expect(page.locator("button[value=no]").first).to_be_focused()
        assert len(nok.proposals()) == 2
        page.keyboard.press("n")
        expect(page.get_by_role("status")).to_contain_text("You said no.")
        page.keyboard.press("u")
        expect(page.get_by_role("status")).to_contain_text("It is taken back.")
        assert len(nok.proposals()) == 2
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("reading room")
        page.get_by_label("Use these keys").uncheck()
        page.get_by_role("button", name="Close").click()
        page.keyboard.press("g")
        page.keyboard.press("h")
        expect(page).to_have_url(re.compile("/timeline"))


def test_without_any_script_a_person_can_do_the_same(browser, site):
    address, nok = site
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/ask")
    page.get_by_label("Ask your memory").fill("เชียงใหม่")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("article.hit mark").first).to_have_text("เชียงใหม่")
    page.goto(f"{address}/memory/{nok.memories(topic='home')[0].id}")
    page.get_by_role("link", name="Forget…").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("status")).to_contain_text("It is forgotten.")
    page.get_by_role("button", name="Undo").click()
    assert nok.memories(topic="home")
    context.close()
