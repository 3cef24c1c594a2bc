"""Imitation: the loss is what it says, the teacher does what it says, and a student comes to agree with it."""

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from magrounding.agents.policy import COSTS_TO_GO, LABELS
from magrounding.envs.rtfm.oracle import Oracle, RolloutOracle
from magrounding.errors import ConfigurationError
from magrounding.experiment import stage
from magrounding.experiment.stage import StageSession
from magrounding.training.algorithm import Teaching
from magrounding.training.clock import Clock
from magrounding.training.imitation import ImitationConfig, ImitationLearner
from magrounding.training.impala import ImpalaConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from tests.experiment.tiny_runs import phases_of, tiny_settings
from tests.training.toy_games import ToyExpert, ToyGames, ToyPolicy, collect, players_of

CONFIG = ImitationConfig(unroll=8, minibatches=2, learning_rate=0.02, warm_up=1, anneal_steps=1e9, teacher_steps=100)


def labelled(policy, *, share=0.5, ties=False, noise=0.1, **games):
    """A rollout that a teacher labelled and led in part."""
    vec = ToyGames(**{"num_envs": 8, "end": 0.05, **games})
    teacher = Teacher(ToyExpert(vec, ties), noise=noise, seed=5)
    return collect(vec, [policy, ToyPolicy()], beta=share, teacher=teacher)


def updated(policy, rollout, config=CONFIG, steps=100):
    learner = ImitationLearner(copy.deepcopy(policy), config)
    report = learner.update(rollout.trajectories[0], steps)
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()]), report


def labels_of(trajectory):
    """[T, B, A], those of the steps that were played."""
    return trajectory.extras[LABELS][:-1]


def losses(policy, rollout, config=CONFIG, labels=None):
    """Loss and parts of agent 0's whole trajectory."""
    learner, trajectory = ImitationLearner(policy, config), rollout.trajectories[0]
    if labels is not None:
        trajectory = replace(trajectory, extras={LABELS: np.concatenate((labels, np.zeros_like(labels[:1])))})
    return learner.loss(trajectory.games())


def test_the_loss_is_that_of_the_set_of_best_moves(policy):
    rollout = labelled(policy, ties=True)
    trajectory = rollout.trajectories[0]
    assert not trajectory.alive.all()
    assert set(labels_of(trajectory)[trajectory.alive].sum(-1).tolist()) == {1, 2}
    loss, parts = losses(policy, rollout, replace(CONFIG, entropy=0.3, value_coefficient=0.7))
    with torch.no_grad():
        now = ImitationLearner(policy, CONFIG).reevaluate(trajectory.games(np.arange(8)))
    logits, alive = now.logits.double().numpy(), trajectory.alive
    pi = np.exp(logits - logits.max(-1, keepdims=True))
    pi /= pi.sum(-1, keepdims=True)
    imitation = -np.log((pi * labels_of(trajectory)).sum(-1))[alive].mean()
    entropy = -(pi[..., :3] * np.log(pi[..., :3])).sum(-1)[alive].mean()  # the fourth action is masked
    agreement = np.take_along_axis(labels_of(trajectory), pi.argmax(-1)[..., None], -1)[..., 0][alive].mean()
    error = np.zeros(pi.shape[:2])
    value, following = now.value.numpy(), now.next_value.numpy()
    for t in reversed(range(8)):
        error[t] = trajectory.reward[t] + CONFIG.gamma * trajectory.discount[t] * following[t] - value[t]
        if t < 7:
            error[t] += CONFIG.gamma * CONFIG.gae_lambda * trajectory.nonterminal[t] * error[t + 1] * alive[t + 1]
    baseline = np.square(error)[alive].mean()
    measured = [parts[name].item() for name in ("imitation_loss", "value_loss", "entropy", "agreement")]
    np.testing.assert_allclose(measured, [imitation, baseline, entropy, agreement], rtol=1e-4)
    assert loss.item() == pytest.approx(imitation + 0.7 * baseline - 0.3 * entropy, rel=1e-4)


def gradient(policy, rollout, labels):
    """Of the mere imitation loss, by parameter."""
    policy.zero_grad()
    losses(policy, rollout, replace(CONFIG, entropy=0.0, value_coefficient=0.0), labels)[0].backward()
    return {name: p.grad.clone() for name, p in policy.named_parameters() if p.grad is not None}


def test_ties_are_left_to_the_student(policy):
    """Of two best moves neither gains on the other: their probabilities rise in proportion."""
    rollout = labelled(policy)
    both = np.zeros_like(labels_of(rollout.trajectories[0]))
    both[..., :2] = True
    with torch.no_grad():
        policy.policy.weight[:2] = policy.policy.weight[0]
        policy.policy.bias[:2] = 0.0
    rows = gradient(policy, rollout, both)["policy.bias"]
    assert rows[0] == pytest.approx(rows[1].item())
    assert rows[0] < 0 < rows[2]


