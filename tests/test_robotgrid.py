"""RobotGrid: the world's rules, levels that need their puzzle, the environment, records and the learner."""

from __future__ import annotations

import json
import shutil
import warnings
from contextlib import suppress

import gymnasium
import msgspec
import pytest
from gymnasium.utils.env_checker import check_env

import octavo
from octavo.documents.brain import FilesystemMemory
from octavo.domain import runs
from octavo.doors import cli
from octavo.errors import BadInput, NotFound
from octavo.robotgrid import environment, levels
from octavo.robotgrid import world as grid
from octavo.robotgrid.learner import Learner, bring_skill, outcomes_in, surprise
from octavo.testing.clocks import SettableClock


def after(text, *actions):
    """The last moment of some actions on a map whose lines stand side by side."""
    world = grid.parse(text.replace(" ", "\n"))
    for action in actions:
        moment = grid.act(world, action)
        world = moment.world
    return moment


def test_forward_into_lava_fails_and_the_sandbox_denies_it():
    moment = after("~ S G", "forward")
    assert (grid.told(moment)["sandbox_denied"], grid.REWARDS[moment.result]) == (True, -1)
    assert "SANDBOX DENIED" in moment.message
    assert (moment.world.x, moment.world.y) == (0, 1)


def test_a_wall_and_the_border_block():
    assert after("# S G", "forward").result == "blocked"
    assert after("SG", "forward").result == "blocked"
    assert after("#SG", "backward").result == "blocked"


def test_a_key_is_collected_and_lies_there_no_longer():
    moment = after("K S G", "forward")
    assert (moment.result, moment.world.keys, moment.world.tile((0, 0))) == ("key", 1, ".")


def test_a_door_needs_a_key_and_consumes_it():
    assert after("D S G", "forward").result == "locked"
    moment = after("D K S G", "forward", "forward")
    assert (moment.world.keys, moment.world.tile((0, 0))) == (0, ".")


def test_the_goal_completes_and_a_finished_world_stays():
    moment = after("G S", "forward")
    assert moment.world.done
    assert grid.act(moment.world, "backward").world == moment.world


def test_a_box_is_pushed_onto_floor():
    moment = after(". B S G", "forward")
    assert (moment.result, moment.world.boxes) == ("pushed", ((0, 0),))


@pytest.mark.parametrize("tile", "KDG~#B")
def test_a_box_never_destroys_what_it_would_be_pushed_onto(tile):
    moment = after(f"{tile} B S G", "forward")
    assert moment.result == "blocked"
    assert moment.world.tile((0, 0)) == tile


def test_a_box_on_a_button_does_not_erase_the_button():
    moment = after(".. O. B. S. GG", "forward", "forward")
    assert moment.world.boxes == ((0, 0),)
    assert moment.world.rows[1][0] == "O"


def test_a_held_button_opens_doors_and_a_released_one_shuts_them():
    held = after("O.D B.. S.G", "forward")
    assert held.world.is_open
    walked = after("O.D B.. S.G", "forward", "right", "forward", "forward", "left", "forward")
    assert (walked.tile, walked.result, walked.world.keys) == ("D", "moved", 0)
    assert not after("O.D B.. S.G", "right", "forward").world.is_open


def test_turning_left_four_times_is_where_one_began():
    start = grid.parse("S.G")
    assert msgspec.structs.replace(after("S.G", *["left"] * 4).world, moves=0) == start


@pytest.mark.parametrize("level", levels.builtin())
def test_a_world_survives_being_written_as_a_dict(level):
    world = grid.act(levels.level(level).start, "right").world
    assert grid.from_dict(grid.to_dict(world)) == world


def test_a_wrong_dict_map_action_or_level_is_bad_input():
    for wrong in (
        lambda: grid.from_dict({"rows": [1]}),
        lambda: grid.parse("S?G"),
        lambda: grid.parse("..."),
    ):
        with pytest.raises(BadInput):
            wrong()
    with pytest.raises(BadInput, match="forward, backward"):
        grid.act(grid.parse("SG"), "jump")
    with pytest.raises(NotFound, match="tutorial"):
        levels.level("nowhere")


@pytest.mark.parametrize("level", levels.builtin())
def test_every_built_in_level_can_be_solved_and_needs_its_puzzle(level):
    made = levels.level(level)
    assert len(levels.solve(made.map)) == made.shortest
    assert levels.needs_puzzle(made)


