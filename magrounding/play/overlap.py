"""OverlapTeam: the choice that shares the most words with the task, where actions are texts to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.play.player import shown_to
from magrounding.spec import CHOICES, EnvSpec, TextChoices
from magrounding.vector import check_count

_TINY = 1e-9
"""Weight of the draw between equal similarities, below any difference of them; and the least length to divide by."""


class OverlapTeam:
    """Bag-of-words choice, nothing learnt: the text on offer that is most like the task by tf-idf cosine.

    A word's weight in a text is how often it occurs there, times log(N / n) where n of the N choices on offer have
    it (Salton & Buckley 1988). Equal similarities are decided at random. The task is the text of a whole
    episode; ConfigurationError where there is none, or actions are no texts to choose from. `seed` is of the draws.
    """

    def __init__(self, spec: EnvSpec, seed: int = 0) -> None:
        self._task = spec.lasting_texts
        if not isinstance(spec.actions, TextChoices) or not self._task:
            raise ConfigurationError("overlap chooses among texts by a task: this world has no such texts")
        self._spec, self.num_agents = spec, spec.num_agents
        self._rng = np.random.default_rng(check_count("seed", seed, 0, 2**62))

    def act(
        self, obs: Mapping[str, Any], memory: None = None, info: Any = None, greedy: bool = False
    ) -> tuple[np.ndarray, None]:
        agents = [shown_to(agent, obs, self._spec, None) for agent in range(self.num_agents)]
        chosen = [
            [
                self._choose([shown.texts[name][row] for name in self._task], shown.texts[CHOICES][row], mask)
                for row, mask in enumerate(shown.observation["action_mask"] != 0)
            ]
            for shown in agents
        ]
        return np.array(chosen, np.int64).T, None

    def _choose(self, task: list[np.ndarray], choices: np.ndarray, mask: np.ndarray) -> int:
        offered = np.flatnonzero(mask)
        if not len(offered):
            return 0
        texts = choices[offered]
        words = np.setdiff1d(texts, 0)
        counts = (texts[:, :, None] == words).sum(1)
        rarity = np.log(len(offered) / (counts > 0).sum(0))
        asked = (np.concatenate([each.ravel() for each in task])[:, None] == words).sum(0) * rarity
        weights = counts * rarity
        similar = weights @ asked / np.maximum(np.linalg.norm(weights, axis=1), _TINY)
        return int(offered[(similar + _TINY * self._rng.random(len(offered))).argmax()])
