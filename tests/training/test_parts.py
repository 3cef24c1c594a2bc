"""A minibatch may be computed in parts, side by side: the gradient and the log are those of the whole."""

from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from magrounding.agents.building import make_policy
from magrounding.envs.make import make_vec
from magrounding.teams.actor import make_expert
from magrounding.threads import GAMES_PER_PART, ThreadPlan, using
from magrounding.training.imitation import ImitationConfig
from magrounding.training.impala import ImpalaConfig
from magrounding.training.ppo import PPOConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from tests.training.toy_games import players_of

GAMES = 4 * GAMES_PER_PART
SYMBOLS = {"similarity": 8, "meaning": 4, "motion": 4}


def trajectory_of(policy, vec, needs, teacher=None):
    """An unroll in which games begin, end and are cut off, with agents that die."""
    torch.manual_seed(0)
    worker = RolloutWorker(vec, players_of(vec, [policy] * vec.num_agents), 12, needs=needs, teacher=teacher)
    worker.start(seed=1)
    worker.collect(0.5)
    return worker.collect(0.5).trajectories[0]


@pytest.mark.parametrize(
    ("env", "options", "agent", "network", "config"),
    [
        ("ma_rtfm", {"stage": "s2", "death": "individual"}, "relread", {}, PPOConfig(minibatches=1, epochs=1)),
        (
            "ma_rtfm",
            {"stage": "s2", "death": "individual"},
            "relread",
            {},
            ImitationConfig(minibatches=1, epochs=1, cost_to_go=1.0),
        ),
        ("ma_rtfm", {"stage": "s2", "death": "individual"}, "endi_dis_relread", {}, PPOConfig(minibatches=1, epochs=1)),
        ("messenger", {"stage": "s2"}, "relread", SYMBOLS, ImpalaConfig(chunk=8, weights={"contrast": 1.0})),
    ],
)
def test_parts_have_the_gradient_and_the_log_of_the_whole(env, options, agent, network, config):
    with closing(make_vec(env, GAMES, max_cycles=9, **options)) as vec:
        policy = make_policy(agent, vec.spec, **network)
        teacher = Teacher(make_expert(vec), 0.1, 0) if isinstance(config, ImitationConfig) else None
        trajectory = trajectory_of(policy, vec, config.needs, teacher)
        assert env == "messenger" or not trajectory.alive.all()
        seen = {}
        for parts in (1, 4):
            trajectory.carried = None if trajectory.memory is None else torch.zeros_like(trajectory.memory)
            learner = config.make_learner(policy, vec.spec, GAMES, 0)
            learner.optimizer.step = lambda: None  # gradients are looked at, and weights stay as they are
            with using(ThreadPlan(cores=parts, parts=parts)):
                assert len(learner.parts_of(np.arange(GAMES))) == parts
                log = learner.update(trajectory, 0)
            grads = [w.grad for w in policy.parameters()]
            seen[parts] = SimpleNamespace(log=log, grads=grads, memory=trajectory.carried)
    whole, divided = seen[1], seen[4]
    assert sum(grad is not None for grad in whole.grads) > 10
    for one, other in zip(whole.grads, divided.grads, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-6)
    one, other = (
        {name: v for name, v in each.log.items() if name != "modelling_accuracy"} for each in (whole, divided)
    )
    assert other == pytest.approx(one, rel=1e-4, abs=1e-6)  # the accuracy is of fewer steps, but weighed by all
    if whole.memory is not None:
        assert torch.equal(whole.memory, divided.memory)


def test_networks_that_look_at_a_batch_as_a_whole_are_not_divided():
    pytest.importorskip("minigrid")
    with closing(make_vec("babyai", 2, level="GoToObj")) as vec, using(ThreadPlan(cores=2, parts=2)):
        learner = PPOConfig().make_learner(make_policy("babyai_small", vec.spec), vec.spec, 64, 0)
        assert len(learner.parts_of(np.arange(64))) == 1
