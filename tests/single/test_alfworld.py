"""ALFWorld behind the door, on the real engine: what it promises, that it is the engine's own game, and who wins it."""

import copy
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

from magrounding.errors import ConfigurationError, MissingExtra
from magrounding.single.alfworld import SPLITS, TASKS, ALFWorld, package
from magrounding.single.alfworld.games import Games, game_of, shipped_scenes
from magrounding.single.alfworld.options import FEEDBACK_WORDS, GOAL_WORDS, TOKENIZER
from magrounding.single.tokenizer import split as words_of
from tests.single.alfworld_stock import Stock
from tools.alfworld.generate import main

pytest.importorskip("alfworld", reason="the extra `alfworld` is absent: alfworld")

from magrounding.single.alfworld.env import Engine

AGENT = "agent_0"
pddl = package.engine()


@pytest.fixture(scope="module")
def engine():
    engine = Engine()
    yield engine
    engine.close()


def play(env, seed, choose):
    """All results of an episode whose actions `choose(env)` names."""
    results = [env.reset(seed=seed)]
    while env.agents:
        results.append(copy.deepcopy(env.step({AGENT: choose(env)})))
    return results


def follow(env):
    return int(env.best_actions()[0].argmax())


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_twenty_games_are_the_stock_engines_word_for_word(engine, first):
    stock, wins = Stock(), 0
    for number in range(first, first + 5):
        game = game_of(shipped_scenes("train")[number])
        rng, moment = random.Random(number), engine.start(game)
        assert stock.start(game) == (moment.feedback, moment.commands, moment.won)
        plan = engine.plan() if number % 2 else []
        for command in [*(rng.choice(moment.commands) for _ in range(3)), *plan, "fly to the moon", *plan[-1:]]:
            moment = engine.step(command)
            assert stock.step(command) == (moment.feedback, moment.commands, moment.won)
            wins += moment.won
    assert wins


