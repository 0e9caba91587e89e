"""The word index: right at every version and scope, after every crash, for every reader."""

from __future__ import annotations

import multiprocessing
import shutil
import zlib
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from indexes import START, ask, beside, fact, mark, names, terms, turn, write
from octavo.errors import Damaged
from octavo.storage import frequencies
from octavo.storage import index as indexes_module
from octavo.storage import words as word_index
from octavo.storage.batches import analysed, write_batch, write_ends
from octavo.storage.columns import writing
from octavo.storage.index import Index, clear, extend
from octavo.storage.rows import Units, open_units


def test_a_unit_is_found_by_its_words_in_english_and_thai(tmp_path):
    write(tmp_path, 1, [fact("a", "Mali moved to Chiang Mai"), fact("b", "มะลิย้ายไปเชียงใหม่")])
    assert names(ask(tmp_path, "who moved?")) == ["a"]
    assert names(ask(tmp_path, "ย้ายไปไหน")) == ["b"]


def test_what_shares_nothing_with_the_question_is_not_found(tmp_path):
    write(tmp_path, 1, [fact("a", "green tea"), fact("b", "ชาเขียว")])
    assert ask(tmp_path, "bicycles") == []


def test_a_neighbouring_turn_comes_along_below_the_turn_that_matches(tmp_path):
    said = ["What instrument do you play?", "The violin, since childhood.", "How nice!"]
    write(tmp_path, 1, [turn(f"t{i}", text, position=i) for i, text in enumerate(said)])
    found = names(ask(tmp_path, "which instrument?"))
    assert found[0] == "t0"
    assert "t1" in found


def test_an_ended_revision_is_found_before_its_end_and_not_after(tmp_path):
    write(tmp_path, 1, [fact("a", "lives in Bangkok")])
    write(
        tmp_path,
        2,
        [fact("a", "lives in Chiang Mai", version=2, rev=2)],
        [("a", 1, 2)],
    )
    assert [m.rev for m in ask(tmp_path, "lives", version=1)] == [1]
    assert [m.rev for m in ask(tmp_path, "lives", version=2)] == [2]
    assert ask(tmp_path, "Bangkok") == []


def test_a_scope_that_is_not_seen_is_not_found(tmp_path):
    write(tmp_path, 1, [fact("a", "tea", scope="orion"), fact("b", "tea"), fact("c", "tea", scope="elysia")])
    assert set(names(ask(tmp_path, "tea", scopes=("shared", "orion")))) == {"a", "b"}
    assert set(names(ask(tmp_path, "tea"))) == {"a", "b", "c"}
    assert ask(tmp_path, "tea", scopes=("nobody",)) == []


def test_filters_act_inside_the_search(tmp_path):
    many = [fact(f"m{i}", "tea tea tea") for i in range(300)]
    few = [
        fact("tagged", "tea and many other words besides", tags=("drinks", "เครื่องดื่ม")),
        fact("categorised", "tea and many other words besides", category="event"),
        fact("late", "tea and many other words besides", days=40),
        turn("said", "tea and many other words besides", session="s9", position=0),
    ]
    write(tmp_path, 1, many + few)
    assert names(ask(tmp_path, "tea", tags=("drinks", "เครื่องดื่ม"))) == ["tagged"]
    assert names(ask(tmp_path, "tea", category="event")) == ["categorised"]
    assert names(ask(tmp_path, "tea", kinds=("episode",))) == ["said"]
    assert names(ask(tmp_path, "tea", sandbox="s9")) == ["said"]
    assert names(ask(tmp_path, "tea", layers=("episodic",))) == ["said"]
    late = few[2].at
    assert names(ask(tmp_path, "tea", since=late)) == ["late"]


def test_the_speaker_a_question_names_is_preferred(tmp_path):
    said = [turn("a", "I adore mangoes", speaker="Somchai", position=0, session="x"),
            turn("b", "I adore mangoes", speaker="มะลิ", position=0, session="y")]  # fmt: skip
    write(tmp_path, 1, said)
    assert names(ask(tmp_path, "What does Somchai adore?"))[0] == "a"
    assert names(ask(tmp_path, "มะลิ adore mangoes"))[0] == "b"


