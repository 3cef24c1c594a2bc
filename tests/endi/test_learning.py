"""EnDi between actors and learners: the same noise, the others' actions, bit-exact resumption."""

import copy

import numpy as np
import pytest
import torch

from magrounding.agents.policy import OTHERS
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.ppo import PPOConfig, PPOLearner
from magrounding.training.rollout import Rollout
from tests.endi.games import NETWORKS, worker_of

AGENTS = tuple(NETWORKS)
LEARNERS = {
    "ppo": lambda policy, **changes: PPOLearner(policy, PPOConfig(warm_up=0, **changes)),
    "impala": lambda policy, **changes: ImpalaLearner(policy, ImpalaConfig(**changes)),
}


def test_trajectories_hold_what_the_others_did():
    rollout = worker_of("endi_dis_relread", 3).collect()
    for i, trajectory in enumerate(rollout.trajectories):
        others = [j for j in range(3) if j != i]
        for k, j in enumerate(others):
            did = np.where(rollout.trajectories[j].alive, rollout.trajectories[j].action, -1)
            assert (trajectory.extras[OTHERS][:-1, :, k] == did).all()
        assert (trajectory.extras[OTHERS][-1] == -1).all()
        assert 0 < trajectory.metrics["mask_coverage"] < 1
        assert 0 <= trajectory.metrics["mask_conflicts"] < 1
    [joined] = rollout.joined()
    assert (joined.extras[OTHERS][:, 4:8] == rollout.trajectories[1].extras[OTHERS]).all()
    coverage = np.mean([trajectory.metrics["mask_coverage"] for trajectory in rollout.trajectories])
    assert joined.metrics["mask_coverage"] == pytest.approx(coverage)


@pytest.mark.parametrize("algorithm", LEARNERS)
@pytest.mark.parametrize("agent", AGENTS)
def test_every_algorithm_weighs_the_losses_beside(agent, algorithm):
    worker = worker_of(agent, 2)
    rollout, policy = worker.collect(), worker.players[0].policy

    def learn(**weights: float) -> tuple[dict[str, float], torch.Tensor]:
        changes = {} if algorithm == "impala" else {"epochs": 1, "minibatches": 1}
        learner = LEARNERS[algorithm](copy.deepcopy(policy), weights=weights, **changes)
        told = learner.update(rollout.trajectories[0], 0)
        return told, torch.cat([p.flatten() for p in learner.policy.parameters()])

    told, plain = learn(modelling=0.0, division=0.0)
    assert {"modelling_loss", "division_loss", "modelling_accuracy", "division_entropy"} <= told.keys()
    assert all(np.isfinite(value) for value in told.values())
    _, modelling = learn(modelling=1.0, division=0.0)
    _, division = learn(modelling=0.0, division=1.0)
    assert not torch.equal(plain, modelling)
    assert not torch.equal(plain, division)
    assert not torch.equal(modelling, division)


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_games_go_on_without_the_dead(algorithm):
    worker = worker_of("endi_dis_relread", 3, games=8, unroll=20, death="individual")
    dead, told = 0, {}
    for _ in range(3):
        rollout: Rollout = worker.collect()
        for player, trajectory in zip(worker.players, rollout.trajectories, strict=True):
            dead += int((trajectory.extras[OTHERS][:-1] == -1).sum())
            learner = LEARNERS[algorithm](player.policy)
            told = learner.update(trajectory, 0)
            assert all(np.isfinite(value) for value in told.values())
            assert all(p.isfinite().all() for p in player.policy.parameters())
    assert dead > 20  # else nothing was shown