@pytest.mark.parametrize("difficulty", range(1, levels.HARDEST + 1))
def test_a_generated_level_is_solved_needs_its_puzzle_and_is_never_an_empty_fallback(difficulty):
    for seed in range(8 if difficulty <= 15 else 3):
        level = levels.generate(difficulty, seed)
        assert levels.generate(difficulty, seed) == level
        assert levels.solve(level.map)
        assert levels.needs_puzzle(level)
        tiles = set(level.map)
        assert {"D", "K"} <= tiles or difficulty not in (4, 5, 6, 9, 10)
        assert "~" in tiles or difficulty not in (7, 8, 9, 10, *range(16, 21))
        assert {"B", "O", "D"} <= tiles or difficulty <= 10


def test_a_level_that_cannot_be_made_is_said_so():
    made = 0
    for seed in range(100):
        with suppress(BadInput):
            made += levels.needs_puzzle(levels.generate(10, seed, tries=1))
    assert 0 < made < 100, "one map is not always enough, and the others are refused"
    with pytest.raises(BadInput, match="none needs its puzzle"):
        levels.generate(10, 1, tries=0)
    with pytest.raises(BadInput):
        levels.generate(0, 1)
    with pytest.raises(BadInput):
        levels.generate(1, -1)


@pytest.mark.parametrize("level", levels.builtin())
@pytest.mark.parametrize("observation", ["view", "grid"])
def test_gymnasium_finds_nothing_wrong_with_any_level(level, observation):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(environment.ID, level=level, observation=observation, render_mode="rgb_array")
        check_env(env.unwrapped)
        env.close()


def test_reset_goes_to_the_level_whatever_happened_before():
    env = gymnasium.make(environment.ID, level="first_key", render_mode="ansi")
    first, info = env.reset(seed=1)
    drawn = env.render()
    for action in (3, 0, 0, 0, 0):
        env.step(action)
    again, _ = env.reset(seed=1)
    assert env.render() == drawn
    assert info["level"] == "first_key"
    assert all((first[name] == again[name]).all() if name == "view" else True for name in first)
    assert (again["keys"], again["direction"]) == (0, 0)


def test_the_environment_rewards_as_the_document_says_and_tells_of_denials():
    env = environment.RobotGrid("lava_bank")
    env.reset()
    *_, info = env.step(0)
    assert info["result"] == "blocked"
    rewards = {"goal": 10.0, "key": 1.0, "moved": 0.1, "blocked": -0.1, "denied": -1.0}
    maps = {"goal": "G S", "key": "K S G", "moved": ". S G", "blocked": "# S G", "denied": "~ S G"}
    assert {name: grid.REWARDS[after(text, "forward").result] for name, text in maps.items()} == rewards


def test_an_episode_ends_when_the_steps_run_out():
    env = gymnasium.make(environment.ID, level="tutorial", max_episode_steps=2)
    env.reset()
    assert [env.step(5)[3] for _ in range(2)] == [False, True]
    assert environment.RobotGrid(difficulty=4).reset(seed=3)[1]["level"].startswith("generated-4-")


