"""Pictures of environments: a random game some steps after its beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import magrounding as mg

STEPS = 6


def draw(id: str, options: dict[str, Any], path: Path) -> bool:
    """Write a picture (.png) of an environment; False where it draws none."""
    if "rgb_array" not in mg.make(id, **options).metadata["render_modes"]:
        return False
    env = mg.make(id, render_mode="rgb_array", **options)
    rng = np.random.default_rng(0)
    _, infos = env.reset(seed=0)
    for _ in range(STEPS):
        moves = {agent: int(rng.choice(np.flatnonzero(infos[agent]["action_mask"]))) for agent in env.agents}
        *_, infos = env.step(moves)
        if not env.agents:
            _, infos = env.reset()
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(env.render())).save(path, optimize=True)
    env.close()
    return True
