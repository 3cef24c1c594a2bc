"""What the equations of several papers have in common, written out for one text or one observation."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from tests.agents.samples import Sample


def weigh(states: Tensor, scorer: nn.Linear) -> Tensor:
    return (states @ scorer.weight[0] + scorer.bias).softmax(0) @ states


def attend(states: Tensor, query: Tensor) -> Tensor:
    return (states @ query).softmax(0) @ states


def read(words: nn.Embedding, encoder, ids: Tensor) -> Tensor:
    """States of the words of a text, and of one word of padding behind them."""
    spoken = ids.flatten()[ids.flatten() > 0].long()
    vectors = words(torch.cat((spoken, spoken.new_zeros(1))))
    return torch.cat((encoder.ahead(vectors)[0], encoder.back(vectors.flip(0))[0].flip(0)), 1)


def modulate_both(layer, convolved: Tensor, text: Tensor) -> Tensor:
    """What a text and a map [C, H, W] make of one another (FiLM²)."""
    (gamma, beta, value), (visual, gate, shift) = layer.text(text)[:, None, None].chunk(3), convolved.chunk(3)
    return torch.relu((1 + gamma) * visual + beta) + torch.relu((1 + gate) * value + shift)


def convolve(layer, *maps: Tensor) -> Tensor:
    return F.conv2d(torch.cat(maps)[None], layer.conv.weight, layer.conv.bias, padding=1)[0]


@torch.no_grad()
def check_equations(policy, batch: Sample, alone: Callable, memory: Tensor | None = None, rtol=1e-5) -> None:
    """Compare with `alone(n, observation, manual, goal)`: logits, before masking, and value of observation n."""
    inputs = Inputs(batch.observation, policy.encode_text(batch.manual, batch.goal), batch.document)
    output = policy.respond(inputs, memory)
    for n, u in enumerate(batch.document):
        one = {name: tensor[n] for name, tensor in batch.observation.items()}
        logits, value = alone(n, one, batch.manual[u], batch.goal[u])
        allowed = one["action_mask"].bool()
        torch.testing.assert_close(output.logits[n][allowed], logits[allowed], rtol=rtol, atol=1e-6)
        torch.testing.assert_close(output.value[n], value, rtol=rtol, atol=1e-6)
