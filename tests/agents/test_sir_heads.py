"""SIR's heads for worlds to come, on observations made up for them: choices of text, directions in a panorama."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.policy import make_policy
from magrounding.agents.sir import Sir
from magrounding.agents.sir_heads import FixedActions, PanoramaDirections, TextChoices
from magrounding.observation import ObservationField, ObservationSpec
from tests.agents.samples import NARROW_SIR, VOCABULARY, Batch, make_batch, make_spec

OFFERED = 7


def offering(*fields: ObservationField) -> ObservationSpec:
    kept = [field for field in make_spec().fields if field.name != "action_mask"]
    mask = ObservationField("action_mask", (OFFERED,), 0, 1, "int8")
    return replace(make_spec(), fields=(*kept, mask, *fields), num_actions=OFFERED)


TEXTS = offering(ObservationField("choices", (OFFERED, 4), 0, VOCABULARY - 1))
DIRECTIONS = offering(ObservationField("columns", (OFFERED,), -1, 5))


def policy_for(spec: ObservationSpec) -> Sir:
    torch.manual_seed(0)
    policy = make_policy("sir", spec, **NARROW_SIR)
    assert isinstance(policy, Sir)
    return policy


def act(policy: Sir, batch: Batch):
    return policy(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document)


def offer(name: str, n: int = 6) -> Batch:
    """Games that offer 5 of 7 actions; the last two rows are padding."""
    batch, generator = make_batch(n, 2), torch.Generator().manual_seed(1)
    if name == "choices":
        length = torch.randint(1, 5, (n, OFFERED, 1), generator=generator)
        offered = torch.randint(6, VOCABULARY, (n, OFFERED, 4), generator=generator) * (torch.arange(4) < length)
        offered[:, 5:] = 0
    else:
        offered = torch.randint(0, 6, (n, OFFERED), generator=generator)
        offered[:, 5:] = -1
    mask = (torch.arange(OFFERED) < 5).expand(n, -1).to(torch.int8)
    return batch._replace(observation=batch.observation | {name: offered.to(torch.int16), "action_mask": mask})


@pytest.mark.parametrize(
    ("spec", "head"), [(make_spec(), FixedActions), (TEXTS, TextChoices), (DIRECTIONS, PanoramaDirections)]
)
def test_what_a_world_offers_chooses_the_head(spec, head):
    assert type(policy_for(spec).policy) is head


def hidden_of(policy: Sir, batch: Batch) -> tuple[Tensor, Tensor]:
    return policy._perceive(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document)


@torch.no_grad()
def test_choices_are_scored_by_what_is_read_of_them():
    policy, batch = policy_for(TEXTS), offer("choices")
    got, (hidden, _) = act(policy, batch).logits, hidden_of(policy, batch)
    head, words = policy.policy, policy.reader.words
    assert isinstance(head, TextChoices)
    for n in range(6):
        for j in range(5):
            ids = batch.observation["choices"][n, j].long()
            vectors = words(torch.cat((ids[ids > 0], torch.zeros(1, dtype=torch.int64))))
            read = torch.cat((head.encoder.ahead(vectors)[0], head.encoder.back(vectors.flip(0))[0].flip(0)), 1)
            states = head.project(read)
            expected = head.score((states @ hidden[n]).softmax(0) @ states)[0]
            torch.testing.assert_close(got[n, j], expected, rtol=1e-4, atol=1e-6)


@torch.no_grad()
def test_directions_are_scored_by_the_column_they_lead_to():
    policy, batch = policy_for(DIRECTIONS), offer("columns")
    got, (hidden, maps) = act(policy, batch).logits, hidden_of(policy, batch)
    head = policy.policy
    assert isinstance(head, PanoramaDirections)
    for n in range(6):
        for j in range(5):
            column = maps[n, :, :, int(batch.observation["columns"][n, j])]
            torch.testing.assert_close(got[n, j], column.max(1).values @ head.project(hidden[n]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "spec"), [("choices", TEXTS), ("columns", DIRECTIONS)])
def test_what_is_not_offered_is_impossible_and_the_order_of_what_is_means_nothing(name, spec):
    policy, batch = policy_for(spec), offer(name)
    output = act(policy, batch)
    assert (output.logits[:, 5:] == torch.finfo(torch.float32).min).all()
    assert (output.logits[:, :5].std(1) > 0).all()
    order = torch.tensor([3, 0, 4, 1, 2, 6, 5])
    moved = batch._replace(observation=batch.observation | {name: batch.observation[name][:, order]})
    torch.testing.assert_close(act(policy, moved).logits, output.logits[:, order], rtol=0, atol=1e-6)
    torch.testing.assert_close(act(policy, moved).value, output.value, rtol=0, atol=1e-6)
    (output.logits[:, :5].log_softmax(1)[:, 0].sum() + output.value.sum()).backward()
    assert all(p.grad.any() for key, p in policy.named_parameters() if not key.endswith("score.bias"))


def test_padding_of_choices_changes_nothing():
    policy, batch = policy_for(TEXTS), offer("choices")
    longer = batch._replace(observation=batch.observation | {"choices": F.pad(batch.observation["choices"], (0, 3))})
    torch.testing.assert_close(act(policy, longer).logits, act(policy, batch).logits, rtol=0, atol=1e-6)
