"""Players that have learnt nothing, the floor of every comparison: chance, and the overlap of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.spec import CHOICES, EnvSpec, FixedActions, TextChoices
from magrounding.teams.player import shown_to
from magrounding.vector import VectorEnv, check_count

_TINY = 1e-9
"""Weight of the draw between equal similarities, below any difference of them; and the least length to divide by."""


class RandomTeam:
    """Each of n agents draws one of A actions uniformly, with the `act` of a trained team; `seed` is of the draws.

    With `obey_mask` it draws among the legal actions only; by default among all (an illegal one does nothing).
    """

    def __init__(self, num_agents: int, num_actions: int, seed: int = 0, *, obey_mask: bool = False) -> None:
        self.num_agents = check_count("num_agents", num_agents, 1)
        self.num_actions = check_count("num_actions", num_actions, 1)
        self.obey_mask = obey_mask
        self._rng = np.random.default_rng(check_count("seed", seed, 0, 2**62))

    def initial_memory(self, num_envs: int) -> None:
        """Return None: nothing is remembered."""

    def act(
        self, obs: Mapping[str, Any], memory: None = None, info: Mapping[str, Any] | None = None, greedy: bool = False
    ) -> tuple[Any, None]:
        """Return actions [B, n] int64 for a vector env's observation, {agent: int} for a single env's dict of dicts.

        What is no observation, or has no 'action_mask' of A actions, is a ConfigurationError.
        """
        if isinstance(obs, Mapping) and obs and all(isinstance(seen, Mapping) for seen in obs.values()):
            return {agent: int(self._draw(self._mask(seen, 1)[None])[0]) for agent, seen in obs.items()}, None
        return self._draw(self._mask(obs, 3)), None

    def _mask(self, seen: Any, axes: int) -> np.ndarray:
        mask = seen.get("action_mask") if isinstance(seen, Mapping) else None
        if not isinstance(mask, np.ndarray) or mask.ndim != axes or mask.shape[-1] != self.num_actions:
            raise ConfigurationError(f"this team needs an 'action_mask' of {self.num_actions} actions for each agent")
        return mask

    def _draw(self, mask: np.ndarray) -> np.ndarray:
        if not self.obey_mask:
            return self._rng.integers(self.num_actions, size=mask.shape[:-1], dtype=np.int64)
        return np.where(mask != 0, self._rng.random(mask.shape), -1.0).argmax(-1)


def random_team(vec: VectorEnv, seed: int = 0) -> RandomTeam:
    """Return the random team of reports, matches and line-ups for a vector env.

    It draws among all actions where they are fixed. Where actions are texts to choose from, or ways, it draws among
    those on offer: most rows hold no choice at all.
    """
    obey_mask = not isinstance(vec.spec.actions, FixedActions)
    return RandomTeam(vec.num_agents, vec.spec.num_actions, seed, obey_mask=obey_mask)


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