def test_who_is_asked_about_is_found_in_what_they_tell_of_themselves(tmp_path):
    said = {"you": "You adore mangoes.", "I": "I adore mangoes.", "คุณ": "คุณชอบทุเรียน", "ฉัน": "ฉันชอบทุเรียน"}
    write(tmp_path, 1, [turn(name, text, session=name) for name, text in said.items()])
    assert names(ask(tmp_path, "Does Mali adore mangoes?"))[:2] == ["I", "you"]
    assert names(ask(tmp_path, "Mali ชอบทุเรียน"))[:2] == ["ฉัน", "คุณ"]
    assert names(ask(tmp_path, "Who adores mangoes?"))[:2] == ["you", "I"]  # nobody is named: as they stand


def test_the_time_a_question_names_is_preferred(tmp_path):
    write(tmp_path, 1, [fact(f"d{d}", "went climbing", days=d) for d in (0, 40, 80)])
    assert names(ask(tmp_path, "climbing in June 2023"))[0] == "d40"
    assert names(ask(tmp_path, "climbing มิถุนายน 2566"))[0] == "d40"


def test_a_long_text_is_found_by_any_of_its_passages_once(tmp_path):
    long = ". ".join(f"sentence number {i} about nothing" for i in range(60)) + ". The password is เสือดาว."
    write(tmp_path, 1, [fact("long", long), fact("short", "nothing here")])
    assert names(ask(tmp_path, "เสือดาว")) == ["long"]
    assert names(ask(tmp_path, "password sentence")).count("long") == 1


def test_what_is_not_indexed_yet_is_ranked_with_the_rest(tmp_path):
    write(tmp_path, 1, [turn("t0", "Which dog did you adopt?", position=0)])
    fresh = turn("t1", "A beagle", position=1, version=2), fact("f", "unrelated", version=2)
    found = names(ask(tmp_path, "adopt a dog", **beside(tmp_path, *fresh)))
    assert found == ["t0", "t1"]


def test_a_scope_that_is_named_twice_counts_once(tmp_path):
    write(tmp_path, 1, [fact("a", "green tea"), fact("b", "black coffee")])
    once, twice = (ask(tmp_path, "tea", scopes=scopes) for scopes in (("shared",), ("shared", "shared")))
    assert _scores(once) == _scores(twice)


def test_what_is_not_indexed_yet_is_filtered_as_the_rest_is(tmp_path):
    write(tmp_path, 1, [fact("old", "tea", tags=("drink",), category="likes")])
    fresh = beside(
        tmp_path,
        fact("new", "tea", tags=("drink", "hot"), category="likes", version=2, days=3),
        turn("said", "tea", version=2, session="s2"),
    )
    for fields, wanted in (
        ({"tags": ("drink",)}, {"old", "new"}),
        ({"tags": ("drink", "hot")}, {"new"}),
        ({"category": "likes", "kinds": ("fact",)}, {"old", "new"}),
        ({"sandbox": "s2"}, {"said"}),
        ({"layers": ("episodic",)}, {"said"}),
        ({"since": START + timedelta(days=2)}, {"new"}),
        ({"until": START, "kinds": ("fact",)}, {"old"}),
    ):
        assert set(names(ask(tmp_path, "tea", **fields, **fresh))) == wanted, fields


def test_what_ended_since_the_watermark_is_not_found(tmp_path):
    write(tmp_path, 1, [fact("a", "tea"), fact("b", "tea")])
    assert names(ask(tmp_path, "tea", ends=frozenset({("a", 1)}))) == ["b"]


def test_at_most_as_many_as_asked_for_are_found(tmp_path):
    write(tmp_path, 1, [fact(f"m{i}", "tea") for i in range(30)])
    assert len(ask(tmp_path, "tea", limit=7)) == 7


