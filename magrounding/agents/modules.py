"""Shared network blocks: positions, attention, FiLM², heads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents import kernels

HEADS = ("paper", "code")


def distance_map(position: Tensor, height: int, width: int) -> Tensor:
    """Return X_pos [N, 2, H, W] float32: (dx / W, dy / H) from position [N, 2] (row, column) to each cell.

    Zeros for a dead agent (row −1).
    """
    position = position.float()
    alive = (position[:, 0] >= 0).float()[:, None]
    columns = torch.arange(width, device=position.device, dtype=torch.float32)
    rows = torch.arange(height, device=position.device, dtype=torch.float32)
    dx = (columns - position[:, 1:]) / width * alive  # [N, W]
    dy = (rows - position[:, :1]) / height * alive  # [N, H]
    cells = (len(position), height, width)
    # Channels last in memory, as everything that is convolved here.
    return torch.stack((dx[:, None, :].expand(cells), dy[:, :, None].expand(cells)), -1).permute(0, 3, 1, 2)


def embed_cells(words: nn.Embedding, grid: Tensor) -> Tensor:
    """Return V0 [N, D, H, W]: the embeddings of a cell's words, summed; grid [N, H, W, K] ids (RTFM, after eq. 19).

    Without a row of padding in the table, id 0 counts too.
    """
    n, height, width, per_cell = grid.shape
    bags = F.embedding_bag(grid.reshape(-1, per_cell).int(), words.weight, mode="sum", padding_idx=words.padding_idx)
    return bags.view(n, height, width, words.embedding_dim).permute(0, 3, 1, 2)


def around(maps: Tensor, position: Tensor, size: int) -> Tensor:
    """Return the cells [N, C, size, size] (size is odd) around each position [N, 2] of maps [N, C, H, W].

    They are zeros beyond the map's edge, and for the dead (row −1).
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


def spatial_max(features: Tensor) -> Tensor:
    """Return s [N, C]: the maximum over the cells of features [N, C, H, W] (RTFM eq. 8)."""
    return F.adaptive_max_pool2d(features, 1).flatten(1)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where mask is true; masked entries get exactly 0 beside any unmasked one."""
    return torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(-1)


def mlp(width: int, hidden: int, out: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return a perceptron with one hidden layer, from `width` to `out`."""
    return nn.Sequential(nn.Linear(width, hidden), activation(), nn.Linear(hidden, out))


def among(ids: Sequence[int], size: int) -> Tensor:
    """Return [size] bool, true at ids."""
    return torch.isin(torch.arange(size), torch.tensor(ids))


class SelfAttention(nn.Module):
    """selfattn: a learned score for each state [.., D], softmax, weighted sum (RTFM eq. 10–12)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return [U, D] from states [U, L, D] and mask [U, L] (true for words)."""
        weights = masked_softmax(self.score(states).squeeze(-1), mask)
        return torch.bmm(weights.unsqueeze(1), states).squeeze(1)


