"""Makes every environment known to the registries of PettingZoo and, where it is for one agent, of Gymnasium."""

from __future__ import annotations

import gymnasium
import pettingzoo

from magrounding.registry import ENVS

NAMESPACE = "magrounding"


def register_envs() -> None:
    """Register `magrounding/<id>-v0` for every id, once; entry points are strings, so no environment is imported."""
    for entry in ENVS.values():
        name = f"{NAMESPACE}/{entry.id}-v0"
        if name not in pettingzoo.parallel_registry:
            pettingzoo.register("parallel", name, "magrounding.registry:make", kwargs={"id": entry.id})
        if name not in gymnasium.registry and not entry.multi_agent:
            gymnasium.register(name, "magrounding.envs.single_agent:make_single_agent", kwargs={"env": entry.id})
