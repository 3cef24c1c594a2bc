"""Claims of RTFM's manuals, with the places of the words: for diagnoses of readers, and never for agents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from magrounding.envs.rtfm import arrays
from magrounding.envs.rtfm.constructions import POLARITIES, STATED
from magrounding.envs.rtfm.games import RtfmGame
from magrounding.envs.rtfm.ontology import ELEMENTS, TEAMS, TRAINING, UNSEEN

RELATIONS = ("beats", "belongs to")
"""Relations of a modifier to an element, and of a monster to a team."""
MOST_FACTS = 40
"""Rows that the claims of any manual fit in: 17 facts, each denied or retracted of one other name at most."""


@dataclass(frozen=True)
class Fact:
    """A claim of a manual. A word of the manual is named by its row and its place in the row.

    Attributes:
        relation: one of RELATIONS.
        subject: a modifier or a monster; object: an element or a team.
        polarity: "said"; "denied" ("not the order but the alliance …"); or "retracted", stated and taken back.
        subject_span, object_span: (row, first, last) of the words that name them, `last` included.
    """

    relation: str
    subject: str
    object: str
    polarity: str
    subject_span: tuple[int, int, int]
    object_span: tuple[int, int, int]


def name_facts(table: np.ndarray, game: RtfmGame) -> tuple[Fact, ...]:
    """Name the claims of one manual, a table [F, 9] as `RTFMWorld.fact_table` gives it (rows of −1 are none)."""
    words = UNSEEN if game.split == "eval_new" else TRAINING
    subjects, objects = (words.modifiers, words.monsters), (ELEMENTS, TEAMS)
    return tuple(
        Fact(
            RELATIONS[relation],
            subjects[relation][subject],
            objects[relation][name],
            POLARITIES[polarity],
            (row, first, last),
            (row, name_first, name_last),
        )
        for relation, subject, name, polarity, row, first, last, name_first, name_last in table.tolist()
        if relation >= 0
    )


def fact_accuracy(table: np.ndarray, believed: np.ndarray) -> float:
    """Return the share of the facts that manuals state (and neither deny nor retract) that a reader believes.

    Args:
        table: [B, F, 9], see `RTFMWorld.fact_table`.
        believed: [B, 2, M] for each relation and subject (by number in the ontology: modifiers, monsters) the number of
            the element or team that a reader gives it; −1 for none.
    """
    stated = (table[..., arrays.POLARITY] == STATED) & (table[..., arrays.RELATION] >= 0)
    games, _ = np.nonzero(stated)
    facts = table[stated]
    right = believed[games, facts[:, arrays.RELATION], facts[:, arrays.SUBJECT]] == facts[:, arrays.OBJECT]
    return float(right.mean())