def attend(states: Tensor, mask: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
    """Dot-product attention of queries [U, Q, D] to states [U, L, D], without scale (RTFM eq. 14–16).

    `mask` [U, L] is true for words.

    Returns:
        sums of states [U, Q, D], and their weights [U, Q, L].
    """
    weights = masked_softmax(torch.bmm(queries, states.transpose(1, 2)), mask.unsqueeze(1))
    return torch.bmm(weights.to(states.dtype), states), weights


def attend_once(states: Tensor, mask: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
    """`attend` with one query a text, [U, D]: its sums [U, D] and weights [U, L]."""
    found, weights = attend(states, mask, queries.unsqueeze(1))
    return found.squeeze(1), weights.squeeze(1)


class DocumentAttention:
    """`attend` from many observations to few documents, for several rounds of queries.

    With a copy [N, L, D] of the document for each observation, attention took a quarter of the learner's time on a CPU.
    So there a kernel reads documents where they are; elsewhere each observation has its copy.

    Args:
        states, mask: [U, L, D] and [U, L], true for words.
        document: [N] int64, which of the U documents each observation reads.

    Attributes:
        weights: [N, L] of each round.
    """

    def __init__(self, states: Tensor, mask: Tensor, document: Tensor) -> None:
        self.weights: list[Tensor] = []
        if kernels.suits(states):
            self._attend = partial(kernels.attend, states.float(), mask, document)
        else:
            self._attend = partial(attend_once, states.index_select(0, document), mask.index_select(0, document))

    def __call__(self, queries: Tensor) -> Tensor:
        """Return [N, D] from queries [N, D]."""
        found, weights = self._attend(queries)
        self.weights.append(weights)
        return found


def unroll(cell: nn.GRUCell, inputs: Tensor, memory: Tensor, restarts: Tensor) -> Tensor:
    """Return the states [T, B, D] of a recurrent cell on inputs [T, B, D], reset where an episode begins [T, B]."""
    states = []
    for now, keep in zip(inputs, (~restarts).unsqueeze(2), strict=True):
        memory = cell(now, memory * keep).float()
        states.append(memory)
    return torch.stack(states)


class FiLM2(nn.Module):
    """Bidirectional feature-wise linear modulation (RTFM eq. 1–8); without text modulation, FiLM (eq. 1–3).

    The three convolutions have one input and the three linear maps one text, so each three are one, in the order γ, β,
    W_t and Conv_vis, Conv_Γ, Conv_B. Counts and initial distributions are those of separate ones.

    Args:
        text_width: d_t.
        in_channels: of the map, positions included.
        channels: c.
        query_width: width of u = W_u s, the query to the document; None for a layer without a query.
        text_modulation: False drops eq. 4–6.
    """

    def __init__(
        self,
        text_width: int,
        in_channels: int,
        channels: int,
        query_width: int | None = None,
        text_modulation: bool = True,
    ) -> None:
        super().__init__()
        self.text_modulation = text_modulation
        self.text = nn.Linear(text_width, (3 if text_modulation else 2) * channels)
        self.conv = nn.Conv2d(in_channels, (3 if text_modulation else 1) * channels, 3, padding=1)
        self.query = None if query_width is None else nn.Linear(channels, query_width)

    def forward(self, features: Tensor, text: Tensor) -> Tensor:
        """Return V [N, c, H, W] from features [N, in_channels, H, W] and text [N, d_t]."""
        maps = self.conv(features)
        words = self.text(text)[:, :, None, None]
        if not self.text_modulation:
            gamma, beta = words.chunk(2, 1)
            return F.relu(torch.addcmul(beta, 1 + gamma, maps))
        gamma, beta, value = words.chunk(3, 1)
        visual, gate, shift = maps.chunk(3, 1)
        return F.relu(torch.addcmul(beta, 1 + gamma, visual)) + F.relu(torch.addcmul(shift, 1 + gate, value))

    def summed(self, features: Tensor, text: Tensor) -> tuple[Tensor, Tensor]:
        """Return V as `forward` does, and s [N, c], its `spatial_max`."""
        if kernels.suits(features) and self.text_modulation and self.text.out_features <= 3 * kernels.MOST:
            return kernels.modulate(self.conv(features), self.text(text))
        maps = self(features, text)
        return maps, spatial_max(maps)


class ActorCritic(nn.Module):
    """Policy and baseline from the visual summary (RTFM eq. 20–22).

    `kind` "paper" is ReLU and MLPs of one hidden ReLU layer; "code" is tanh and linear maps, as released.
    """

    def __init__(self, in_features: int, width: int, num_actions: int, kind: str) -> None:
        super().__init__()
        paper = kind == "paper"
        self.hidden = nn.Sequential(nn.Linear(in_features, width), nn.ReLU() if paper else nn.Tanh())
        self.policy, self.baseline = (
            mlp(width, width, out) if paper else nn.Sequential(nn.Linear(width, out)) for out in (num_actions, 1)
        )

    def forward(self, summary: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [N, A] and value [N] of summary [N, C]."""
        hidden = self.hidden(summary)
        return self.policy(hidden), self.baseline(hidden).squeeze(-1)


def layer_widths(channels: tuple[int, ...], cells: int, positions: int) -> list[tuple[int, int]]:
    """Return (in, out) channels of each layer: those of the layer below (at first the cells'), plus the positions."""
    return [(below + positions, width) for below, width in zip((cells, *channels), channels, strict=False)]


def skips(channels: tuple[int, ...]) -> bool:
    """Return True if V_(L-1) + V_(L-2) enters the last layer L, and not V_(L-1) alone (app. C.1: 3rd of 5 layers on).

    Here: from three layers on, where the two maps are equally wide.
    """
    return len(channels) >= 3 and channels[-2] == channels[-3]
