"""Assignments of roles: the [enemy, message, goal] triples of every split (Hanjie et al. 2021, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from magrounding.brief import brief
from magrounding.envs.messenger.entities import ENTITIES

_MANY = (
    ("queen", "robot", "ship", "thief"),
    ("airplane", "scientist", "ship", "thief"),
    ("airplane", "queen", "robot", "scientist"),
)
_SINGLE = (("dog", "fish", "bird"), ("fish", "bird", "dog"), ("sword", "ball", "mage"), ("ball", "mage", "sword"))
_HELD_OUT = (
    ("airplane", "bird", "mage", "scientist"),
    ("dog", "queen", "robot", "sword"),
    ("ball", "fish", "ship", "thief"),
)


@dataclass(frozen=True)
class Split:
    """Episodes of a split, and the words of their manuals.

    Attributes:
        combinations: "many" (entities that change roles), "single" (entities that never do: nothing but their
            descriptions distinguishes them), "mixed" (three games of four from "many"), "val" or "test".
        text: whose templates: "train", "val" or "test".
        new_dynamics: in stages where movements are stated, any movement for any role; else each movement once.
    """

    __repr__ = brief

    combinations: str
    text: str
    new_dynamics: bool = False


SPLITS = {
    "train": Split("mixed", "train"),
    "train_mc": Split("many", "train"),
    "train_sc": Split("single", "train"),
    "val": Split("val", "val"),
    "test": Split("test", "test", new_dynamics=True),
    "test_seen_dynamics": Split("test", "test"),
}


def triples(combinations: str) -> np.ndarray:
    """The triples [P, 3] int64 (enemy, message, goal; numbers of ENTITIES) of "many", "single", "val" or "test".

    There are 40, 4, 32 and 32. The 64 held-out ones alternate between validation and test, so both have every role of
    every entity of theirs. No (entity, role) pair of a held-out triple occurs in training.
    """
    if combinations == "single":
        chosen = list(_SINGLE)
    elif combinations == "many":
        chosen = [triple for triple in product(*_MANY) if len(set(triple)) == 3]
    else:
        parity = ("val", "test").index(combinations)
        places = product(range(4), repeat=3)
        chosen = [tuple(_HELD_OUT[r][i] for r, i in enumerate(at)) for at in places if sum(at) % 2 == parity]
    return np.array([[ENTITIES.index(name) for name in triple] for triple in chosen], np.int64)
