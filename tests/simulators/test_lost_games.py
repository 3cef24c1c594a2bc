"""Games whose simulator dies: an evaluation counts them, demonstrations and saved games are without them."""

import numpy as np
import pytest

from magrounding.simulators.env_row import episode_seed
from magrounding.simulators.faults import SimulatorError
from magrounding.simulators.vectorize import vectorize
from magrounding.teams.evaluate import play
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import TRIES, play_batch
from magrounding.training.recording import record
from tests.simulators.games import DIE, Trouble


class Hurting:
    """Plays 0, and kills the worker of row 3 in the third step of a batch, so often."""

    def __init__(self, times=1):
        self.times = times

    def initial_memory(self, num_envs):
        return [0]

    def act(self, obs, memory=None, info=None, greedy=True):
        memory[0] += 1
        actions = np.zeros((len(obs["action_mask"]), 1), np.int64)
        if memory[0] == 3 and self.times:
            self.times -= 1
            actions[3] = DIE
        return actions, memory


@pytest.fixture
def vec():
    with vectorize(Trouble, 4, 2) as games:  # worker 1 plays rows 1 and 3; a game has 6 steps
        yield games


def test_an_evaluation_counts_them(vec):
    found = play(Hurting(), vec, 4, seed=0)
    assert found.length.tolist() == [6, 3, 6, 3]
    assert found.faults == found.summary()["faults"] == 2
    assert "faults" not in play(Hurting(0), vec, 4, seed=0).summary()


def test_they_are_no_demonstrations_and_others_are_played(vec):
    shown = record(vec, Hurting(), 4, 0, "somebody")
    assert (shown.header.games, np.bincount(shown.game).tolist()) == (4, [6, 6, 6, 6])
    seen = shown.observation["observation"].reshape(4, 6, -1)
    assert seen[..., 1].tolist() == [list(range(6))] * 4
    assert seen[:, 0, 0].tolist() == [0, episode_seed(1, 1), 2, episode_seed(3, 1)]


def test_saved_games_are_played_once_more(vec):
    games = play_batch(Lineup.parse([Hurting(TRIES - 1)], 1), vec, seed=0)
    assert [len(game.actions) for game in games] == [6] * 4
    with pytest.raises(SimulatorError):
        play_batch(Lineup.parse([Hurting(TRIES)], 1), vec, seed=0)
