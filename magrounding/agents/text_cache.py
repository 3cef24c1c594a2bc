"""TextCache: the encoded text of every game of a batch, so that a text is read once an episode and not once a step."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy, TextEncoding, overwrite_documents

NO_DOCUMENT = -1
"""A key that no text has."""


class TextCache:
    """What one policy keeps of the texts on show in B games: row b of the encoding belongs to game b.

    Encodings are as long as the longest text encoded along with them; shorter ones are filled up with zeros (a mask's
    false), which a policy has to take for padding.

    Args:
        policy: who reads. Call `forget` when its weights change.
        num_envs: B.
    """

    def __init__(self, policy: Policy, num_envs: int) -> None:
        self.policy = policy
        self.keys = np.full(num_envs, NO_DOCUMENT, np.int64)
        self.encoding: TextEncoding = {}
        self._device = next(policy.parameters()).device

    def forget(self) -> None:
        """Drop every encoding: they were made by weights that are gone."""
        self.keys.fill(NO_DOCUMENT)

    def read(self, manual: np.ndarray, goal: np.ndarray, keys: np.ndarray | None, rows: np.ndarray) -> TextEncoding:
        """Encode what is new in some rows and return the encoding of all; call it without gradients.

        Args:
            manual: [B, S, L] ids on show.
            goal: [B, G].
            keys: [B] int64, equal keys mean equal text; None reads the rows afresh.
            rows: [R] the games to look at; what the encoding holds of others is stale.
        """
        new = rows if keys is None else rows[keys[rows] != self.keys[rows]]
        if not len(new):
            return self.encoding
        encoded = self.policy.encode_text(self._tensor(manual[new]), self._tensor(goal[new]))
        if len(new) == len(self.keys):
            self.encoding = dict(encoded)
        else:
            index = torch.from_numpy(new).to(self._device)
            if not self.encoding:
                self.encoding = {k: v.new_zeros(len(self.keys), *v.shape[1:]) for k, v in encoded.items()}
            self.encoding = overwrite_documents(self.encoding, index, encoded)
        self.keys[new] = NO_DOCUMENT if keys is None else keys[new]
        return self.encoding

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)
