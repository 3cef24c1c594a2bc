"""TargetTexts: what a target network makes of the texts of a replay, each read once for each of its versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor


class TargetTexts:
    """The parts of one reader's texts in the hidden layer, by the texts' places in the replay's pool.

    Args:
        read: gives the parts [U, hidden] of texts, by the ids [U, …] of each of their fields. Call `forget` when the
            target network's weights change, or when texts change their places.
        device: of the network.
    """

    def __init__(self, read: Callable[[dict[str, Tensor]], Tensor], device: torch.device) -> None:
        self._read, self._device = read, device
        self._parts = torch.zeros(0)
        self._known = np.zeros(0, np.bool_)

    def forget(self) -> None:
        """Drop all that was read."""
        self._known[:] = False

    @torch.no_grad()
    def parts(self, places: np.ndarray, texts: Mapping[str, np.ndarray]) -> Tensor:
        """What texts add to the hidden layer, [U, hidden].

        Args:
            places: [U] int64, where each is in the pool; all different.
            texts: [U, …] ids of each field.
        """
        size = int(places.max(initial=-1)) + 1
        if size > len(self._known):  # by a quarter more, so that a growing pool is not copied each time
            self._known = np.append(self._known, np.zeros(size + size // 4 - len(self._known), np.bool_))
        new = np.flatnonzero(~self._known[places])
        if len(new):
            read = self._read({field: torch.from_numpy(array[new]).to(self._device) for field, array in texts.items()})
            if len(self._parts) < len(self._known):
                grown = read.new_zeros(len(self._known), read.shape[1])
                grown[: len(self._parts)] = self._parts.to(grown).view(-1, read.shape[1])
                self._parts = grown
            self._parts[torch.from_numpy(places[new]).to(self._device)] = read
            self._known[places[new]] = True
        return self._parts[torch.from_numpy(places).to(self._device)]
