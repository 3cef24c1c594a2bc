"""The choice that shares the most words with the task."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.experiment.evaluate import compared
from magrounding.spec import CHOICES
from magrounding.teams.evaluate import play
from magrounding.teams.lineup import Lineup
from magrounding.teams.scripted import OverlapTeam, random_team
from tests.many_choices import MOST, SPEC, ManyChoices


def chosen(task, choices, seeds=1):
    """What is chosen of some texts, by the draws of so many seeds."""
    offered = np.zeros((1, 1, MOST, 3), np.int16)
    for row, words in enumerate(choices):
        offered[0, 0, row, : len(words)] = words
    obs = {
        "task": np.array([[*task, *[0] * (2 - len(task))]], np.int16),
        "observation": np.zeros((1, 1, 3), np.int16),
        CHOICES: offered,
        "action_mask": (np.arange(MOST) < len(choices)).astype(np.int8)[None, None],
    }
    return {int(OverlapTeam(SPEC, seed).act(obs)[0][0, 0]) for seed in range(seeds)}


def test_rare_words_of_the_task_count_most():
    assert chosen((1, 2), [(1,), (1, 3), (1, 2), (1, 4)]) == {2}  # what all choices have tells nothing
    assert chosen((1, 2), [(1, 5), (1, 6), (2, 5), (3, 6)]) == {2}  # two have the 1, one has the 2


def test_length_is_no_merit():
    assert chosen((2,), [(2, 5, 6), (2, 5), (5, 6), (6,)]) == {1}


def test_chance_decides_between_equals():
    assert chosen((9,), [(1,), (2,), (3,)], seeds=30) == {0, 1, 2}
    assert chosen((2,), [(1,), (2,), (2,)], seeds=30) == {1, 2}


def test_it_wins_where_the_task_names_what_to_choose():
    games = mg.vectorize(ManyChoices, 8)
    assert play(OverlapTeam(games.spec), games, 16, seed=0).score.mean() == 1.0
    assert play(random_team(games), games, 16, seed=0).score.mean() < 0.6


def test_it_sits_where_texts_are_to_be_chosen_from_only():
    games = mg.vectorize(ManyChoices, 2)
    assert isinstance(Lineup.parse("overlap", 1).build_actor(games, 0), OverlapTeam)
    assert "overlap" in compared("scienceworld", SPEC)
    rtfm = mg.make_vec("rtfm", 2)
    assert "overlap" not in compared("rtfm", rtfm.spec)
    with pytest.raises(ConfigurationError):
        Lineup.parse("overlap", 1).build_actor(rtfm, 0)
