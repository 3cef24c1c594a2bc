"""GuideReader: a Guide's vectors of texts that come as word ids, each text once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.guide.guide import Guide, load_guide
from magrounding.errors import ConfigurationError
from magrounding.single.tokenizer import plain_text
from magrounding.storage import user_path

REMEMBERED = 2**17
"""Texts whose vectors are kept, 64 MB of them; past them it begins anew."""


class GuideReader:
    """What a Guide makes of a world's texts.

    No torch module: the Guide learns no more, and belongs to no optimiser and to no checkpoint.

    Args:
        guide: the Guide.
        words: the word of each id.

    Attributes:
        read: texts that it has read so far.

    Raises:
        ConfigurationError: a world that does not say its words.
    """

    def __init__(self, guide: Guide, words: Sequence[str]) -> None:
        if not words:
            raise ConfigurationError("this world does not say which words its ids are: no Guide can read them")
        self.guide = guide
        self.read = 0
        self._words = words
        self._places: dict[bytes, int] = {}
        self._vectors = torch.zeros(0)
        self._texts: list[str] = []

    def __call__(self, ids: Tensor) -> tuple[Tensor, list[str]]:
        """Vectors [U, D] of length 1 of texts [U, L], and the texts."""
        rows = np.ascontiguousarray(ids.cpu().numpy())
        keys = [row.tobytes() for row in rows]
        new = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._places}
        if new:
            if len(self._places) + len(new) > REMEMBERED and self._places:
                self._places.clear()
                self._texts.clear()
                self._vectors = torch.zeros(0)
                new = dict(zip(keys, rows, strict=True))
            texts = [plain_text(self._words, row.tolist()) for row in new.values()]
            vectors = self.guide.embed(texts)
            self._places.update(zip(new, range(len(self._texts), len(self._texts) + len(new)), strict=True))
            self._vectors = torch.cat((self._vectors.view(-1, vectors.shape[1]), vectors))
            self._texts += texts
            self.read += len(texts)
        places = [self._places[key] for key in keys]
        return self._vectors[places].to(ids.device), [self._texts[place] for place in places]

    def __deepcopy__(self, memo: dict[int, Any]) -> GuideReader:
        return self  # copies of a network read with the same Guide, which never changes


@cache
def open_guide(folder: str) -> Guide:
    """One Guide for all agents of a process; errors as those of `load_guide`."""
    return load_guide(user_path(folder))
