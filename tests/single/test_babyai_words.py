"""What BabyAI says of itself without minigrid, and its words: cells and missions are minigrid's, in ids."""

import sys

import numpy as np
import pytest

from magrounding.errors import MissingExtra
from magrounding.single.babyai import BabyAI
from magrounding.single.babyai.words import (
    CODE_TO_WORDS,
    MAX_WORDS,
    OPAQUE,
    VOCABULARY,
    WORD_TO_COLOUR,
    WORD_TO_STATE,
    WORD_TO_TYPE,
    cell_code,
    cell_codes,
    mission_ids,
    raw_image,
)


@pytest.fixture
def minigrid():
    return pytest.importorskip("minigrid", reason="needs the extra `babyai`")


def without_minigrid(monkeypatch):
    for name in [*sys.modules]:
        if name.split(".")[0] == "minigrid":
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "minigrid", None)


def test_without_minigrid_it_describes_itself_and_names_the_extra(monkeypatch):
    without_minigrid(monkeypatch)
    assert BabyAI("BossLevel").describe().max_cycles == 4608
    with pytest.raises(MissingExtra):
        BabyAI().make_env()


def test_the_longest_mission_fits():
    thing = "a yellow ball in front of you"
    pair = f"put {thing} next to {thing} and put {thing} next to {thing}"
    mission = f"{pair} after you {pair}"
    assert len(mission.split()) == MAX_WORDS
    assert VOCABULARY.decode(mission_ids(mission)) == mission
    assert VOCABULARY.decode(mission_ids("open the red door, then go to a key")) == "open the red door then go to a key"


def test_words_are_minigrids_numbers(minigrid):
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

    for table, numbers in (
        (WORD_TO_TYPE, OBJECT_TO_IDX),
        (WORD_TO_COLOUR, COLOR_TO_IDX),
        (WORD_TO_STATE, STATE_TO_IDX),
    ):
        assert {word: int(table[VOCABULARY[word]]) for word in numbers} == numbers
        assert table.sum() == sum(numbers.values())


def test_grid_and_image_are_the_same_thing(minigrid):
    from minigrid.core.constants import COLOR_TO_IDX
    from minigrid.core.world_object import Ball, Box, Door, Floor, Key, Wall

    things = [kind(colour) for kind in (Ball, Box, Key, Floor, Wall) for colour in COLOR_TO_IDX]
    things += [
        Door(colour, *state) for colour in COLOR_TO_IDX for state in ((True, False), (False, False), (False, True))
    ]
    triples = np.array([(0, 0, 0), (1, 0, 0), *(thing.encode() for thing in things)], np.uint8)
    image = triples[np.random.default_rng(0).permutation(49) % len(triples)].reshape(7, 7, 3)
    for shown in (image, image[::-1], np.roll(image, 1, axis=0)):
        grid = CODE_TO_WORDS[cell_codes(shown)]
        assert np.array_equal(raw_image(grid), shown)
        assert np.array_equal(raw_image(np.stack([grid, grid]))[1], shown)
        assert np.array_equal(WORD_TO_TYPE[grid[..., 0]], shown[..., 0].T)
    assert len(np.unique(CODE_TO_WORDS[[cell_code(*map(int, t)) for t in triples]], axis=0)) == len(triples)
    for thing in things:
        assert OPAQUE[cell_code(*thing.encode())] == (not thing.see_behind())
