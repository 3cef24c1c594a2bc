"""ScienceWorld behind the door: what it says of itself, what it plays, and that it is the simulator's own game."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.registry import env_entry
from magrounding.single.scienceworld import SPLITS, TASKS, ScienceWorld
from magrounding.single.scienceworld.options import task_name, variations
from magrounding.single.tokenizer import split
from magrounding.vocabulary import plain_text

AGENT = "agent_0"
HEAP = ScienceWorld().heap


@pytest.fixture(scope="module", autouse=True)
def java(request):
    """One Java process for the whole file; none for tests that need none."""
    if which("java") is None:
        yield None
        return
    try:
        from magrounding.single.scienceworld.java import shared_java

        process = shared_java(HEAP)
    except ImportError:
        process = None
    yield process


@pytest.fixture
def simulator(java):
    pytest.importorskip("scienceworld", reason="needs the extra `scienceworld`")
    if which("java") is None:
        pytest.skip("needs Java, which is not installed")
    return java


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def walk(env, rng, steps, avoid=("focus", "reset")):
    """Random valid actions: everything that the env gives out."""
    found = []
    while env.agents and len(found) < steps:
        actions = env._now.actions
        row = int(rng.choice([j for j, action in enumerate(actions) if not action.startswith(avoid)]))
        found.append((actions[row], env.step({AGENT: row})))
    return found


class TestWhatItIs:
    def test_thirty_tasks_by_two_names(self):
        assert len(TASKS) == len(set(TASKS)) == 30
        assert ScienceWorld("T11") == ScienceWorld("find-animal")
        assert [task_name(f"T{k}") for k in (0, 13, 29)] == [TASKS[0], "find-non-living-thing", TASKS[29]]
        assert env_entry("scienceworld").stages == TASKS
        for wrong in ("T30", "T", "t1", "boiling", 3):
            with pytest.raises(ConfigurationError):
                ScienceWorld(wrong)

    def test_official_variations(self):
        assert {split: len(found) for split, found in variations("find-animal").items()} == {
            "train": 150,
            "valid": 75,
            "test": 75,
        }
        for task in TASKS:
            parts = variations(task).values()
            count = sum(map(len, parts))
            assert [k for part in parts for k in part] == list(range(count)), "one after the other, none twice"
            assert all(parts)
        totals = [sum(len(variations(task)[name]) for task in TASKS) for name in SPLITS]
        assert sum(totals) == 7207
        assert totals[0] == 3592


class TestGames:
    def test_official_variations_are_the_simulators(self, simulator):
        from magrounding.single.scienceworld.simulation import Simulation
        from magrounding.single.scienceworld.wire import call

        simulation = Simulation(simulator)
        for task in ("boil", "power-component", "test-conductivity"):
            simulation.begin(task, 0, "easy")
            batch = simulator.batch()
            for method in ("getVariationsTrain", "getVariationsDev", "getVariationsTest"):
                batch.value(call(batch.passing(call(simulation._interface, method)), "toString"))
            found = [list(map(int, text[1:-1].split(","))) for text in simulator.ask(batch)]
            assert found == [list(part) for part in variations(task).values()]

    def test_texts_are_what_the_simulator_says(self, simulator):
        env = ScienceWorld("find-plant").make_env()
        observations, infos = env.reset(seed=3)
        words = env.spec.words
        for _ in range(6):
            seen, text = observations[AGENT], infos[AGENT]["text"]
            for name in ("task", "observation", "look", "inventory"):
                assert plain_text(words, seen[name]) == " ".join(split(text[name]))
            rows = [plain_text(words, row) for row in seen["choices"][: len(text["choices"])]]
            assert rows == [" ".join(split(choice)) for choice in text["choices"]]
            assert len(set(rows)) == len(rows) == seen["action_mask"].sum()
            observations, _, _, _, infos = env.step({AGENT: rows.index("wait1")})

    def test_a_variation_can_be_chosen(self, simulator):
        env = ScienceWorld("find-plant").make_env()
        env.reset(seed=0, options={"variation": 299})
        assert env.variation == 299
        for wrong in ({"variation": 300}, {"variation": "1"}):
            with pytest.raises(ConfigurationError):
                env.reset(seed=0, options=wrong)
        env.reset(seed=0)
        chosen_by_seed = env.variation
        env.reset(seed=0, options={"seed": 1})  # as with every env
        assert env.variation == chosen_by_seed

    def test_a_masked_action_stands_still(self, simulator):
        env = ScienceWorld("find-plant", max_cycles=2).make_env()
        env.reset(seed=0)
        before = env._now
        result = [part[AGENT] for part in env.step({AGENT: env.spec.num_actions - 1})]
        assert env._now == before
        assert (result[1:4], result[4]["illegal"]) == ([0.0, False, False], True)
        *_, truncations, infos = env.step({AGENT: env.spec.num_actions - 1})
        assert truncations[AGENT]
        assert infos[AGENT]["won"] is False
        with pytest.raises(CallOrderError):
            env.step({AGENT: 0})

    @pytest.mark.parametrize("penalty", [True, False])
    def test_failing_ends_the_game(self, simulator, penalty):
        env = ScienceWorld("find-plant", failure_penalty=penalty).make_env()
        _, infos = env.reset(seed=0)
        before = infos[AGENT]["score"]
        result = [part[AGENT] for part in env.step({AGENT: env._now.actions.index("focus on air")})]
        assert before > 0, "a part of the way is done at the start"
        assert result[1:4] == [-before - 100.0 * penalty, True, False]
        assert (result[4]["won"], result[4]["score"]) == (False, 0.0)


class TestTheSame:
    @pytest.mark.parametrize("task", ["find-animal", "mendelian-genetics-known-plant", "power-component"])
    def test_asking_in_parts_changes_nothing(self, simulator, task):
        from magrounding.single.scienceworld.simulation import Simulation

        swift, plain = Simulation(simulator), Simulation(simulator, fast=False)
        rng = np.random.default_rng(2)
        here, there = swift.begin(task, 1, "easy"), plain.begin(task, 1, "easy")
        for _ in range(25):
            assert here == there
            go = [action for action in here.actions if action.startswith(("teleport", "go"))]
            free = [action for action in here.actions if not action.startswith(("focus", "reset"))]
            command = str(rng.choice(go if go and rng.random() < 0.3 else free))
            here, there = swift.step(command), plain.step(command)

    def test_games_of_one_process_do_not_disturb_one_another(self, simulator):
        """Bees and doves wander, so that random numbers are drawn in every step."""
        alone = ScienceWorld("find-animal").make_env()
        alone.reset(seed=5)
        expected = walk(alone, np.random.default_rng(1), 15)
        one, other = ScienceWorld("find-animal").make_env(), ScienceWorld("lifespan-longest-lived").make_env()
        one.reset(seed=5)
        other.reset(seed=5)
        for command, result in expected:
            found = one.step({AGENT: one._now.actions.index(command)})
            np.testing.assert_equal(found, result)
            if other.agents:
                walk(other, np.random.default_rng(7), 1)

    def test_the_same_texts_in_another_process(self, simulator):
        digests = {
            subprocess.run(
                [sys.executable, __file__, "digest"],
                capture_output=True,
                text=True,
                check=True,
                cwd=Path(__file__).parents[2],
                env=elsewhere(PYTHONHASHSEED=seed),
            ).stdout
            for seed in ("1", "2")
        }
        assert digests == {digest()}

    def test_the_simulators_own_env_tells_the_same(self, simulator):
        """But for the order of sets and the names of what shares its name, which differ from process to process."""
        env = ScienceWorld("find-plant").make_env()
        _, infos = env.reset(seed=1)
        found = [(infos[AGENT]["text"], infos[AGENT]["score"], 0.0)]
        played = walk(env, np.random.default_rng(3), 12, avoid=("focus", "reset", "use", "move", "pour", "mix", "dunk"))
        found += [(result[-1][AGENT]["text"], result[-1][AGENT]["score"], result[1][AGENT]) for _, result in played]
        stock = stock_trace("find-plant", env.variation, [command for command, _ in played])
        assert len(stock) == len(found) == 13
        for (text, score, _), info in zip(found, stock, strict=True):
            for name, theirs in (("observation", "observation"), ("look", "look"), ("inventory", "inv")):
                assert letters(text[name]) == letters(info[theirs])
            assert text["task"] == info["taskDesc"]
            assert [each.split()[0] for each in text["choices"]] == [each.split()[0] for each in info["valid"]]
            assert score == info["score"]
        assert [reward for *_, reward in found[1:]] == [info["reward"] for info in stock[1:]]


class TestGold:
    @pytest.mark.parametrize("task", ["find-plant", "chemistry-mix"])
    def test_the_expert_reaches_a_hundred(self, simulator, home, task):
        config = ScienceWorld(task)
        env = config.make_env()
        _, infos = env.reset(seed=0, options={"variation": 0})
        while env.agents:
            labels = env.best_actions()
            assert labels.shape == (1, env.spec.num_actions)
            assert labels.sum() == 1
            *_, infos = env.step({AGENT: int(labels[0].argmax())})
        assert infos[AGENT]["score"] == 100
        assert infos[AGENT]["won"] is True
        kept = list(home.rglob("*.json"))
        assert [path.name for path in kept] == ["0.json"]
        assert task in kept[0].parts

    def test_a_cache_that_cannot_be_written_to_ends_in_a_sentence(self, simulator, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("HOME", str(tmp_path / "file"))  # where there can be no folder
        env = ScienceWorld("find-plant").make_env()
        env.reset(seed=0)
        with pytest.raises(ConfigurationError):
            env.best_actions()

    @pytest.mark.slow
    @pytest.mark.timeout(1800)
    @pytest.mark.parametrize("task", TASKS)
    def test_every_task(self, simulator, home, task):
        env = ScienceWorld(task, max_cycles=300).make_env()  # three gold paths have more than 100 steps
        _, infos = env.reset(seed=0, options={"variation": 0})
        while env.agents:
            *_, infos = env.step({AGENT: int(env.best_actions()[0].argmax())})
        assert infos[AGENT]["score"] == 100
        assert env.left_out == 0


STOCK = """
import json, sys
from scienceworld import ScienceWorldEnv
task, variation, commands = json.loads(sys.argv[1])
env = ScienceWorldEnv("", envStepLimit=100)
env.load(task, variation, "easy")
observation, info = env.reset()
trace = [info | {"observation": observation}]
for command in commands:
    observation, _, _, info = env.step(command)
    trace.append(info | {"observation": observation})
print(json.dumps(trace))
"""


def stock_trace(task, variation, commands):
    """The infos of the simulator's own env, in a process of its own: it leaves pipes and threads behind."""
    arguments = [sys.executable, "-W", "ignore", "-c", STOCK, json.dumps([task, variation, commands])]
    return json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True, env=elsewhere()).stdout)


def elsewhere(**more):
    """The environment of a process that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def letters(text):
    """What a text says, in whatever order."""
    return sorted(text.replace(",", "").replace(".", "").split())


def digest():
    """A hash of everything that a few games show."""
    env, found = ScienceWorld("find-animal").make_env(), hashlib.sha256()
    for seed in (0, 4):
        env.reset(seed=seed)
        for _, (observations, rewards, *_) in walk(env, np.random.default_rng(seed), 12):
            for name, array in observations[AGENT].items():
                found.update(name.encode() + array.tobytes())
            found.update(str(rewards).encode())
    return found.hexdigest()


if __name__ == "__main__":
    print(digest(), end="")
