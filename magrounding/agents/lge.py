"""LGE, language-guided exploration (Golchha et al. 2024): DRRN over the actions that a Guide holds to be relevant.

With probability 1 − ε candidates are the k actions that score highest for the task's text, and every navigation action;
else all actions. The value of a state is always that of its best valid action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from magrounding.agents.building import configure
from magrounding.agents.drrn.network import Drrn, DrrnConfig
from magrounding.agents.guide.reading import GuideReader, open_guide
from magrounding.agents.policy import Batch, TextEncoding
from magrounding.errors import ConfigurationError
from magrounding.spec import CHOICES, EnvSpec

NAVIGATION = ("go to ", "teleport to ")
"""Prefixes of navigation actions."""

NO_GUIDE = "LGE needs a Guide: train one with `magrounding guide`, and name its folder with the agent's option guide"

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
    k: int = 50
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

    def __init__(self, spec: EnvSpec, config: LgeConfig) -> None:
        super().__init__(spec, config)
        self.config: LgeConfig = config
        lasting = spec.lasting_texts
        readers = [name for name, fields in self.readers.items() if lasting and lasting[0] in fields]
        if not readers:
            raise ConfigurationError("lge reads a text that says what is to be done, which this world does not show")
        self.epsilon: Tensor
        self.together: Tensor
        self.register_buffer("epsilon", torch.tensor(0.1))
        self.register_buffer("together", torch.tensor(False))
        self.guided = 0
        self._task, self._reader = lasting[0], readers[0]
        self._guide = GuideReader(open_guide(config.guide), spec.words) if config.guide else _no_guide
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
        heeded = (u.to(valid.device) > self.epsilon) & (valid.sum(-1) > self.config.k)
        self.guided += int(heeded.sum())
        offered, task = batch.texts[CHOICES], batch.texts[self._reader]
        chosen = valid.clone()
        for t, b in heeded.nonzero().tolist():
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


def make_lge(spec: EnvSpec, **options: Any) -> Lge:
    """Build LGE; options are those of `LgeConfig`."""
    return Lge(spec, configure("lge", LgeConfig(), options))


def _no_guide(ids: Tensor) -> tuple[Tensor, list[str]]:
    raise ConfigurationError(NO_GUIDE)
