"""RLDS: three layouts in, one out, marks and closing steps, bad lines, a curated set, and foreign judges."""

from __future__ import annotations

import hashlib
import json

import minari
import pyarrow
import pyarrow.json
import pytest
from jsonschema import Draft202012Validator

import octavo
from octavo.documents.brain import FilesystemMemory, exchange
from octavo.domain import runs
from octavo.errors import BadInput
from octavo.robotgrid import levels
from octavo.robotgrid.learner import Learner

STEP = {
    "frame_id": 0,
    "timestamp_us": 5,
    "observation": {"robot_state": {"keys": 1}, "look_ahead": {"tile": "door", "distance": 1}},
    "action": {"command": "forward", "intent": "navigate", "params": {}, "raw_input": "เดินหน้า"},
    "world_model": {"predicted_state": {"x": 1}, "actual_state": {"x": 2}, "surprise": 0.5},
    "reward": 0.1,
    "done": False,
    "info": {"result": "moved", "sandbox_denied": False},
}


@pytest.fixture
def brain(tmp_path):
    with FilesystemMemory(tmp_path / "brain", embedder=False) as memory:
        yield memory


@pytest.fixture
def played(brain):
    """Three plays: two that reach the goal, one of two actions that cannot."""
    learner = Learner(None, seed=1, notes=True)
    plays = [learner.play(levels.level("tutorial"), max_steps=n) for n in (60, 60, 2)]
    return [brain.save_episode(play) for play in plays]


def episodes(brain):
    """What is kept of the runs, oldest first."""
    return [memory.data for memory in brain.account.memories(category="rlds")]


def lines(*steps):
    return "".join(json.dumps(step, ensure_ascii=False) + "\n" for step in steps)


def folder(path, metadata, files):
    for name, text in {"metadata.json": json.dumps(metadata), **files}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)


def test_both_directory_layouts_and_the_one_file_layout_load(brain, tmp_path):
    root = tmp_path / "in"
    folder(root / "episode_001", {"episode_id": "one", "success": True}, {"steps.jsonl": lines(STEP, STEP)})
    chunks = {"steps/000000.jsonl": lines(STEP), "steps/000001.jsonl": lines(STEP, STEP)}
    folder(root / "episode_002", {"episode_id": "two"}, chunks)
    (root / "robotgrid_3.json").write_text(json.dumps({"success": False, "steps": [STEP]}))
    done = exchange.import_rlds(brain.account, root)
    assert (done.counts, done.left_out) == ({"episode": 3}, ())
    kept = {e["metadata"]["episode_id"]: e for e in episodes(brain)}
    assert {name: len(e["steps"]) for name, e in kept.items()} == {"one": 3, "two": 4, "robotgrid_3": 2}
    assert kept["one"]["metadata"]["schema_version"] == "1.0", "a missing version is the first"
    again = exchange.import_rlds(brain.account, root / "robotgrid_3.json")
    assert (again.counts, again.unchanged) == ({}, 1)


def test_marks_and_a_closing_step_are_added_where_they_are_missing():
    steps = runs.complete([STEP, {**STEP, "done": True}])
    assert [s["is_first"] for s in steps] == [True, False, False]
    assert [s["is_last"] for s in steps] == [False, False, True]
    assert [s["discount"] for s in steps] == [1.0, 0.0, 0.0]
    assert (steps[-1]["action"], steps[-1]["is_terminal"]) == (None, True)
    assert steps[-1]["observation"] == {"robot_state": {"x": 2}}
    assert runs.complete(steps) == steps


def test_one_bad_line_costs_one_line_and_is_named(brain, tmp_path):
    text = lines(STEP) + '{"broken": \n' + "[]\n" + lines(STEP)
    folder(tmp_path / "in" / "e1", {"episode_id": "e1"}, {"steps.jsonl": text})
    folder(tmp_path / "in" / "e2", {"success": True}, {"steps.jsonl": lines(STEP)})
    (tmp_path / "in" / "robotgrid_x.json").write_text("{")
    done = exchange.import_rlds(brain.account, tmp_path / "in")
    assert done.counts == {"episode": 1}
    assert len(episodes(brain)[0]["steps"]) == 3
    assert [note.place for note in done.left_out] == [
        "e1/steps.jsonl, line 2",
        "e1/steps.jsonl, line 3",
        "e2/metadata.json",
        "robotgrid_x.json",
    ]