WORDS = ("tea", "dog", "violin", "ชาเขียว", "เชียงใหม่", "climbing")
UNITS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
        st.sampled_from(("shared", "orion")),
        st.sampled_from((None, "s1", "s2")),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def _versions(history):
    """Units and ends a version, from drawn words: every unit may end one version later."""
    made, ends, position = [], [], 0
    for number, drawn in enumerate(history, 1):
        units = []
        for index, (said, scope, session, _) in enumerate(drawn):
            name = f"v{number}m{index}"
            place = None if session is None else position
            position += 1
            units.append(
                turn(name, " ".join(said), version=number, scope=scope, session=session, position=place)
            )
        before = history[number - 2] if number > 1 else []
        ending = [
            (f"v{number - 1}m{index}", 1, number) for index, (*_, ends_next) in enumerate(before) if ends_next
        ]
        made.append(units)
        ends.append(ending)
    return made, ends


def _scores(matches):
    return [(match.memory, match.rev, match.turn, round(match.score, 5)) for match in matches]


SLOW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # each example writes several indexes to disk


@SLOW
@given(history=st.lists(UNITS, min_size=1, max_size=4), word=st.sampled_from(WORDS))
def test_an_old_version_ranks_as_an_account_that_stopped_there(tmp_path_factory, history, word):
    units, ends = _versions(history)
    whole = tmp_path_factory.mktemp("whole")
    for number, (new, ended) in enumerate(zip(units, ends, strict=True), 1):
        write(whole, number, new, ended)
    for stop in range(1, len(units) + 1):
        part = tmp_path_factory.mktemp("part")
        for number in range(1, stop + 1):
            write(part, number, units[number - 1], ends[number - 1])
        for scopes in (None, ("shared",)):
            old = ask(whole, word, version=stop, scopes=scopes, limit=99)
            assert _scores(old) == _scores(ask(part, word, version=stop, scopes=scopes, limit=99))


def test_turns_that_may_not_be_seen_make_nobodys_surroundings_smaller(tmp_path):
    said = ["it grows behind the house", *["a dog barked"] * 6, "ชาเขียว"]
    scopes = ["shared", *["orion"] * 6, "shared"]
    units = [
        turn(f"m{place}", text, scope=scope, position=place)
        for place, (text, scope) in enumerate(zip(said, scopes, strict=True))
    ]
    write(tmp_path, 1, units)
    assert names(ask(tmp_path, "ชาเขียว", scopes=("shared",), limit=99)) == ["m7", "m0"]


_FORGOTTEN = [(["tea"], "shared", "s1", number > 1) for number in range(6)]  # four turns in a row


@SLOW
@given(history=st.lists(UNITS, min_size=1, max_size=4), word=st.sampled_from(WORDS))
@example(history=[_FORGOTTEN, [(["dog"], "shared", "s1", False)]], word="dog")
def test_the_ranking_does_not_depend_on_how_the_index_came_to_be(tmp_path_factory, history, word):
    units, ends = _versions(history)
    stepwise, at_once = tmp_path_factory.mktemp("steps"), tmp_path_factory.mktemp("once")
    for number, (new, ended) in enumerate(zip(units, ends, strict=True), 1):
        write(stepwise, number, new, ended)
    last = mark(len(units))
    everything = [unit for new in units for unit in new]
    assert extend(at_once, everything, [end for some in ends for end in some], last, since=mark(0))
    lagging = tmp_path_factory.mktemp("lagging")
    write(lagging, 1, units[0])
    gone = {end[:2] for some in ends for end in some}
    later = [unit for unit in everything if unit.valid_from > 1]
    fresh = beside(lagging, *later, ends=frozenset(gone))
    wanted = _scores(ask(stepwise, word, limit=99))
    assert _scores(ask(at_once, word, limit=99)) == wanted
    assert _scores(ask(lagging, word, limit=99, **fresh)) == wanted  # what is not indexed ranks as if it were


