"""The state is derived: it equals the fold of the ledger at every version, and it follows."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import octavo
from octavo.domain import likeness
from octavo.domain.filters import Filter, passes
from octavo.domain.memory import Memory
from octavo.domain.policy import GatePolicy
from octavo.errors import LedgerTruncated
from octavo.storage import state_filed, state_log
from octavo.storage.ledger import GENESIS, Ledger, key_of
from octavo.storage.state_db import StateDb
from octavo.storage.state_log import OPEN
from octavo.storage.stores.local import LocalStore
from octavo.testing import MemoryStore, open_on

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
TEXTS = ("มะลิชอบชาเขียว", "cats purr", "lives in Pai", "ทำงานที่ตลาดกลางคืน")
steps = st.lists(
    st.tuples(
        st.sampled_from(["remember", "register", "group", "forget", "revise", "talk", "restore"]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=10,
)


def play(account: octavo.Account, script: list[tuple[str, int]]) -> None:
    """A small life, the same for the same script."""
    for verb, n in script:
        known = [m for m in account.memories() if m.kind != "episode"]
        match verb:
            case "remember":
                account.remember(f"{TEXTS[n % 4]} {n}", tags=["a", "ข"][: n % 3], at=AT + timedelta(hours=n))
            case "register":
                account.remember(
                    f"{TEXTS[n % 4]}", kind="register", topic=f"t{n % 3}", scope=["shared", "orion"][n % 2]
                )
            case "group" if len(facts := [m.id for m in known if m.kind == "fact"]) > 1:
                account.assemble(facts[n % len(facts)], facts[n % len(facts) - 1], name=f"group {n}")
            case "forget" if known:
                account.forget(known[n % len(known)].id)
            case "revise" if known:
                account.revise(
                    known[n % len(known)].id, text=f"{TEXTS[n % 4]} revised {n}", category=["x", "y"][n % 2]
                )
            case "talk":
                with account.sandbox(scope=["shared", "orion"][n % 2]) as sandbox:
                    sandbox.turn("user", TEXTS[n % 4])
                    sandbox.update_state("mood", {"calm": n})
            case "restore":
                account.restore(n % (account.version + 1))


def folded(ledger: Ledger, version: int) -> dict[str, Memory]:
    """The live memories by folding the ledger in plain dictionaries."""
    changes = [c for v in ledger.newer(0, GENESIS, upto=version) for c in v.changes()]
    newest = {change.id: change for change in changes if isinstance(change, Memory)}
    return {id_: memory for id_, memory in newest.items() if not memory.gone}


def check_equal(state: StateDb, ledger: Ledger, version: int) -> None:
    wanted = folded(ledger, version)
    view = state.at(version)
    assert {m.id: m for m in view.memories(Filter())} == wanted
    for kind in octavo.KINDS:
        assert view.count(kind) == sum(1 for m in wanted.values() if m.kind == kind)
    for id_, memory in wanted.items():
        assert view.get(id_) == memory
        if memory.topic:
            assert view.by_topic(memory.kind, memory.scope, memory.topic).topic == memory.topic
    for id_ in wanted:
        pointing = {m.id for m in wanted.values() if id_ in [link.to for link in m.links]}
        assert {m.id for m in view.referring(id_)} == pointing
        linking = {m.id for m in wanted.values() if id_ in [k.to for k in m.links if k.name != "part"]}
        assert {m.id for m in view.referring(id_, parts=False)} == linking
        assert not linking or view.referred([id_]) == {id_}
        groups = {(m.id, m.rev, m.scope, id_) for m in wanted.values() if m.kind == "assembly"}
        assert set(view.wholes_of([id_], ("assembly",))) == {
            group for group in groups if group[0] in pointing
        }
    tallies = {(k, s, c): n for k, s, c, n in view.tallies()}
    assert sum(tallies.values()) == len(wanted)
    for chosen in (
        Filter(scopes=("orion",)),
        Filter(tags=("a", "ข")),
        Filter(category="x"),
        Filter(since=AT),
    ):
        assert {m.id for m in view.memories(chosen)} == {m.id for m in wanted.values() if passes(m, chosen)}


@given(steps)
@settings(max_examples=25, deadline=None)
def test_the_state_equals_the_fold_of_the_ledger_at_every_version(tmp_path_factory, script):
    store = MemoryStore()
    folder = tmp_path_factory.mktemp("state")
    with open_on(store, folder / "index") as account:
        play(account, script)
        head = account.version
        for version in range(head + 1):
            check_equal(account._spine.state, Ledger(store), version)
        rebuilt = StateDb(folder / "rebuilt.db", Ledger(store))
        rebuilt.open()
        assert dump(rebuilt) == dump(account._spine.state)
        rebuilt.rebuild()
        assert dump(rebuilt) == dump(account._spine.state)
        rebuilt.close()


@given(steps)
@settings(max_examples=15, deadline=None)
def test_revisions_are_read_some_at_a_time_as_they_are_all_at_once(tmp_path_factory, script):
    with open_on(MemoryStore(), tmp_path_factory.mktemp("state") / "index") as account:
        play(account, script)
        account.remember("ไปเชียงใหม่", kind="episode")
        state, head = account._spine.state, account.version
        whole = list(state.revisions_since(0, head))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(state_log, "_AT_ONCE", 2)
            for first in range(head + 1):
                assert list(state.revisions_since(first, head)) == [(v, m) for v, m in whole if v > first]
                assert list(state.revisions_since(0, first)) == [(v, m) for v, m in whole if v <= first]


def test_what_was_looked_up_at_once_is_found_as_before(tmp_path):
    texts = [f"Anna {verb} green tea number {n}" for n in range(100) for verb in ("likes", "buys", "sells")]
    with open_on(MemoryStore(), tmp_path) as account:
        known = account.remember("มะลิชอบชาเขียว").memory
        account.remember_many([{"text": text} for text in texts[::3]])
        view, plain = account._spine.head(), account._spine.head()
        coming = [replace(known, id=f"nobody{n}", text=text) for n, text in enumerate(["", *texts])]
        view.expect([known, *coming])
        assert view.get(known.id) == known
        assert view.get("nobody1") is None
        for text in [known.text, *texts, "Anna likes black tea", *texts[:5], ""]:
            assert view.alike("fact", "shared", text) == plain.alike("fact", "shared", text)
        assert view.alike("fact", "shared", texts[0])
        for text in (texts[0], texts[-1]):
            near = likeness.near_to(text, GatePolicy())
            kept = [
                m for m in view.alike("fact", "shared", text) if likeness.is_near(m.text, text, GatePolicy())
            ]
            assert (
                view.alike("fact", "shared", text, near) == plain.alike("fact", "shared", text, near) == kept
            )
            assert not view.alike("fact", "shared", text, lambda _: False)


def test_texts_that_come_again_later_do_not_have_the_others_looked_up_again(tmp_path, monkeypatch):
    asked = []
    most_alike = state_filed.most_alike
    monkeypatch.setattr(
        state_filed, "most_alike", lambda db, sought: asked.append(len(sought)) or most_alike(db, sought)
    )
    texts = [f"Anna buys {n} kilos of rice" for n in range(2_500)]
    with open_on(MemoryStore(), tmp_path) as account:
        again = [text for n in range(0, 1_000, 10) for text in (texts[n], texts[1_200 + n])]
        account.remember_many([{"text": text} for text in [*texts, *again]])
        assert sum(asked) <= len(texts) + len(again)


def dump(state: StateDb) -> dict[str, list]:
    """Every row of every table."""
    tables = [
        name for (name,) in state.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
    ]
    return {name: sorted(state.rows(f"SELECT * FROM {name}"), key=repr) for name in tables}


@pytest.fixture
def root(tmp_path) -> Path:
    with octavo.open(tmp_path / "root", actor="human:ann") as account:
        for n, text in enumerate(TEXTS):
            account.remember(f"{text} {n}", kind="register", topic="now")
    return tmp_path / "root"


def state_of(root: Path) -> StateDb:
    return StateDb(root / "default" / "index" / "state.db", Ledger(LocalStore(root / "default")))


def test_links_end_with_their_revision_so_that_old_ones_are_not_read_again(root):
    with octavo.open(root, actor="human:you", embedder=False) as account:
        one, two = (account.remember(text).memory.id for text in TEXTS[:2])
        (group,) = account.assemble(one, two, name="both")
        for n in range(5):
            account.revise(group.id, tags=[f"t{n}"])
        account.restore(account.version - 2)
        state = account._spine.state
        live = state.rows("SELECT target, row FROM link WHERE until = ? ORDER BY target", (OPEN,))
        current = state.one("SELECT row FROM revision WHERE id = ? AND until = ?", (group.id, OPEN))
        assert live == [(id_, current) for id_ in sorted((one, two))]
        account.forget(group.id)
        assert state.at(account.version).wholes_of([one], ("assembly",)) == []
        assert [whole for whole, *_ in state.at(account.version - 1).wholes_of([one], ("assembly",))] == [
            group.id
        ]


def test_a_missing_state_is_derived_again(root):
    with octavo.open(root) as account:
        wanted = dump(account._spine.state)
    shutil.rmtree(root / "default" / "index")
    with octavo.open(root) as account:
        assert dump(account._spine.state) == wanted


def test_a_state_that_is_behind_catches_up(root, tmp_path):
    behind = shutil.copytree(root / "default" / "index", tmp_path / "behind")
    with octavo.open(root, actor="human:ann") as account:
        account.remember("ย้ายไปปาย", kind="register", topic="now")
        wanted = dump(account._spine.state)
    shutil.rmtree(root / "default" / "index")
    shutil.copytree(behind, root / "default" / "index")
    with octavo.open(root) as account:
        assert dump(account._spine.state) == wanted


def test_the_state_of_another_history_is_rebuilt(root, tmp_path):
    with octavo.open(tmp_path / "other", actor="human:ann") as other:
        for n in range(3):
            other.remember(f"อีกประวัติหนึ่ง {n}", kind="register", topic="now")
    shutil.rmtree(root / "default" / "index")
    shutil.copytree(tmp_path / "other" / "default" / "index", root / "default" / "index")
    with octavo.open(root, read_only=True) as account:
        assert account.version == 4
        assert [m.text for m in account.memories()] == [f"{TEXTS[3]} 3"]
    with octavo.open(root) as account:
        assert account.version == 4
        assert account.check()
        assert [m.text for m in account.memories()] == [f"{TEXTS[3]} 3"]


def test_a_ledger_shorter_than_its_state_is_truncated_and_the_state_is_left_alone(root):
    (root / "default" / key_of(4)).unlink()
    state = state_of(root)
    before = dump(state)
    with pytest.raises(LedgerTruncated, match="ends before version 4"):
        state.open()
    assert dump(state) == before
    assert state.rebuild() == 3
    assert state.open() == 3
    state.close()


def test_a_state_of_another_layout_is_made_anew(root):
    state = state_of(root)
    wanted = dump(state)
    state._db.pragma("user_version", 99)
    state.close()
    with octavo.open(root, read_only=True) as account:
        assert account.version == 4
    with octavo.open(root) as account:
        assert dump(account._spine.state) == wanted


def test_a_version_applied_twice_counts_once(root):
    state = state_of(root)
    before = dump(state)
    state.apply(Ledger(LocalStore(root / "default")).read(4))
    assert dump(state) == before
    state.close()


def test_a_failed_catching_up_leaves_the_state_where_it_was(root, tmp_path):
    with octavo.open(root, actor="human:ann") as account:
        account.remember("ห้า", kind="register", topic="now")
        account.remember("six", kind="register", topic="now")
    path = root / "default" / key_of(6)
    path.write_bytes(path.read_bytes()[:-3])
    fresh = StateDb(tmp_path / "fresh.db", Ledger(LocalStore(root / "default")))
    with pytest.raises(octavo.OctavoError, match=key_of(6)):
        fresh.open()
    assert fresh.watermark() == (0, GENESIS)
    fresh.close()


def test_a_version_s_moment_finds_it(root):
    with octavo.open(root) as account:
        commits = account.versions()
        for commit in commits:
            assert account.at(commit.at).version >= commit.version
        assert account.at(commits[0].at - timedelta(seconds=1)).version == 0
        assert [c.version for c in account.versions(after=2, limit=1)] == [3]


def test_two_handles_on_one_state_see_the_same(root):
    with octavo.open(root, actor="human:ann") as one, octavo.open(root) as two:
        one.remember("ย้ายไปปาย", kind="register", topic="now")
        assert two.version == 5
        assert two.memories() == one.memories()


def test_a_state_larger_than_what_is_kept_in_memory_is_copied_with_every_page_proved(tmp_path):
    ledger = Ledger(LocalStore(tmp_path))
    state = StateDb(tmp_path / "state.db", ledger)
    rows = [(n, 1, "use", f"m{n}", None, b"x" * 400, b"y" * 400) for n in range(25_000)]
    with state._writing():
        state._db.executemany("INSERT INTO other VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    assert state.copy_to(tmp_path / "copy.db") == state.watermark()
    copy = StateDb(tmp_path / "copy.db", ledger)
    assert copy.check() == []
    assert copy.one("SELECT count(*) FROM other WHERE length(body) = 400") == len(rows)
    copy.close()
    state.close()
