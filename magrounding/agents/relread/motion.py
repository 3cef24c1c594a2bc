"""Motion classes: how things have moved since they were first seen, and what statements say of it (`StatedMotion`).

Neither one frame shows motion nor do two, where steps are smaller than a cell. So each thing is tracked while it is in
sight: it is the nearest one of the same words in the frame before. Whether it came nearer or went farther is judged by
where agents stood then, as that is what it could react to. Tracks are integers without weights: learners recompute them
from observations, on the CPU wherever the network lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.transfer import download, upload
from magrounding.jit import cached_njit, inner_njit

WORD, ROW, COLUMN, TENDENCY, MOVED, AGE, STEP, SINCE = range(8)
COLUMNS = 8
"""Columns of a memory, whose rows are agents (ROW and COLUMN only), then tracks; WORD 0: none.

TENDENCY: steps towards less steps away, MOVED: it has moved at all, AGE: frames after its first, STEP: direction of its
last step (0: none; up, down, left, right), SINCE: frames after it, as far as FRAMES counts.
"""
TRACKS = 32
"""Most things that are tracked."""
REACH = 2
"""Cells (Manhattan distance) that a thing may have moved from one frame to the next."""
OLD = 1000
"""Highest AGE."""
STEPS, FRAMES = 2, 4
"""Highest count of steps, and one more than the highest count of frames."""
MOTION_CLASSES = (2 * STEPS + 1) * 2 * FRAMES
DIRECTIONS = 5 * FRAMES
LENGTHS = range(3, 7)
"""Lengths of n-grams of words that tell of motion."""


class Frame(NamedTuple):
    """Things of N observations."""

    words: Tensor  # [N, M] ids, the first of each thing
    row: Tensor  # [N, M] int64
    column: Tensor  # [N, M] int64
    followed: Tensor  # [N, M] bool, things to track; of more than TRACKS in an observation, the first
    agents: Tensor  # [N, n, 2] row and column, row −1 of the dead


class Motion(NamedTuple):
    """Motion of M things of N observations."""

    # [N, M] int64 below MOTION_CLASSES: steps nearer to the nearest agent or farther away on balance, up to twice;
    # whether it moved at all; for how many frames it has been tracked, up to three. 0: unknown
    motion_class: Tensor
    direction: Tensor  # [N, M] int64 below DIRECTIONS, direction and age of its last step, up to three frames. 0: none
    age: Tensor  # [N, M] int64, frames after the first in which it was seen


def initial_tracks(num_envs: int, agents: int, device: torch.device | str = "cpu") -> Tensor:
    """Return an empty memory [N, n + TRACKS, COLUMNS] int16."""
    return torch.zeros(num_envs, agents + TRACKS, COLUMNS, dtype=torch.int16, device=device)


def track(frame: Frame, tracks: Tensor) -> tuple[Motion, Tensor]:
    """Track things to the next frame.

    Returns:
        Motion, and the memory [N, n + TRACKS, COLUMNS] after it; `tracks` is the one before.
    """
    known = download({**frame._asdict(), "before": tracks})
    *motion, after = _tracked(*known.values())
    sent = upload({**dict(zip(Motion._fields, motion, strict=True)), "after": after}, tracks.device)
    return Motion(*(sent[name] for name in Motion._fields)), sent["after"]


def tracks_before(frames: Frame, tracks: Tensor, restarts: Tensor) -> Tensor:
    """Return the memory [T, B, n + TRACKS, COLUMNS] before each of T steps of B episodes, given the first step's.

    Args:
        frames: [T, B, …] of each.
        tracks: [B, n + TRACKS, COLUMNS].
        restarts: [T, B] bool, where memory is emptied.
    """
    known = download({**frames._asdict(), "memory": tracks, "restarts": restarts})
    memory, restarted = known.pop("memory"), known.pop("restarts")
    before = np.empty((len(restarted), *memory.shape), memory.dtype)
    for t, restart in enumerate(restarted):
        before[t] = np.where(restart[:, None, None], 0, memory)
        memory = _tracked(*(part[t] for part in known.values()), before[t])[-1]
    return upload({"": before}, tracks.device)[""]


def _tracked(*given: np.ndarray) -> list[np.ndarray]:
    """Motion class, direction and age [N, M] of things and the memory after, given a frame and the memory before."""
    frame_and_before = [np.ascontiguousarray(each) for each in given]
    things, before = frame_and_before[1].shape, frame_and_before[-1]
    found = [*(np.zeros(things, np.int64) for _ in Motion._fields), np.zeros(before.shape, np.int16)]
    _follow(*frame_and_before, *found)
    return found


@cached_njit(nogil=True)
def _follow(words, row, column, followed, agents, before, motion_class, direction, age, after):
    """Fill motion class, direction and age [N, M] and the memory `after`; the others are those of `track`."""
    n_agents = agents.shape[1]
    thing, origin = np.empty(TRACKS, np.int64), np.empty(TRACKS, np.int64)
    for n in range(len(words)):
        old, new = before[n], after[n]
        for a in range(n_agents):
            new[a, ROW], new[a, COLUMN] = agents[n, a, 0], agents[n, a, 1]
        count = 0
        for i in range(words.shape[1]):
            if followed[n, i] and count < TRACKS:
                thing[count] = i
                track = new[n_agents + count]
                track[WORD], track[ROW], track[COLUMN] = words[n, i], row[n, i], column[n, i]
                count += 1
        _match(old[n_agents:], new[n_agents:], count, origin)
        for k in range(count):
            track = new[n_agents + k]
            if origin[k] >= 0:
                _update(old[n_agents + origin[k]], track, old[:n_agents])
            tendency = track[TENDENCY] % (2 * STEPS + 1)  # 0, 1, 2, −2, −1: not known yet is 0
            motion_class[n, thing[k]] = (tendency * 2 + track[MOVED]) * FRAMES + min(track[AGE], FRAMES - 1)
            direction[n, thing[k]] = track[STEP] * FRAMES + track[SINCE]
            age[n, thing[k]] = track[AGE]


@inner_njit
def _match(old, new, count, origin):
    """Fill origin [count]: the old track of each new one, or −1; the nearest first, none twice.

    Where two of the same word were in one cell, the one that has moved less is the one that has stayed.
    """
    taken = np.zeros(TRACKS, np.bool_)
    origin[:count] = -1
    while True:
        least, which, whence = np.int64(1 << 30), -1, -1
        for k in range(count):
            for j in range(TRACKS):
                if origin[k] >= 0 or taken[j] or old[j, WORD] != new[k, WORD]:
                    continue
                distance = abs(new[k, ROW] - old[j, ROW]) + abs(new[k, COLUMN] - old[j, COLUMN])
                moves = abs(old[j, TENDENCY]) + old[j, MOVED]
                cost = 8 * distance + (moves if distance == 0 else -moves)
                if distance <= REACH and cost < least:
                    least, which, whence = cost, k, j
        if which < 0:
            return
        origin[which], taken[whence] = whence, True


@inner_njit
def _update(old, new, agents):
    """Continue a track; `agents` are their places before it moved."""
    down, right = new[ROW] - old[ROW], new[COLUMN] - old[COLUMN]
    nearer = _to_nearest(old, agents) - _to_nearest(new, agents)
    new[TENDENCY] = min(max(old[TENDENCY] + np.sign(nearer), -STEPS), STEPS)
    new[AGE] = min(old[AGE] + 1, OLD)
    if down or right:
        vertical = abs(down) >= abs(right)
        new[MOVED], new[SINCE] = 1, 0
        new[STEP] = (1 if down < 0 else 2) if vertical else (3 if right < 0 else 4)
    else:
        new[MOVED], new[STEP] = old[MOVED], old[STEP]
        new[SINCE] = min(old[SINCE] + 1, FRAMES - 1) if old[STEP] else 0


@inner_njit
def _to_nearest(track, agents):
    """Manhattan distance to the nearest agent alive, 0 where none is."""
    least = -1
    for a in range(len(agents)):
        if agents[a, ROW] >= 0:
            distance = abs(agents[a, ROW] - track[ROW]) + abs(agents[a, COLUMN] - track[COLUMN])
            if least < 0 or distance < least:
                least = distance
    return max(least, 0)


class StatedMotion(nn.Module):
    """Likelihood of motion classes by statement.

    A word is the sum of the embeddings of its character n-grams (fastText, Bojanowski et al. 2017): an unseen one
    ("flees") is similar to seen ones ("fleeing"), and one that shares no n-gram says nothing.

    Args:
        width: of the embeddings.
        words: spelling of each id; ids without one are names that are like no other.

    Attributes:
        ngrams: those of all words, in the order of the rows of `embedding`.
    """

    def __init__(self, width: int, words: Sequence[str]) -> None:
        super().__init__()
        spelt = [ngrams(word) for word in words]
        self.ngrams = tuple(sorted({ngram for word in spelt for ngram in word}))
        number = {ngram: k for k, ngram in enumerate(self.ngrams)}
        self.embedding = nn.EmbeddingBag(len(number), width, mode="sum")
        nn.init.zeros_(self.embedding.weight)
        self.gaits = nn.Linear(width, MOTION_CLASSES)  # a name in files of weights
        ids = torch.tensor([number[ngram] for word in spelt for ngram in word])
        ends = torch.tensor([len(word) for word in spelt]).cumsum(0)
        self.ids = nn.Buffer(ids, persistent=False)
        self.begins = nn.Buffer(torch.cat((ends.new_zeros(1), ends[:-1])), persistent=False)

    def forward(self, statements: Tensor) -> Tensor:
        """Return log likelihood ratios [U, S, MOTION_CLASSES] to `usual`, of the word sets [U, S, V] of statements."""
        return _among_as_old(self.gaits(statements @ self.embedding(self.ids, self.begins))) - self.usual()

    def usual(self) -> Tensor:
        """Return the log probabilities [MOTION_CLASSES] without a statement."""
        return _among_as_old(self.gaits.bias)


def _among_as_old(logits: Tensor) -> Tensor:
    """Log probabilities [..., MOTION_CLASSES] among things of the same age; 0 for those just come in sight."""
    return F.pad(logits.unflatten(-1, (-1, FRAMES)).log_softmax(-2)[..., 1:], (1, 0)).flatten(-2)


def ngrams(word: str) -> list[str]:
    """Return the distinct n-grams of a word, with marks where it begins and ends."""
    marked = f"<{word}>"
    return list(dict.fromkeys(marked[k : k + n] for n in LENGTHS for k in range(len(marked) - n + 1)))