def test_wrong_types_inside_an_episode_break_no_export_and_no_consolidation(brain, tmp_path):
    odd = {
        "metadata": {"episode_id": "odd", "sandbox_denials": "many"},
        "steps": [{"reward": "x", "info": 3}],
    }
    brain.save_episode(odd)
    (tmp_path / "robotgrid_odd.json").write_text('{"metadata": 5, "steps": []}')
    assert exchange.import_rlds(brain.account, tmp_path / "robotgrid_odd.json").counts == {"episode": 1}
    chosen = {"max_denials": 0, "min_reward": 0.0}
    assert exchange.export_rlds(brain.account, tmp_path / "out", **chosen)["episodes"] == 2
    assert brain.consolidate_memory().patterns_found == 0


def test_a_link_out_of_the_tree_is_not_followed(brain, tmp_path):
    folder(tmp_path / "secret", {"episode_id": "secret"}, {"steps.jsonl": lines(STEP)})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "e1").symlink_to(tmp_path / "secret")
    done = exchange.import_rlds(brain.account, tmp_path / "in")
    assert (done.counts, [note.place for note in done.left_out]) == ({}, ["e1"])


@pytest.mark.parametrize("wild", ["../../x", "/etc/passwd", "a b", "x" * 200, "C:\\x", "a\x00b"])
def test_an_episode_id_that_could_be_a_path_is_refused(brain, wild):
    with pytest.raises(BadInput):
        brain.save_episode({"metadata": {"episode_id": wild}, "steps": [STEP]})
    assert episodes(brain) == []


def test_what_is_exported_comes_back_the_same(brain, played, tmp_path):
    with octavo.open(tmp_path / "brain", "brain_b") as account:
        account.export(tmp_path / "out", format="rlds")
    with octavo.open(tmp_path / "other", "brain_b") as account:
        done = account.import_(tmp_path / "out", format="rlds")
    assert (done.counts, done.left_out) == ({"episode": len(played)}, ())
    with FilesystemMemory(tmp_path / "other", embedder=False) as other:
        by_id = {e["metadata"]["episode_id"]: e for e in episodes(brain)}
        assert {e["metadata"]["episode_id"]: e for e in episodes(other)} == by_id


def test_a_curated_set_holds_what_its_filter_takes_and_proves_it(brain, played, tmp_path):
    chosen = {"success": True, "max_denials": 0, "min_reward": 9.0}
    manifest = exchange.export_rlds(brain.account, tmp_path / "out", **chosen)
    assert manifest["episodes"] == 2
    assert manifest["filter"] == {"success": True, "max_denials": 0, "min_reward": 9.0}
    assert json.loads((tmp_path / "out" / "dataset.json").read_text()) == manifest
    folders = sorted(p.parent for p in (tmp_path / "out").glob("*/metadata.json"))
    assert {f.name for f in folders} == set(played[:2])
    counted = sum(len((f / "steps.jsonl").read_text().splitlines()) for f in folders)
    assert counted == manifest["steps"]
    digest = hashlib.sha256()
    for id_ in [m.id for m in brain.account.memories(category="rlds") if m.id in set(played[:2])]:
        for name in ("metadata.json", "steps.jsonl"):
            digest.update((tmp_path / "out" / id_ / name).read_bytes())
    assert digest.hexdigest() == manifest["sha256"]
    assert exchange.export_rlds(brain.account, tmp_path / "none", tags=["night"])["episodes"] == 0


def test_an_account_exports_the_same_choice_and_says_what_can_be_chosen(brain, played, tmp_path):
    with octavo.open(tmp_path / "brain", "brain_b") as account:
        done = account.export(tmp_path / "out", format="rlds", success=True, max_denials=0, min_reward=9)
        assert (done["episodes"], done["filter"]["max_denials"]) == (2, 0)
        with pytest.raises(BadInput, match="takes no choice"):
            account.export(tmp_path / "msp", format="msp", success=True)
        with pytest.raises(BadInput, match="only written"):
            account.import_(tmp_path, format="minari")


def test_an_episode_with_personal_data_is_not_public_and_its_secrets_are_masked(brain, tmp_path):
    told = {**STEP, "info": {"message": "mail ana@example.org, password: hunter2-XyZ-99"}}
    brain.save_episode({"metadata": {"episode_id": "private"}, "steps": [told]})
    brain.save_episode({"metadata": {"episode_id": "open"}, "steps": [STEP]})
    kept = {e["metadata"]["episode_id"]: e for e in episodes(brain)}
    assert kept["private"]["metadata"]["public"] is False
    assert "hunter2" not in json.dumps(kept["private"])
    assert exchange.export_rlds(brain.account, tmp_path / "out", public=True)["episodes"] == 1
    assert not (tmp_path / "out" / "private").exists()


