"""Observations of real games, and small networks of EnDi on every grounding module."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import OTHERS, Auxiliary, PolicyOutput
from magrounding.endi.agent import EnDi
from magrounding.teams.player import Player
from magrounding.training.rollout import RolloutWorker
from tests.agents.samples import documents_of, seen_by

NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "endi_dis": (
        "ma_rtfm",
        {"channels": (8, 12), "embedding": 8, "goal_hidden": 4, "inventory_hidden": 3, "document_hidden": 8},
    ),
    "endi_dis_emma": ("ma_messenger", {"width": 32, "maps": 8, "hidden": 16, "embedding": 12}),
    "endi_dis_relread": ("ma_rtfm", {"hidden": 32, "top": 32}),
}
"""Agent id → its world, and what makes it small."""


class Scene(NamedTuple):
    """N observations of agent 0, each with a text of its own, and what the others did, [N, n − 1]."""

    observation: dict[str, Tensor]
    manual: Tensor
    goal: Tensor
    others: Tensor


def network(agent: str, agents: int = 2, seed: int = 0, env: str | None = None, **options: Any) -> EnDi:
    own, small = NETWORKS[agent]
    vec = mg.make_vec(env or own, 1, stage="s2", agents=agents)
    policy = build_policy(agent, vec.spec, {**small, **options}, seed)
    assert isinstance(policy, EnDi)
    return policy


def scene(agent: str, agents: int = 2, rows: int = 12, seed: int = 0, **options: Any) -> Scene:
    """Some random steps into games."""
    vec = mg.make_vec(NETWORKS[agent][0], rows, copy=True, stage="s2", agents=agents, **options)
    rng, (seen, _) = np.random.default_rng(seed), vec.reset(seed=seed)
    for _ in range(3):
        seen, *_ = vec.step(rng.integers(0, 5, (rows, agents)))
    others = torch.from_numpy(rng.integers(0, 5, (rows, agents - 1)))
    return Scene(seen_by(0, seen, vec.spec), *documents_of(seen), others)


def act(policy: EnDi, shown: Scene) -> tuple[PolicyOutput, dict[str, Tensor], Tensor]:
    """What a network makes of a scene, the encoded texts, and which of them each observation reads."""
    text, document = policy.encode_text(shown.manual, shown.goal), torch.arange(len(shown.manual))
    return policy.respond(Inputs(shown.observation, text, document)), text, document


def learn_beside(policy: EnDi, shown: Scene) -> Auxiliary:
    """What a network learns beside actions and values."""
    output, text, document = act(policy, shown)
    return policy.auxiliary(Inputs(shown.observation, text, document), output, {OTHERS: shown.others})


def worker_of(
    agent: str,
    agents: int,
    games: int = 4,
    unroll: int = 6,
    seed: int = 0,
    env: str | None = None,
    **options: Any,
) -> RolloutWorker:
    policies = [network(agent, agents, seed=i, env=env) for i in range(agents)]
    vec = mg.make_vec(env or NETWORKS[agent][0], games, stage="s2", agents=agents, **options)
    players = [
        Player(policy, vec.spec, games, torch.Generator().manual_seed(seed + i)) for i, policy in enumerate(policies)
    ]
    worker = RolloutWorker(vec, players, unroll)
    worker.start(seed=3)
    return worker
