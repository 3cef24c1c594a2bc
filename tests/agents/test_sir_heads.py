"""SIR's heads for worlds to come, on observations made up for them: choices of text, directions in a panorama."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import TARGETS, Batch, Reading
from magrounding.agents.sir.heads import ChoiceHead, PanoramaHead
from magrounding.agents.sir.network import Sir
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.spec import ActionSpec, Directions, EnvSpec, Field, Mask, Text, TextChoices
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from tests.agents.by_the_book import attend, read
from tests.agents.samples import NARROW_SIR, VOCABULARY, Sample, make_sample, make_spec
from tests.training.toy_games import players_of

OFFERED = 7


def offering(actions: ActionSpec, field: Field) -> EnvSpec:
    kept = [field for field in make_spec().fields if field.name != "action_mask"]
    return replace(make_spec(), fields=(*kept, Mask("action_mask", (OFFERED,)), field), actions=actions)


TEXTS = offering(TextChoices(OFFERED, 4), Text("choices", (OFFERED, 4), 0, VOCABULARY - 1))
DIRECTIONS = offering(Directions(OFFERED), Field("columns", (OFFERED,), -1, 5))


def policy_for(spec: EnvSpec) -> Sir:
    torch.manual_seed(0)
    policy = make_policy("sir", spec, **NARROW_SIR)
    assert isinstance(policy, Sir)
    return policy


def shown(policy: Sir, sample: Sample) -> Batch:
    """One step of N games; choices are encoded once each, [U, M], and referred to [1, N, A]."""
    n, observation = len(sample.document), dict(sample.observation)
    ids = {"manual": sample.manual, "goal": sample.goal}
    readings = {"document": Reading(policy.encode("document", ids), sample.document.unsqueeze(0))}
    if "choices" in observation:
        offered = observation.pop("choices")
        texts, which = torch.unique(offered.flatten(0, 1), dim=0, return_inverse=True)
        readings["choices"] = Reading(policy.encode("choices", {"choices": texts}), which.view(1, *offered.shape[:2]))
    one = {name: array.unsqueeze(0) for name, array in observation.items()}
    return Batch(one, readings, None, torch.ones(1, n, dtype=torch.bool), torch.full((1, n), -1))


def act(policy: Sir, sample: Sample) -> tuple[Tensor, Tensor]:
    """Logits [N, A] and values [N]."""
    output = policy(shown(policy, sample))
    return output.logits[0], output.value[0]


def offer(name: str, n: int = 6) -> Sample:
    """Games that offer 5 of 7 actions; the last two rows are padding."""
    batch, generator = make_sample(n, 2), torch.Generator().manual_seed(1)
    if name == "choices":
        length = torch.randint(1, 5, (n, OFFERED, 1), generator=generator)
        offered = torch.randint(6, VOCABULARY, (n, OFFERED, 4), generator=generator) * (torch.arange(4) < length)
        offered[:, 5:] = 0
    else:
        offered = torch.randint(0, 6, (n, OFFERED), generator=generator)
        offered[:, 5:] = -1
    mask = (torch.arange(OFFERED) < 5).expand(n, -1).to(torch.int8)
    return batch._replace(observation=batch.observation | {name: offered.to(torch.int16), "action_mask": mask})


def hidden_of(policy: Sir, batch: Sample) -> tuple[Tensor, Any]:
    return policy._perceive(Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document))


@torch.no_grad()
def test_choices_are_scored_by_what_is_read_of_them():
    policy, batch = policy_for(TEXTS), offer("choices")
    (got, _), (hidden, _) = act(policy, batch), hidden_of(policy, batch)
    head, words = policy.policy, policy.reader.words
    assert isinstance(head, ChoiceHead)
    for n in range(6):
        for j in range(5):
            ids = batch.observation["choices"][n, j]
            expected = head.score(attend(head.project(read(words, head.encoder, ids)), hidden[n]))[0]
            torch.testing.assert_close(got[n, j], expected, rtol=1e-4, atol=1e-6)


@torch.no_grad()
def test_directions_are_scored_by_the_column_they_lead_to():
    policy, batch = policy_for(DIRECTIONS), offer("columns")
    (got, _), (hidden, seen) = act(policy, batch), hidden_of(policy, batch)
    head = policy.policy
    assert isinstance(head, PanoramaHead)
    for n in range(6):
        for j in range(5):
            column = seen.maps[-1][n, :, :, int(batch.observation["columns"][n, j])]
            torch.testing.assert_close(got[n, j], column.max(1).values @ head.project(hidden[n]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "spec"), [("choices", TEXTS), ("columns", DIRECTIONS)])
def test_what_is_not_offered_is_impossible_and_the_order_of_what_is_means_nothing(name, spec):
    policy, batch = policy_for(spec), offer(name)
    logits, value = act(policy, batch)
    assert (logits[:, 5:] == torch.finfo(torch.float32).min).all()
    assert (logits[:, :5].std(1) > 0).all()
    order = torch.tensor([3, 0, 4, 1, 2, 6, 5])
    moved = batch._replace(observation=batch.observation | {name: batch.observation[name][:, order]})
    for got, expected in zip(act(policy, moved), (logits[:, order], value), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)
    (logits[:, :5].log_softmax(1)[:, 0].sum() + value.sum()).backward()
    assert all(p.grad.any() for key, p in policy.named_parameters() if not key.endswith("score.bias"))


@torch.no_grad()
def test_a_head_of_two_layers_has_one_of_its_own_before_policy_and_value():
    torch.manual_seed(0)
    batch = make_sample(6, 3)
    policy = make_policy("sir", make_spec(), **NARROW_SIR, head="mlp")
    got, (hidden, _) = act(policy, batch), hidden_of(policy, batch)
    assert (hidden >= 0).all()
    assert hidden.any()
    acting, judging = (
        F.relu(F.linear(hidden, layer[0].weight, layer[0].bias)) for layer in (policy.acting, policy.judging)
    )
    offered = batch.observation["action_mask"].bool()
    torch.testing.assert_close(got[0][offered], policy.policy.score(acting)[offered])
    torch.testing.assert_close(got[1], policy.value(judging)[:, 0])


@pytest.mark.parametrize("agent", ["sir", "sir_state", "sir_entity_attn"])
def test_reasons_are_learnt_by_the_layers_of_txt2pi(agent):
    torch.manual_seed(0)
    vec = mg.make_vec("rtfm", 16, task="simple_stationary")
    policy = make_policy(agent, vec.spec, **NARROW_SIR, reasons=True)
    worker = RolloutWorker(vec, players_of(vec, [policy]), 4, teacher=Teacher(Oracle(vec), noise=0.1, seed=0))
    worker.start(0)
    minibatch = worker.collect(1.0, 0).trajectories[0].games(np.arange(16), torch.device("cpu"))
    batch = policy.encode_batch(minibatch.inputs)
    output = policy(batch)
    losses = policy.losses(batch, output, minibatch.extras, policy.loss_weights).losses
    marked = minibatch.extras[TARGETS].flatten(2)
    log_pi = policy.reasoning.target(output.seen.maps[0]).flatten(1).log_softmax(1).view(marked.shape)
    count = marked.sum(-1).clamp(min=1)
    torch.testing.assert_close(losses["target"], -(log_pi * marked).sum(-1) / count - count.log())
    assert losses.keys() == policy.loss_weights.keys() - {"asked"}
    sum(each.sum() for each in losses.values()).backward()
    assert all(p.grad.any() for p in (*policy.reasoning.parameters(), *policy.reader.joint.parameters()) if p.dim() > 1)
