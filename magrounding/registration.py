"""Makes environments known: to magrounding, and to the registries of PettingZoo and of Gymnasium."""

from __future__ import annotations

import gymnasium
import pettingzoo

from magrounding.registry import ENVS, EnvEntry

NAMESPACE = "magrounding"


def register_env(entry: EnvEntry) -> None:
    """Make an environment known by its id, and as `magrounding/<id>-v<version>`. Nothing of it is imported.

    Gymnasium's is for one agent; asked for a game of several, it says what to call instead.

    Raises:
        ConfigurationError: no EnvEntry, or another environment has the id.
    """
    ENVS.add(entry)
    name = f"{NAMESPACE}/{entry.versioned_id}"
    if hasattr(pettingzoo, "parallel_registry") and name not in pettingzoo.parallel_registry:  # 1.26 has no registry
        pettingzoo.register("parallel", name, "magrounding.envs.make:make", kwargs={"id": entry.id})
    if name not in gymnasium.registry:
        gymnasium.register(
            name,
            "magrounding.envs.single_agent:make_single_agent",
            vector_entry_point="magrounding.envs.gymnasium_vector:make_gymnasium_vec",
            kwargs={"env": entry.id},
        )
