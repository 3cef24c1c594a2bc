"""Action names, and the keys that stand for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.spec import CHOICES, EnvSpec, TextChoices
from magrounding.vocabulary import plain_text


def action_name(spec: EnvSpec, obs: Mapping[str, np.ndarray], game: int, agent: int, action: int) -> str:
    """Return the name of an agent's action in a row of an observation, or the words of its choice."""
    if not isinstance(spec.actions, TextChoices):
        return spec.actions.names[action]
    offered = obs[CHOICES][game]
    row = offered[action] if offered.ndim == 2 else offered[agent, action]
    return plain_text(spec.words, row.tolist()) or "nothing"


def letters_of(names: Sequence[str], reserved: Sequence[str] = ()) -> dict[str, int]:
    """Return letter or digit → action: the first of each name that is neither reserved nor of an action before.

    A name of which none is left, or texts to choose from, which have no names, are a ConfigurationError.
    """
    letters: dict[str, int] = {}
    for action, name in enumerate(names):
        own = next((each for each in name.lower() if each.isalnum() and each not in (*letters, *reserved)), None)
        if own is None:
            raise ConfigurationError(f"no key is left for the action {name!r}: this game cannot be played by keys")
        letters[own] = action
    return letters
