"""What envs may not show or say, in any step: one sentence each, and nothing of it is written."""

import math
from fractions import Fraction

import numpy as np
import pytest
from gymnasium import spaces

from magrounding.envs.single_agent import SingleAgentEnv
from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import Scripted, ScriptedTeam, Walk

PARTS = {
    "image": spaces.Box(0, 255, (3,), np.uint8),
    "near": spaces.Box(np.array([-1, 0], np.float32), np.array([1, 9], np.float32)),
}
SPACE = spaces.Dict(PARTS)
RIGHT = {"image": np.array([1, 2, 3], np.uint8), "near": np.array([0.5, 2], np.float32)}


def one(observation=RIGHT, reward=1.0, terminated=False, truncated=False, info=None, space=SPACE):
    """A Gymnasium env that answers this in its second step, and rightly before."""
    info = {} if info is None else info
    answers = [(RIGHT, {}), (RIGHT, 0.0, False, False, {}), (observation, reward, terminated, truncated, info)]
    return Scripted(space, answers)


def play(env, workers=0):
    """Two steps of a vector env of this env alone."""
    with vectorize(lambda: env, 1, workers) as vec:
        vec.reset(seed=0)
        vec.step([[0]])
        observation, rewards, _, _, info = vec.step([[0]])
        return {name: array[0, 0].copy() for name, array in observation.items()}, float(rewards[0, 0]), info


WRONG = {
    "nothing": {"observation": {}},
    "a part only": {"observation": {"image": RIGHT["image"]}},
    "no dict": {"observation": RIGHT["near"]},
    "no length": {"observation": RIGHT | {"image": np.uint8(1)}},
    "deeper": {"observation": RIGHT | {"image": np.ones((1, 3), np.uint8)}},
    "too large": {"observation": RIGHT | {"image": np.array([1, 300, 3])}},
    "broken": {"observation": RIGHT | {"image": np.array([1, 2, 0.75])}},
    "ragged": {"observation": RIGHT | {"image": [[1], [1, 2], []]}},
    "complex": {"observation": RIGHT | {"image": np.ones(3, complex)}},
    "NaN": {"observation": RIGHT | {"near": np.array([np.nan, 1], np.float32)}},
    "out of its own bounds": {"observation": RIGHT | {"near": np.array([2, 1], np.float32)}},
    "no reward": {"reward": None},
    "infinite reward": {"reward": -np.inf},
    "reward as text": {"reward": "1.5"},
    "two rewards": {"reward": np.array([1.0, 2])},
    "large reward": {"reward": 10**5000},
    "reward beyond float32": {"reward": 1e300},
    "no info": {"info": 3},
    "flag": {"terminated": None},
    "flags": {"truncated": np.array([True, False])},
    "a word as a flag": {"terminated": "no"},
    "half a flag": {"terminated": 0.5},
    "a wide mask": {"info": {"action_mask": np.ones(4)}},
    "a mask of twos": {"info": {"action_mask": np.full(3, 2)}},
    "no mask": {"info": {"action_mask": None}},
    "illegal": {"info": {"illegal": "yes"}},
    "score": {"info": {"score": float("nan")}},
    "won": {"info": {"won": [1, 2]}, "terminated": True},
}


@pytest.mark.parametrize("what", WRONG.values(), ids=WRONG)
def test_what_a_step_answers_is_checked(what):
    with pytest.raises(ConfigurationError):
        play(one(**what))


@pytest.mark.parametrize(
    "answer", [RIGHT, (RIGHT,), ({}, {}), (RIGHT, None), (RIGHT, {"document": "a.txt"}), (RIGHT, {"document": 2**63})]
)
def test_what_a_reset_answers_is_checked(answer):
    with pytest.raises(ConfigurationError):
        play(Scripted(SPACE, [answer]))


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_refused_names_row_agent_and_step(workers):
    class Spoilt(Walk):
        def step(self, actions):
            seen, rewards, *rest = super().step(actions)
            wrong = {"walker_1": math.nan} if (self.seed, self.steps) == (8, 2) else {}
            return seen, rewards | wrong, *rest

    with vectorize(Spoilt, 2, workers) as vec:
        vec.reset(seed=7)
        vec.step(np.zeros((2, 3), int))
        with pytest.raises(ConfigurationError, match="agent 'walker_1', row 1, step 2"):
            vec.step(np.zeros((2, 3), int))


def test_what_is_wrong_is_not_written():
    vec = vectorize(lambda: one(RIGHT | {"image": np.array([7, 300, 7])}), 1)
    vec.reset(seed=0)
    seen = vec.step([[0]])[0]["image"]
    with pytest.raises(ConfigurationError):
        vec.step([[0]])
    assert seen.tolist() == [[[1, 2, 3]]]
    with pytest.raises(CallOrderError):
        vec.step([[0]])
    vec.reset(seed=0)
    vec.step([[0]])


@pytest.mark.parametrize(
    "image",
    [[9, 8, 7], np.array([9, 8, 7]), np.array([9.0, 8, 7]), np.array([9, 8, 7], ">i2"), (9, np.int64(8), 7)],
    ids=["list", "int64", "whole floats", "other byte order", "tuple"],
)
def test_numbers_of_other_kinds_are_written_where_they_stay_what_they_are(image):
    seen, _, _ = play(one(RIGHT | {"image": image}))
    assert seen["image"].tolist() == [9, 8, 7]
    assert seen["image"].dtype == np.uint8


def test_doubles_are_rounded_and_those_that_floats_cannot_hold_are_refused():
    wide = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def showing(value):
        right = (np.zeros(2, np.float32), {})
        return Scripted(wide, [right, (right[0], 0.0, False, False, {}), (np.array(value), 0.0, False, False, {})])

    assert play(showing([0.1, np.inf]))[0]["observation"].tolist() == [np.float32(0.1), np.inf]
    with pytest.raises(ConfigurationError):
        play(showing([0.1, 1e300]))


