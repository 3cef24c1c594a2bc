"""The words of ALFWorld: of its text grammar, of ALFRED's things, and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from magrounding.single.alfworld import kinds
from magrounding.vocabulary import Vocabulary

UNKNOWN = "<unknown>"
"""What a game of the user's may say that no word here stands for."""

_GRAMMAR = """
a an the some you are in on into to of it is at from with and them under next nothing anything not s there this
middle room looking quickly around see facing your current location inventory task arrive open closed pick up move close
carrying turn off using normal special about don any switch happens
go take put use examine help look heat clean cool slice sliced hot cold
available commands check something receptacle object place sharp
two find
"""

_MORE_THINGS = """
AppleSliced Bathtub Blinds Boots BreadSliced Chair Curtains Faucet FloorLamp Footstool HousePlant LaundryHamperLid
LettuceSliced LightSwitch Mirror Painting PaintingHanger PaperTowel PaperTowelRoll Plunger Poster PotatoSliced ScrubBrush
ShowerDoor ShowerGlass Sink StoveKnob TeddyBear Television ToiletPaperRoll TomatoSliced Window
"""
"""ALFRED's kinds of things that our scenes lack."""

NUMBERS = range(1, 31)

_THINGS = sorted({kind.lower() for kind in (*kinds.RECEPTACLES, *kinds.OBJECTS, *_MORE_THINGS.split())})

VOCABULARY = Vocabulary(dict.fromkeys((UNKNOWN, *_GRAMMAR.split(), *_THINGS, *map(str, NUMBERS))))

_WORD = re.compile(r"[a-z]+|\d+")
_THING = re.compile(r"([a-z]+) (\d+)")


def things_in(text: str) -> list[str]:
    """Everything that a text names by kind and number, in its order."""
    return [f"{kind} {number}" for kind, number in _THING.findall(text.lower())]


def ids_of(texts: Iterable[str], rows: int, length: int) -> np.ndarray:
    """Word ids [rows, length] int16 of texts, padded with zeros; what does not fit is left out."""
    found = np.zeros((rows, length), np.int16)
    for row, text in zip(found, texts, strict=False):
        ids = _ids(text, length)
        row[: len(ids)] = ids
    return found


@lru_cache(maxsize=65536)
def _ids(text: str, length: int) -> tuple[int, ...]:
    words = _WORD.findall(text.lower())[:length]
    return tuple(VOCABULARY[word if word in VOCABULARY else UNKNOWN] for word in words)