class Judge(ToyExpert):
    """Who also knows what moves cost: the fourth nothing, the others more the likelier they are to be chosen."""

    costs_to_go = np.broadcast_to(np.array([0.6, 0.4, 0.2, 0], np.float32), (8, 2, 4))


def test_moves_that_cost_more_weigh_more(policy):
    vec = ToyGames(num_envs=8, end=0.05)
    teacher = Teacher(Judge(vec), noise=0.1, seed=5)
    rollout = collect(vec, [policy, ToyPolicy()], beta=0.5, teacher=teacher)
    trajectory = rollout.trajectories[0]
    plain, without = losses(policy, rollout)
    weighed, parts = losses(policy, rollout, replace(CONFIG, cost_to_go=2.0))
    with torch.no_grad():
        pi = ImitationLearner(policy, CONFIG).reevaluate(trajectory.games(np.arange(8))).logits.softmax(-1).numpy()
    expected = (pi * trajectory.extras[COSTS_TO_GO][:-1]).sum(-1)[trajectory.alive].mean()
    assert 0.2 < expected < 0.6
    assert parts["cost_to_go"].item() == pytest.approx(expected, rel=1e-4)
    assert weighed.item() == pytest.approx(plain.item() + 2 * expected, rel=1e-4)
    assert "cost_to_go" not in without
    cannot_tell = labelled(policy)
    assert losses(policy, cannot_tell, replace(CONFIG, cost_to_go=2.0))[0] == losses(policy, cannot_tell)[0]


def test_a_teacher_says_what_its_expert_knows():
    vec = ToyGames()
    vec.reset(seed=0)
    teacher = Teacher(ToyExpert(vec), noise=0.1, seed=5)
    assert set(teacher.label()) == {LABELS}
    assert set(Teacher(Judge(vec), noise=0.1, seed=5).label()) == {LABELS, COSTS_TO_GO}
    with pytest.raises(ConfigurationError):
        teacher.label(reasons=True)


@dataclass(frozen=True)
class Kickstart(ImpalaConfig):
    """Another package's algorithm, whose options have names of their own."""

    coach: str = "rollout"
    slips: float = 0.25

    @property
    def teaching(self):
        return Teaching(oracle=self.coach, noise=self.slips)


class NeedsLabels(ImpalaConfig):
    """Another, which says nothing of its teacher."""

    needs = frozenset({LABELS})


def test_what_an_algorithm_says_of_its_teacher(monkeypatch):
    options = {"oracle": "rollout", "demonstrations": 3, "carry_memory": True}
    assert ImitationConfig(teacher_noise=0.2, cost_to_go=2.0, **options).teaching == Teaching(
        noise=0.2, costs_to_go=True, **options
    )
    assert not CONFIG.teaching.costs_to_go
    assert ImpalaConfig().teaching is None
    made = []
    monkeypatch.setattr(stage, "Teacher", lambda expert, noise, *_: made.append((type(expert), noise)))
    for learner in (Kickstart(), NeedsLabels()):
        settings = tiny_settings(phases=phases_of(60, learner))
        StageSession(settings.resolve().segments[0], 0, torch.device("cpu")).close()
        assert settings.imitates
    assert made == [(RolloutOracle, 0.25), (Oracle, 0.0)]


def test_a_student_comes_to_agree_with_its_teacher():
    """It has to read: the right guess depends on the manual and on the grid. Later the student plays alone."""
    torch.manual_seed(0)
    vec = ToyGames(num_envs=32, num_agents=2, end=0.2, seed=1)
    policies = [ToyPolicy(), ToyPolicy()]
    config = replace(CONFIG, teacher_steps=20)
    learners = [ImitationLearner(policy, config) for policy in policies]
    worker = RolloutWorker(
        vec, players_of(vec, policies), CONFIG.unroll, teacher=Teacher(ToyExpert(vec), noise=0.1, seed=0)
    )
    worker.start(seed=0)
    agreement, hits = [], []
    for step in range(40):
        rollout = worker.collect(config.beta(step), step)
        reports = [
            learner.update(trajectory, step + 1)
            for learner, trajectory in zip(learners, rollout.trajectories, strict=True)
        ]
        agreement.append([report["agreement"] for report in reports])
        hits.append([float((trajectory.reward == 1)[trajectory.alive].mean()) for trajectory in rollout.trajectories])
    assert np.mean(agreement[0]) < 0.7
    assert np.min(agreement[-10:]) > 0.95
    assert np.min(np.mean(hits[-10:], axis=0)) > 0.9


