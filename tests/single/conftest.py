"""A small city in the files of Touchdown."""

import numpy as np
import pytest

from magrounding.single.touchdown import CLASSES, SPLITS, files
from tools.touchdown.writing import write_city


@pytest.fixture
def small_city(tmp_path):
    """Files as Touchdown has them: a street with a side street and a dead end, and a loop at the other end."""
    names = [f"{letter}{'x' * 21}" for letter in "ABCDEF"]
    a, b, c, d, e, f = names
    nodes = [files.Node(id, 30.0 * k, 40.0 + k / 1000, -73.0) for k, id in enumerate(names)]
    ways = [
        (a, 0, b),
        (b, 180, a),
        (a, 90, f),
        (b, 10.5, c),
        (c, 190, b),
        (c, 90, d),
        (d, 270, c),
        (c, 0, e),
        (e, 0, c),
    ]
    ways += [(d, 0, f), (f, 180, d), (f, 270, a)]
    routes = [files.Route((a, b, c, d), "Walk past the Starbucks, then turn right.", 0.0)]
    panoramas = np.random.default_rng(0).integers(0, len(CLASSES), (6, 47, 128)).astype(np.uint8)
    words = files.Vocabulary(("walk", "past", "the", "then", "turn", "right", "."), 30)
    write_city(
        tmp_path / "city",
        nodes,
        [files.Link(*way) for way in ways],
        dict.fromkeys(SPLITS.values(), routes),
        panoramas,
        words,
    )
    return tmp_path / "city"