def test_a_person_plays_line_by_line_and_wrong_letters_do_nothing(monkeypatch, capsys):
    typed = iter(["d", "x", "wwwwww"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    assert cli.run(["robotgrid", "play", "tutorial", "--json"]) == 0
    told = capsys.readouterr().out
    assert "'x' is no action" in told
    done = json.loads(told[told.rindex("{") :])
    assert done == {"level": "tutorial", "solved": True, "actions": 5, "denials": 0}


def test_the_command_line_plays_a_level_and_lists_those_there_are(monkeypatch, capsys):
    typed = iter(["d", "wwww"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    assert cli.run(["robotgrid", "play", "tutorial"]) == 0
    told = capsys.readouterr().out
    assert "Level complete!" in told
    assert "solved" in told
    assert cli.run(["robotgrid", "levels"]) == 0
    assert "lava_key" in capsys.readouterr().out
    assert cli.run(["robotgrid", "play", "nowhere"]) != 0


def test_a_play_is_drawn_as_an_animation(tmp_path):
    environment.animate(levels.level("lava_key").start, ["right"], tmp_path / "play.gif")
    assert (tmp_path / "play.gif").read_bytes()[:6] == b"GIF89a"


def test_a_record_has_its_closing_step_and_predictions_made_before_the_action():
    clock = SettableClock()
    played = Learner(None, seed=3, clock=clock).play(levels.level("tutorial"), max_steps=30)
    steps, metadata = played["steps"], played["metadata"]
    assert [s["is_first"] for s in steps] == [True, *[False] * (len(steps) - 1)]
    assert [s["is_last"] for s in steps] == [*[False] * (len(steps) - 1), True]
    assert steps[-1]["action"] is None
    assert steps[-1]["is_terminal"] == metadata["success"]
    assert metadata["total_moves"] == len(steps) - 1
    assert metadata["duration_s"] * 1_000_000 == steps[-1]["timestamp_us"]
    assert metadata["schema_version"] == "1.1"
    bumped = [s for s in steps if s["info"].get("result") == "blocked"]
    assert bumped, "nothing was met that the robot could not know"
    assert {s["world_model"]["surprise"] for s in bumped} == {0.5}


def test_surprise_weighs_place_direction_and_keys():
    here = {"x": 1, "y": 1, "direction": "north", "keys": 0}
    assert surprise(here, here) == 0
    assert surprise(here, {**here, "x": 2}) == 0.5
    assert surprise(here, {**here, "direction": "east", "keys": 1}) == 0.5


@pytest.fixture
def robot(tmp_path):
    """A robot's memory, by words alone."""
    with FilesystemMemory(tmp_path / "brain", embedder=False) as memory:
        yield memory


def test_the_learner_knows_nothing_but_what_its_memory_recalls(robot):
    assert Learner(None).believe("~", False) == (None, 0.0)
    assert Learner(robot, levels=("semantic",)).believe("~", False) == (None, 0.0)
    robot.register_skill(
        "fire",
        "forward onto lava without a key: denied",
        {"outcomes": [{"command": "forward", "tile": "lava", "holding": False, "result": "denied"}]},
    )
    learner = Learner(robot, levels=("semantic",))
    assert learner.believe("~", False)[0] == "denied"
    assert learner.believe("~", True)[0] is None
    world = grid.parse("~\nS\nG")
    assert learner.predict(world, "forward")[0] == grid.state_of(world)


def test_what_a_robot_learns_in_some_levels_helps_it_in_another_and_helps_another_robot(robot, tmp_path):
    teacher = Learner(robot, seed=1, levels=("episodic", "semantic", "procedural"))
    for seed in range(12):
        teacher.play(levels.generate(1 + seed % 10, seed), max_steps=60)
    done = robot.consolidate_memory()
    assert done.patterns_promoted > 4
    results = {
        m.data["outcome"]["result"] for m in robot.account.memories(kind="fact") if "outcome" in m.data
    }
    assert {"moved", "blocked", "goal"} <= results
    unseen = [levels.generate(difficulty, 99) for difficulty in (1, 2, 3, 7)]
    with FilesystemMemory(tmp_path / "other", embedder=False) as other:
        bring_skill(robot, other)
        assert other.account.memories(kind="skill")[0].layer == "semantic"
        pupil = Learner(other, seed=2)
        assert all(pupil.play(level, max_steps=60)["metadata"]["success"] for level in unseen)
    strangers = [Learner(None, seed=2).play(level, max_steps=60)["metadata"]["success"] for level in unseen]
    assert not all(strangers)


def test_a_robot_plays_alike_in_its_folder_in_an_account_of_yours_and_in_a_copy(robot, tmp_path):
    for seed in range(6):
        Learner(robot, seed=1, levels=("episodic",)).play(levels.generate(1 + seed, seed), max_steps=60)
    robot.consolidate_memory()
    with octavo.open(tmp_path / "mine", "nok", embedder=False) as account:
        bring_skill(robot, FilesystemMemory(account))
    shutil.copytree(tmp_path / "mine", tmp_path / "copy")
    with FilesystemMemory(tmp_path / "folder", embedder=False) as folder:
        bring_skill(robot, folder)
        plays = [_played(folder)]
    for place in ("mine", "copy"):
        with octavo.open(tmp_path / place, "nok", embedder=False) as account:
            plays.append(_played(FilesystemMemory(account)))
    assert plays[0] == plays[1] == plays[2]
    assert any(success for success, _, _ in plays[0])


def _played(memory):
    pupil = Learner(memory, seed=3)
    told = [pupil.play(levels.generate(d, 77), max_steps=60)["metadata"] for d in (2, 4, 7)]
    return [(one["success"], one["sandbox_denials"], one["total_moves"]) for one in told]


def test_a_memory_that_tells_nonsense_teaches_nothing():
    for data in ({"steps": 5, "outcomes": "x"}, {"steps": [1, {"action": 2}]}, {"outcome": {"command": 1}}):
        assert outcomes_in(data) == []


def test_the_outcomes_of_steps_are_read_as_the_world_told_them(robot):
    played = Learner(robot, seed=5).play(levels.level("lava_key"), max_steps=60)
    outcomes = [o for step in played["steps"] if (o := runs.outcome_of(step))]
    forwards = [s for s in played["steps"] if runs.command_of(s) == "forward"]
    assert len(outcomes) == len(forwards)
    assert {o.result for o in outcomes if o.tile == "wall"} <= {"blocked"}
    assert {o.result for o in outcomes if o.tile == "lava"} <= {"denied"}


def test_no_built_in_level_is_missing():
    assert [level.difficulty for level in levels.builtin().values()] == [*range(1, 12), 16]
