"""Motion: how the things in sight have moved since they were first seen, followed from frame to frame.

One frame shows no motion, and neither do two where things take steps that are smaller than a cell. So each thing is
followed for as long as it is in sight: it is the one of the same words that was nearest in the frame before. Whether it
came nearer or went farther is judged by where agents stood then, as that is what it could react to.

All this is counting, without weights: a memory that learners can replay from what was seen, and one kernel on the CPU,
wherever the network lives.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from magrounding.agents.relread.motion_kernels import COLUMNS, DIRECTIONS, FRAMES, GAITS, TRACKS, follow

__all__ = ["DIRECTIONS", "FRAMES", "GAITS", "Frame", "Motion", "initial_tracks", "track"]


class Frame(NamedTuple):
    """What there is to follow in N observations.

    Attributes:
        words: [N, M] ids, the first of each thing.
        row, column: [N, M] int64.
        followed: [N, M] bool, who is there and to be followed; of more than TRACKS in an observation, the first.
        agents: [N, n, 2] row and column, row −1 of the dead.
    """

    words: Tensor
    row: Tensor
    column: Tensor
    followed: Tensor
    agents: Tensor


class Motion(NamedTuple):
    """How each of M things of N observations moves.

    Attributes:
        gait: [N, M] int64 below GAITS, how it has moved since it was first seen: whether nearer to the nearest agent
            or farther away, on balance and up to twice; whether it moved at all; and for how many frames it has been
            followed, up to three. 0: not known yet.
        direction: [N, M] int64 below DIRECTIONS, where its last step led, and how long ago that was, up to three
            frames. 0: it has taken none.
        age: [N, M] int64, frames after the first in which it was seen.
    """

    gait: Tensor
    direction: Tensor
    age: Tensor


def initial_tracks(num_envs: int, agents: int) -> Tensor:
    """[N, n + TRACKS, COLUMNS] int16, the memory of those who have seen nothing yet."""
    return torch.zeros(num_envs, agents + TRACKS, COLUMNS, dtype=torch.int16)


def track(frame: Frame, tracks: Tensor) -> tuple[Motion, Tensor]:
    """Go on to the next frame.

    Args:
        frame: what it shows.
        tracks: memory [N, n + TRACKS, COLUMNS] of the frame before.

    Returns:
        How things move, on the device of the frame, and the memory of this frame, on that of `tracks`.
    """
    motion = [torch.zeros(frame.row.shape, dtype=torch.int64) for _ in Motion._fields]
    after = torch.zeros(tracks.shape, dtype=torch.int16)
    words, row, column, followed, agents, before = (part.cpu().contiguous().numpy() for part in (*frame, tracks))
    gait, direction, age = (part.numpy() for part in motion)
    follow(words, row, column, followed, agents, before, gait, direction, age, after.numpy())
    return Motion(*(part.to(frame.words.device) for part in motion)), after.to(tracks.device)
