"""Golden digests of worlds and settings, which are the same on any machine; `make golden` compares all of them.

A digest that differs means that dynamics, text, reward, mask or a default changed: bump the id's version (`golden`).
"""

import json

import pytest

from tests.golden import CASES, GOLDEN, differs

EVERYWHERE = [name for name in CASES if name.startswith(("games:", "batch:", "splits", "preset:"))]


@pytest.mark.parametrize("name", EVERYWHERE)
def test_games_and_settings_are_as_recorded(name):
    digests = json.loads(GOLDEN.read_text(encoding="utf-8"))["digests"]
    assert digests.keys() == CASES.keys()
    assert CASES[name]() == digests[name]


@pytest.mark.parametrize(
    ("found", "same_machine", "expected"),
    [
        (["a", 1.0], True, False),
        (["b", 1.0], True, True),
        (["b", 1.0001], False, False),
        (["b", 1.1], False, True),
        ("a", False, True),
    ],
)
def test_weights_of_another_machine_are_almost_equal(found, same_machine, expected):
    assert differs(found, ["a", 1.0], same_machine) is expected
