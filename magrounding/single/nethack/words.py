"""The ids of NetHack's observations: words of its texts, then a symbol for each glyph, character and colour."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from magrounding.single.wording import Wording

WORDS_FILE = Path(__file__).with_name("data") / "words.json"

GLYPHS, CHARACTERS, COLOURS = 5976, 128, 16
"""How many there are: NetHack 3.6.6 as the NetHack Learning Environment builds it."""

HEIGHT, WIDTH = 21, 79

BLANK, MAP_END = 2359, 2446
"""The glyph of what has not been seen, the first of those of walls, doors, floors, stairs and traps; and their end."""

HERO = 333
"""The glyph of a human monk, which the agent is."""

_NUMBERS = 300


@lru_cache(maxsize=1)
def wording() -> Wording:
    """What writes NetHack's texts: a list that `tools.nethack.collect` has made, numbers, and everything else spelt."""
    words = json.loads(WORDS_FILE.read_text(encoding="utf-8"))["words"]
    return Wording(dict.fromkeys((*words, *map(str, range(_NUMBERS)))))


@lru_cache(maxsize=1)
def all_words() -> tuple[str, ...]:
    """The word of each id."""
    symbols = (("glyph", GLYPHS), ("character", CHARACTERS), ("colour", COLOURS))
    return (*wording().words, *(f"{kind}:{number}" for kind, count in symbols for number in range(count)))


@lru_cache(maxsize=1)
def first_ids() -> tuple[int, int, int]:
    """The ids of glyph, character and colour 0."""
    glyph = len(wording().words)
    return glyph, glyph + GLYPHS, glyph + GLYPHS + CHARACTERS
