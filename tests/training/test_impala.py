"""The learner learns what it should, from what is its own, and from nothing else."""

import copy
from dataclasses import replace

import pytest
import torch

from magrounding.agents.document_policy import Inputs
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from tests.training.toy_games import ToyGames, ToyPolicy, check_reading_is_learnt, collect

CONFIG = ImpalaConfig(unroll=8, learning_rate=0.01, epsilon=1e-3, entropy=0.01, anneal_steps=1e9)


def updated(policy, rollout, i=0, config=CONFIG):
    """Parameters after one update from agent i's trajectory, starting from a copy of `policy`."""
    learner = ImpalaLearner(copy.deepcopy(policy), config)
    report = learner.update(rollout.trajectories[i], 0)
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()]), report


def test_it_learns_to_read():
    check_reading_is_learnt(CONFIG, updates=120)


def test_the_dead_teach_nothing(policy):
    rollout = collect(ToyGames(num_envs=8, num_agents=2, end=0.02), [policy, ToyPolicy()], skip=1)
    trajectory = rollout.trajectories[0]
    dead = ~trajectory.alive
    assert dead.any()
    before, _ = updated(policy, rollout)
    trajectory.reward[dead] = 77.0
    trajectory.action[dead] = 0
    trajectory.logits[dead] = [3.0, 0.0, -3.0, 0.0]
    trajectory.observation["grid"][:-1][dead] = 4
    after, _ = updated(policy, rollout)
    assert torch.equal(before, after)
    trajectory.reward[~dead] += 1.0
    assert not torch.equal(before, updated(policy, rollout)[0])


@pytest.mark.parametrize("is_loss", [True, False])
def test_chunks_give_the_same_gradient(policy, is_loss):
    vec = ToyGames(num_envs=7, time_limit_is_loss=is_loss, end=0.0, max_cycles=3)
    rollout = collect(vec, [policy, ToyPolicy()], skip=2)
    assert is_loss or len(rollout.trajectories[0].truncations) > 3
    whole, report = updated(policy, rollout)
    parts, same = updated(policy, rollout, config=replace(CONFIG, chunk=3))
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-6)
    assert same == pytest.approx(report, rel=1e-4)


def test_the_loss_is_the_papers(policy):
    """Sums over time, means over the batch; on-policy, so that targets are plain bootstrapped returns."""
    rollout = collect(ToyGames(num_envs=5, num_agents=1, end=0.0, max_cycles=1000), [policy])
    trajectory = rollout.trajectories[0]
    text = trajectory.texts["document"]
    trajectory.alive[:], trajectory.nonterminal[:], trajectory.discount[:] = True, True, 1.0
    with torch.no_grad():
        encoding = policy.encode_text(torch.from_numpy(text.ids["manual"]), torch.from_numpy(text.ids["goal"]))
        flat = {k: torch.from_numpy(v.reshape(-1, *v.shape[2:])) for k, v in trajectory.observation.items()}
        output = policy.respond(Inputs(flat, encoding, torch.from_numpy(text.index.reshape(-1))))
    logits, value = output.logits.view(9, 5, 4).double(), output.value.view(9, 5).double()
    trajectory.logits[:] = logits[:-1].float().numpy()
    expected = {"policy": 0.0, "value": 0.0, "entropy": 0.0}
    for b in range(5):
        following = value[8, b]
        for t in reversed(range(8)):
            chances = logits[t, b, :3].softmax(0)  # the fourth action is masked
            following = trajectory.reward[t, b] + 0.99 * following
            expected["policy"] += -chances[trajectory.action[t, b]].log() * (following - value[t, b]) / 5
            expected["value"] += 0.5 * (following - value[t, b]) ** 2 / 5
            expected["entropy"] += -(chances * chances.log()).sum() / 40
    _, report = updated(policy, rollout)
    assert report["policy_loss"] == pytest.approx(float(expected["policy"]), rel=1e-4)
    assert report["value_loss"] == pytest.approx(float(expected["value"]), rel=1e-4)
    assert report["entropy"] == pytest.approx(float(expected["entropy"]), rel=1e-4)


def test_a_time_limit_that_is_no_loss_is_seen_past(policy):
    """Bootstrapping uses the true last observation: what only that observation shows decides the update."""
    vec = ToyGames(num_envs=6, num_agents=1, time_limit_is_loss=False, end=0.0, max_cycles=3)
    rollout = collect(vec, [policy], skip=1)
    trajectory = rollout.trajectories[0]
    assert len(trajectory.truncations) > 2
    before, _ = updated(policy, rollout)
    trajectory.truncations.observation["grid"][:] = (
        7 - trajectory.truncations.observation["grid"]
    )  # upright becomes upside-down
    assert not torch.equal(before, updated(policy, rollout)[0])
    trajectory.discount[trajectory.truncations.where] = 0.0
    lost, _ = updated(policy, rollout)
    trajectory.truncations.observation["grid"][:] = 7 - trajectory.truncations.observation["grid"]
    assert torch.equal(lost, updated(policy, rollout)[0])


def test_rewards_are_clipped(policy):
    rollout = collect(ToyGames(num_envs=4), [policy, ToyPolicy()])
    rollout.trajectories[0].reward[:] = 1.0
    one, _ = updated(policy, rollout)
    rollout.trajectories[0].reward[:] = 50.0
    assert torch.equal(one, updated(policy, rollout)[0])
