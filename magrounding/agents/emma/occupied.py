"""Occupied cells of a stack of maps, and a convolution that touches no others.

The network's output for a cell depends on its words and the document. So each distinct pair is computed once, and cells
refer to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from magrounding.agents.transfer import download


@dataclass(frozen=True)
class Occupied:
    """O occupied cells of F frames of N maps, and the D distinct things that they show."""

    words: Tensor  # [D, K] int64 ids of all that a cell shows
    document: Tensor  # [D] int64, which document its observation reads
    which: Tensor  # [O] int64, which of the D each cell shows
    place: Tensor  # [O] int64, index of the cell and its frame among [N, F, H, W]
    shape: tuple[int, int, int, int]  # (N, F, H, W)

    @classmethod
    def find(cls, frames: Tensor, occupant: Tensor, document: Tensor) -> Occupied:
        """Find the occupied cells of frames [N, F, H, W, K] of documents [N], those with `occupant` [V] bool ids."""
        n, history, height, width, per_cell = frames.shape
        place = _any(frames.reshape(-1, per_cell), occupant).nonzero().squeeze(1)
        shown = frames.reshape(-1, per_cell).index_select(0, place).long()
        read = document.index_select(0, place // (height * width * history))
        which, count = read, 0
        written = download({"": shown.any(0)})[""].tolist()
        for word, any_word in zip(shown.t(), [True, *written[1:]], strict=True):
            if any_word:  # several sorts of numbers take a tenth of the time of one sort of rows
                distinct, which = torch.unique(which * len(occupant) + word, return_inverse=True)
                count = len(distinct)
        # Of cells that show the same, any may lend its words: they are the same.
        first = which.new_zeros(count).index_copy_(0, which, torch.arange(len(which), device=which.device))
        shape = (n, history, height, width)
        return cls(shown.index_select(0, first), read.index_select(0, first), which, place, shape)

    def cells(self) -> Tensor:
        """Return [O], the index of each cell among [N, H, W], whatever its frame."""
        _, history, height, width = self.shape
        area = height * width
        return self.place // (history * area) * area + self.place % area

    def spread(self, features: Tensor) -> Tensor:
        """Return maps [N, F · C, H, W] of features [O, C]; frame k has channels C·k to C·(k+1) − 1."""
        maps = features.new_zeros(math.prod(self.shape), features.shape[1]).index_copy_(0, self.place, features)
        return maps.view(*self.shape, -1).permute(0, 1, 4, 2, 3).flatten(1, 2)

    def convolve(self, features: Tensor, conv: nn.Conv2d, bias: Tensor, factor: Tensor | None = None) -> Tensor:
        """Convolve maps (stride 1, no padding) that are 0 where no cell is occupied, to [N, H', W', M], channels last.

        The product of a thing's features with each tap of the kernel, for each frame, is one product of matrices; every
        cell that shows it adds that to the outputs around.

        Args:
            features: [D, C] of each distinct thing.
            conv: in_channels are those of F frames of at least C channels, of which the first C are these.
            bias: [N, M] or [1, M], in place of the convolution's own.
            factor: [O], of each occupied cell.
        """
        n, history, height, width = self.shape
        (tall, wide), maps = conv.kernel_size, conv.out_channels
        rows, columns, taps = height - tall + 1, width - wide + 1, tall * wide
        kernel = conv.weight.view(maps, history, -1, taps)[:, :, : features.shape[1]]  # [M, F, C, taps]
        given = (features @ kernel.permute(2, 1, 3, 0).flatten(1)).view(-1, maps)  # [D · F · taps, M]
        tap = torch.arange(taps, device=features.device)
        cell, frame = self.cells(), self.place // (height * width) % history
        row = (cell // width % height).unsqueeze(1) - tap // wide  # [O, taps], of the output
        column = (cell % width).unsqueeze(1) - tap % wide
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        target = ((cell // (height * width)).unsqueeze(1) * rows + row) * columns + column
        source = (self.which * history + frame).unsqueeze(1) * taps + tap
        out = bias.to(given.dtype)[:, None].expand(n, rows * columns, maps).flatten(0, 1)
        kept = inside.flatten().nonzero().squeeze(1)
        given = given.index_select(0, source.flatten().index_select(0, kept))
        if factor is not None:
            given = given * factor.index_select(0, kept // taps).unsqueeze(1).to(given.dtype)
        out = out.index_add(0, target.flatten().index_select(0, kept), given)
        return out.view(n, rows, columns, maps)


def _any(ids: Tensor, marked: Tensor) -> Tensor:
    """[R] bool: any of the ids in each row of [R, K] is marked."""
    return marked.index_select(0, ids.flatten().int()).view(ids.shape).any(1)
