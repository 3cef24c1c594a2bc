"""Agents for choices of text on the real simulators: they act, learn from the expert, and remember."""

import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.play.actor import make_expert
from magrounding.play.evaluate import play
from magrounding.play.player import Player
from magrounding.play.team import Team
from magrounding.training.imitation import ImitationConfig
from magrounding.training.impala import ImpalaConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher

NARROW = {
    "choiceread": {"embedding": 8, "states": 16, "role": 6, "hidden": 12},
    "sir_state": {"embedding": 8, "hidden": 8, "width": 16, "channels": [4, 4]},
}
GAMES, STEPS = 2, 6


def world(id):
    """Games of a simulator; the test is skipped where it is not installed."""
    if find_spec(id) is None or (id == "scienceworld" and shutil.which("java") is None):
        pytest.skip(f"the extra `{id}` is absent: {id}")
    return mg.make_vec(id, GAMES, max_cycles=5, workers=0)


@pytest.mark.parametrize("agent", NARROW)
@pytest.mark.parametrize("id", ["alfworld", "scienceworld"])
def test_it_plays_and_learns(id, agent):
    vec = world(id)
    try:
        torch.manual_seed(0)
        policy = make_policy(agent, vec.spec, **NARROW[agent])
        player = Player(policy, vec.spec, GAMES, torch.Generator().manual_seed(1))
        imitate = ImitationConfig(unroll=STEPS, epochs=1, minibatches=1, warm_up=0)
        worker = RolloutWorker(vec, [player], STEPS, needs=imitate.needs, teacher=Teacher(make_expert(vec), 0.0, 0))
        worker.start(seed=0)
        before = {name: each.clone() for name, each in policy.named_parameters()}
        for config in (imitate, ImpalaConfig(unroll=STEPS, learning_rate=1e-3)):
            trajectory = worker.collect(0.5).trajectories[0]
            offered = trajectory.observation["action_mask"][:-1]
            assert np.take_along_axis(offered, trajectory.action[..., None], 2).all(), "what is played was offered"
            losses = config.make_learner(policy, vec.spec, GAMES, 0).update(trajectory, 0)
            assert np.isfinite(list(losses.values())).all()
        still = [name for name, each in policy.named_parameters() if each.dim() > 1 and torch.equal(before[name], each)]
        assert all(name.startswith("grounding") for name in still), "but for SIR's look at a map, where there is none"
        result = play(Team([policy], vec.spec), vec, GAMES, seed=3)
        assert (result.length <= 5).all()
    finally:
        vec.close()