@SLOW
@given(history=st.lists(UNITS, min_size=1, max_size=3), word=st.sampled_from(WORDS))
def test_exactly_the_members_of_a_version_in_scope_that_hold_the_word_lead(tmp_path_factory, history, word):
    units, ends = _versions(history)
    folder = tmp_path_factory.mktemp("index")
    for number, (new, ended) in enumerate(zip(units, ends, strict=True), 1):
        write(folder, number, new, ended)
    end_of = {end[:2]: end[2] for some in ends for end in some}
    for version in range(1, len(units) + 1):
        members = {
            unit.memory: unit
            for new in units
            for unit in new
            if unit.valid_from <= version < end_of.get((unit.memory, 1), 10**6) and unit.scope == "shared"
        }
        found = ask(folder, word, version=version, scopes=("shared",), limit=99)
        assert set(names(found)) <= set(members)
        assert {name for name, unit in members.items() if word in unit.text} <= set(names(found))


def test_a_pass_from_another_watermark_is_turned_away(tmp_path):
    write(tmp_path, 1, [fact("a", "tea")])
    assert not extend(tmp_path, [fact("b", "tea", version=2)], [], mark(2), since=mark(0))
    assert names(ask(tmp_path, "tea")) == ["a"]


def _torn_pass(folder, until):
    """Do all of a pass but its last steps, as a process does that is killed in between."""
    with writing(folder):
        units = open_units(folder)
        written = write_batch(folder, [fact("torn", "tea torn", version=2)], units.manifest)
        manifest, ended = write_ends(folder, written, [("a", 1, 2)])
        if until == "columns":
            return
        with word_index.Adding(folder / "words", units) as adding:
            adding.add(Units(folder, manifest), range(units.manifest.rows, manifest.rows))
            adding.commit(Units(folder, manifest), ended)
        if until == "words":
            return
        (folder / "manifest.json.tmp").write_text(str(manifest))


@pytest.mark.parametrize("until", ["columns", "words", "temporary"])
def test_a_pass_that_dies_half_way_changes_nothing_and_the_next_one_repeats_it(tmp_path, until):
    write(tmp_path, 1, [fact("a", "tea"), fact("b", "tea")])
    _torn_pass(tmp_path, until)
    assert set(names(ask(tmp_path, "tea"))) == {"a", "b"}
    assert set(names(ask(tmp_path, "tea", version=1))) == {"a", "b"}
    write(tmp_path, 2, [fact("c", "tea", version=2)], [("a", 1, 2)])
    assert set(names(ask(tmp_path, "tea"))) == {"b", "c"}
    assert set(names(ask(tmp_path, "tea", version=1))) == {"a", "b"}
    open_units(tmp_path).verify()


@pytest.mark.parametrize("name", ["rows.bin", "terms.bin", "names.bin", "runs.bin"])
def test_a_file_that_is_cut_short_is_noticed_when_the_index_is_opened(tmp_path, name):
    write(tmp_path, 1, [turn("a", "tea"), turn("b", "ชาเขียว", position=1)])
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Damaged, match=name):
        open_units(tmp_path)


@pytest.mark.parametrize("name", ["rows.bin", "terms.bin", "names.bin", "runs.bin"])
def test_a_changed_byte_is_noticed_when_the_index_is_verified(tmp_path, name):
    write(tmp_path, 1, [turn("a", "tea"), turn("b", "ชาเขียว", position=1)])
    data = bytearray((tmp_path / name).read_bytes())
    data[0] ^= 1
    (tmp_path / name).write_bytes(bytes(data))
    with pytest.raises(Damaged, match=name):
        open_units(tmp_path).verify()


