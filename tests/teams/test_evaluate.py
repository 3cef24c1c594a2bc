"""Evaluation counts the games it should, for whoever plays."""

import numpy as np
import pytest

from magrounding.errors import ConfigurationError
from magrounding.teams.evaluate import LINES, MANUALS, evaluate, play
from magrounding.teams.scripted import RandomTeam
from tests.training.toy_games import info_of

OPTIONS = {"stage": "s3", "agents": 2, "max_cycles": 15}


class Countdown:
    """Row b's k-th game lasts lengths[b][k] steps and is won if that is even."""

    num_agents = 1

    def __init__(self, lengths):
        self.lengths, self.num_envs = lengths, len(lengths)

    def reset(self, seed=None):
        self.game, self.step_ = np.zeros(self.num_envs, int), np.zeros(self.num_envs, int)
        return self._show(np.zeros(self.num_envs, bool))

    def step(self, actions):
        self.step_ += 1
        over = self.step_ == [row[k % len(row)] for row, k in zip(self.lengths, self.game, strict=True)]
        obs, info = self._show(over)
        self.game += over
        self.step_[over] = 0
        flags = np.zeros((self.num_envs, 1), bool)
        return obs, None, flags, flags, info

    def _show(self, over):
        length, won = self.step_.copy(), over & (self.step_ % 2 == 0)
        info = info_of(over, length[:, None].astype(np.float32), {}, won=won, score=10.0 * length, length=length)
        return {"manual": np.zeros((self.num_envs, 1, 1))}, info


class Nobody:
    def act(self, obs, memory, info, greedy=True):
        return np.zeros((len(obs["manual"]), 1), int), memory


def test_the_first_games_of_every_row_count_not_the_first_to_end():
    result = play(Nobody(), Countdown([[9, 2, 3], [1, 1, 1], [4, 6, 8]]), episodes=5, seed=0)
    assert result.length.tolist() == [9, 2, 1, 1, 4]  # rows 0 and 1 have two games, row 2 one
    assert result.won.tolist() == [False, True, False, False, True]
    assert result.returns[:, 0].tolist() == [9, 2, 1, 1, 4]
    assert result.score.tolist() == [90, 20, 10, 10, 40]
    assert result.summary()["score"] == 34


class Reader(RandomTeam):
    """Draws, and keeps the games and what it was given to read of each."""

    def __init__(self, vec):
        super().__init__(2, 5)
        self.vec, self.given = vec, []

    def act(self, obs, memory=None, info=None, greedy=False):
        self.given.append({key: array.copy() for key, array in obs.items()})
        return super().act(obs, memory, info, greedy)


@pytest.mark.parametrize(
    "asked", [{"episodes": 0}, {"manual": "upside down"}, {"episodes": 1, "manual": "of another game"}]
)
def test_no_games_and_unknown_manuals_are_refused(asked):
    with pytest.raises(ConfigurationError):
        evaluate(RandomTeam(2, 5), "ma_rtfm", OPTIONS, **{"episodes": 4, **asked})


@pytest.mark.parametrize("manual", [manual for manual in MANUALS if manual not in LINES])
def test_a_team_is_handed_the_manual_asked_for(manual):
    """In the very same games: nothing but the manual differs, from the first step to the last."""
    readers = []

    def reader(vec):
        readers.append(Reader(vec))
        return readers[-1]

    for given in ("true", manual):
        evaluate(reader, "ma_rtfm", OPTIONS, 6, seed=3, manual=given)
    (true, asked), options = readers, readers[1].vec.options
    assert options.get("manual", "true") == ("reassigned" if manual == "reassigned" else "true")
    assert len(true.given) == len(asked.given)
    for ours, theirs in zip(true.given, asked.given, strict=True):
        for name in set(ours) - {"manual"}:
            assert (ours[name] == theirs[name]).all()
    first, second = true.given[0]["manual"], asked.given[0]["manual"]
    if manual == "true":
        assert (first == second).all()
    elif manual == "of another game":
        assert (second == first[[1, 2, 3, 4, 5, 0]]).all()
    else:  # the same words, told of others
        assert (first != second).any(axis=(1, 2)).all()
        assert (np.sort(first.reshape(6, -1)) == np.sort(second.reshape(6, -1))).all()
