"""What a program sets in torch and NumPy changes no action and no weight, and stays as it was set."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.weights import load_weights
from tests.experiment.tiny_runs import learn, phases_of, tiny_settings


@contextmanager
def set_to(set_default, value, usual):
    set_default(value)
    try:
        yield
        assert value in (torch.get_default_dtype(), torch.get_default_device())
    finally:
        set_default(usual)


DEFAULTS = {
    "float64": lambda: set_to(torch.set_default_dtype, torch.float64, torch.float32),
    "float16": lambda: set_to(torch.set_default_dtype, torch.float16, torch.float32),
    "meta": lambda: set_to(torch.set_default_device, torch.device("meta"), None),
    "inference": torch.inference_mode,
    "errors": lambda: np.errstate(all="raise"),
}


def played(team, memory=None, steps=8):
    vec = mg.make_vec("ma_rtfm", num_envs=4, stage="s1")
    observation, info = vec.reset(seed=5)
    memory, actions = team.initial_memory(4, 3), []
    for _ in range(steps):
        chosen, memory = team.act(observation, memory, info, greedy=False)
        actions.append(chosen)
        observation, _, _, _, info = vec.step(chosen)
    return np.stack(actions)


@pytest.mark.parametrize("default", DEFAULTS)
def test_a_team_plays_the_same_whatever_the_program_has_set(default):
    """Its networks were made with torch's defaults: "mat1 and mat2 must have the same dtype"."""
    name = "pretrained:ma_rtfm-s1-2agents"
    expected, state = played(mg.load_team(name)), torch.random.get_rng_state()
    with DEFAULTS[default]():
        team = mg.load_team(name)
        assert (played(team) == expected).all()
        assert {each.dtype for policy in team.policies for each in policy.parameters()} == {torch.float32}
    assert (played(team) == expected).all()
    assert torch.equal(torch.random.get_rng_state(), state)


def test_training_gives_the_same_weights_whatever_the_program_has_set(tmp_path):
    settings = tiny_settings(stages=("s1",), phases=phases_of(60), every=None)
    learn(settings, tmp_path / "usual")
    with DEFAULTS["float64"](), DEFAULTS["meta"](), torch.no_grad():
        learn(settings, tmp_path / "set")
    for one, other in zip(*(weights(tmp_path / each) for each in ("usual", "set")), strict=True):
        assert one.keys() == other.keys()
        assert all(one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one)


def weights(folder):
    return load_weights(folder / "s1", env="ma_rtfm", vocabulary_hash=None, num_agents=2)[0]
