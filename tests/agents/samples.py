"""A made-up world's observations: what networks need to be tested without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Batch, Policy, Reading
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Grid, Mask, Text

VOCABULARY = 40
AGENTS = ("txt2pi", "txt2pi_no_task_attn", "txt2pi_no_vis_attn", "txt2pi_no_text_mod", "film", "conv")
SIR = ("sir", "sir_local_conv", "sir_entity_attn")
"""Those of its variants that neither remember nor need a language model."""
READERS = (*AGENTS, *SIR)


def make_spec(size: int = 6, vocabulary_size: int = VOCABULARY) -> EnvSpec:
    top = vocabulary_size - 1
    fields = (
        Grid("grid", (size, size, 4), 0, top, scenery_ids=(0, 1, 2, 3), avatar_ids=(4, 5)),
        Field("position", (2,), -1, size - 1),
        Field("inventory", (2,), 0, top),
        Mask("action_mask", (5,)),
        Text("manual", (4, 6), 0, top, shared=True, lifetime=EPISODE),
        Text("goal", (5,), 0, top, shared=True, lifetime=EPISODE),
        Field("teammates", (1, 4), -1, top),
    )
    return EnvSpec(fields, 2, FixedActions(tuple("abcde")), (), 80)


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


class Sample(NamedTuple):
    """N observations of U documents."""

    observation: dict[str, Tensor]
    manual: Tensor
    goal: Tensor
    document: Tensor


def make_sample(n: int, documents: int, size: int = 6, seed: int = 0) -> Sample:
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
        "teammates": torch.full((n, 1, 4), -1, dtype=torch.int16),  # dead
    }
    document = torch.arange(n) if n == documents else torch.randint(0, documents, (n,), generator=generator)
    return Sample(observation, manual.to(torch.int16), goal.to(torch.int16), document)


def documents_of(observation: Mapping[str, np.ndarray]) -> list[Tensor]:
    """Manual [B, S, L] and goal [B, G] of some games, as networks are given them."""
    manual = observation["manual"]
    goal = observation.get("goal", np.zeros((len(manual), 0), np.int16))
    return [torch.from_numpy(manual.copy()), torch.from_numpy(goal.copy())]


def seen_by(agent: int, observation: Mapping[str, np.ndarray], spec: EnvSpec) -> dict[str, Tensor]:
    """What one agent of some games observes that is no text."""
    return {field.name: torch.from_numpy(observation[field.name][:, agent].copy()) for field in spec.own_fields}


def batch_of(
    policy: Policy,
    observation: Mapping[str, Tensor],
    manual: Tensor,
    goal: Tensor,
    restarts: Tensor,
    actions: Tensor | None = None,
) -> Batch:
    """T steps of B games from their start, each of which keeps its text.

    Args:
        policy: whose memory it is.
        observation: [T, B, …].
        manual, goal: [B, …].
        restarts: [T, B] bool.
        actions: [T, B], what was done; by default always action 0.
    """
    steps, games = restarts.shape
    done = torch.zeros(steps, games, dtype=torch.int64) if actions is None else actions
    last = torch.cat((torch.full((1, games), -1), done[:-1])).masked_fill(restarts, -1)
    ids = {"manual": manual, "goal": goal}
    index = torch.arange(games).expand(steps, games)
    texts = {name: Reading(policy.encode(name, ids), index, ids) for name in policy.reads if name == "document"}
    return Batch(dict(observation), texts, policy.initial_memory(games), restarts, last)
