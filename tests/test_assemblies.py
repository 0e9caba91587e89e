"""Assemblies: memories that belong together are grouped, lift each other while fresh, merge, and explain."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import octavo
from octavo.documents.synthians import explaining
from octavo.domain.assembling import boost, members_of
from octavo.domain.filters import Filter
from octavo.domain.hits import Hit, Query
from octavo.domain.memory import Memory
from octavo.domain.policy import AssemblyPolicy, IndexPolicy, Policy
from octavo.engine.assemble import assemble
from octavo.engine.boosts import in_reach
from octavo.errors import BadInput, HumanOnly, ModelFailed, NotFound
from octavo.storage import composites
from octavo.testing.clocks import SettableClock

AT = datetime(2026, 1, 1, tzinfo=UTC)
SUBJECTS = ("pottery", "surgery", "harbour", "มะม่วง")
POTTERY = (
    "Anna goes to a pottery class on Mondays",
    "the pottery class made blue bowls with Anna",
    "Anna fired her first bowl after the pottery class",
)
SURGERY = ("mother had knee surgery in March", "after the surgery mother walks with a stick")
MANGO = ("ต้นมะม่วงหลังบ้านออกผลแล้ว", "แม่ชอบมะม่วงจากต้นหลังบ้าน")


class Subjects:
    """An embedder for which a text is what it is about, and a little of its own; it fails when told to."""

    name, dimension = "subjects", 12

    def __init__(self):
        self.fails = False
        self.poison = None

    def embed(self, texts):
        if self.fails:
            raise ModelFailed("the model is out")
        if self.poison and any(self.poison in text for text in texts):
            raise ModelFailed("this text cannot be embedded")
        return [self._one(text) for text in texts]

    def _one(self, text):
        own = [0.01 + (sum(text.encode()) * n % 7) / 50 for n in range(1, self.dimension - len(SUBJECTS) + 1)]
        return [float(text.casefold().count(word)) * 1.5 for word in SUBJECTS] + own


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def embedder():
    return Subjects()


def manual(**more):
    return Policy(assemblies=AssemblyPolicy(mode="manual", **more))


@pytest.fixture
def account(opened, clock, embedder):
    return opened(embedder=embedder, clock=clock, policy=manual())


def remember(account, *texts, **more):
    return [account.remember(text, **more).or_raise().id for text in texts]


def grouped(account, *texts, **more):
    """The one assembly that some texts make."""
    ids = remember(account, *texts, **more)
    (made,) = account.assemble()
    assert set(members_of(made)) <= set(ids)
    return made


def turned(held):
    """Composites that point the other way."""
    rows = ((row, -np.frombuffer(row.vector, dtype="<f2")) for row in held.rows)
    return replace(held, rows=tuple(replace(row, vector=vector.tobytes()) for row, vector in rows))


def lift(hits):
    return {hit.memory.id: hit.parts.get("assembly", 0.0) for hit in hits}


def test_memories_that_are_alike_become_an_assembly_named_by_what_they_share(account):
    ids = remember(account, *POTTERY, *SURGERY, "the printer is out of paper")
    made = account.assemble()
    assert sorted(len(members_of(m)) for m in made) == [2, 3]
    pottery = next(m for m in made if ids[0] in members_of(m))
    assert set(members_of(pottery)) == set(ids[:3])
    assert "pottery class" in pottery.text
    assert "surgery" in next(m for m in made if m is not pottery).text
    assert (pottery.kind, pottery.source, pottery.actor) == ("assembly", "promotion", "system")
    assert pottery.data["formed"]["by"] == "likeness"
    assert pottery.data["schema_version"] == "1.0"
    assert account.assemble() == []  # nothing is new


def test_what_two_passes_look_at_at_once_is_grouped_once(account, monkeypatch):
    remember(account, *POTTERY, *SURGERY)
    really, passes = account._spine.change, []

    def commit(*given, **named):
        if not passes:  # another pass comes between the look and its commit
            passes.append(True)
            passes.extend(account.assemble())
        return really(*given, **named)

    monkeypatch.setattr(account._spine, "change", commit)
    account.assemble()
    assert len(passes) == 3
    made = account.explained.assemblies()
    assert sorted(len(one.memory_ids) for one in made) == [2, 3]
    remember(account, "the pottery class ended with tea")
    account.assemble()
    assert [len(one.memory_ids) for one in account.explained.assemblies()] == [4, 2]


def test_grouping_that_has_to_stop_goes_on_where_it_stopped(account, opened, embedder, clock):
    other = opened(account="other", embedder=embedder, clock=clock, policy=manual())
    for each in (account, other):
        remember(each, *POTTERY, *MANGO, *SURGERY)
        each.catch_up()
    stops = 0
    while other._indexing.composing.assembled() < len((*POTTERY, *MANGO, *SURGERY)):
        asked = iter([False, False, True, True])  # before the pass, after one memory, and behind it
        assemble(other._spine, other._indexing, must_stop=lambda: next(asked, True))  # noqa: B023
        stops += 1
    account.assemble()
    assert stops > 2
    assert members_by_text(other) == members_by_text(account)


def members_by_text(account):
    whole = account.memories(kind="assembly")
    return sorted(sorted(account.get(id_).text for id_ in members_of(one)) for one in whole)


def test_thai_memories_are_grouped_and_named_as_english_ones_are(account):
    made = grouped(account, *MANGO)
    assert "มะม่วง" in made.text


def test_a_memory_joins_the_assembly_it_is_like_and_a_name_a_person_gave_stays(account):
    made = grouped(account, *POTTERY[:2])
    account.revise(made.id, text="Anna's Mondays")
    (new,) = remember(account, POTTERY[2])
    (joined,) = account.assemble()
    assert (joined.id, joined.text) == (made.id, "Anna's Mondays")
    assert members_of(joined)[-1] == new


def test_scopes_are_never_grouped_together(account):
    one = remember(account, POTTERY[0])
    two = remember(account, POTTERY[1], scope="orion")
    assert account.assemble() == []
    with pytest.raises(BadInput, match="two scopes"):
        account.assemble(*one, *two)


def test_a_group_is_named_by_phrases_and_pleasantries_make_none(account):
    said = ("my aunt runs the harbour museum", "the harbour museum has a new boat")
    made = grouped(account, *said)
    assert "harbour museum" in made.text
    assert account.assemble() == []
    remember(account, "thanks so much pottery", "thanks a lot pottery that is great")
    (pottery,) = account.assemble()
    assert pottery.text == "pottery"  # what they share that tells something, and no thanks


def test_a_memory_joins_whom_it_is_like_only_if_it_speaks_of_what_they_are_about(opened):
    class Same:
        name, dimension = "same", 2

        def embed(self, texts):
            return [[1.0, len(text) / 1000] for text in texts]

    account = opened(embedder=Same(), clock=SettableClock(), policy=manual())
    said = ("Gord taught me lamination", "I told Gord that I leave", "the oven came on a truck")
    gord = grouped(account, *said)
    assert (gord.text, len(members_of(gord))) == ("Gord", 2)
    (joins,) = remember(account, "Gord is in, four mornings a week")
    remember(account, "the bank said no")
    (again,) = account.assemble()
    assert (again.id, members_of(again)[2:]) == (gord.id, (joins,))


def test_what_is_said_all_over_the_account_holds_no_group_together(account):
    told = (
        "likes the harbour",
        "repaired the pottery oven",
        "plays the harbour organ",
        "has a pottery shelf",
    )
    remember(account, *(f"Mia {what} {word}" for what in told for word in ("red", "blue", "green")))
    names = {made.text for made in account.assemble()}
    assert names
    assert not any("Mia" in name for name in names)


def test_the_assistants_words_name_no_group(account):
    with account.sandbox() as sandbox:
        for said in ("my harbour walk was long", "the harbour ferry is late again"):
            sandbox.turn("User", said)
            sandbox.turn("assistant", "What a lovely pelican!")
    (made,) = account.assemble()
    assert made.text == "harbour"


def test_facts_that_belong_together_stand_together_in_a_brief(account):
    ports = ("Oslo", "Lima", "Cairo", "Perth", "Hanoi", "Quito", "Lagos", "Osaka", "Turin", "Delhi")
    remember(account, *(f"{port} sails north on {port} day" for port in ports), salience=1.0)
    some = (POTTERY[0], SURGERY[0], POTTERY[1], SURGERY[1], "the pottery harbour is far")
    ids = remember(account, *some, salience=0.1)  # so that none of them stands in the profile
    account.assemble(*ids[:3:2], name="pottery <class>")
    text = account.brief("pottery class and surgery of mother", budget=600).text
    lines = text.partition("Long-Term Memory Context")[2].splitlines()
    place = lines.index("### fact: pottery &lt;class&gt;")
    assert {ids[0], ids[2]} == {line.split(",")[0][3:] for line in lines[place + 1 : place + 3]}
    assert "### fact" in lines  # the others stand as before
    with account.sandbox() as sandbox:
        assert "### fact: pottery" in sandbox.brief("pottery class", budget=250).text


def test_an_assembly_is_never_a_hit_whatever_is_asked(account):
    made = grouped(account, *POTTERY)
    for more in ({}, {"kinds": ("assembly",)}, {"unit": "turn"}, {"strategy": "layered"}):
        assert made.id not in [hit.memory.id for hit in account.recall(made.text, k=50, **more)]
    assert made.id not in account.brief(made.text).text


def test_members_of_an_assembly_that_fits_are_lifted_and_say_so(account):
    made = grouped(account, *POTTERY)
    (other,) = remember(account, "the printer is out of paper in the class")
    hits = account.recall("pottery class")
    lifts = lift(hits)
    assert all(lifts[id_] > 0 for id_ in members_of(made) if id_ in lifts)
    assert lifts.get(other, 0.0) == 0.0
    best = next(hit for hit in hits if hit.assembly)
    assert best.assembly == made.id
    assert "belongs to an assembly that fits" in best.why


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 0.05)), min_size=1, max_size=60), st.integers(1, 20))
def test_looking_only_at_hits_within_reach_changes_nothing_that_is_returned(scored, k):
    at = Memory(id="m", kind="fact", text="t", at=AT, actor="system", source="operator")
    scored.sort(key=lambda pair: -pair[0])
    one = Hit(memory=at, turn=None, score=0.0, parts={}, version=1)
    hits = [replace(one, memory=replace(at, id=f"m{n}"), score=score) for n, (score, _) in enumerate(scored)]
    query = Query(text="pottery", k=k, unit="memory", filter=Filter(), version=1, now=AT)
    near = {hit.memory.id for hit in in_reach(query, hits, 0.05)}

    def best(looked_at):
        lifted = [
            (hit.score + lift * looked_at(hit.memory.id), hit.memory.id)
            for hit, (_, lift) in zip(hits, scored, strict=True)
        ]
        return sorted(lifted, key=lambda pair: -pair[0])[:k]

    assert best(lambda id_: id_ in near) == best(lambda _: True)


def test_with_assemblies_off_nothing_is_grouped_and_nothing_lifted(opened, embedder):
    account = opened(embedder=embedder, policy=Policy(assemblies=AssemblyPolicy(mode="off")))
    remember(account, *POTTERY)
    assert account.assemble() == []
    assert set(lift(account.recall("pottery class")).values()) == {0.0}


@pytest.mark.parametrize(
    ("mode", "expected"), [("linear", 0.04), ("sigmoid", 0.0476), ("multiplicative", 0.02)]
)
def test_the_lift_follows_the_mode(mode, expected):
    policy = AssemblyPolicy(boost=0.05, boost_mode=mode)
    assert boost(0.8, 0.5, policy) == pytest.approx(expected, abs=1e-4)
    assert boost(0.49, 0.5, policy) == 0.0


def test_a_lift_never_takes_a_relevance_beyond_one():
    assert boost(0.9, 0.99, AssemblyPolicy()) == pytest.approx(0.01)
    assert boost(0.9, 1.4, AssemblyPolicy()) == 0.0


@pytest.fixture(scope="module")
def pots(tmp_path_factory):
    """An account of five memories, and their ids."""
    root = tmp_path_factory.mktemp("order")
    with octavo.open(
        root, actor="human:you", embedder=Subjects(), policy=manual(), clock=SettableClock()
    ) as account:
        yield account, remember(account, *POTTERY, "a pottery wheel", "pottery glaze")


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(5)))
def test_a_composite_does_not_depend_on_the_order_of_its_members(pots, order):
    account, ids = pots
    one, two = (account.assemble(*(ids[n] for n in places), name="pots")[0] for places in (range(5), order))
    account.catch_up()
    held = account._indexing.composing.held()
    assert held.get(one.id).vector == held.get(two.id).vector
    assert members_of(two) == tuple(ids[n] for n in order)


def test_numpy_agrees_on_a_composite(account, embedder):
    made = grouped(account, *POTTERY)
    vectors = np.array(embedder.embed([account.get(id_).text for id_ in members_of(made)]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    total = vectors.sum(axis=0)
    held = account._indexing.composing.held()
    assert np.allclose(held.floats[held.places[made.id]], total / np.linalg.norm(total), atol=2e-3)


def test_an_index_that_is_lost_gives_the_same_composites_and_the_same_recall(opened, root, clock, embedder):
    account = opened(embedder=embedder, clock=clock, policy=manual())
    grouped(account, *POTTERY)
    remember(account, "a harbour in winter")
    account.catch_up()
    before = (account._indexing.composing.held().floats.tobytes(), account.recall("pottery class"))
    account.reindex()
    assert (account._indexing.composing.held().floats.tobytes(), account.recall("pottery class")) == before
    account.close()
    folder = account._spine.index
    shutil.rmtree(folder)
    again = opened(embedder=embedder, clock=clock, policy=manual())
    again.catch_up()
    assert (again._indexing.composing.held().floats.tobytes(), again.recall("pottery class")) == before
    assert again.assemble() == []  # what is grouped is not grouped again


def test_a_changed_member_takes_the_boost_away_until_the_index_has_caught_up(account, embedder):
    made = grouped(account, *POTTERY)
    embedder.fails = True
    account.revise(members_of(made)[0], text="Anna stopped going to the pottery class")
    embedder.fails = False
    held = account._indexing.composing.held().watermark.version
    hits = account.recall("pottery class")
    assert held < account.version
    assert set(lift(hits).values()) == {0.0}
    assert any("drifted (revision)" in note for note in hits.notes)
    assert account.explained.assembly(made.id).drift_reason == "revision"
    account.catch_up()
    assert max(lift(account.recall("pottery class")).values()) > 0


def test_a_composite_that_nobody_verified_ages_out_and_upkeep_brings_it_back(account, clock):
    made = grouped(account, *POTTERY)
    assert max(lift(account.recall("pottery class")).values()) > 0
    clock.advance(hours=2)
    before = account.explained.assembly(made.id)
    assert (before.is_synchronized, before.drift_reason) == (False, "age")
    assert before.drift_seconds >= 7000
    hits = account.recall("pottery class")
    assert set(lift(hits).values()) == {0.0}
    assert any("drifted (age)" in note for note in hits.notes)
    assert account.upkeep().problems == ()
    assert account.explained.assembly(made.id).is_synchronized
    assert max(lift(account.recall("pottery class")).values()) > 0


def test_a_healthy_assembly_is_verified_in_the_background_as_soon_as_a_recall_meets_its_age(
    opened, clock, embedder
):
    account = opened(embedder=embedder, clock=clock, policy=Policy(assemblies=AssemblyPolicy()))
    grouped(account, *POTTERY)
    clock.advance(hours=2)
    account.recall("pottery class")  # that wakes whoever verifies
    account.wait(60)
    assert max(lift(account.recall("pottery class")).values()) > 0


def test_what_lags_behind_is_brought_up_and_compared_before_it_counts_as_verified(account, clock):
    made = grouped(account, *POTTERY)
    clock.advance(hours=2)
    account.revise(members_of(made)[0], text="Anna stopped going to the pottery class")
    composing = account._indexing.composing
    account._indexing.add_words()
    account._indexing.add_vectors()
    assert composing.held().watermark.version < account.version
    assert composing.verify() == []
    assert not composing.held().verified  # looking changes nothing
    assert account._indexing.verify(stamp=True) == []
    assert composing.held().watermark.version == account.version
    assert composing.held().verified


def test_without_a_limit_an_untouched_assembly_never_ages_out(opened, clock, embedder):
    policy = Policy(
        assemblies=AssemblyPolicy(mode="manual"), index=IndexPolicy(max_allowed_drift_seconds=None)
    )
    account = opened(embedder=embedder, clock=clock, policy=policy)
    grouped(account, *POTTERY)
    clock.advance(hours=10_000)
    assert max(lift(account.recall("pottery class")).values()) > 0


def test_saving_an_assembly_does_not_say_that_its_vector_was_indexed(account):
    made = grouped(account, *POTTERY)
    came = account.explained.assembly(made.id).vector_index_updated_at
    account.revise(made.id, tags=["craft"])
    now = account.explained.assembly(made.id)
    assert (now.vector_index_updated_at, now.is_synchronized) == (came, False)


def test_of_one_synced_and_one_unsynced_assembly_only_the_synced_lifts(account):
    pottery, surgery = (remember(account, *texts) for texts in (POTTERY, SURGERY))
    made = account.assemble()
    account.revise(next(m.id for m in made if surgery[0] in members_of(m)), tags=["unsynced"])
    lifts = lift(account.recall("the pottery class and the surgery of mother", k=20))
    assert lifts[pottery[0]] > 0
    assert [lifts[id_] for id_ in surgery] == [0.0, 0.0]


def test_what_fails_to_be_embedded_waits_survives_a_restart_and_heals(opened, clock, embedder):
    account = opened(embedder=embedder, clock=clock, policy=manual())
    embedder.poison = POTTERY[2]
    ids = remember(account, *POTTERY)
    account.assemble(*ids, name="pots")
    account.catch_up()
    (made,) = account.explained.assemblies()
    held = account._indexing.composing.held()
    assert (held.get(made.assembly_id).used, held.get(made.assembly_id).members) == (2, 3)
    assert account.explained.stats()["waiting"] == 1
    account.close()
    embedder.poison = None
    clock.advance(minutes=2)
    again = opened(embedder=embedder, clock=clock, policy=manual())
    again.catch_up()
    assert again._indexing.composing.held().get(made.assembly_id).used == 3
    assert again.explained.stats()["waiting"] == 0


def test_dead_letters_are_listed_and_one_command_revives_them(account, embedder, clock):
    embedder.poison = POTTERY[2]
    ids = remember(account, *POTTERY)
    account.assemble(*ids[1:], name="pots")
    for _ in range(6):
        account.catch_up()
        clock.advance(hours=1)
    told = account.explained.stats()
    assert (told["dead"], told["without_vector"]) == (1, 1)
    assert any("given up" in note for note in account.check().notes)
    embedder.poison = None
    account.catch_up(force=True)
    assert account.explained.stats()["without_vector"] == 0


def test_one_recall_in_a_sandbox_is_one_use_of_what_it_found_and_of_what_lifted_it(account):
    made = grouped(account, *POTTERY)
    before = account.version
    sandbox = account.sandbox()
    hits = sandbox.recall("pottery class")
    sandbox.explain("pottery class", hits[0].memory.id)
    assert account.version == before
    sandbox.turn("user", "Which day is the class?")
    sandbox.consolidate()
    used = account.uses(made.id, *(hit.memory.id for hit in hits))
    assert used == {made.id: 1, **{hit.memory.id: 1 for hit in hits}}
    assert account.explained.assembly(made.id).activation_count == 1
    assert account.explained.assembly(made.id).last_activation is not None


def test_a_sandbox_that_only_read_commits_no_version(account):
    grouped(account, *POTTERY)
    before = account.version
    with account.sandbox() as sandbox:
        assert sandbox.recall("pottery class")
    assert account.version == before


def test_a_sandbox_that_changed_a_member_gets_no_boost_from_the_old_composite(account):
    made = grouped(account, *POTTERY)
    sandbox = account.sandbox()
    assert max(lift(sandbox.recall("pottery class")).values()) > 0
    sandbox.revise(members_of(made)[0], text="Anna left the pottery class for good")
    assert set(lift(sandbox.recall("pottery class")).values()) == {0.0}
    sandbox.discard()


def test_an_older_version_is_recalled_without_boosts(account):
    grouped(account, *POTTERY)
    then = account.version
    remember(account, "a harbour in winter")
    hits = account.at(then).recall("pottery class")
    assert hits
    assert set(lift(hits).values()) == {0.0}
    assert any("older version" in note for note in hits.notes)


def test_an_assembly_with_fewer_than_two_live_members_ends_with_upkeep(account):
    made = grouped(account, *SURGERY)
    account.forget(members_of(made)[0])
    assert made.id in account.upkeep().assembled
    assert account.get(made.id) is None


def test_at_the_limit_forming_stops_and_check_says_so(opened, embedder):
    account = opened(embedder=embedder, policy=manual(max_assemblies=1))
    remember(account, *POTTERY, *SURGERY)
    assert len(account.assemble()) == 1
    assert account.explained.stats()["at_limit"]
    assert any("max_assemblies" in note for note in account.check().notes)


def test_an_agent_ends_a_hand_made_assembly_only_by_a_proposal(account, opened, embedder, clock):
    ids = remember(account, *POTTERY)
    (made,) = account.assemble(*ids, name="Anna's Mondays", tags=["craft"])
    agent = opened("agent:bot", embedder=embedder, clock=clock, policy=manual())
    assert agent.forget(made.id)[0].outcome == "proposed"
    assert agent.get(made.id) is not None
    (other,) = agent.assemble(*ids[:2], name="bowls")
    with pytest.raises(HumanOnly):
        agent.merge_assemblies(made.id, other.id)


def test_grouping_by_hand_says_what_is_wrong_with_it(account):
    (one,) = remember(account, POTTERY[0])
    with pytest.raises(BadInput, match="2 to 64"):
        account.assemble(one, one)
    with pytest.raises(NotFound):
        account.assemble(one, "nobody")
    topic = account.remember("tea", kind="register", topic="profile/drink").memory.id
    with pytest.raises(BadInput, match="cannot be a member"):
        account.assemble(one, topic)


def test_a_bound_handle_learns_nothing_of_assemblies_elsewhere(account, opened, embedder, clock):
    for text in POTTERY:
        account.remember(text, scope="orion")
    (made,) = account.assemble()
    other = opened(scope="elysia", embedder=False)
    assert other.explained.assemblies() == []
    with pytest.raises(NotFound):
        other.explained.assembly(made.id)
    with pytest.raises(NotFound):
        other.explained.lineage(made.id)
    assert "not found" in explaining.activation(other, made.id, members_of(made)[0])["notes"]
    assert other.explained.stats()["count"] == 0


def test_the_background_groups_what_gathered_once_somebody_recalls(opened, embedder):
    account = opened(embedder=embedder)
    texts = [f"{word} number {n} of {n * 7}" for n in range(24) for word in SUBJECTS[:3]]
    account.remember_many({"text": text, "kind": "episode"} for text in texts)
    before = account.version
    account.recall("pottery")
    account.wait(60)
    assert account.version > before
    assert account.stats().by_kind["assembly"] >= 3
    assert any(c.cause.startswith("assemble ") for c in account.versions())
    assert account.check().problems == ()


def test_a_few_memories_make_no_version_of_their_own_in_the_background(opened, embedder):
    account = opened(embedder=embedder)
    remember(account, *POTTERY)
    before = account.version
    account.recall("pottery")
    account.wait(60)
    assert account.version == before


def test_a_damaged_pair_of_composites_is_as_good_as_none_and_is_made_anew(opened, account, embedder, clock):
    grouped(account, *POTTERY)
    composing = account._indexing.composing
    folder, held = composing._embedding.folder, composing.held().floats.tobytes()
    account.close()
    path = folder / composites.FILE
    path.write_bytes(path.read_bytes()[:-2] + b"xx")
    assert composites.read(folder, embedder.name, embedder.dimension, bool).rows == ()
    again = opened(embedder=embedder, clock=clock, policy=manual())
    again.catch_up()
    assert again._indexing.composing.held().floats.tobytes() == held
    assert max(lift(again.recall("pottery class")).values()) > 0


def test_a_composite_of_another_revision_lifts_nothing_whatever_its_watermark_says(account):
    made = grouped(account, *POTTERY)
    account.catch_up()
    assert account.wait(60)  # what is made anew beside would lift again, and rightly
    composing = account._indexing.composing
    held = composing.held()
    rows = tuple(replace(row, rev=row.rev + 1) for row in held.rows)
    composites.publish(composing._embedding.folder, replace(held, rows=rows))
    assert set(lift(account.recall("pottery class")).values()) == {0.0}
    assert account.explained.assembly(made.id).drift_reason == "revision"


def test_composites_of_another_history_lift_nothing_and_are_made_anew(account):
    made = grouped(account, *POTTERY)
    account.catch_up()
    assert account.wait(60)  # what is made anew beside would lift again, and rightly
    composing = account._indexing.composing
    held = composing.held()
    foreign = replace(turned(held), watermark=replace(held.watermark, header="0" * 64))
    composites.publish(composing._embedding.folder, foreign)
    assert set(lift(account.recall("pottery class")).values()) == {0.0}
    assert account.explained.assembly(made.id).drift_reason == "no_vector"
    account.remember("a harbour in winter")
    account.catch_up()
    assert composing.held().floats.tobytes() == held.floats.tobytes()
    assert account.check().problems == ()


def test_a_composite_that_came_with_an_assembly_stands_until_a_member_changes(account, embedder):
    embedder.fails = True
    ids = remember(account, *POTTERY)
    (made,) = account.assemble(*ids, name="pots")
    vector = {"embedder": embedder.name, "values": [1.0, *[0.0] * 11]}
    came = replace(made, rev=2, data={**made.data, "vector": vector})
    account._spine.commit(lambda pending, _: pending.apply(came), cause="import", actor="system")
    account._indexing.add_words()
    account._indexing.compose()
    held = account._indexing.composing.held()
    assert held.get(made.id).used == 3
    composing = account._indexing.composing
    assert composing.vectors_of([account.get(made.id)])[made.id].tolist() == vector["values"]
    account.revise(ids[0], text="Anna left the pottery class")
    account._indexing.add_words()
    account._indexing.compose()
    assert account._indexing.composing.held().get(made.id) is None
    assert account.explained.assembly(made.id).drift_reason == "no_vector"


def test_a_composite_that_came_with_an_assembly_goes_when_its_members_are_chosen_anew(account, embedder):
    embedder.fails = True
    ids = remember(account, *POTTERY)
    (made,) = account.assemble(*ids, name="pots")
    vector = {"embedder": embedder.name, "values": [1.0, *[0.0] * 11]}
    came = replace(made, rev=2, data={**made.data, "vector": vector})
    account._spine.commit(lambda pending, _: pending.apply(came), cause="import", actor="system")
    assert "vector" in account.revise(made.id, text="bowls").or_raise().data
    assert "vector" not in account.revise(made.id, links={"part": ids[:2]}).or_raise().data
    account._indexing.add_words()
    account._indexing.compose()
    assert account._indexing.composing.held().get(made.id) is None


def test_verifying_names_a_composite_that_is_not_what_its_members_make_it(account):
    made = grouped(account, *POTTERY)
    assert account.wait(60)
    composing = account._indexing.composing
    held = composing.held()
    composites.publish(composing._embedding.folder, turned(held))
    assert any(made.id in problem for problem in account.check().problems)
    assert account.repair().problems == ()
    assert max(lift(account.recall("pottery class")).values()) > 0