@pytest.mark.parametrize(
    ("reward", "number"),
    [
        (np.array([1.5]), 1.5),
        (np.array([[1.5]]), 1.5),
        (np.array(1.5), 1.5),
        (np.float64(1.5), 1.5),
        ([1.5], 1.5),
        (2, 2),
        (True, 1),
        (np.int64(-3), -3),
        (Fraction(3, 2), 1.5),
    ],
)
def test_a_reward_is_a_number_or_an_array_of_one(reward, number):
    assert play(one(reward=reward))[1] == number


def test_a_sum_of_rewards_stays_a_number():
    env = Scripted(SPACE, [(RIGHT, {}), *[(RIGHT, 3e38, False, False, {})] * 2])
    with pytest.raises(ConfigurationError):
        play(env)


def test_flags_of_numpy_are_flags():
    _, _, info = play(one(terminated=np.array([True]), truncated=np.int8(0), info={"won": np.float64(1)}))
    assert info.done.all()
    assert info.won.all()


BOTH = ("ann", "bob")


def team(parts=None, agents=BOTH, first=None):
    """A PettingZoo env that answers this in its first step, by parts of the right answer."""
    right = [dict.fromkeys(BOTH, value) for value in (RIGHT, 1.0, False, False, {})]
    for i, part in (parts or {}).items():
        right[i] = part
    reset = list(BOTH), first or (dict.fromkeys(BOTH, RIGHT), {})
    return ScriptedTeam(SPACE, [reset, (agents if agents is None else list(agents), tuple(right))])


def play_team(env):
    with vectorize(lambda: env, 1) as vec:
        vec.reset(seed=0)
        return vec.step([[0, 0]])


WRONG_TEAMS = {
    "observations": team({0: None}),
    "a stranger": team({0: {**dict.fromkeys(BOTH, RIGHT), "eve": RIGHT}}),
    "one unseen": team({0: {"ann": RIGHT}}),
    "one unrewarded": team({1: {"ann": 1.0}}),
    "a reward": team({1: {"ann": 1.0, "bob": None}}),
    "one without a flag": team({2: {"ann": False}}),
    "truncations": team({3: [False, False]}),
    "infos": team({4: None}),
    "an info": team({4: {"ann": None}}),
    "agents": team({}, agents=None),
    "strange agents": team({}, agents=("ann", "eve")),
    "at reset": team(first=(dict.fromkeys(BOTH, RIGHT), None)),
    "unseen at reset": team(first=({"ann": RIGHT}, {})),
}


@pytest.mark.parametrize("env", WRONG_TEAMS.values(), ids=WRONG_TEAMS)
def test_teams_answer_for_each_agent_and_for_no_other(env):
    with pytest.raises(ConfigurationError):
        play_team(env)


def test_infos_may_be_of_something_else_and_may_lack():
    _, rewards, _, _, info = play_team(team({4: {"common": {"score": 4}}}))
    assert rewards.tolist() == [[1, 1]]
    assert info.score.tolist() == [4]


def test_agents_have_different_names():
    with pytest.raises(ConfigurationError):
        vectorize(lambda: ScriptedTeam(SPACE, [], names=("ann", "ann")), 1)
    env = Walk()
    env.possible_agents = None
    with pytest.raises(ConfigurationError):
        vectorize(lambda: env, 1)


def test_who_has_seen_nothing_yet_sees_what_is_in_the_space():
    space = spaces.Dict({"high": spaces.Box(3, 9, (2,), np.int16), "low": spaces.Discrete(3, start=-7)})
    seen = {"high": np.array([4, 5]), "low": -6}
    env = ScriptedTeam(space, [(["ann"], ({"ann": seen}, {}))])
    observation, info = vectorize(lambda: env, 1).reset(seed=0)
    assert observation["high"].tolist() == [[[4, 5], [3, 3]]]
    assert observation["low"].tolist() == [[-6, -5]]
    assert observation["action_mask"].all()
    assert info.alive.tolist() == [[True, False]]


def test_a_mask_that_the_space_has_may_not_be_left_out():
    space = spaces.Dict({"near": PARTS["near"], "action_mask": spaces.MultiBinary(3)})
    seen = {"near": RIGHT["near"]}
    with pytest.raises(ConfigurationError):
        play(Scripted(space, [(seen, {})]))
    told = {"action_mask": np.array([True, False, True])}
    env = Scripted(space, [(seen, told)] + [(seen, 0.0, False, False, told)] * 2)
    assert play(env)[0]["action_mask"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("best_actions", np.ones((2, 3), bool)),
        ("best_actions", None),
        ("best_actions", np.full((3, 3), 0.5)),
        ("state", np.full(6, 40_000)),
        ("state", np.zeros(5)),
    ],
)
def test_labels_and_states_are_checked_too(name, value):
    class Wrong(Walk):
        pass

    setattr(Wrong, name, lambda env: value)
    vec = vectorize(Wrong, 1)
    vec.reset(seed=0)
    with pytest.raises(ConfigurationError):
        getattr(vec, name)()


def test_a_mask_of_the_gymnasium_env_is_checked_as_well():
    answers = [(["ann"], ({"ann": RIGHT}, {"ann": {"action_mask": np.ones(width)}})) for width in (3, 4)]
    env = SingleAgentEnv(ScriptedTeam(SPACE, answers, names=("ann",)))
    env.reset()
    assert env.action_masks().tolist() == [True] * 3
    with pytest.raises(ConfigurationError):
        env.reset()
