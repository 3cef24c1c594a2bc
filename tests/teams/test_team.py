"""Teams act alike in a vector env and in a single one, and scripted teams beside them."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.agents.policy import Policy, PolicyOutput
from magrounding.errors import ConfigurationError, InvalidAction, Unplayable
from magrounding.spec import FixedActions
from magrounding.teams.lineup import Lineup
from magrounding.teams.player import Player
from magrounding.teams.scripted import random_team
from magrounding.teams.session import Session
from magrounding.teams.team import Team, mixed_team
from tests.many_choices import ManyChoices

OPTIONS = {"stage": "s5", "agents": 2, "max_cycles": 12}
SMALL = {"channels": (4, 4), "document_hidden": 4, "head_width": 6}


@pytest.fixture(scope="module")
def team():
    spec = mg.make_vec("ma_rtfm", 1, **OPTIONS).spec
    return Team([build_policy("txt2pi", spec, SMALL, seed) for seed in (0, 1)], spec)


@pytest.mark.parametrize("others", ["{team}", "{team},oracle"])
def test_a_stand_ins_network_is_told_what_its_person_did(team, others, monkeypatch):
    given, batch = [], Player.batch

    def noted(player, *args, **kwargs):
        made = batch(player, *args, **kwargs)
        given.append(int(made.last_action[0, 0]))
        return made

    monkeypatch.setattr(Player, "batch", noted)
    players = [team if each == "{team}" else each for each in others.split(",")]
    game = Session("ma_rtfm", OPTIONS, Lineup.parse(players, 2), seed=3)
    game.people, done = (0,), [-1]
    while not game.now.over:
        assert given[-2] == done[-1]  # both agents' networks think; agent 0 first
        done.append(game.moves(0)[len(done) % len(game.moves(0))].action)
        game.choose(0, done[-1])
        game.advance()
    assert len(set(done)) > 2
    with pytest.raises(InvalidAction):
        team.set_last_actions(team.initial_memory(1), np.full((1, 2), team.spec.num_actions))


def test_one_game_or_many_the_same_actions(team):
    """Row 2 of a batch and the single env of its seed, through restarts."""
    vec, env = mg.make_vec("ma_rtfm", 4, **OPTIONS), mg.make("ma_rtfm", **OPTIONS)
    (obs, info), memory = vec.reset(seed=10), team.initial_memory(4)
    own, infos = env.reset(seed=12)
    own_memory, restarts = team.initial_memory(1), 0
    for _ in range(60):
        actions, memory = team.act(obs, memory, info)
        mine, own_memory = team.act(own, own_memory, infos)
        assert mine == {f"agent_{i}": actions[2, i] for i in range(2)}
        obs, _, _, _, info = vec.step(actions)
        own, _, _, _, infos = env.step(mine)
        if not env.agents:
            own, infos = env.reset()
            restarts += 1
    assert restarts > 3


def test_drawn_actions_are_decided_by_the_memorys_seed(team):
    """Whatever torch's global seed; each agent has draws of its own."""

    def drawn(seed, torch_seed):
        torch.manual_seed(torch_seed)
        vec = mg.make_vec("ma_rtfm", 8, **OPTIONS)
        (obs, info), memory = vec.reset(seed=0), team.initial_memory(8, seed)
        actions = []
        for _ in range(10):
            chosen, memory = team.act(obs, memory, info, greedy=False)
            actions.append(chosen)
            obs, _, _, _, info = vec.step(np.zeros((8, 2), np.int64))
        return np.stack(actions)

    first = drawn(3, torch_seed=0)
    assert (first == drawn(3, torch_seed=1)).all()
    assert (first != drawn(4, torch_seed=0)).mean() > 0.3
    seeds = [[player.generator.initial_seed() for player in team.initial_memory(1, seed)] for seed in range(3)]
    assert len({seed for own in seeds for seed in own}) == 6


@pytest.mark.parametrize("choosing", [False, True])
def test_chance_is_the_same_player_in_a_line_up_and_in_a_report(choosing):
    """Among texts to choose from, both draw those that are on offer; among fixed actions, all."""
    vec = mg.vectorize(lambda: ManyChoices(40), 8) if choosing else mg.make_vec("ma_rtfm", 8, **OPTIONS)
    obs, info = vec.reset(seed=0)
    built, reported = Lineup.parse("random", vec.num_agents).build_actor(vec, 0), random_team(vec)
    legal = []
    for _ in range(20):
        actions, _ = built.act(obs, None, info)
        np.testing.assert_array_equal(actions, reported.act(obs, None, info)[0])
        legal.append(np.take_along_axis(obs["action_mask"], actions[..., None], -1))
    assert np.all(legal) == choosing
    vec.close()


def test_a_mixed_team_has_agents_of_each(team):
    spec = team.spec
    other = Team([build_policy("conv", spec, {"channels": (4, 4), "document_hidden": 4}, k) for k in (2, 3)], spec)
    mixed = mixed_team([other, team])
    assert mixed.policies == [other.policies[0], team.policies[1]]
    vec = mg.make_vec("ma_rtfm", 8, **OPTIONS)
    obs, info = vec.reset(seed=0)
    both, first, second = (t.act(obs, t.initial_memory(8), info)[0] for t in (mixed, other, team))
    assert (both == np.stack((first[:, 0], second[:, 1]), 1)).all()
    assert (both != second).any()


def test_teams_that_cannot_be_mixed(team):
    with pytest.raises(ConfigurationError):
        mixed_team([team] * 3)
    larger = replace(team.spec, fields=mg.make_vec("ma_rtfm", 1, **{**OPTIONS, "size": 10}).spec.fields)
    mixed_team([team, Team(team.policies, larger)])
    fewer = FixedActions(team.spec.actions.names[:-1])
    for change in ({"words": ("other",)}, {"fields": team.spec.fields[:-1]}, {"actions": fewer}):
        with pytest.raises(ConfigurationError):
            mixed_team([team, Team(team.policies, replace(team.spec, **change))])


class Flat(Policy):
    """A network that has a weight for each cell, as one's own may have."""

    def __init__(self, spec):
        super().__init__(spec)
        self.choose = torch.nn.Linear(int(np.prod(spec.grid.shape)), spec.num_actions)

    def encode(self, name, ids):
        return {}

    def forward(self, batch):
        logits = self.choose(batch.observation["grid"].float().flatten(2))
        return PolicyOutput(logits, logits[..., 0])


@pytest.mark.parametrize("agent", ["flat", "qmix", "emma"])
def test_maps_that_a_network_is_not_made_for(team, agent):
    """Such a network says so (`grid_shape`), or fails."""
    spec = team.spec
    players = Team([Flat(spec) if agent == "flat" else build_policy(agent, spec, {}, k) for k in (0, 1)], spec)
    for size, fits in ((spec.grid.height, True), (spec.grid.height + 2, False)):
        options = {**OPTIONS, "size": size}
        begun = mg.make_vec("ma_rtfm", 1, **options).reset(seed=0), mg.make("ma_rtfm", **options).reset(seed=0)
        for observation, info in begun:
            with nullcontext() if fits else pytest.raises(Unplayable):
                players.act(observation, players.initial_memory(1), info)