@pytest.mark.parametrize("damage", [None, b"", b"\x1f\x8b not gzip", "half", "flipped"])
def test_a_translation_kept_on_disk_plays_the_same_game(engine, damage, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    translated = []
    fresh = pddl.fast_downward.pddl2sas
    monkeypatch.setattr(pddl.fast_downward, "pddl2sas", lambda *texts: translated.append(texts) or fresh(*texts))

    def transcript(game):
        pddl.translate.cache_clear()
        rng, moments = random.Random(0), [engine.start(game)]
        for _ in range(25):
            moments.append(engine.step(rng.choice(moments[-1].commands)))
        return moments

    games = [game_of(shipped_scenes("train")[number]) for number in (0, 7, 100)]
    cold = [transcript(game) for game in games]
    assert len(translated) == 3
    kept = sorted((tmp_path / ".cache" / "magrounding" / "alfworld").iterdir())
    whole = [file.read_bytes() for file in kept]
    assert len(kept) == 3
    if damage is not None:
        half = len(whole[0]) // 2
        flipped = whole[0][:half] + bytes([whole[0][half] ^ 255]) + whole[0][half + 1 :]
        kept[0].write_bytes({"half": whole[0][:half], "flipped": flipped}.get(damage, damage))
    assert [transcript(game) for game in games] == cold
    assert len(translated) == 3 + (damage is not None)
    assert [file.read_bytes() for file in kept] == whole


def test_the_planner_asked_behind_the_memory_is_the_stock_engines(engine):
    stock, game = Stock(), game_of(shipped_scenes("valid")[3])
    stock.start(game)
    engine.start(game)
    assert stock.env._pddl_state.replan(stock.env._entity_infos) == engine.plan()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_expert_wins_every_shipped_scene_within_the_limit(split, task, monkeypatch):
    env = ALFWorld(split=split).make_env()
    lost, unknown, commands = [], set(), 0
    for number, scene in enumerate(shipped_scenes(split)):
        if scene.task != task:
            continue
        monkeypatch.setattr("magrounding.single.alfworld.env.stream_key", lambda *_, number=number: number)
        env.reset(seed=0)
        while env.agents:
            result = env.step({AGENT: follow(env)})
            info = result[4][AGENT]
            said = info["text"]
            for text in (said["goal"], said["feedback"], *said["choices"]):
                unknown |= {word for word in words_of(text) if word not in TOKENIZER.vocabulary}
            assert TOKENIZER.count(said["feedback"]) <= FEEDBACK_WORDS
            assert TOKENIZER.count(said["goal"]) <= GOAL_WORDS
            commands = max(commands, len(said["choices"]))
        lost += [scene.name] * (not info["won"])
    assert lost == []
    assert unknown == set(), "words of our scenes that are spelt"
    assert commands < 60, "no command of our scenes is left out"


def test_what_is_shown():
    env = ALFWorld().make_env()
    observations, infos = env.reset(seed=3)
    seen, text, words = observations[AGENT], infos[AGENT]["text"], env.spec.vocabulary
    assert env.observation_space(AGENT).contains(seen)
    assert list(seen) == list(env.observation_space(AGENT).spaces)
    assert words.decode(seen["goal"]) == " ".join(words_of(text["goal"]))
    assert "you see" in text["feedback"]
    assert "Welcome" not in text["feedback"]
    assert "task" not in text["feedback"]
    assert "look" not in text["choices"]
    assert {"inventory", "help"} <= set(text["choices"])
    for row, command in zip(seen["choices"], text["choices"], strict=False):
        assert words.decode(row) == command
    assert seen["action_mask"].sum() == len(text["choices"])
    assert not seen["choices"][len(text["choices"]) :].any()
    assert not seen["history"].any()
    places = [command.removeprefix("go to ") for command in text["choices"] if command.startswith("go to ")]
    shown = [words.decode(item) for item in seen["grid"][:, 0] if item.any()]
    assert sorted(shown) == sorted(places)
    action = next(j for j, command in enumerate(text["choices"]) if command.startswith("go to "))
    seen = env.step({AGENT: action})[0][AGENT]
    assert words.decode(seen["history"][0]) == text["choices"][action]
    assert not seen["history"][1:].any()
    for _ in range(3):
        seen = env.step({AGENT: action})[0][AGENT]
    assert seen["history"].any(1).all()


def test_a_win_pays_and_a_time_out_does_not():
    env = ALFWorld(split="valid").make_env()
    results = play(env, 0, follow)
    _, rewards, terminations, truncations, infos = results[-1]
    assert (rewards[AGENT], terminations[AGENT], truncations[AGENT], infos[AGENT]["won"]) == (1.0, True, False, True)
    assert all(result[1][AGENT] == 0 for result in results[1:-1])
    steps = len(results) - 1
    exact = ALFWorld(split="valid", max_cycles=steps).make_env()  # a win in the last step is no truncation
    _, _, terminations, truncations, _ = play(exact, 0, follow)[-1]
    assert (terminations[AGENT], truncations[AGENT]) == (True, False)
    short = ALFWorld(split="valid", max_cycles=steps - 1).make_env()
    _, rewards, terminations, truncations, infos = play(short, 0, follow)[-1]
    assert (rewards[AGENT], terminations[AGENT], truncations[AGENT], infos[AGENT]["won"]) == (0.0, False, True, False)


def test_a_masked_choice_does_nothing_and_says_so():
    env = ALFWorld().make_env()
    before, _ = env.reset(seed=1)
    after, rewards, _, _, infos = env.step({AGENT: 59})
    assert infos[AGENT]["illegal"] is True
    assert infos[AGENT]["text"]["feedback"] == "Nothing happens."
    np.testing.assert_array_equal(after[AGENT]["choices"], before[AGENT]["choices"])
    assert rewards[AGENT] == 0


def test_an_expert_that_does_not_understand_the_goal_says_so(tmp_path):
    game = game_of(shipped_scenes("train")[0])
    task = game["grammar"].split("Your task is to: ")[1].split('"')[0]
    (tmp_path / "train" / "x").mkdir(parents=True)
    game["grammar"] = game["grammar"].replace(task, "make it cosy.")
    (tmp_path / "train" / "x" / "game.tw-pddl").write_text(json.dumps(game))
    env = ALFWorld(games=str(tmp_path)).make_env()
    _, infos = env.reset(seed=0)
    assert infos[AGENT]["text"]["goal"] == "make it cosy."
    np.testing.assert_array_equal(env.best_actions()[0], env._observe()["action_mask"].astype(bool))
    assert env.step({AGENT: 0})[4][AGENT]["expert_failed"] is True


def test_a_users_games_are_played_as_the_packages(tmp_path):
    out = tmp_path / "games"
    assert main(["--out", str(out), "--train", "6", "--valid", "2", "--test", "2"]) == 0
    assert main(["--out", str(out)]) == 2  # it is there already
    files = sorted(path.parent.parent.name for path in (out / "train").rglob("game.tw-pddl"))
    assert files == sorted(scene.name for scene in shipped_scenes("train")[:6])
    assert {name.split("-")[0] for name in files} == set(TASKS)
    games = Games(str(out), "train")
    for number in range(6):
        name = games.name(number)
        assert games.data(number)["grammar"].count("UNKNOWN") == 0
        task = json.loads(next((out / "train").rglob(f"{name}/traj_data.json")).read_text())
        assert task["pddl_params"]["object_target"].lower() in games.data(number)["grammar"]
    assert play(ALFWorld(games=str(out), split="test").make_env(), 0, follow)[-1][4][AGENT]["won"]


@pytest.mark.parametrize("source", ["exit()", "o.__class__", "[1]", "o.name; 1", "(lambda: 1)()", "o['a']", "x := 1"])
def test_expressions_that_compute_are_refused(source):
    with pytest.raises(ConfigurationError):
        package.engine().compile_expression(source)


def test_a_game_that_would_run_code_is_refused(tmp_path):
    game = game_of(shipped_scenes("train")[0])
    place = tmp_path / "ran"
    evil = f"{{__import__('pathlib').Path('{place}').touch()}}"
    game["grammar"] = game["grammar"].replace("You arrive at {r.name}.", f"You arrive at {evil}.")
    (tmp_path / "train" / "x").mkdir(parents=True)
    (tmp_path / "train" / "x" / "game.tw-pddl").write_text(json.dumps(game))
    env = ALFWorld(games=str(tmp_path)).make_env()
    with pytest.raises(ConfigurationError):
        env.reset(seed=0)
    assert not place.exists()


def test_nothing_of_the_process_is_left_changed(engine):
    code = """
import os, sys
import magrounding as mg
import gymnasium, pettingzoo
before = (list(sys.argv), sys.stdout, dict(os.environ))
env = mg.make("alfworld")
env.reset(seed=0)
env.step({"agent_0": 0})
env.best_actions()
import fast_downward, textworld.envs.pddl.textgen as text
grammar = text.ContextSensitiveGrammar
for function in (fast_downward.pddl2sas, text._parse_and_convert, text.copy_context, grammar.derive):
    assert function.__module__.split(".")[0] in ("fast_downward", "textworld"), "the engine is as it was installed"
assert before == (list(sys.argv), sys.stdout, dict(os.environ))
"""
    environment = {name: value for name, value in os.environ.items() if name != "ALFWORLD_DATA"}
    command = [sys.executable, "-c", code, "an", "argument"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_same_texts_in_another_process():
    code = """
import sys, hashlib, magrounding as mg
env, seen = mg.make("alfworld", split="test"), []
for seed in (0, 1):
    _, infos = env.reset(seed=seed)
    for step in range(12):
        seen.append(str(infos["agent_0"]["text"]))
        infos = env.step({"agent_0": step % len(infos["agent_0"]["text"]["choices"])})[4]
print(hashlib.sha256("".join(seen).encode()).hexdigest())
"""
    environments = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2")]
    said = [subprocess.check_output([sys.executable, "-c", code], env=each, text=True) for each in environments]
    assert said[0] == said[1]


def test_without_the_planner_its_extra_is_missing(monkeypatch):
    package.engine.cache_clear()
    monkeypatch.setitem(sys.modules, "fast_downward.interface", None)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MissingExtra):
        ALFWorld().make_env()
