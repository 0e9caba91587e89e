"""The account: versions, time travel, restore, scopes, and writes outside a sandbox."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import octavo
from octavo.errors import BadInput, BadPolicy, HumanOnly, NotFound, OutOfScope, ReadOnly
from octavo.testing import SettableClock


def texts(reader, **wanted):
    return [memory.text for memory in reader.memories(**wanted)]


def truth(root):
    return {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and "index" not in p.parts}


def test_every_change_is_a_version_that_can_be_read_again(account):
    first = account.remember("likes tea").memory
    account.revise(first.id, text="likes green tea")
    account.forget(first.id)
    assert [c.cause for c in account.versions()] == ["remember", "revise", "forget"]
    assert [texts(account.at(n)) for n in range(4)] == [[], ["likes tea"], ["likes green tea"], []]
    assert [(r.version, r.memory.text, r.memory.gone) for r in account.history(first.id)] == [
        (1, "likes tea", False),
        (2, "likes green tea", False),
        (3, "", True),
    ]


def test_a_version_can_be_named_by_time(root):
    clock = SettableClock(datetime(2026, 1, 1, 9, tzinfo=UTC))
    account = octavo.open(root, "User01", actor="human:you", clock=clock)
    account.remember("in the morning")
    clock.advance(hours=3)
    account.remember("at noon")
    assert texts(account.at(datetime(2026, 1, 1, 10, tzinfo=UTC))) == ["in the morning"]
    assert texts(account.at(datetime(2025, 1, 1, tzinfo=UTC))) == []


def test_commit_times_never_go_back_even_if_the_clock_does(root):
    clock = SettableClock(datetime(2026, 1, 1, 9, tzinfo=UTC))
    account = octavo.open(root, "User01", clock=clock)
    account.remember("one")
    clock.advance(hours=-5)
    account.remember("two")
    first, second = account.versions()
    assert second.at == first.at


def test_the_difference_of_two_versions_names_what_came_changed_and_went(account):
    tea = account.remember("likes tea").memory
    mood = account.remember("calm", kind="register", topic="mood").memory
    base = account.version
    account.forget(tea.id)
    account.remember("excited", kind="register", topic="mood")
    account.remember("has a cat")
    diff = account.diff(base, account.version)
    assert [m.text for m in diff.added] == ["has a cat"]
    assert [(a.text, b.text) for a, b in diff.changed] == [("calm", "excited")]
    assert [m.id for m in diff.removed] == [tea.id]
    back = account.diff(account.version, base)
    assert ([m.id for m in back.added], [m.text for m in back.removed]) == ([tea.id], ["has a cat"])
    assert mood.id == diff.changed[0][0].id
    assert not account.diff(base, base)


def test_restore_makes_a_new_version_equal_to_the_old_one(account):
    tea = account.remember("likes tea").memory
    with account.sandbox() as sandbox:
        sandbox.turn("user", "hello")
        sandbox.update_state("ire_state", {"calm": 1})
    wanted = account.memories()
    account.forget(tea.id)
    account.remember("has a cat")
    with account.sandbox() as sandbox:
        sandbox.update_state("ire_state", {"calm": 0})
    assert account.restore(2) == 6
    same = [(m.id, m.text, m.data, m.turns) for m in account.memories()]
    assert same == [(m.id, m.text, m.data, m.turns) for m in wanted]
    assert texts(account.at(5), kind="fact") == ["has a cat"]
    assert not account.diff(2, 2)
    assert account.restore(6) == 6


def test_only_a_person_restores_and_only_through_the_owners_handle(account, agent, opened):
    account.remember("x y z")
    with pytest.raises(HumanOnly):
        agent.restore(0)
    with pytest.raises(OutOfScope):
        opened(scope="orion").restore(0)


def test_session_ordinals_count_per_scope_and_survive_a_restore(account):
    for scope in ("shared", "orion", "orion"):
        with account.sandbox(scope=scope) as sandbox:
            sandbox.turn("user", f"in {scope}")
    account.remember("no session")
    with account.sandbox() as sandbox:
        sandbox.remember("no episode, no session")
    account.restore(1)
    with account.sandbox(scope="orion") as sandbox:
        sandbox.turn("user", "third of orion")
    assert [(s.scope, s.ordinal) for s in account.sessions()] == [
        ("shared", 1),
        ("orion", 1),
        ("orion", 2),
        ("orion", 3),
    ]
    assert account.stats().sessions == {"orion": 3, "shared": 1}


def test_remember_with_a_key_writes_once(account):
    first = account.remember("likes tea", key="request-1")
    again = account.remember("likes tea", key="request-1")
    assert (again.outcome, again.memory.id, account.version) == ("unchanged", first.memory.id, 1)


def test_remember_many_is_one_commit_with_a_verdict_each(account):
    verdicts = account.remember_many(
        [
            {"text": "likes tea"},
            {"text": "Likes TEA!"},
            {"text": "password: hunter2"},
            {"text": "ชอบกาแฟเย็น", "scope": "orion"},
        ]
    )
    assert [v.outcome for v in verdicts] == ["admitted", "merged", "refused", "admitted"]
    assert account.version == 1
    assert texts(account) == ["likes tea", "ชอบกาแฟเย็น"]


def test_remember_many_names_the_item_that_cannot_be_one(account):
    for wrong, said in (
        ({"text": "ชอบชา", "at": "2026-05-04"}, "item 3: at is str"),
        ({"text": "x", "confidence": 9}, "item 3: confidence is 9"),
        ({"txt": "x"}, "item 3: a memory has no txt"),
    ):
        with pytest.raises(BadInput, match=said):
            account.remember_many([{"text": "likes tea"}, {"text": "likes rice"}, wrong])
    assert account.version == 0


def test_an_exact_restatement_makes_no_version(account):
    account.remember("likes tea")
    for _ in range(5):
        assert account.remember("likes tea").outcome == "merged"
    assert account.version == 1


def test_supersedes_ends_the_old_and_links_to_it(account):
    old = account.remember("lives in Bangkok").memory
    new = account.remember("lives in Chiang Mai", supersedes=old.id).memory
    assert texts(account) == ["lives in Chiang Mai"]
    assert account.get(new.id).linked("supersedes") == (old.id,)
    assert account.remember("x y", supersedes="nothere").check == "supersedes"


def test_saying_again_that_a_fact_supersedes_another_makes_no_twin(account):
    old = account.remember("lives in Bangkok").memory
    new = account.remember("moved from Bangkok, lives in Lampang now")
    assert old.id in new.advice
    again = account.remember(new.memory.text, supersedes=old.id)
    assert (again.outcome, again.memory.id) == ("superseding", new.memory.id)
    assert [m.text for m in account.memories(kind="fact")] == [new.memory.text]
    assert account.get(new.memory.id).linked("supersedes") == (old.id,)
    account.revert(account.version)
    assert len(account.memories(kind="fact")) == 2


def test_forget_says_what_was_not_there(account):
    tea = account.remember("likes tea").memory
    gone, missing = account.forget(tea.id, "nothere")
    assert (bool(gone), bool(missing), missing.check) == (True, False, "missing")
    assert not account.forget(tea.id)[0]


def test_forgetting_reaches_what_was_derived(account):
    alice = account.remember("Alice is a friend").memory
    bob = account.remember("Bob is a colleague").memory
    edge = account.remember(
        "Alice knows Bob", category="relationship", links={"about": [alice.id, bob.id]}
    ).memory
    derived = account.remember("has friends", links={"evidence": alice.id}).memory
    control = account.remember("has colleagues", links={"evidence": bob.id}).memory
    account.forget(alice.id)
    assert account.get(edge.id) is None
    assert account.get(derived.id).links == ()
    assert account.get(derived.id).data["forgotten_sources"] == [alice.id]
    assert account.get(control.id) == control


def test_a_bound_handle_sees_shared_and_its_own_everywhere(account, opened):
    secret = account.remember("elysia's secret plan", scope="elysia").memory
    account.remember("known to all")
    account.remember("orion's own note", scope="orion")
    orion = opened("agent:orion", scope="orion")
    assert texts(orion) == ["known to all", "orion's own note"]
    assert (orion.get(secret.id), orion.history(secret.id)) == (None, [])
    assert [m.text for m in orion.diff(0).added] == ["known to all", "orion's own note"]
    assert texts(orion.at(3)) == texts(orion)
    assert orion.stats().by_scope == {"orion": 1, "shared": 1}
    for wild in ("*", "%", "Orion", "", "a b", "../elysia"):
        with pytest.raises(BadInput):
            orion.memories(scope=wild)
    with pytest.raises(OutOfScope):
        orion.memories(scope=["shared", "elysia"])
    with pytest.raises(OutOfScope):
        orion.remember("x y z", scope="elysia")
    assert not orion.forget(secret.id)[0]
    assert account.get(secret.id) is not None


def test_lists_are_filtered_paged_and_ordered(account):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(7):
        account.remember(
            f"note number {n} " + "abcdefg"[n] * 9,
            at=start + timedelta(days=n),
            tags=["even"] if n % 2 == 0 else ["odd"],
            category="note" if n < 4 else None,
        )
    assert len(account.memories(tags=["even"])) == 4
    assert len(account.memories(category="note", tags="odd")) == 2
    assert len(account.memories(since=start + timedelta(days=2), until=start + timedelta(days=3))) == 2
    page = account.memories(limit=3)
    rest = account.memories(limit=10, after=page[-1].id)
    assert [m.id for m in page + rest] == [m.id for m in account.memories()]
    assert account.memories(newest=True, limit=1)[0].at == start + timedelta(days=6)


def test_pages_go_on_behind_what_a_sandbox_has_not_committed_yet(account):
    for text in ("plays chess badly", "works at the harbour", "owns a red bicycle"):
        account.remember(text)
    with account.sandbox("คุย") as sandbox:
        sandbox.remember("ชอบชาไทย", at=account.memories()[0].at + timedelta(microseconds=1))
        whole, seen = [m.id for m in sandbox.memories()], []
        while page := sandbox.memories(limit=1, after=seen[-1] if seen else None):
            seen += [m.id for m in page]
        assert seen == whole
        assert len(seen) == 4
        sandbox.discard()


def test_a_place_nobody_may_see_and_one_that_never_was_are_refused_in_the_same_words(account, opened):
    hidden = account.remember("the heron flies at nine", scope="orion").memory.id
    bound = opened(scope="elysia")
    bound.remember("likes tea")
    said = []
    for after in (hidden, "nobody"):
        with pytest.raises(BadInput, match="to continue behind") as refused:
            bound.memories(after=after)
        said.append(str(refused.value).replace(after, ""))
    assert said[0] == said[1]


def test_a_read_only_handle_reads_and_never_writes(account, opened, root):
    account.remember("likes tea")
    before = truth(root)
    reader = opened(read_only=True)
    assert texts(reader) == ["likes tea"]
    for act in (
        lambda: reader.remember("x y"),
        reader.sandbox,
        lambda: reader.forget("x"),
        reader.repair,
    ):
        with pytest.raises(ReadOnly):
            act()
    assert truth(root) == before
    with pytest.raises(NotFound):
        opened(account="nobody", read_only=True)


def test_accounts_are_listed_and_deleted_whole(root, opened):
    for name in ("User01", "user01", "ผู้ใช้", "con", "a.b"):
        opened(account=name).remember(f"about {name}")
    assert sorted(octavo.accounts(root)) == sorted(["User01", "user01", "ผู้ใช้", "con", "a.b"])
    octavo.delete_account(root, "user01")
    assert "user01" not in octavo.accounts(root)
    assert texts(opened()) == ["about User01"]
    for bad in ("", " x", "a/b\n", "x" * 300):
        with pytest.raises(BadInput):
            octavo.open(root, bad)


def test_a_backup_opens_like_the_original(account, opened, tmp_path):
    account.remember("likes tea")
    sandbox = account.sandbox("open one")
    sandbox.turn("user", "still talking")
    account.backup(tmp_path / "copy")
    copy = octavo.open(tmp_path / "copy", "User01", actor="human:you")
    assert texts(copy) == ["likes tea"]
    assert copy.resume(sandbox.id).consolidate().version == 2
    assert account.version == 1
    with pytest.raises(BadInput):
        account.backup(tmp_path / "copy")


def test_the_policy_file_sets_any_number_and_names_a_wrong_key(root, account, opened):
    file = root / "+user01" / "policy.toml"
    file.write_text("[kinds.fact]\nmin_confidence = 0.2\n")
    assert opened("agent").remember("barely sure", confidence=0.3)
    for text, named in (
        ("[kinds.fact]\nmin_confidenze = 1", "kinds.fact.min_confidenze"),
        ("[kinds.fact]\nmin_confidence = 'x'", "kinds.fact.min_confidence"),
        ("[privacy]\nemail = 'shout'", "privacy.email"),
        ("not toml", "policy.toml"),
    ):
        file.write_text(text)
        with pytest.raises(BadPolicy, match=named):
            opened()


def test_the_actor_is_set_by_the_handle_and_never_by_the_payload(agent, tmp_path):
    memory = agent.remember("likes tea").memory
    assert (memory.actor, memory.confidence) == ("agent:bot", 0.8)
    with pytest.raises(BadInput, match="actor"):
        agent.remember("x y", actor="human:me")
    with pytest.raises(BadInput):
        octavo.open(tmp_path / "new", actor="root")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("scope", ["*", "Orion", ""])
def test_a_wildcard_or_a_bad_name_of_a_scope_is_an_error_and_never_everything(account, scope):
    account.remember("ชอบกาแฟเย็น", scope="orion")
    reads = [account.memories, lambda **more: account.recall("กาแฟ", **more), account.brief]
    for read in reads:
        with pytest.raises(BadInput, match="scope"):
            read(scope=scope)


def test_a_scope_that_nobody_wrote_to_sees_what_is_shared(account):
    account.remember("ชอบกาแฟเย็น")
    account.remember("the harbour cafe closes at nine", scope="orion")
    [hit] = account.recall("ชอบกาแฟเย็น the harbour cafe", scope="elysia")
    assert hit.memory.scope == "shared"
    assert account.memories(scope="elysia") == []


def test_a_scope_is_known_as_soon_as_something_was_written_to_it_and_stays_so(account):
    memory = account.remember("ชอบกาแฟเย็น", scope="orion").memory
    assert [m.id for m in account.memories(scope="orion")] == [memory.id]
    account.forget(memory.id)
    assert account.memories(scope="orion") == []


def test_an_agent_that_begins_sees_what_is_shared(account, opened):
    shared = account.remember("likes green tea").memory
    assert [m.id for m in opened("agent:orion", scope="orion").memories()] == [shared.id]


def test_a_handle_a_sandbox_and_a_hit_are_shown_in_one_line(root):
    account = octavo.open(root, "User01", actor="human:you", embedder=False)
    account.remember("ชอบชาเขียว\nและแมว " * 30)
    assert repr(account) == "Account('User01', actor='human:you')"
    assert (
        repr(octavo.open(root, "User01", actor="human:you", scope="orion", embedder=False))
        == "Account('User01', actor='human:you', scope='orion')"
    )
    with account.sandbox("x" * 300) as sandbox:
        shown = [repr(account), repr(sandbox), *map(repr, account.recall("ชาเขียว"))]
        assert repr(sandbox).endswith(", open)")
    assert repr(sandbox).endswith(", closed)")
    assert len(shown) == 3
    assert all("\n" not in line and len(line) <= 110 for line in shown)


def test_what_results_are_made_of_is_exported(account):
    account.remember("likes tea")
    assert isinstance(account.versions()[0], octavo.Commit)
    assert {"Clash", "Merge", "Order", "Synced", "Hit", "Brief", "Embedder"} <= set(octavo.__all__)


def test_a_bulk_write_says_how_far_it_is(account):
    told = []
    account.remember_many(
        [{"text": "likes tea"}, {"text": "อยู่เชียงใหม่"}], progress=lambda done, all_: told.append((done, all_))
    )
    assert told == [(1, 2), (2, 2)]


def test_a_restatement_under_a_topic_gives_what_is_there_its_topic(account, agent):
    for kind in ("register", "fact"):
        first = account.remember("อยู่เชียงใหม่", kind=kind).memory
        again = account.remember("อยู่เชียงใหม่", kind=kind, topic="home")
        assert (again.outcome, again.memory.id, again.memory.topic) == ("merged", first.id, "home")
        moved = account.remember("อยู่ลำปาง", kind=kind, topic="home")
        assert (moved.outcome, moved.memory.id) == ("superseding", first.id)
    account.remember("likes tea")
    assert agent.remember("likes tea", topic="profile/drink").memory.topic is None  # that waits for a person


def test_a_name_is_no_other_name_for_itself(account):
    for name, means in (("Ploy", "Ploy"), (" ploy", "Ploy "), ("พลอย", "พลอย")):
        with pytest.raises(BadInput, match="no other name"):
            account.alias(name, means)
    assert account.alias("พลอย", "Ploy").outcome == "admitted"


def test_of_a_deleted_account_nothing_is_left_to_do(root, caplog):
    account = octavo.open(root, "gone", actor="human:you", embedder=False)
    account.remember("likes tea")
    octavo.delete_account(root, "gone")
    account._worker.wake()
    assert account._worker.wait(20)
    assert account._worker.failure is None
    assert "work failed" not in caplog.text
    account.close()
