"""Receptacles and objects of our scenes, and what can be done with them; names are ALFRED's."""

import json
from pathlib import Path

_DATA = json.loads(Path(__file__).with_name("data").joinpath("words.json").read_text("utf-8"))

HOLDS = {receptacle: frozenset(objects.split()) for receptacle, objects in _DATA["holds"].items()}
"""Receptacle → the kinds of objects that it can contain."""

OPENABLE, VESSELS, SLICEABLE, HEATABLE, COOLABLE, CLEANABLE = (
    frozenset(_DATA[name].split()) for name in ("openable", "vessels", "sliceable", "heatable", "coolable", "cleanable")
)

LAMP = "DeskLamp"
"""The one thing that cannot be picked up, and can be switched."""

RECEPTACLES = tuple(sorted(HOLDS))
OBJECTS = tuple(sorted(set[str]().union(*HOLDS.values())))

NAMES = tuple(sorted({kind.lower() for kind in (*RECEPTACLES, *OBJECTS, *_DATA["others"].split())}))
"""Names of all ALFRED's kinds of things in texts; our scenes lack some."""

GRAMMAR_WORDS = tuple(_DATA["grammar"].split())
"""All other words of the package's text grammar."""
