"""A made-up world's observations: what networks need to be tested without one."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from magrounding.observation import ObservationField, ObservationSpec

VOCABULARY = 40
AGENTS = ("txt2pi", "txt2pi_no_task_attn", "txt2pi_no_vis_attn", "txt2pi_no_text_mod", "film", "conv")
SIR = ("sir", "sir_local_conv", "sir_entity_attn")
"""Those of its variants that neither remember nor need a language model."""
READERS = (*AGENTS, *SIR)


def make_spec(size: int = 6, vocabulary_size: int = VOCABULARY) -> ObservationSpec:
    fields = (
        ObservationField("grid", (size, size, 4), 0, vocabulary_size - 1),
        ObservationField("position", (2,), -1, size - 1),
        ObservationField("inventory", (2,), 0, vocabulary_size - 1),
        ObservationField("action_mask", (5,), 0, 1, "int8"),
        ObservationField("manual", (4, 6), 0, vocabulary_size - 1, shared=True),
        ObservationField("goal", (5,), 0, vocabulary_size - 1, shared=True),
    )
    return ObservationSpec(fields, 2, 5, size, size, vocabulary_size, scenery_ids=(0, 1, 2, 3), avatar_ids=(4, 5))


NARROW: dict[str, Any] = {
    "channels": [6, 8, 8, 10],
    "embedding": 7,
    "goal_hidden": 5,
    "inventory_hidden": 4,
    "document_hidden": 9,
    "head_width": 16,
}
"""A small network of every agent, with a skip connection."""

NARROW_SIR: dict[str, Any] = {"channels": [6, 8, 8, 10], "embedding": 7, "hidden": 6, "width": 16}
"""The same of SIR, whose sizes are other ones."""


def narrow_options(agent: str) -> dict[str, Any]:
    """Options of a small network."""
    return NARROW_SIR if agent.startswith("sir") else NARROW


class Batch(NamedTuple):
    """N observations of U documents."""

    observation: dict[str, Tensor]
    manual: Tensor
    goal: Tensor
    document: Tensor


def make_batch(n: int, documents: int, size: int = 6, seed: int = 0) -> Batch:
    """Random observations: ragged statements, some empty inventories, one dead agent, one masked action each."""
    generator = torch.Generator().manual_seed(seed)

    def words(*shape: int) -> Tensor:
        return torch.randint(6, VOCABULARY, shape, generator=generator, dtype=torch.int16)

    def chance(p: float, *shape: int) -> Tensor:
        return torch.rand(shape, generator=generator) < p

    grid = torch.where(
        chance(0.2, n, size, size, 1), words(n, size, size, 4), torch.tensor([1, 0, 0, 0]).to(torch.int16)
    )
    position = torch.randint(1, size - 1, (n, 2), generator=generator, dtype=torch.int16)
    position[0] = -1
    action_mask = torch.ones(n, 5, dtype=torch.int8)
    action_mask[torch.arange(n), torch.randint(1, 5, (n,), generator=generator)] = 0
    length = torch.randint(1, 7, (documents, 4, 1), generator=generator)
    manual = words(documents, 4, 6) * (torch.arange(6) < length)
    goal = words(documents, 5) * (torch.arange(5) < torch.randint(1, 6, (documents, 1), generator=generator))
    observation = {
        "grid": grid,
        "position": position,
        "inventory": words(n, 2) * chance(0.6, n, 1),
        "action_mask": action_mask,
    }
    document = torch.arange(n) if n == documents else torch.randint(0, documents, (n,), generator=generator)
    return Batch(observation, manual.to(torch.int16), goal.to(torch.int16), document)
