"""The words of ALFWorld: of its text grammar, of ALFRED's things, and numbers."""

from __future__ import annotations

import re

from magrounding.single.alfworld import kinds
from magrounding.single.tokenizer import UNKNOWN, Tokenizer

_GRAMMAR = """
a an the some you are in on into to of it is at from with and them under next nothing anything not s there this
middle room looking quickly around see facing your current location inventory task arrive open closed pick up move close
carrying turn off using normal special about don t any switch happens
go take put use examine help look heat clean cool slice sliced hot cold
available commands check or something receptacle object place sharp
two find
"""

_MORE_THINGS = """
AppleSliced Bathtub Blinds Boots BreadSliced Chair Curtains Faucet FloorLamp Footstool HousePlant LaundryHamperLid
LettuceSliced LightSwitch Mirror Painting PaintingHanger PaperTowel PaperTowelRoll Plunger Poster PotatoSliced
ScrubBrush ShowerDoor ShowerGlass Sink StoveKnob TeddyBear Television ToiletPaperRoll TomatoSliced Window
"""
"""ALFRED's kinds of things that our scenes lack."""

_THINGS = sorted({kind.lower() for kind in (*kinds.RECEPTACLES, *kinds.OBJECTS, *_MORE_THINGS.split())})
_NUMBERS = range(1, 31)

TOKENIZER = Tokenizer((*_GRAMMAR.split(), *_THINGS, *map(str, _NUMBERS)))

_THING = re.compile(r"([a-z]+) (\d+)")


def things_in(text: str) -> list[tuple[str, str]]:
    """Kind and number of everything that a text names by both, in its order."""
    return _THING.findall(text.lower())


def thing_ids(thing: tuple[str, str]) -> list[int]:
    """A word for the kind and one for the number; what a game of the user's calls otherwise is UNKNOWN."""
    return [TOKENIZER.vocabulary[word if word in TOKENIZER.vocabulary else UNKNOWN] for word in thing]
