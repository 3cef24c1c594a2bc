"""Checkpoints give back what they were given, or a clear sentence; never something else."""

import pytest
import torch
from safetensors.torch import save_file

from magrounding.errors import CheckpointError
from magrounding.experiment.checkpoint import (
    load_checkpoint,
    pack_learners,
    pack_players,
    save_checkpoint,
    unpack_learners,
    unpack_players,
)
from magrounding.teams.player import Player
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.rollout import RolloutWorker
from tests.training.toy_games import ToyGames, ToyPolicy

ORIGIN = {"env": "toy", "vocabulary": "v", "agents": 2}
EXPECTED = {"env": "toy", "vocabulary_hash": "v", "num_agents": 2}


def team(seed, recurrent=True):
    torch.manual_seed(seed)
    policies = [ToyPolicy(recurrent), ToyPolicy(recurrent)]
    learners = [ImpalaLearner(policy, ImpalaConfig(unroll=4, momentum=0.5)) for policy in policies]
    spec = ToyGames().spec
    players = [Player(policy, spec, 3, torch.Generator().manual_seed(seed + i)) for i, policy in enumerate(policies)]
    return learners, players


def train(learners, players, updates=2, seed=0):
    worker = RolloutWorker(ToyGames(num_envs=3, seed=seed), players, 4)
    worker.start(0)
    for _ in range(updates):
        rollout = worker.collect()
        for learner, trajectory in zip(learners, rollout.trajectories, strict=True):
            learner.update(trajectory, 0)


def packed_of(learners, players):
    return {**pack_learners(learners), **pack_players(players)}


@pytest.fixture
def saved(tmp_path):
    learners, players = team(0)
    train(learners, players)
    save_checkpoint(tmp_path / "c.safetensors", {**ORIGIN, "count": 3}, packed_of(learners, players))
    return tmp_path / "c.safetensors", learners, players


def test_everything_comes_back(saved):
    path, learners, players = saved
    record, tensors = load_checkpoint(path, **EXPECTED)
    assert record["count"] == 3
    assert record["versions"]["torch"] == torch.__version__
    others, other_players = team(99)
    unpack_learners(tensors, others, path)
    unpack_players(tensors, other_players)
    packed, again = packed_of(learners, players), packed_of(others, other_players)
    assert packed.keys() == again.keys()
    assert {name.split("/")[1] for name in packed} == {"weights", "optimizer", "generator", "memory", "last_action"}
    assert all(torch.equal(packed[name], again[name]) for name in packed)
    train(learners, players, seed=5)
    train(others, other_players, seed=5)  # the same future
    packed, again = packed_of(learners, players), packed_of(others, other_players)
    assert all(torch.equal(packed[name], again[name]) for name in packed)


def test_a_file_that_is_cut_or_changed_anywhere_is_refused(saved):
    path, _, _ = saved
    whole = path.read_bytes()
    flipped = whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]
    for data in (*(whole[:size] for size in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1)), flipped):
        path.write_bytes(data)
        with pytest.raises(CheckpointError):
            load_checkpoint(path, **EXPECTED)


@pytest.mark.parametrize("change", [{"env": "chess"}, {"vocabulary_hash": "w"}, {"num_agents": 3}])
def test_foreign_checkpoints_are_refused(saved, change):
    with pytest.raises(CheckpointError):
        load_checkpoint(saved[0], **{**EXPECTED, **change})


def test_other_networks_are_refused(saved):
    path, _, _ = saved
    _, tensors = load_checkpoint(path, **EXPECTED)
    learners = [ImpalaLearner(ToyPolicy(True, width=8), ImpalaConfig()) for _ in range(2)]
    with pytest.raises(CheckpointError):
        unpack_learners(tensors, learners, path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    with pytest.raises(CheckpointError):
        load_checkpoint(path, **EXPECTED)
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(CheckpointError):
        load_checkpoint(path, **EXPECTED)