def test_the_dead_teach_nothing(policy):
    rollout = labelled(policy, num_envs=16)
    trajectory = rollout.trajectories[0]
    assert not trajectory.alive.all()
    before, _ = updated(policy, rollout)
    labels_of(trajectory)[~trajectory.alive] = [True, False, False, False]
    trajectory.reward[~trajectory.alive] = 100
    first, _ = updated(policy, rollout)
    labels_of(trajectory)[~trajectory.alive] = False
    second, _ = updated(policy, rollout)
    assert torch.equal(before, first)
    assert torch.equal(before, second)


def test_the_rate_rises_and_falls_and_the_teacher_lets_go():
    config = ImitationConfig(warm_up=100, anneal_steps=1000, learning_rate=1e-3, final_rate=0.1, teacher_steps=400)
    learner = ImitationLearner(ToyPolicy(), config)
    assert [learner.rate(k) for k in (49, 100, 600, 5000)] == pytest.approx([0.5e-3, 1e-3, 0.55e-3, 0.1e-3])
    assert [config.beta(k) for k in (0, 100, 300, 400, 9000)] == pytest.approx([1, 0.75, 0.25, 0, 0])
    assert replace(config, teacher_steps=None).beta(1e12) == 1  # behaviour cloning
    assert replace(config, teacher_steps=0).beta(0) == 0  # the student plays from the start


class Stub:
    """An expert with fixed best moves of 3 agents."""

    def __init__(self, best, num_envs):
        self.best = np.tile(np.array(best, np.bool_), (num_envs, 3, 1))

    def best_actions(self, rows=None):
        return self.best


def led(share, *, noise=0.0, seed=1, steps=0, num_envs=2000, best=(0, 1, 0, 1, 1)):
    """Actions [B, n] of a step in which everybody wanted action 0, and which rows were led."""
    teacher = Teacher(Stub(best, num_envs), noise, seed)
    teacher.begin(num_envs, share, steps)
    assert (teacher.label()[LABELS] == teacher.label()[LABELS]).all()
    actions = np.zeros((num_envs, 3), np.int64)
    teacher.lead(actions)
    return actions


def test_a_teacher_leads_whole_games_and_leaves_others_alone():
    actions = led(0.3)
    rows = actions.any(1)
    assert rows.mean() == pytest.approx(0.3, abs=0.04)
    assert np.isin(actions[rows], [1, 3, 4]).all()
    assert not led(0.0).any()
    assert led(1.0).all()


def test_a_teacher_draws_evenly_among_equals():
    actions = led(1.0, num_envs=10_000)
    for agent in range(3):
        shares = np.bincount(actions[:, agent], minlength=5) / 10_000
        assert shares == pytest.approx([0, 1 / 3, 0, 1 / 3, 1 / 3], abs=0.02)
    assert np.corrcoef(actions[:, 0], actions[:, 1])[0, 1] == pytest.approx(0, abs=0.04)  # each agent by itself


def test_a_teacher_strays_as_often_as_it_is_told():
    shares = np.bincount(led(1.0, noise=0.5, num_envs=10_000, best=(0, 1, 0, 0, 0)).ravel(), minlength=5) / 30_000
    assert shares == pytest.approx([0.1, 0.6, 0.1, 0.1, 0.1], abs=0.01)


def test_a_rollout_records_what_was_best_and_what_was_done(policy):
    vec, clock = ToyGames(num_envs=16, end=0.05), Clock()
    teacher = Teacher(ToyExpert(vec), noise=0.0, seed=3)
    rollout = collect(vec, [policy, ToyPolicy()], beta=1.0, teacher=teacher, clock=clock)
    for trajectory in rollout.trajectories:
        assert trajectory.extras[LABELS].shape == (9, 16, 4)
        assert not trajectory.extras[LABELS][-1].any()  # nothing is said of the boundary step
        assert (labels_of(trajectory).argmax(-1) == trajectory.action)[trajectory.alive].all()
        assert (trajectory.reward[trajectory.alive] == 1).all()  # so the labels are those of the state on show
        assert (trajectory.logits != 0).any()  # of the student, whoever acted
    assert clock.spent["teaching"] > 0


def test_a_teacher_that_leads_nobody_changes_nothing(policy):
    policies = [policy, ToyPolicy()]
    alone = collect(ToyGames(), policies)
    vec = ToyGames()
    watched = collect(vec, policies, teacher=Teacher(ToyExpert(vec), noise=1.0, seed=3))
    for ours, theirs in zip(alone.trajectories, watched.trajectories, strict=True):
        assert (ours.action == theirs.action).all()
        assert (ours.reward == theirs.reward).all()
