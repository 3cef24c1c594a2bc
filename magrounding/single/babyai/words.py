"""The words of BabyAI, and minigrid's cells as words and back."""

from __future__ import annotations

import numpy as np

from magrounding.vocabulary import PAD, Vocabulary

TYPES = tuple("unseen empty wall floor door key ball box goal lava agent".split())
COLOURS = tuple("red green blue purple yellow grey".split())
STATES = tuple("open closed locked".split())
"""Types in the order of minigrid's numbers. "goal", "lava", "floor" and "agent" occur in no level of BabyAI."""

_GRAMMAR = "go to the a object pick up put next and then after you on your left right in front of behind".split()

VOCABULARY = Vocabulary((*TYPES, *COLOURS, *STATES, *_GRAMMAR))

_THING = len("a red ball in front of you".split())
_ACTION = len(["put"]) + _THING + len("next to".split()) + _THING
_PAIR = _ACTION + len(["and"]) + _ACTION
MAX_WORDS = _PAIR + len("after you".split()) + _PAIR
"""Words of the longest mission: put … next to … and put … next to …, after you have done two more of the kind."""

VIEW = 7
"""Rows and columns that the agent sees."""

NUM_CODES = len(TYPES) * len(COLOURS) * len(STATES)
"""A cell's code: (type · 6 + colour) · 3 + state."""


def _code_to_words() -> np.ndarray:
    """Word ids [NUM_CODES, 3] of each code. Only things have colours, and only doors states."""
    table = np.full((NUM_CODES, 3), PAD, np.int16)
    for code in range(NUM_CODES):
        rest, state = divmod(code, len(STATES))
        kind, colour = divmod(rest, len(COLOURS))
        table[code, 0] = VOCABULARY[TYPES[kind]]
        if TYPES[kind] not in ("unseen", "empty"):
            table[code, 1] = VOCABULARY[COLOURS[colour]]
        if TYPES[kind] == "door":
            table[code, 2] = VOCABULARY[STATES[state]]
    return table


def _numbers(words: tuple[str, ...]) -> np.ndarray:
    """Minigrid's number [V] uint8 of each word id; 0 for padding and for every word that is not of this kind."""
    table = np.zeros(len(VOCABULARY), np.uint8)
    for number, word in enumerate(words):
        table[VOCABULARY[word]] = number
    return table


CODE_TO_WORDS = _code_to_words()
"""[NUM_CODES, 3] int16."""

WORD_TO_TYPE, WORD_TO_COLOUR, WORD_TO_STATE = _numbers(TYPES), _numbers(COLOURS), _numbers(STATES)
"""[V] uint8 each: minigrid's numbers, by word id, of the three planes of `grid`."""

OPAQUE = np.isin(
    CODE_TO_WORDS[:, 0] * np.int32(100) + CODE_TO_WORDS[:, 2],
    [VOCABULARY["wall"] * 100, *(VOCABULARY["door"] * 100 + VOCABULARY[state] for state in ("closed", "locked"))],
)
"""[NUM_CODES] bool: what hides the cells behind it: walls, and doors that are not open."""


_CODE_WEIGHTS = np.array([len(COLOURS) * len(STATES), len(STATES), 1], np.uint8)  # codes are below 198: no overflow


def cell_code(kind: int, colour: int, state: int) -> int:
    """The code of minigrid's triple."""
    return (kind * len(COLOURS) + colour) * len(STATES) + state


def cell_codes(image: np.ndarray) -> np.ndarray:
    """Codes [rows, columns] uint8 for minigrid's image [columns, rows, 3] uint8."""
    return (image @ _CODE_WEIGHTS).T


def raw_image(grid: np.ndarray) -> np.ndarray:
    """Minigrid's image [..., 7, 7, 3] uint8 (type, colour, state; column before row) for `grid` [..., 7, 7, 3]."""
    planes = WORD_TO_TYPE[grid[..., 0]], WORD_TO_COLOUR[grid[..., 1]], WORD_TO_STATE[grid[..., 2]]
    return np.stack(planes, axis=-1).swapaxes(-3, -2).copy()


def mission_ids(mission: str) -> np.ndarray:
    """`goal` [MAX_WORDS] int16 for a mission; KeyError for a word outside the grammar."""
    return VOCABULARY.encode(mission.lower().replace(",", ""), MAX_WORDS)