METADATA = {
    "type": "object",
    "required": [
        *(
            "schema_version",
            "episode_id",
            "robot_id",
            "robot_model",
            "capabilities",
            "level_id",
            "level_name",
        ),
        *("level_difficulty", "initial_state", "final_state", "success", "total_moves", "sandbox_denials"),
        *(
            "behaviors_used",
            "keys_collected",
            "doors_opened",
            "start_time",
            "end_time",
            "duration_s",
            "source",
        ),
        "session_id",
    ],
    "properties": {
        "schema_version": {"const": "1.1"},
        "episode_id": {"pattern": "^robotgrid_[0-9]+_[0-9a-f]{8}$"},
        "success": {"type": "boolean"},
        "total_moves": {"type": "integer", "minimum": 0},
    },
}


def closed(**properties):
    """An object with exactly these fields: what a reader of columns needs to take all files for one table."""
    return {
        "type": ["object", "null"],
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT, WHOLE, NUMBER, TRUTH = ({"type": name} for name in ("string", "integer", "number", "boolean"))
STATE = closed(x=WHOLE, y=WHOLE, direction=TEXT, keys=WHOLE)
TILES = {"type": "array", "items": {"type": "array", "items": TEXT}}
STEPS = closed(
    frame_id=WHOLE,
    timestamp_us=WHOLE,
    observation=closed(robot_state=STATE, visible_tiles=TILES, look_ahead=closed(tile=TEXT, distance=WHOLE)),
    action=closed(command=TEXT, intent=TEXT, params={"type": "object"}, raw_input=TEXT),
    world_model=closed(
        predicted_state=STATE,
        actual_state=STATE,
        surprise=NUMBER,
        belief_confidence=NUMBER,
        latent_tokens={"type": "array", "items": NUMBER},
    ),
    reward=NUMBER,
    done=TRUTH,
    info={
        "type": "object",
        "properties": {"result": TEXT, "message": TEXT, "sandbox_denied": TRUTH},
        "additionalProperties": False,
    },
    is_first=TRUTH,
    is_last=TRUTH,
    is_terminal=TRUTH,
    discount=NUMBER,
)


def test_every_steps_file_of_the_mirror_and_of_an_export_is_of_one_schema(brain, played, tmp_path):
    exchange.export_rlds(brain.account, tmp_path / "out")
    judge = Draft202012Validator(STEPS)
    for folder in (tmp_path / "out", brain.show() / "episodic/rlds_episodes"):
        files = list(folder.glob("*/steps.jsonl"))
        assert len(files) == len(played)
        for line in (line for file in files for line in file.read_text().splitlines()):
            judge.validate(json.loads(line))


def test_a_reader_of_columns_takes_all_steps_files_for_one_table(brain, played, tmp_path):
    manifest = exchange.export_rlds(brain.account, tmp_path / "out")
    exported = sorted((tmp_path / "out").glob("*/steps.jsonl"))
    shown = sorted((brain.show() / "episodic/rlds_episodes").glob("*/steps.jsonl"))
    first = pyarrow.json.read_json(exported[0]).schema
    strict = pyarrow.json.ParseOptions(explicit_schema=first, unexpected_field_behavior="error")
    for files in (exported, shown):
        table = pyarrow.concat_tables(pyarrow.json.read_json(file, parse_options=strict) for file in files)
        assert table.num_rows == manifest["steps"]
        assert set(table.column_names) == set(STEPS["properties"])
        assert not table["observation"].null_count
        assert table["action"].null_count == table["is_last"].to_pylist().count(True) == len(played)


def test_a_foreign_judge_finds_every_field_the_document_names(brain, played, tmp_path):
    exchange.export_rlds(brain.account, tmp_path / "out")
    for id_ in played:
        Draft202012Validator(METADATA).validate(
            json.loads((tmp_path / "out" / id_ / "metadata.json").read_text())
        )


# Minari warns that a robot's data names no environment to evaluate in; it has none.
@pytest.mark.filterwarnings("ignore:.*env.*:UserWarning")
def test_minari_reads_back_the_same_episodes_steps_and_rewards(brain, played, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    exchange.export_minari(brain.account, "octavo/robotgrid-v0", success=True)
    read = minari.load_dataset("octavo/robotgrid-v0")
    kept = [e for e in episodes(brain) if e["metadata"]["success"]]
    assert read.total_episodes == len(kept) == 2
    assert read.total_steps == sum(e["metadata"]["total_moves"] for e in kept)
    ours = [round(sum(step["reward"] for step in e["steps"]), 4) for e in kept]
    assert [round(float(episode.rewards.sum()), 4) for episode in read.iterate_episodes()] == ours
    assert all(episode.terminations[-1] for episode in read.iterate_episodes())
    with octavo.open(tmp_path / "brain", "brain_b") as account:
        again = account.export("octavo/again-v0", format="minari", success=True)
    assert (again["episodes"], again["steps"]) == (read.total_episodes, read.total_steps)
    with pytest.raises(BadInput):
        exchange.export_minari(brain.account, "octavo/none-v0", min_reward=1000.0)
