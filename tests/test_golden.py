"""Golden digests of worlds and settings, which are the same on any machine; `make golden` compares all of them.

A digest that differs means that dynamics, text, reward, mask or a default changed: bump the id's version (`golden`).
"""

import json

import pytest

from tests.golden import CASES, GOLDEN

EVERYWHERE = [name for name in CASES if name.startswith(("games:", "batch:", "splits", "preset:"))]


@pytest.mark.parametrize("name", EVERYWHERE)
def test_games_and_settings_are_as_recorded(name):
    digests = json.loads(GOLDEN.read_text(encoding="utf-8"))["digests"]
    assert digests.keys() == CASES.keys()
    assert CASES[name]() == digests[name]
