"""What a world says: the texts of games that are played at random, for vocabularies that are made of texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.single.tokenizer import plain_text
from magrounding.spec import CHOICES
from magrounding.texts import content_keys
from magrounding.vector import VectorEnv


def texts_shown(vec: VectorEnv, steps: int, seed: int) -> Iterator[str]:
    """Each distinct text of so many steps of some games, choices among them; legal actions are drawn evenly.

    Raises:
        ConfigurationError: a world that does not say its words, or shows no texts.
    """
    spec = vec.spec
    if not spec.words or not spec.texts:
        raise ConfigurationError("this world has no texts whose words it says")
    rng, known = np.random.default_rng(seed), set[int]()
    observation, _ = vec.reset(seed=seed)
    for step in range(steps + 1):
        mask = observation["action_mask"] > 0
        for text in spec.texts:
            shown = observation[text.name]
            rows = shown[mask] if text.name == CHOICES else shown.reshape(-1, *text.shape)
            for key, row in zip(content_keys({text.name: rows}).tolist(), rows, strict=True):
                if key not in known:
                    known.add(key)
                    if said := plain_text(spec.words, row.ravel().tolist()):
                        yield said
        if step < steps:
            observation, *_ = vec.step(np.where(mask, rng.random(mask.shape), -1.0).argmax(-1))
