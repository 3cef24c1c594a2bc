"""Pictures of grid worlds, drawn by us: vector shapes, figures, whole scenes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from magrounding.envs.render import Scene


def rgb_array(scene: Scene) -> np.ndarray:
    """Return a scene as a picture, [height, width, 3] uint8, of the same size for every scene."""
    from magrounding.envs.drawing.picture import draw_scene  # Pillow, which only pictures need

    return draw_scene(scene)
