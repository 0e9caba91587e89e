"""Merging, lineage and explanation: where an assembly comes from, whatever became of its ancestors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial

import jsonschema
import msgspec
import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.documents.synthians import explaining
from octavo.domain.assembling import Ancestor, Lineage, lineage, members_of
from octavo.domain.policy import AssemblyPolicy, Policy
from octavo.doors.render.pages import assembly_lines, lineage_lines
from octavo.doors.render.shapes import Line
from octavo.engine.explain import Assembly
from octavo.errors import BadInput, HumanOnly, NotFound
from octavo.storage.codec import REDACTED
from octavo.testing.clocks import SettableClock
from test_assemblies import POTTERY, SURGERY, Subjects, lift, manual, remember

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def account(opened):
    return opened(embedder=Subjects(), clock=SettableClock(), policy=manual())


def known(parents):
    def find(id_):
        if id_ not in parents:
            return None
        own = tuple(parents[id_])
        status = "merged" if own else "origin"
        return Ancestor(
            assembly_id=id_, name=id_, status=status, memory_count=2, created_at=AT, merged_from=own
        )

    return find


def chained(account):
    """C made of B and another, B made of A and another: their ids, the youngest first."""
    ids = remember(account, *POTTERY, *SURGERY, "a harbour wall", "the harbour light", "a harbour boat")
    one, two, three = (account.assemble(*ids[n : n + 2], name=f"n{n}")[0] for n in (0, 2, 5))
    middle = account.merge_assemblies(one.id, two.id)
    whole = account.merge_assemblies(middle.id, three.id)
    return whole, middle, one, two, three


def test_a_merge_keeps_every_member_ends_both_and_is_one_commit(account):
    ids = remember(account, *POTTERY)
    one, two = account.assemble(*ids[:2])[0], account.assemble(*ids[1:], tags=["craft"])[0]
    before = account.version
    whole = account.merge_assemblies(one.id, two.id)
    assert account.version == before + 1
    assert members_of(whole) == tuple(ids)
    assert whole.linked("merged_from") == (one.id, two.id)
    assert whole.tags == ("craft",)
    assert [account.get(id_) for id_ in (one.id, two.id)] == [None, None]
    assert account.history(one.id)[-1].memory.data["merged_into"] == whole.id


def test_unmerging_brings_both_back_without_what_was_forgotten_meanwhile(account):
    ids = remember(account, *POTTERY)
    one, two = account.assemble(*ids[:2])[0], account.assemble(*ids[1:])[0]
    whole = account.merge_assemblies(one.id, two.id)
    account.forget(ids[0])
    assert account.unmerge(whole.id) == [one.id, two.id]
    assert account.get(whole.id) is None
    assert members_of(account.get(one.id)) == (ids[1],)
    assert members_of(account.get(two.id)) == (ids[1], ids[2])
    with pytest.raises(BadInput, match="not formed by a merge"):
        account.unmerge(two.id)


def test_two_clusters_and_a_bridge_become_fewer_and_the_index_stays_right(opened):
    account = opened(embedder=Subjects(), clock=SettableClock(), policy=manual(merge_likeness=0.8))
    ids = remember(account, *POTTERY, "pottery and pottery again", "pottery with surgery of pottery")
    account.assemble(*ids[:2], name="one")
    account.assemble(*ids[2:], name="two")
    for made in account.memories(kind="assembly"):
        account._spine.commit(partial(_unapproved, made), cause="test", actor="system")
    account.catch_up()
    relaxed = opened(
        embedder=Subjects(), policy=Policy(assemblies=AssemblyPolicy(merge_likeness=0.8, mode="background"))
    )
    relaxed.catch_up()
    done = relaxed.upkeep()
    assert (len(done.merged), done.problems) == (1, ())
    assert relaxed.explained.stats()["count"] == 1
    assert explaining.merge(relaxed, done.merged[0])["similarity_at_merge"] >= 0.8


def _unapproved(memory, pending, view):
    now = view.get(memory.id)
    pending.apply(msgspec.structs.replace(now, rev=now.rev + 1, approved=None))


@pytest.mark.parametrize("what", ["one", "itself", "scopes", "many"])
def test_merges_that_cannot_be_are_bad_input(account, opened, what):
    ids = remember(account, *POTTERY)
    one = account.assemble(*ids[:2])[0].id
    other = account.assemble(*ids[1:])[0].id
    if what == "one":
        with pytest.raises(NotFound):
            account.merge_assemblies(one, "nobody")
    elif what == "itself":
        with pytest.raises(BadInput, match="itself"):
            account.merge_assemblies(one, one)
    elif what == "scopes":
        far = remember(account, *SURGERY, scope="orion")
        with pytest.raises(BadInput, match="two scopes"):
            account.merge_assemblies(one, account.assemble(*far)[0].id)
    else:
        small = opened(embedder=Subjects(), policy=manual(max_members=2))
        with pytest.raises(BadInput, match="2 are allowed"):
            small.merge_assemblies(one, other)


def test_a_lineage_names_every_ancestor_with_its_size_after_they_have_ended(account):
    whole, middle, one, two, three = chained(account)
    told = account.explained.lineage(whole.id)
    assert [(row.assembly_id, row.depth) for row in told.lineage] == [
        (whole.id, 0),
        (middle.id, 1),
        (three.id, 1),
        (one.id, 2),
        (two.id, 2),
    ]
    assert {row.assembly_id: row.status for row in told.lineage}[middle.id] == "merged"
    by_id = {row.assembly_id: row for row in told.lineage}
    assert (by_id[one.id].name, by_id[one.id].memory_count) == ("n0", 2)
    assert (by_id[one.id].ended, by_id[one.id].status) == (True, "origin")
    assert not told.max_depth_reached
    assert not told.cycles_detected


def test_a_depth_of_one_on_a_chain_says_that_there_is_more(account):
    whole, middle, *_ = chained(account)
    told = account.explained.lineage(whole.id, max_depth=1)
    assert {row.assembly_id: row.status for row in told.lineage}[middle.id] == "depth_limit_reached"
    assert told.max_depth_reached
    for depth in (0, 101, True):
        with pytest.raises(BadInput, match="max_depth"):
            account.explained.lineage(whole.id, max_depth=depth)


def test_a_redacted_ancestor_is_there_without_its_name(account):
    whole, middle, one, *_ = chained(account)
    account.redact(members_of(one)[0], reason="asked for")
    told = {row.assembly_id: row for row in account.explained.lineage(whole.id).lineage}
    assert told[one.id].name == told[middle.id].name == REDACTED
    assert account.check().problems == ()


def test_restoring_an_older_version_brings_the_sources_back_and_the_lineage_stays(account):
    ids = remember(account, *POTTERY)
    one, two = account.assemble(*ids[:2])[0], account.assemble(*ids[1:])[0]
    before = account.version
    whole = account.merge_assemblies(one.id, two.id)
    account.restore(before)
    assert account.get(one.id) is not None
    assert account.get(whole.id) is None
    assert [row.assembly_id for row in account.explained.lineage(whole.id).lineage] == [
        whole.id,
        one.id,
        two.id,
    ]


def test_a_diamond_is_no_cycle():
    told = lineage("d", known({"d": "bc", "b": "a", "c": "a", "a": ""}))
    assert [row.assembly_id for row in told.lineage] == ["d", "b", "c", "a"]
    assert not told.cycles_detected


@pytest.mark.parametrize("parents", [{"a": "b", "b": "a"}, {"a": "bc", "b": "c", "c": "b"}, {"a": "a"}])
def test_a_cycle_of_foreign_data_is_said_and_ends(parents):
    told = lineage("a", known(parents))
    assert told.cycles_detected
    assert any(row.status == "cycle_detected" for row in told.lineage)


def test_an_ancestor_nobody_knows_is_not_found():
    assert [row.status for row in lineage("a", known({"a": "x"})).lineage] == ["merged", "not_found"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_networkx_agrees_on_ancestors_depths_and_cycles(edges):
    parents = {str(n): sorted({str(b) for a, b in edges if a == n}) for n in range(12)}
    graph = networkx.DiGraph([(child, p) for child, own in parents.items() for p in own])
    graph.add_nodes_from(parents)
    told = lineage("0", known(parents), max_depth=100)
    own = {row.assembly_id: row.depth for row in told.lineage if row.status != "cycle_detected"}
    assert own == networkx.single_source_shortest_path_length(graph, "0")
    below = graph.subgraph(own)
    assert told.cycles_detected == (not networkx.is_directed_acyclic_graph(below))


def test_explaining_a_merge_names_its_sources_and_one_without_says_so(account):
    ids = remember(account, *POTTERY)
    one, two = account.assemble(*ids[:2], name="one")[0], account.assemble(*ids[1:], name="two")[0]
    whole = account.merge_assemblies(one.id, two.id)
    told = explaining.merge(account, whole.id)
    assert told["source_assembly_ids"] == [one.id, two.id]
    assert told["source_assembly_names"] == ["one", "two"]
    assert told["reconciled_cleanup_status"] == "completed"
    (entry,) = explaining.log(account)["reconciled_log_entries"]
    assert (entry["merge_event_id"], entry["final_cleanup_status"]) == (told["merge_event_id"], "completed")
    assert entry["target_assembly_id"] == whole.id
    assert explaining.log(account)["count"] == 1
    account.unmerge(whole.id)
    assert "not formed by a merge" in explaining.merge(account, one.id)["notes"]
    assert explaining.log(account)["count"] == 1  # nothing of the past is hidden


def test_explaining_an_activation_compares_with_a_memory_or_with_a_question(account):
    ids = remember(account, *POTTERY, *SURGERY)
    made = account.assemble(*ids[:3])[0].id
    account.catch_up()
    own = explaining.activation(account, made, ids[0])
    assert own["is_member"]
    assert own["passed_threshold"]
    assert own["boost"] > 0
    far = explaining.activation(account, made, ids[3], query="surgery")
    assert (far["is_member"], far["passed_threshold"], far["boost"]) == (False, False, 0.0)
    for id_, memory in (("asm_none", ids[0]), (made, "none")):
        assert "not found" in explaining.activation(account, id_, memory)["notes"]


@pytest.mark.parametrize("mode", ["linear", "sigmoid", "multiplicative", "off"])
def test_an_explanation_says_a_boost_where_a_recall_gives_one(mode, opened):
    rules = AssemblyPolicy(mode="off") if mode == "off" else AssemblyPolicy(mode="manual", boost_mode=mode)
    account = opened(embedder=Subjects(), policy=Policy(assemblies=rules))
    ids = remember(account, *POTTERY)
    made = account.assemble(*ids)[0].id
    account.catch_up()
    told = explaining.activation(account, made, ids[0], query="pottery class")
    lifts = any(hit.parts.get("assembly") for hit in account.recall("pottery class"))
    assert (told["boost"] > 0, "it lifts" in told["notes"]) == (lifts, lifts)
    assert lifts == (mode != "off")


def test_with_explaining_off_nothing_is_explained(opened):
    account = opened(embedder=Subjects(), policy=manual(explain=False))
    activation = partial(explaining.activation, account, memory_id="nothing")
    for ask in (account.explained.lineage, partial(explaining.merge, account), activation):
        with pytest.raises(HumanOnly, match="switched off"):
            ask("asm_x")
    assert HumanOnly.http_status == 403
    with pytest.raises(HumanOnly):
        explaining.log(account)


def test_a_log_is_asked_for_one_to_a_thousand_entries(account):
    for limit in (0, 1001, -1):
        with pytest.raises(BadInput, match="limit"):
            explaining.log(account, limit)


NUMBER, TEXT, FLAG = {"type": "number"}, {"type": "string"}, {"type": "boolean"}
TIME, TEXTS = {"type": "string", "format": "date-time"}, {"type": "array", "items": TEXT}


def shape(**fields):
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def or_none(what):
    return {"anyOf": [what, {"type": "null"}]}


EXPLAINED_ACTIVATION = shape(
    assembly_id=TEXT,
    memory_id=TEXT,
    check_timestamp=TIME,
    trigger_context=TEXT,
    assembly_state_before_check=shape(
        memory_count=NUMBER,
        last_activation_time=or_none(TIME),
        is_synchronized=FLAG,
        drift_reason=or_none(TEXT),
    ),
    calculated_similarity=or_none(NUMBER),
    activation_threshold=NUMBER,
    passed_threshold=FLAG,
    is_member=FLAG,
    boost=NUMBER,
    notes=TEXT,
)
EXPLAINED_MERGE = shape(
    target_assembly_id=TEXT,
    merge_event_id=TEXT,
    merge_timestamp=TIME,
    source_assembly_ids=TEXTS,
    source_assembly_names=TEXTS,
    similarity_at_merge=or_none(NUMBER),
    threshold_at_merge=or_none(NUMBER),
    reconciled_cleanup_status={"const": "completed"},
    cleanup_details=shape(timestamp=TIME, error={"type": "null"}),
    notes=TEXT,
)
MERGE_LOG = shape(
    count=NUMBER,
    reconciled_log_entries={
        "type": "array",
        "minItems": 2,
        "items": shape(
            merge_event_id=TEXT,
            creation_timestamp=TIME,
            source_assembly_ids=TEXTS,
            target_assembly_id=TEXT,
            similarity_at_merge=or_none(NUMBER),
            merge_threshold=or_none(NUMBER),
            final_cleanup_status={"const": "completed"},
            cleanup_timestamp=TIME,
            cleanup_error={"type": "null"},
        ),
    },
)


def test_every_explanation_has_the_shape_that_its_schema_says(account):
    whole, *_ = chained(account)
    account.catch_up()
    member = members_of(whole)[0]
    told = [
        (msgspec.json.schema(Assembly), account.explained.assembly(whole.id)),
        (msgspec.json.schema(Lineage), account.explained.lineage(whole.id)),
        (EXPLAINED_ACTIVATION, explaining.activation(account, whole.id, member, "pottery")),
        (EXPLAINED_MERGE, explaining.merge(account, whole.id)),
        (MERGE_LOG, explaining.log(account)),
    ]
    for schema, value in told:
        document = json.loads(msgspec.json.encode(value))
        jsonschema.validate(document, schema, format_checker=jsonschema.FormatChecker())
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, next(iter(document)): {}}, schema)
    asked = {"assembly_id": "asm_none", "memory_id": member, "notes": "Assembly asm_none not found"}
    assert explaining.activation(account, "asm_none", member) == asked


def test_merging_never_boosts_twice(account):
    ids = remember(account, *POTTERY)
    one, two = account.assemble(*ids[:2])[0], account.assemble(*ids[1:])[0]
    account.catch_up()
    before = lift(account.recall("pottery class"))
    account.merge_assemblies(one.id, two.id)
    account.catch_up()
    after = lift(account.recall("pottery class"))
    assert max(after.values()) <= max(before.values()) + 0.01
    assert max(after.values()) > 0


def test_a_merge_by_proposal_waits_for_a_person(opened):
    policy = Policy(assemblies=AssemblyPolicy(merging="propose", merge_likeness=0.7, mode="background"))
    account = opened(embedder=Subjects(), clock=SettableClock(), policy=policy)
    ids = remember(account, *POTTERY)
    one, two = account.assemble(*ids[:2])[0].id, account.assemble(*ids[1:])[0].id
    account.catch_up()
    assert account.upkeep().merged == ()
    (proposal,) = account.proposals()
    assert account.upkeep().merged == ()
    assert len(account.proposals()) == 1
    whole = account.approve(proposal.id)
    assert set(members_of(whole)) == set(ids)
    assert account.get(one) is account.get(two) is None
    assert explaining.log(account)["count"] == 1


def test_a_lineage_is_shown_as_a_tree_with_names_sizes_and_dates(account):
    whole, middle, one, *_ = chained(account)
    lines = [shown.plain for shown in lineage_lines(account.explained.lineage(whole.id))]
    assert lines[0].startswith(f"n0  {whole.id}  2026-01-05, ")
    assert lines[1].startswith(f"├─ n0  {middle.id}  2026-01-05, 4 memories, ended")
    assert lines[2].startswith(f"│  ├─ n0  {one.id}")
    assert lines[3].startswith("│  └─ n2")
    assert lines[4].startswith("└─ n5")
    told = lineage("a", known({"a": "b", "b": "a"}))
    assert "see above" in [shown.plain for shown in lineage_lines(told)][2]
    (member, *_) = account.explained.assembly(whole.id).members
    page = "".join(
        part.plain if isinstance(part, Line) else str(part)
        for part in assembly_lines(account.explained.assembly(whole.id))
    )
    assert member.id in page
    assert "by merge" in page


def test_an_agent_takes_nothing_apart_that_a_person_put_together(account, opened):
    ids = remember(account, *POTTERY, *SURGERY)
    by_hand = account.assemble(*ids[:2], name="ours")[0]
    formed = [account.assemble(*ids[n : n + 2])[0] for n in (1, 3)]
    agent = opened(embedder=Subjects(), actor="agent:orion", policy=manual())
    whole = account.merge_assemblies(by_hand.id, formed[0].id)
    with pytest.raises(HumanOnly, match="unmerge an assembly that a person made"):
        agent.unmerge(whole.id)
    with pytest.raises(HumanOnly, match="merge an assembly"):
        agent.merge_assemblies(whole.id, formed[1].id)
    (verdict,) = agent.forget(whole.id)
    assert verdict.outcome == agent.revise(whole.id, text="theirs").outcome == "proposed"
    assert account.explained.assembly(whole.id).name == "ours"
    assert set(account.unmerge(whole.id)) == {by_hand.id, formed[0].id}


def test_two_automatic_assemblies_that_a_person_merged_are_that_persons(account, opened):
    remember(account, *POTTERY, *SURGERY)
    whole = account.merge_assemblies(*(made.id for made in account.assemble()))
    assert whole.approved == "human:you"
    with pytest.raises(HumanOnly):
        opened(embedder=Subjects(), actor="agent:orion", policy=manual()).unmerge(whole.id)


def test_a_revision_by_hand_keeps_where_an_assembly_came_from_and_who_may_be_in_it(account):
    ids = remember(account, *POTTERY, *SURGERY)
    (secret,) = remember(account, "the pottery class of orion", scope="orion")
    event = account.remember("a pottery class began", kind="episode", category="event").memory.id
    made = [account.assemble(*ids[n : n + 2])[0].id for n in (0, 2)]
    whole = account.merge_assemblies(*made)
    own = list(members_of(whole))
    for stranger in (secret, event, "nobody", made[0], whole.id):
        verdict = account.revise(whole.id, links={"part": [*own, stranger]})
        assert (verdict.outcome, verdict.check) == ("refused", "members")
    assert account.revise(whole.id, links={"part": [own[0], own[0]]}).check == "members"
    assert account.revise(whole.id, data={"topics": 3}).check == "data"
    changed = account.revise(whole.id, text="ours", tags=["craft"], links={"part": own[1:]}).or_raise()
    assert members_of(changed) == tuple(own[1:])
    assert changed.linked("merged_from") == tuple(made)
    assert account.explained.lineage(whole.id).lineage[0].merged_from == tuple(made)
    assert set(account.unmerge(whole.id)) == set(made)


def test_a_revision_by_hand_holds_no_more_members_than_the_policy_allows(opened):
    account = opened(embedder=Subjects(), policy=manual(max_members=3))
    ids = remember(account, *POTTERY, *SURGERY)
    made = account.assemble(*ids[:3])[0].id
    assert account.revise(made, links={"part": ids[:4]}).check == "members"
    assert account.revise(made, links={"part": ids[1:4]}).or_raise()
