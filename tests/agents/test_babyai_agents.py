"""The networks of BabyAI: their sizes, what they look at, and that steps and padding are what they should be."""

from functools import partial

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.policy import Batch, Reading, evaluating
from magrounding.single.babyai import BabyAI
from magrounding.single.babyai.words import CODE_TO_WORDS, mission_ids, raw_image
from magrounding.teams.player import Player, shown_to
from magrounding.teams.team import Team

SPEC = BabyAI().describe()
STEPS, GAMES = 5, 4
MISSIONS = ("go to the red ball", "put a blue key next to the door", "pick up a box")
NARROW = {"words": 8, "channels": 6, "memory": 10, "head": 5}
SMALL, LARGE = (partial(make_policy, f"babyai_{size}") for size in ("small", "large"))
BOTH = pytest.mark.parametrize("make", [SMALL, LARGE], ids=["small", "large"])


def fresh(make, spec=SPEC, **options):
    torch.manual_seed(0)
    return make(spec, **{**NARROW, **options})


def observe(seed=0):
    """Observation [T, B, …], missions [U, L], which of them is read, and restarts."""
    rng = np.random.default_rng(seed)
    observation = {
        "grid": torch.from_numpy(CODE_TO_WORDS[rng.integers(0, len(CODE_TO_WORDS), (STEPS, GAMES, 7, 7))]),
        "direction": torch.zeros(STEPS, GAMES, 1, dtype=torch.int16),
        "action_mask": torch.from_numpy(rng.integers(0, 2, (STEPS, GAMES, 7)).astype(np.int8)),
    }
    observation["action_mask"][..., 0] = 1
    goal = torch.from_numpy(np.stack([mission_ids(each) for each in MISSIONS]))
    restarts = torch.zeros(STEPS, GAMES, dtype=torch.bool)
    restarts[2, 1] = True
    return observation, goal, torch.tensor([0, 1, 2, 1]).expand(STEPS, -1), restarts


def play(policy, seen, memory=None, steps=slice(None)):
    observation, goal, index, restarts = seen
    reading = Reading(policy.encode("mission", {"goal": goal}), index[steps])
    cut = {name: array[steps] for name, array in observation.items()}
    last = torch.full_like(index[steps], -1)
    return policy(Batch(cut, {"mission": reading}, memory, restarts[steps], last))


def count(module):
    return sum(each.numel() for each in module.parameters())


def test_the_small_network_has_the_parameters_of_the_paper():
    policy = make_policy("babyai_small", SPEC)
    assert count(policy) == 1_068_168
    parts = (policy.stem, policy.blocks, policy.memory, policy.reader, policy.words, policy.actor, policy.critic)
    assert [count(part) for part in parts] == [149_760, 657_408, 132_096, 99_072, 12_800, 8_711, 8_321]


def test_the_large_network_has_the_parameters_of_the_paper():
    policy = LARGE(SPEC)
    assert count(policy) == 20_348_552
    parts = (policy.stem, policy.blocks, policy.memory, policy.reader, policy.words, policy.key)
    assert [count(part) for part in parts] == [149_760, 722_944, 17_842_176, 296_448, 25_600, 1_048_832]
    assert [count(policy.actor), count(policy.critic)] == [131_591, 131_201]


def test_it_sees_the_raw_numbers_of_minigrid():
    policy, grid = fresh(SMALL), observe()[0]["grid"][0]
    expected = torch.from_numpy(raw_image(grid.numpy())).float().permute(0, 3, 1, 2)
    assert torch.equal(policy.image(grid), expected)


@BOTH
def test_only_in_training_mode_do_the_games_beside_it_matter(make):
    policy, (observation, goal, index, restarts) = fresh(make), observe()
    alone = {name: array[:, :1] for name, array in observation.items()}
    for training in (True, False):  # running statistics move first
        policy.train(training)
        with torch.no_grad():
            together = play(policy, (observation, goal, index, restarts))
            single = play(policy, (alone, goal, index[:, :1], restarts[:, :1]))
        assert torch.allclose(together.value[:, :1], single.value, rtol=1e-4, atol=1e-5) is not training


@BOTH
def test_normalisation_takes_the_games_of_one_step(make):
    """As released; so what is true of one step does not change with the steps around it."""
    policy, seen = fresh(make), observe()
    norm = policy.blocks[0].norm
    every = play(policy, seen)
    assert norm.num_batches_tracked == STEPS
    first = play(policy, seen, steps=slice(0, 1))
    torch.testing.assert_close(first.value[0], every.value[0])
    moved = norm.running_mean.clone()
    assert moved.any()
    with evaluating(policy):
        play(policy, seen)
    assert torch.equal(norm.running_mean, moved)
    assert all(module.training for module in policy.modules())


def test_whoever_does_not_learn_plays_in_evaluation_mode():
    """A team's players leave the running statistics alone, and no game depends on others."""
    pytest.importorskip("minigrid")
    policy = fresh(SMALL, channels=16)
    vec = mg.make_vec("babyai", 3, level="GoToObj")
    team, kept = Team([policy], vec.spec), policy.stem[1].running_mean.clone()
    obs, info = vec.reset(seed=0)
    team.act(obs, team.initial_memory(3), info)
    assert torch.equal(policy.stem[1].running_mean, kept)
    assert all(module.training for module in policy.modules())
    player = Player(policy, vec.spec, 3, torch.Generator())
    player.choose(shown_to(0, obs, vec.spec, None), np.ones(3, np.bool_), learning=True)
    assert not torch.equal(policy.stem[1].running_mean, kept)
    vec.close()