@pytest.mark.parametrize("ending", ["fast", "fieldnorm", "idx", "pos", "store", "term", "json"])
@pytest.mark.parametrize("harm", ["flip", "cut", "empty"])
def test_a_damaged_word_file_is_noticed_before_it_is_searched(tmp_path, ending, harm):
    write(tmp_path, 1, [fact(f"m{i}", f"tea ชาเขียว {i}") for i in range(20)])
    path = next((tmp_path / "words").glob(f"[!.]*.{ending}"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    other = {"flip": data, "cut": data[: len(data) // 2], "empty": b""}[harm]
    # A new file in its place: cutting one that is mapped would stop the process.
    path.with_name("other").write_bytes(bytes(other))
    path.with_name("other").replace(path)
    with pytest.raises(Damaged):
        ask(tmp_path, "tea")


def test_counted_frequencies_are_the_scanned_ones_at_every_version_and_a_change_is_noticed(
    tmp_path, monkeypatch
):
    said = ["tea ชาเขียว", "tea tea dog", "dog", "ชาเขียว violin"]
    scopes = ("shared", "orion")
    for version in (1, 2, 3):
        units = [
            fact(f"v{version}m{i}", text, version=version, scope=scopes[i % 2]) for i, text in enumerate(said)
        ]
        write(tmp_path, version, units)
    scanned = {
        (version, chosen): _scores(ask(tmp_path, "tea dog ชาเขียว", version=version, scopes=chosen))
        for version in (1, 2, 3)
        for chosen in (None, ("orion",))
    }
    monkeypatch.setattr(frequencies, "_TAIL_ROWS", 1)
    write(tmp_path, 4, [])
    assert open_units(tmp_path).manifest.base == 12
    for (version, chosen), wanted in scanned.items():
        assert _scores(ask(tmp_path, "tea dog ชาเขียว", version=version, scopes=chosen)) == wanted
    path = tmp_path / "frequencies-12.bin"
    path.write_bytes(b"\x01" + path.read_bytes()[1:])
    with pytest.raises(Damaged, match="frequencies"):
        ask(tmp_path, "tea")


def test_a_changed_manifest_is_noticed(tmp_path):
    write(tmp_path, 1, [fact("a", "tea")])
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 7'))
    with pytest.raises(Damaged, match=r"manifest\.json"):
        open_units(tmp_path)


def test_a_cleared_index_is_empty_and_can_be_built_again(tmp_path):
    write(tmp_path, 1, [fact("a", "tea")])
    (tmp_path / "manifest.json").write_text("{")
    clear(tmp_path)
    assert Index(tmp_path).units().manifest.watermark == mark(0)
    write(tmp_path, 1, [fact("b", "tea")])
    assert names(ask(tmp_path, "tea")) == ["b"]


def test_a_lost_word_index_is_noticed_and_not_taken_for_an_empty_one(tmp_path):
    write(tmp_path, 1, [fact("a", "ชาเขียว")])
    shutil.rmtree(tmp_path / "words")
    with pytest.raises(Damaged):
        ask(tmp_path, "ชาเขียว")
    with pytest.raises(Damaged):
        write(tmp_path, 2, [fact("b", "ชาเขียว", version=2)])


def test_an_index_that_was_never_made_finds_what_is_fresh_and_writes_nothing(tmp_path):
    fresh = beside(tmp_path / "none", fact("a", "ชาเขียว"))
    assert names(ask(tmp_path / "none", "ชาเขียว", **fresh)) == ["a"]
    assert not (tmp_path / "none").exists()


def test_a_reader_follows_what_a_writer_publishes(tmp_path):
    write(tmp_path, 1, [fact("a", "tea")])
    index = Index(tmp_path)
    before: Units = index.units()
    write(tmp_path, 2, [fact("b", "ชา tea", version=2)])
    assert index.units() is not before
    assert index.units().manifest.watermark == mark(2)


def _write_many(folder, first, count):
    for offset in range(count):
        for _ in range(200):
            version = Index(folder).units().manifest.watermark.version
            unit = fact(f"w{first}-{offset}", "tea", version=version + 1)
            if extend(folder, [unit], [], mark(version + 1), since=mark(version)):
                break


@pytest.mark.slow
def test_two_processes_index_in_turn_while_a_third_reads(tmp_path):
    write(tmp_path, 1, [fact("a", "tea")])
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(tmp_path, n, 4)) for n in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert "a" in names(ask(tmp_path, "tea", limit=50))
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(ask(tmp_path, "tea", limit=50)) == 9


def test_a_memory_with_thousands_of_tags_is_found_by_each_of_them_and_ends(tmp_path):
    tags = tuple(f"ป้าย-{n}" for n in range(8_000))
    write(tmp_path, 1, [fact("a", "tea", tags=tags), fact("b", "tea")])
    write(tmp_path, 2, [], [("a", 1, 2)])
    assert names(ask(tmp_path, "tea", version=1, tags=tags[-1:])) == ["a"]
    assert names(ask(tmp_path, "tea", version=2)) == ["b"]


def test_a_version_before_the_first_indexed_one_has_nothing(tmp_path):
    write(tmp_path, 1, [])
    write(tmp_path, 2, [fact("a", "ชา tea", version=2)])
    assert names(ask(tmp_path, "tea", version=1)) == []
    assert names(ask(tmp_path, "tea", version=2)) == ["a"]


def test_a_pass_whose_reading_fails_half_way_leaves_the_index_to_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(indexes_module, "_AT_ONCE", 2)

    def units():
        yield from (fact(f"u{n}", "ชา tea") for n in range(3))
        raise Damaged("the state cannot be read")

    write(tmp_path, 1, [fact("a", "tea")])
    with pytest.raises(Damaged) as caught:  # which keeps the frames of the failed pass alive
        extend(tmp_path, units(), [], mark(2), since=mark(1))
    write(tmp_path, 2, [fact(f"b{n}", "ชา tea", version=2) for n in range(5)])
    assert caught.value is not None
    assert sorted(names(ask(tmp_path, "tea"))) == ["a", "b0", "b1", "b2", "b3", "b4"]
    open_units(tmp_path).verify()


def test_what_begins_and_ends_in_one_pass_of_several_parts_is_found_only_before(tmp_path, monkeypatch):
    monkeypatch.setattr(indexes_module, "_AT_ONCE", 2)
    units = [fact(f"m{n}", "ชา tea", version=n + 1) for n in range(5)]
    ends = [("m0", 1, 3), ("m3", 1, 5)]
    assert extend(tmp_path, units, ends, mark(5), since=mark(0))
    assert sorted(names(ask(tmp_path, "tea", version=2))) == ["m0", "m1"]
    assert sorted(names(ask(tmp_path, "tea", version=5))) == ["m1", "m2", "m4"]


def test_a_pass_that_only_ends_things_keeps_scopes_and_speakers(tmp_path):
    write(tmp_path, 1, [turn("a", "ชา tea", scope="bot"), turn("b", "tea", speaker="Kenji", position=1)])
    before = Index(tmp_path).units().manifest
    write(tmp_path, 2, [], [("a", 1, 2)])
    after = Index(tmp_path).units().manifest
    assert (after.scopes, after.speakers, after.said_since) == (
        before.scopes,
        before.speakers,
        before.said_since,
    )
    assert names(ask(tmp_path, "tea", scopes=("bot",), version=1)) == ["a"]


def test_a_nameless_speaker_and_none_are_told_apart(tmp_path):
    units = [turn("a", "tea", speaker=None), turn("b", "tea", speaker="", position=1)]
    write(tmp_path, 1, units)
    assert Index(tmp_path).units().manifest.speakers == ("",)


_SAID = st.text(max_size=60) | st.lists(st.sampled_from(["tea", "teas", "ไปเชียงใหม่กัน", "the"])).map(" ".join)


@given(st.lists(_SAID, max_size=5))
def test_texts_are_coded_by_their_terms(texts):
    codes, lengths = analysed(texts)
    coded = [[zlib.crc32(term.encode()) for term in terms(text)] for text in texts]
    assert codes.tolist() == [code for some in coded for code in some]
    assert lengths.tolist() == [len(some) for some in coded]
