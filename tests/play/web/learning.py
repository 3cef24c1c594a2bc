"""Demonstrations of what was played: a command makes them of a saved game, and a network may imitate them."""

import numpy as np

from magrounding.cli import record
from magrounding.cli.command import CommandLine
from magrounding.play.demonstrations import Demonstrations
from magrounding.play.saved_games import read_episodes


def learn_from(file):
    """Make demonstrations of a file with one saved game: they show each of its moves as the right one."""
    shown = file.with_suffix(".npz")
    asked = "--env", "ma_rtfm", "--player", f"saved:{file}", "--out", str(shown)
    assert CommandLine("magrounding record", asked).run(record) == 0
    found, (game, *_) = Demonstrations.load(shown), read_episodes(file)[1]
    assert np.array_equal(found.actions[: len(game.actions)], game.actions)
    assert np.take_along_axis(found.labels, found.actions[..., None], -1).all()
