"""The ids of NetHack's observations: words of its texts, then a symbol for each glyph, character and colour."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from magrounding.single.tokenizer import Tokenizer

WORDS_FILE = Path(__file__).with_name("data") / "words.json"

GLYPHS, CHARACTERS, COLOURS = 5976, 128, 16
"""Numbers of each: NetHack 3.6.6 as the NetHack Learning Environment builds it."""

HEIGHT, WIDTH = 21, 79

BLANK, MAP_END = 2359, 2446
"""The glyph of what has not been seen, the first of those of walls, doors, floors, stairs and traps; and their end."""

HERO = 333
"""The glyph of a human monk, which the agent is."""

_NUMBERS = 300


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
def first_ids() -> tuple[int, int, int]:
    """Return the ids of glyph, character and colour 0."""
    glyph = len(tokenizer().words)
    return glyph, glyph + GLYPHS, glyph + GLYPHS + CHARACTERS
