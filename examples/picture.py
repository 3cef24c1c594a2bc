"""Play random games until a lively moment, and save a picture of it.

Run it from the repository: python -m examples.picture docs/images/ma_rtfm.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import magrounding as mg


def find_moment(seed: int = 0, holders: int = 2, after: int = 8) -> np.ndarray:
    """The picture [height, width, 3] uint8 of the first moment in which enough agents hold an item.

    Args:
        seed: of the games and of the players.
        holders: how many agents hold an item.
        after: how many steps have been played.
    """
    env = mg.make("ma_rtfm", stage="s5", agents=3, render_mode="rgb_array")
    rng = np.random.default_rng(seed)
    _, infos = env.reset(seed=seed)
    step = 0
    while step < after or sum(bool(info["text"]["inventory"]) for info in infos.values()) < holders:
        moves = {agent: int(rng.choice(np.flatnonzero(infos[agent]["action_mask"]))) for agent in env.agents}
        *_, infos = env.step(moves)
        step += 1
        if not env.agents:
            _, infos = env.reset()
            step = 0
    return np.asarray(env.render())


def main() -> None:
    """Save the picture where the command line says."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "ma_rtfm.png")
    Image.fromarray(find_moment()).save(path, optimize=True)
    print(f"saved {path}")


if __name__ == "__main__":
    main()
