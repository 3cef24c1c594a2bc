"""Reasons as lessons: the losses of txt2π's heads, and where they are learnt."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.modules import spatial_max
from magrounding.agents.policy import OTHERS, REASONS, STATEMENTS, SUBGOALS, TARGETS
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.training.ppo import PPOConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from tests.agents.samples import make_sample, make_spec
from tests.training.toy_games import players_of

NARROW = {"channels": (6, 6, 6, 6), "embedding": 8, "document_hidden": 8, "head_width": 8, "reasons": True}
LOSSES = {"target", "name", "statement", "subgoal"}


def rolled(env="rtfm", expert=Oracle, teacher=True, seed=0, agent="txt2pi", **options):
    torch.manual_seed(seed)
    vec = mg.make_vec(env, 32, **options)
    policy = make_policy(agent, vec.spec, **NARROW)
    taught = Teacher(expert(vec), noise=0.1, seed=0) if teacher else None
    worker = RolloutWorker(vec, players_of(vec, [policy] * vec.spec.num_agents), 8, teacher=taught)
    worker.start(0)
    return policy, worker


def apart(log_pi):
    """Divergence from an even choice of entries with these log-probabilities [K]."""
    return (-log_pi.mean() - np.log(len(log_pi))).item()


def test_each_loss_is_the_divergence_from_an_even_choice_of_what_is_right():
    torch.manual_seed(0)
    policy = make_policy("txt2pi", make_spec(6), **NARROW)
    sample = make_sample(5, 2)
    text = policy.encode_text(sample.manual, sample.goal)
    inputs = Inputs(sample.observation, text, sample.document)
    seen = policy.respond(inputs).seen
    chance = torch.rand(5, 36, generator=torch.Generator().manual_seed(1))
    marked = (chance > 0.9).view(5, 6, 6)
    marked[0] = False
    rows = text["from"].shape[2]
    told = torch.zeros(5, rows, dtype=torch.bool)
    told[1:, 0] = True
    reasons = {TARGETS: marked, SUBGOALS: marked.flip(2), STATEMENTS: told}
    losses = policy.reasoning.losses(seen, policy.reader.words, inputs, reasons)
    assert set(losses) == LOSSES
    for name, each in losses.items():
        assert each.shape == (5,)
        assert each[0] == 0, name  # nothing is right
    n = 3
    log_pi = policy.reasoning.target(seen.maps[0])[n, 0].flatten().log_softmax(0)
    assert losses["target"][n].item() == pytest.approx(apart(log_pi[marked[n].flatten()]), rel=1e-4)
    log_pi = policy.reasoning.subgoal(seen.maps[-1])[n, 0].flatten().log_softmax(0)
    assert losses["subgoal"][n].item() == pytest.approx(apart(log_pi[marked.flip(2)[n].flatten()]), rel=1e-4)
    words = set(sample.observation["grid"][n][marked[n]].flatten().tolist()) - {0}
    log_pi = (policy.reader.words.weight @ policy.reasoning.name(spatial_max(seen.maps[1])[n])).log_softmax(0)
    assert losses["name"][n].item() == pytest.approx(apart(log_pi[sorted(words)]), rel=1e-4)
    d = int(sample.document[n])
    weights = seen.weights[2][n]
    first = text["from"][d, :, 0].bool()
    assert losses["statement"][n].item() == pytest.approx(apart(weights[first].log()), rel=1e-4)


def test_an_endi_learns_reasons_on_the_whole_map():
    policy, worker = rolled("ma_rtfm", agent="endi_dis", agents=2, stage="s1")
    assert policy.needs == REASONS | {OTHERS}
    trajectory = worker.collect(1.0, 0).trajectories[0]
    minibatch = trajectory.games(np.arange(32), torch.device("cpu"))
    batch = policy.encode_batch(minibatch.inputs)
    output = policy(batch)
    losses = policy.losses(batch, output, minibatch.extras, LOSSES).losses
    assert losses.keys() == LOSSES | {"modelling", "division"}
    seen, own = output.seen.seen, output.seen.division.own
    assert not own.all()
    whole = policy.grounding(seen.cells, seen.positions, seen.summary, policy._flat(batch)).maps
    for name, marked, layer in (("target", TARGETS, 0), ("subgoal", SUBGOALS, -1)):
        right = minibatch.extras[marked].flatten(2)
        log_pi = getattr(policy.reasoning, name)(whole[layer]).flatten(1).log_softmax(1).view(right.shape)
        count = right.sum(-1).clamp(min=1)
        torch.testing.assert_close(losses[name], -(log_pi * right).sum(-1) / count - count.log())
    sum(losses[name].sum() for name in LOSSES).backward()
    assert all(p.grad is not None and p.grad.any() for p in policy.reasoning.parameters() if p.dim() > 1)
    assert all(p.grad is None for p in policy.divider.parameters())


def test_reasons_come_only_from_a_teacher():
    policy, worker = rolled(teacher=False, task="simple_stationary")
    trajectory = worker.collect().trajectories[0]
    assert not trajectory.extras.keys() & set(REASONS)
    log = PPOConfig(unroll=8).make_learner(policy, worker.vec.spec, 32, 0).update(trajectory, 0)
    assert "target_loss" not in log
    plain = make_policy("txt2pi", worker.vec.spec, **{**NARROW, "reasons": False})
    assert not plain.needs
    assert plain.reasoning is None
