"""The EnvSpec of a foreign env: what its spaces say, and one sentence for what no spec describes."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from magrounding.errors import ConfigurationError
from magrounding.simulators.spaces import spec_of
from magrounding.simulators.vectorize import vectorize
from magrounding.spec import EnvSpec, Field, FixedActions, Mask
from tests.simulators.games import Guess, Walk


class Shown(gymnasium.Env):
    """Shows what it is given, and is never played."""

    def __init__(self, observation, action=None):
        self.observation_space = observation
        self.action_space = spaces.Discrete(2) if action is None else action


def test_a_dict_of_boxes_and_a_mask():
    assert spec_of(Walk()) == EnvSpec(
        fields=(
            Mask("action_mask", (3,)),
            Field("noise", (2, 3), -np.inf, np.inf, "float32"),
            Field("place", (), 0, 50, "int16"),
        ),
        num_agents=3,
        actions=FixedActions(("0", "1", "2")),
        words=(),
        max_cycles=12,
        time_limit_is_loss=False,
        capabilities=frozenset({"expert", "state"}),
        state_parts=(("state", (6,)),),
    )


@pytest.mark.parametrize(
    ("space", "field"),
    [
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), Field("observation", (8, 8, 3), 0, 255, "uint8")),
        (spaces.MultiDiscrete([3, 5]), Field("observation", (2,), 0, 4, "int64")),
        (spaces.MultiBinary(4), Field("observation", (4,), 0, 1, "int8")),
        (spaces.Discrete(3, start=2), Field("observation", (), 2, 4, "int64")),
    ],
)
def test_kinds_of_spaces(space, field):
    assert spec_of(Shown(space)).fields[0] == field
    assert spec_of(Shown(spaces.Dict({"observation": space}))).fields[0] == field


@pytest.mark.parametrize(
    ("observation", "action"),
    [
        (spaces.Text(5), None),
        (spaces.Dict({"part": spaces.Dict({})}), None),
        (spaces.Box(0, 1, (2,)), spaces.Box(0, 1, (2,))),
        (spaces.Dict({"action_mask": spaces.Box(0, 1, (3,))}), None),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_other_spaces_are_refused(observation, action, workers):
    with pytest.raises(ConfigurationError):
        vectorize(lambda: Shown(observation, action), 2, workers)


def test_agents_must_be_alike():
    env = Walk()
    env.action_space = lambda agent: spaces.Discrete(3 + (agent == "walker_2"))
    with pytest.raises(ConfigurationError):
        spec_of(env)


@pytest.mark.parametrize("limit", ["ten", float("inf"), float("nan"), []])
def test_a_limit_that_is_no_number_is_refused(limit):
    with pytest.raises(ConfigurationError):
        vectorize(lambda: Walk(limit=limit), 1)


def test_what_is_no_env_is_refused():
    with pytest.raises(ConfigurationError):
        vectorize(lambda: "env", 2)
    with pytest.raises(ConfigurationError):
        vectorize(Walk, 0)
    with pytest.raises(ConfigurationError):
        vectorize(Walk, 1, -1)
    with pytest.raises(ConfigurationError):
        vectorize(Walk, 1, 1, timeout=0)
    with pytest.raises(ConfigurationError):
        vectorize(Walk(), 1)  # pyright: ignore[reportArgumentType]


def test_envs_of_one_batch_must_be_alike():
    sizes = iter(range(2, 9))
    with pytest.raises(ConfigurationError):
        vectorize(lambda: Walk(agents=next(sizes)), 2)


def test_a_given_spec_must_fit_the_env():
    spec = spec_of(Walk())
    assert vectorize(Walk, 2, spec=spec).spec == spec
    with pytest.raises(ConfigurationError):
        vectorize(lambda: Walk(agents=2), 2, spec=spec)
    with pytest.raises(ConfigurationError):
        vectorize(Guess, 2, spec=spec_of(Walk(agents=1)))
    for field in (Field("place", (2,), 0, 50), Field("elsewhere", (), 0, 50), Field("place", (), 1, 50)):
        other = EnvSpec((field,), 3, spec.actions, (), 12)
        with pytest.raises(ConfigurationError):
            vectorize(Walk, 2, spec=other).reset(seed=0)
