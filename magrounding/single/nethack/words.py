"""The ids of NetHack's observations: words of its texts, then a symbol for each glyph, character and colour.

The last two lines of its screen are one text, made of the numbers behind them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from magrounding.single.tokenizer import Tokenizer

WORDS_FILE = Path(__file__).with_name("data") / "words.json"

GLYPHS, CHARACTERS, COLOURS = 5976, 128, 16
"""Numbers of glyphs, characters and colours of NetHack 3.6.6, as the NetHack Learning Environment builds it."""

SHADES = (
    "black,red,green,brown,blue,magenta,cyan,grey,no colour,orange,bright green,yellow,bright blue,bright magenta,"
    "bright cyan,white"
).split(",")
"""Names of the colours, in their order."""

UNMARKED, BEEN, REFUSED, SHUT, LOCKED = range(5)
"""Marks of a cell, by what the agent's own moves have found out of it."""
MARKS = "been there,not entered at the first try,not entered,locked".split(",")
"""Names of these, from BEEN on."""

HEIGHT, WIDTH = 21, 79

BLANK, MAP_END = 2359, 2446
"""The glyph of what has not been seen, the first of those of walls, doors, floors, stairs and traps; and their end."""

HERO = 333
"""The glyph of a human monk, which the agent is."""

_NUMBERS = 300

SHOWN = (9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 21, 22, 25)
"""Places in nle's `blstats` of what is reported; the turn is not, as it would make every text a new one."""

_HUNGER = ("satiated", "", "hungry", "weak", "fainting", "fainted", "starved")
_BURDEN = ("", "burdened", "stressed", "strained", "overtaxed", "overloaded")
_CONDITIONS = (
    "stone,slime,strangled,food poisoned,ill,blind,deaf,stunned,confused,hallucinating,levitating,flying,riding"
).split(",")
"""Conditions, by the bits of the last number."""


@lru_cache(maxsize=1)
def tokenizer() -> Tokenizer:
    """Return the tokenizer of NetHack's texts: the words that `tools.nethack.collect` lists, numbers, and letters."""
    words = json.loads(WORDS_FILE.read_text(encoding="utf-8"))["words"]
    return Tokenizer(dict.fromkeys((*words, *map(str, range(_NUMBERS)))))


@lru_cache(maxsize=1)
def all_words() -> tuple[str, ...]:
    """Return the word of each id."""
    symbols = (("glyph", GLYPHS), ("character", CHARACTERS), ("colour", COLOURS))
    return (*tokenizer().words, *(f"{kind}:{number}" for kind, count in symbols for number in range(count)))


@lru_cache(maxsize=1)
def words_with_marks() -> tuple[str, ...]:
    """Return the word of each id of a world that shows marks, which come last."""
    return (*all_words(), *(f"mark:{name}" for name in MARKS))


@lru_cache(maxsize=1)
def first_ids() -> tuple[int, int, int]:
    """Return the ids of glyph, character and colour 0."""
    glyph = len(tokenizer().words)
    return glyph, glyph + GLYPHS, glyph + GLYPHS + CHARACTERS


def status_text(numbers: Sequence[int]) -> str:
    """Return the status line of those numbers of `blstats` that are SHOWN."""
    score, hp, max_hp, depth, gold, pw, max_pw, ac, level, points, hunger, burden, conditions = numbers
    states = [_named(_HUNGER, hunger), _named(_BURDEN, burden)]
    states += [name for bit, name in enumerate(_CONDITIONS) if conditions >> bit & 1]
    line = (
        f"dlvl {depth} $ {gold} hp {hp} ( {max_hp} ) pw {pw} ( {max_pw} ) ac {ac} xp {level} / {points} score {score}"
    )
    return " ".join([line, *filter(None, states)])


def _named(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else ""


UNKNOWN, FREE, DOOR, BLOCKED = range(4)
"""Kinds of cells; no step into a door or out of it is diagonal."""

PATIENCE, KICKS = 2, 5
"""Vain tries to enter a cell, and kicks at a locked door, before it counts as blocked."""

DIRECTIONS = np.array([(-1, 0), (0, 1), (1, 0), (0, -1), (-1, 1), (1, 1), (1, -1), (-1, -1)])
"""Row and column of each, in the order of the actions."""

GOLD, _BOULDER = 2316, 2353
_OBJECTS, _END = 1906, 2446
_STATUES, _STATUES_END = 5595, 5976
_CORPSES, _CORPSES_END = 1144, 1525
DOWN, TRAP_DOOR, HOLE = BLANK + 24, BLANK + 55, BLANK + 54
CLOSED_DOORS = (BLANK + 15, BLANK + 16)


def _kinds() -> np.ndarray:
    """[5976] uint8, what the cell of a glyph is; that of a monster is nothing by itself."""
    kinds = np.full(_STATUES_END, FREE, np.uint8)
    kinds[BLANK] = UNKNOWN
    solid = (*range(1, 12), 17, 18, 32, 34, 37, 38, 41, *range(42, 54), *range(56, 64))  # walls, water, lava, traps
    kinds[[BLANK + k for k in solid]] = BLOCKED
    kinds[[BLANK + k for k in range(13, 17)]] = DOOR
    kinds[_BOULDER] = BLOCKED
    kinds[_STATUES:] = BLOCKED
    return kinds


KINDS = _kinds()


def stays(glyphs: np.ndarray) -> np.ndarray:
    """Return whether each glyph is of something that does not move: the map, a thing, a corpse or a statue."""
    still = (glyphs >= _OBJECTS) & (glyphs < _END)
    return still | (glyphs >= _STATUES) | ((glyphs >= _CORPSES) & (glyphs < _CORPSES_END))
