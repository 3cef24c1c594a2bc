"""The real simulators and the agents of their presets: they act, learn from the expert and from rewards."""

import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.teams.actor import make_expert
from magrounding.teams.evaluate import play
from magrounding.teams.player import Player
from magrounding.teams.team import Team
from magrounding.training.imitation import ImitationConfig
from magrounding.training.impala import ImpalaConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher

SIR = {"embedding": 8, "hidden": 8, "width": 16, "channels": [4, 4]}
CHOICES = {"embedding": 8, "states": 16, "role": 6, "hidden": 12}
CASES = [
    ("nethack", "sir_state", SIR, {}),
    ("nethack", "sir_local_conv", SIR, {}),
    ("nethack", "viewread", {"hidden": 16, "symbol_hidden": 8}, {"crop": 9, "characters": True}),
    ("touchdown", "sir", SIR, {"patch": 4}),
    ("touchdown", "sir_state", SIR, {"patch": 8, "manual_stop": True}),
    ("touchdown", "panoread", {"embedding": 8, "hidden": 8}, {"patch": 4, "turned": True}),
    ("alfworld", "choiceread", CHOICES, {}),
    ("alfworld", "sir_state", SIR, {}),
    ("scienceworld", "choiceread", CHOICES, {}),
    ("scienceworld", "sir_state", SIR, {}),
]
NEEDS = {"nethack": "nle", "alfworld": "alfworld", "scienceworld": "scienceworld"}
GAMES, STEPS = 2, 5


@pytest.mark.parametrize(("id", "agent", "network", "options"), CASES, ids=[f"{id}-{agent}" for id, agent, *_ in CASES])
def test_it_plays_and_learns(id, agent, network, options):
    absent = id in NEEDS and find_spec(NEEDS[id]) is None
    if absent or (id == "scienceworld" and shutil.which("java") is None):
        pytest.skip(f"the extra `{id}` is absent: {NEEDS[id]}")
    with mg.make_vec(id, GAMES, max_cycles=4, workers=0, **options) as vec:
        torch.manual_seed(0)
        policy = make_policy(agent, vec.spec, **network)
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
        still = {name for name, each in policy.named_parameters() if torch.equal(before[name], each)}
        if id in ("nethack", "touchdown"):
            assert len(still) < 0.2 * len(before)
        else:  # no map: SIR's look at one has nothing to learn there
            assert all(name.startswith("grounding") for name in still if before[name].dim() > 1)
        result = play(Team([policy], vec.spec), vec, GAMES, seed=3)
        assert (result.length <= 4).all()
