"""What lies around an agent, cut out of a map: an egocentric view."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def around(maps: Tensor, position: Tensor, size: int) -> Tensor:
    """The size × size cells around each agent.

    Args:
        maps: [N, C, H, W].
        position: [N, 2], row and column; row −1 for the dead.
        size: odd.

    Returns:
        [N, C, size, size] with the agent in the middle; zeros beyond the map's edge, and for the dead.
    """
    radius = size // 2
    padded = F.pad(maps, (radius, radius, radius, radius))
    alive = position[:, 0] >= 0
    first = position.long().clamp(min=0)  # an agent's cell is `radius` behind the first one around it, as is the map
    steps = torch.arange(size, device=maps.device)
    game = torch.arange(len(maps), device=maps.device)[:, None, None]
    rows, columns = (first[:, :1] + steps)[:, :, None], (first[:, 1:] + steps)[:, None, :]
    window = padded.permute(0, 2, 3, 1)[game, rows, columns]  # [N, size, size, C]
    return (window * alive[:, None, None, None]).permute(0, 3, 1, 2)
