"""LGE, language-guided exploration (Golchha et al. 2024): DRRN over the actions that a Guide holds to be relevant.

With probability 1 − ε candidates are the k actions that score highest for the task's text, and every navigation action;
else all actions. The value of a state is always that of its best valid action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.policy import Batch, TextEncoding
from magrounding.errors import ConfigurationError
from magrounding.extensions.lge.drrn.network import Drrn, DrrnConfig
from magrounding.extensions.lge.guide import Guide, load_guide
from magrounding.schema import Count
from magrounding.spec import CHOICES, EnvSpec
from magrounding.storage import user_path
from magrounding.vocabulary import plain_text

NAVIGATION = ("go to ", "teleport to ")
"""Prefixes of navigation actions."""

NO_GUIDE = "LGE needs a Guide: train one with `magrounding guide`, and name its folder with the agent's option guide"

REMEMBERED = 2**17
"""Texts whose vectors are kept, 64 MB of them; past them the cache begins anew."""

_U = "guidance"
"""Key of the random number that decides whether the Guide selects the candidates."""


@dataclass(frozen=True)
class LgeConfig(DrrnConfig):
    """Options of LGE; the others are those of DRRN.

    Attributes:
        guide: folder of a Guide (`magrounding guide`); it has to be named before anything is read.
        k: actions that it selects.
        keep_nav: keep every action of going somewhere besides, as the published programs do.
    """

    guide: str = ""
    k: Count = 50
    keep_nav: bool = True


class Lge(Drrn):
    """The LGE policy; the first text that lasts an episode is the task.

    Attributes:
        epsilon: probability that all valid actions are candidates; kept with the weights, as play is by the same rule.
        together: one draw decides for all episodes of a step, and not one for each.
        guided: steps so far in which the Guide left actions out.

    Raises:
        ConfigurationError: an environment that it is not made for, or no Guide in the folder.
        CheckpointError: a damaged Guide.
    """

    defaults = LgeConfig()

    def __init__(self, spec: EnvSpec, config: LgeConfig) -> None:
        super().__init__(spec, config)
        self.config: LgeConfig = config
        lasting = spec.lasting_texts
        readers = [name for name, fields in self.readers.items() if lasting and lasting[0] in fields]
        if not readers:
            raise ConfigurationError("lge reads a text that says what is to be done, which this world does not show")
        self.epsilon, self.together = nn.Buffer(torch.tensor(0.1)), nn.Buffer(torch.tensor(False))
        self.guided = 0
        self._task, self._reader = lasting[0], readers[0]
        self._guide = GuideReader(_open_guide(config.guide), spec.words) if config.guide else _no_guide
        self._dice = torch.Generator()

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        encoding = super().encode(name, ids)
        if name == CHOICES:
            vectors, texts = self._guide(ids[CHOICES])
            goes = torch.tensor([text.startswith(NAVIGATION) for text in texts], device=vectors.device)
            return {**encoding, "guide": vectors, "goes": goes}
        return {**encoding, "guide": self._guide(ids[self._task])[0]} if name == self._reader else encoding

    def draw_record(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Draw the random numbers [*shape] in [0, 1) that decide in each step whether the Guide selects."""
        drawn = torch.rand(shape, generator=generator)
        return {_U: drawn[..., :1].expand(shape).contiguous() if self.together else drawn}

    def candidates(self, batch: Batch) -> Tensor:
        """Return [T, B, C] bool: the Guide's selection, or all valid actions."""
        valid = batch.observation["action_mask"].bool()
        u = batch.record[_U] if _U in batch.record else self._draw(batch)
        guided = (u.to(valid.device) > self.epsilon) & (valid.sum(-1) > self.config.k)
        self.guided += int(guided.sum())
        offered, task = batch.texts[CHOICES], batch.texts[self._reader]
        chosen = valid.clone()
        for t, b in guided.nonzero().tolist():
            places = valid[t, b].nonzero().squeeze(1)
            which = offered.index[t, b, places]
            scores = offered.encoding["guide"][which] @ task.encoding["guide"][task.index[t, b]]
            kept = torch.zeros_like(valid[t, b])
            kept[places[scores.topk(self.config.k).indices]] = True
            if self.config.keep_nav:
                kept[places[offered.encoding["goes"][which]]] = True
            chosen[t, b] = kept
        return chosen

    def _draw(self, batch: Batch) -> Tensor:
        """Random numbers [T, B] of evaluation, the same in every evaluation."""
        if bool(batch.restarts[0].all()):
            self._dice.manual_seed(0)
        return self.draw_record(tuple(batch.restarts.shape), self._dice)[_U]


def _no_guide(ids: Tensor) -> tuple[Tensor, list[str]]:
    raise ConfigurationError(NO_GUIDE)


class GuideReader:
    """Cache of a Guide's vectors of an environment's texts, for the words of its ids.

    No torch module: the Guide learns no more, and belongs to no optimiser and to no checkpoint.

    Raises:
        ConfigurationError: an environment without the words of its ids.
    """

    def __init__(self, guide: Guide, words: Sequence[str]) -> None:
        if not words:
            raise ConfigurationError("this world does not say which words its ids are: no Guide can read them")
        self.guide = guide
        self._words = words
        self._places: dict[bytes, int] = {}
        self._vectors = torch.zeros(0)
        self._texts: list[str] = []

    def __call__(self, ids: Tensor) -> tuple[Tensor, list[str]]:
        """Return vectors [U, D] of length 1 of texts [U, L], and the texts."""
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
        places = [self._places[key] for key in keys]
        return self._vectors[places].to(ids.device), [self._texts[place] for place in places]

    def __deepcopy__(self, memo: dict[int, Any]) -> GuideReader:
        return self  # copies of a network read with the same Guide, which never changes


@cache
def _open_guide(folder: str) -> Guide:
    """Load a Guide once for all agents of a process; errors as those of `load_guide`."""
    return load_guide(user_path(folder))
