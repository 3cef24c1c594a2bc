"""Teams act alike in a vector env and in a single one, and scripted teams beside them."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.agents.policy import Policy, PolicyOutput
from magrounding.agents.weights import load_weights, save_weights, weights_file
from magrounding.errors import CheckpointError, ConfigurationError, InvalidAction, Unplayable
from magrounding.play.lineup import Lineup
from magrounding.play.player import Player
from magrounding.play.scripted import RandomTeam, random_team
from magrounding.play.session import Session
from magrounding.play.team import Team, mixed_team
from magrounding.spec import FixedActions
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


def test_building_a_policy_leaves_torchs_randomness_alone():
    spec = mg.make_vec("ma_rtfm", 1, **OPTIONS).spec
    before = torch.random.get_rng_state()
    one, same, other = (build_policy("txt2pi", spec, SMALL, seed) for seed in (4, 4, 5))
    assert torch.equal(before, torch.random.get_rng_state())
    pairs = list(zip(one.parameters(), same.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(p, q) for p, q, _ in pairs)
    assert not all(torch.equal(p, r) for p, _, r in pairs)


@pytest.mark.parametrize("obey", [False, True])
def test_the_random_team_draws_uniformly(obey):
    mask = np.array([[1, 0, 1, 1, 0]], np.int8)
    team = RandomTeam(1, 5, seed=0, obey_mask=obey)
    actions, _ = team.act({"action_mask": np.broadcast_to(mask, (30_000, 1, 5))})
    shares = np.bincount(actions[:, 0], minlength=5) / 30_000
    expected = mask[0] / 3 if obey else np.full(5, 0.2)
    assert shares == pytest.approx(expected, abs=0.012)


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


RECORD = {"env": "ma_rtfm", "vocabulary": "v"}
EXPECTED = {"env": "ma_rtfm", "vocabulary_hash": "v", "num_agents": 2}


def saved(folder, team):
    save_weights(folder, [policy.state_dict() for policy in team.policies], RECORD)


def test_weights_come_back(tmp_path, team):
    saved(tmp_path, team)
    weights, record = load_weights(tmp_path, **EXPECTED)
    assert record["versions"]["magrounding"] == mg.__version__
    for state, policy in zip(weights, team.policies, strict=True):
        assert state.keys() == policy.state_dict().keys()
        assert all(torch.equal(state[name], tensor) for name, tensor in policy.state_dict().items())


@pytest.mark.parametrize("damage", ["cut", "flip", "swap", "remove"])
def test_damaged_weights_are_refused(tmp_path, team, damage):
    saved(tmp_path, team)
    first, second = (tmp_path / weights_file(i) for i in range(2))
    data = first.read_bytes()
    if damage == "cut":
        first.write_bytes(data[:-10])
    elif damage == "flip":
        first.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "swap":  # a kill between the two files of a new save
        second.write_bytes(data)
    else:
        second.unlink()
    with pytest.raises(CheckpointError):
        load_weights(tmp_path, **EXPECTED)


@pytest.mark.parametrize("change", [{"env": "rtfm"}, {"vocabulary_hash": "w"}, {"num_agents": 3}])
def test_foreign_weights_are_refused(tmp_path, team, change):
    saved(tmp_path, team)
    with pytest.raises(CheckpointError):
        load_weights(tmp_path, **{**EXPECTED, **change})
