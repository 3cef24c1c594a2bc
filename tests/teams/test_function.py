"""Python functions as players."""

from dataclasses import dataclass

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError, InvalidAction
from magrounding.teams.actor import make_expert
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import play_batch
from magrounding.teams.session import Session

S1 = {"stage": "s1", "agents": 2, "max_cycles": 6}


def test_it_is_asked_for_its_own_agents_alone_and_told_what_they_see():
    asked, vec = [], mg.make_vec("ma_rtfm", 3, copy=True, **S1)

    def down(observation, legal_actions, info):
        asked.append((info["game"], info["agent"], info["step"]))
        np.testing.assert_array_equal(observation["position"], shown["position"][info["game"], info["agent"]])
        assert info["text"]["manual"] == vec.world.text(info["game"])["manual"]
        assert set(legal_actions.values()) == set(np.flatnonzero(observation["action_mask"]))
        return "down" if "down" in legal_actions else legal_actions["stay"]

    actor = Lineup.parse(["oracle", down], 2).build_actor(vec, 0)
    (shown, info), memory = vec.reset(seed=0), None
    memory, oracle = actor.initial_memory(3), make_expert(vec)
    for step in range(3):
        asked.clear()
        best = oracle.act(shown, None, info)[0]
        actions, memory = actor.act(shown, memory, info, rows=np.array([0, 2]))
        assert asked == [(row, 1, step) for row in (0, 2) if info.alive[row, 1]]
        np.testing.assert_array_equal(actions[[0, 2], 0], best[[0, 2], 0])
        shown, _, _, _, info = vec.step(np.where(info.alive, actions, 0))
        if info.done.any():
            break


@pytest.mark.parametrize("wrong", ["jump", None, True, 5, -1, 1.0, [0]])
def test_what_is_no_action(wrong):
    vec = mg.make_vec("rtfm", 1)
    with pytest.raises(InvalidAction):
        Lineup.parse([lambda *_: wrong], 1).build_actor(vec, 0).act(*vec.reset(seed=0))


def test_functions_and_actors_in_a_batch_and_in_a_session():
    """A function that stays, beside an expert that was made beforehand; both are named in what is saved."""

    def idle(observation, legal_actions, info):
        return 0

    vec = mg.make_vec("ma_rtfm", 2, **S1)
    games = play_batch(Lineup.parse([idle, make_expert(vec)], 2), vec, seed=4)
    assert all(step[0] == 0 for game in games for step in game.actions)
    session = Session("ma_rtfm", S1, Lineup.parse([idle, "random"], 2), 4)
    assert session.header.players == ("python:idle", "random")
    while not session.now.over:
        assert session.advance()
    with pytest.raises(ConfigurationError):
        Lineup.parse([idle, 3], 2)
    with pytest.raises(ConfigurationError):
        Lineup.parse("python:idle", 2)


def test_players_that_are_equal_are_not_one_player():
    """An ordinary dataclass compares equal and has no hash; each keeps a memory of its own."""

    @dataclass
    class Counting:
        step: int = 1

        def initial_memory(self, num_envs):
            return [self.step]

        def act(self, obs, memory=None, info=None, greedy=True):
            return np.full((len(obs["action_mask"]), 2), memory[0]), memory

    vec = mg.make_vec("ma_rtfm", 1, **S1)
    one, other = Counting(), Counting()
    actor = Lineup.parse([one, other], 2).build_actor(vec, 0)
    other.step = 2
    (obs, info), memory = vec.reset(seed=0), actor.initial_memory(1)
    assert actor.act(obs, memory, info)[0].tolist() == [[1, 2]]
    assert Lineup.parse([one, one], 2).build_actor(vec, 0) is one
