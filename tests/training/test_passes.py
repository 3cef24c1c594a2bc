"""What acting computed serves for learning: losses and gradients are those of evaluating the rollout again."""

from contextlib import closing
from dataclasses import replace

import pytest
import torch

from magrounding.agents.building import make_policy
from magrounding.envs.make import make_vec
from magrounding.teams.actor import make_expert
from magrounding.training.imitation import ImitationConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from tests.agents.test_reasoning import NARROW
from tests.training.toy_games import players_of

GAMES = 24


@pytest.mark.parametrize(
    ("agent", "network", "shared"), [("txt2pi", NARROW, False), ("endi_dis", NARROW, True), ("relread", {}, False)]
)
def test_learning_from_what_acting_computed_is_learning_from_the_rollout(agent, network, shared):
    config = ImitationConfig(unroll=6, epochs=1, minibatches=1)
    with closing(make_vec("ma_rtfm", GAMES, stage="s2", max_cycles=9)) as vec:
        torch.manual_seed(0)
        distinct = [make_policy(agent, vec.spec, **network) for _ in range(1 if shared else 2)]
        policies = distinct * (2 // len(distinct))
        learner = config.make_learner(policies[0], vec.spec, GAMES, 0)
        assert learner.takes_passes(GAMES)
        worker = RolloutWorker(
            vec,
            players_of(vec, policies),
            6,
            needs=config.needs,
            teacher=Teacher(make_expert(vec), 0.1, 0),
            passes=True,
        )
        worker.start(seed=1)
        for _ in range(2):
            rollout = worker.collect(0.5)
        trajectory = (rollout.joined() if shared else rollout.trajectories)[0]
        assert len(trajectory.passes) == 7
        learner.optimizer.step = lambda: None
        seen = []
        for passes in (trajectory.passes, ()):
            log = learner.update(replace(trajectory, passes=passes), 0)
            gradients = [p.grad.clone() for p in policies[0].parameters() if p.grad is not None]
            seen.append((log, gradients))
        (log, gradients), (expected_log, expected) = seen
        assert log == pytest.approx(expected_log, rel=1e-4, abs=1e-6)
        for got, due in zip(gradients, expected, strict=True):
            torch.testing.assert_close(got, due, rtol=2e-3, atol=2e-5)


def test_only_one_gradient_step_on_all_games_takes_them():
    with closing(make_vec("ma_rtfm", GAMES, stage="s2")) as vec:
        policy = make_policy("txt2pi", vec.spec, **NARROW)
        for options in ({"epochs": 2, "minibatches": 1}, {"epochs": 1, "minibatches": 2}):
            assert not ImitationConfig(**options).make_learner(policy, vec.spec, GAMES, 0).takes_passes(GAMES)
