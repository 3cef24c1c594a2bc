"""Splits, and the sentences of the games of a split and stage: which cells of a corpus they draw from.

A split says which roles entities have (Hanjie et al. 2021, section 3).

A corpus need not say everything: no game of `test`, say, has a bird that is a message, and where entities stand still
no sentence states a chase. What games do need follows from the triples of their split and from the movements, decoys
and statements of their stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from magrounding.brief import brief
from magrounding.envs.messenger.arrays import ENEMY, ENTITIES, GOAL, IMMOVABLE, MESSAGE, MOVEMENTS, ROLES, UNKNOWN
from magrounding.envs.messenger.manual import CELLS, TEXTS, Cell, Corpus, find_corpus
from magrounding.errors import DataNotFound

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


if TYPE_CHECKING:
    from magrounding.envs.messenger.games import MessengerGame

_SUBSTITUTES = ("unknown", "immovable", "fleeing", "chasing")
"""Movements, the first being the one that says least."""


def sentences_of(game: MessengerGame) -> tuple[tuple[str, ...], ...]:
    """The sentences of each of CELLS that the games draw from.

    A reassigned manual speaks of entities in roles that no game of the split has, of which a corpus may say nothing. An
    empty cell then takes the sentences of another movement of the same entity and role, else those of the same cell in
    the files of other splits.

    Raises:
        DataNotFound: a corpus that is missing or damaged, or has no sentence where games need one.
    """
    corpus, text = find_corpus(game.corpus), SPLITS[game.split].text
    found = dict(corpus.sentences[text])
    for cells in needed_cells(game):
        if any(corpus.sentences[text][cell] for cell in cells):
            continue
        substitute = _substitute(corpus, text, cells) if game.manual == "reassigned" else ()
        if not substitute:
            raise DataNotFound(
                f"{corpus.source}: no sentence of {text} for {' → '.join(cells[0])}, which the games of stage "
                f"{getattr(game, 'stage', '')}, split {game.split}, need with a {game.manual} manual"
            )
        found[cells[0]] = substitute
    return tuple(found[cell] for cell in CELLS)


def needed_cells(game: MessengerGame) -> list[tuple[Cell, ...]]:
    """Cells from which statements are drawn; where there are several together, from all of them as if they were one."""
    if game.game_id:
        return []
    stage, needed = game.kind, set()
    for entity, role, movement in _statements(game):
        if stage.moves == "still":
            needed.add((_cell(entity, role, IMMOVABLE), _cell(entity, role, UNKNOWN)))
            continue
        if stage.says_nothing < 100:
            needed.add((_cell(entity, role, movement),))
        if stage.says_nothing > 0:
            needed.add((_cell(entity, role, UNKNOWN),))
    return sorted(needed, key=lambda cells: CELLS.index(cells[0]))


def _statements(game: MessengerGame) -> Iterator[tuple[int, int, int]]:
    """Kind, role and movement of every statement of any game, as `generate._write_manual` has them."""
    split, stage = SPLITS[game.split], game.kind
    parts = ("many", "single") if split.combinations == "mixed" else (split.combinations,)
    who = [triple for part in parts for triple in triples(part).tolist()]
    for triple, movement in product(who, stage.movements(split.new_dynamics)):
        made = [(triple[role], role, int(movement[role])) for role in (ENEMY, MESSAGE, GOAL)]
        if stage.decoys:
            made += [(triple[mimicked], ENEMY, int(movement[mimicked + 2])) for mimicked in (MESSAGE, GOAL)]
            made += [(triple[ENEMY], role, int(movement[ENEMY] + k) % 3) for role in (MESSAGE, GOAL) for k in (1, 2)]
        for kind, role, way in made:
            for shift in (1, 2) if game.manual == "reassigned" else (0,):
                yield kind, (role + shift) % 3, way


def _cell(entity: int, role: int, movement: int) -> Cell:
    return ENTITIES[entity], ROLES[role], MOVEMENTS[movement]


def _substitute(corpus: Corpus, text: str, cells: tuple[Cell, ...]) -> tuple[str, ...]:
    """Return the sentences drawn in place of empty cells; none where none are found."""
    entity, role, _ = cells[0]
    own = ((text, (entity, role, movement)) for movement in _SUBSTITUTES)
    others = ((other, cell) for other in TEXTS if other != text for cell in cells)
    return next((s for of, cell in (*own, *others) if (s := corpus.sentences[of][cell])), ())
