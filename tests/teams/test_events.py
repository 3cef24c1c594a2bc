"""Kills and items of agents, against what is seen of the games."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.teams.events import count_events
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import play_batch


def play(env, players, games=12, **options):
    vec = mg.make_vec(env, games, **options)
    return play_batch(Lineup.parse(players, vec.num_agents), vec, seed=1)


@pytest.mark.parametrize("players", ["oracle", "oracle,random"])
def test_monsters_that_are_gone_were_killed_and_things_in_hand_taken(players):
    options = {"stage": "s3", "agents": 2, "max_cycles": 30, "death": "individual"}
    games = play("ma_rtfm", players, **options)
    counts, env = count_events("ma_rtfm", options, games), mg.make("ma_rtfm", **options)
    for k, game in enumerate(games):
        env.reset(seed=game.seed)
        before = env.world.scene(0)
        taken = np.zeros(2, int)
        for actions in game.actions:
            held = env.world.scene(0).inventories
            env.step({agent: actions[int(agent[-1])] for agent in env.agents})
            taken += [new != old for old, new in zip(held, env.world.scene(0).inventories, strict=True)]
        after = env.world.scene(0)
        gone = sum(figure.kind == "monster" for figure in before.figures) - sum(
            figure.kind == "monster" for figure in after.figures
        )
        assert counts["items"][k].tolist() == taken.tolist()
        assert counts["kills"][k].sum() <= gone  # who meets the distractor has killed no target
        if game.won:
            assert counts["kills"][k].sum() == 2
    assert counts["kills"].sum() > 0
    assert counts["items"].sum() > 0


def test_only_what_a_world_has_is_counted():
    options = {"stage": "s1", "agents": 2}
    games = play("ma_messenger", "oracle", **options)
    counts = count_events("ma_messenger", options, games)
    assert counts.keys() == {"items"}
    assert counts["items"].max() <= 1
    assert count_events("ma_messenger", options, []) == {}
