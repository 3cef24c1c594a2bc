"""viewread matches cells with the words of the mission, and remembers within an episode."""

import numpy as np
import torch

from magrounding.agents.building import make_policy
from magrounding.agents.policy import Batch, Reading
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Grid, Mask, Text

VOCABULARY, STEPS, GAMES, MISSIONS, ACTIONS = 30, 6, 5, 3, 4


def make_spec(planes=3, egocentric=True, number=None, **extra):
    fields = (
        Grid("grid", (5, 5, planes), 0, VOCABULARY - 1, words_per_occupant=planes, egocentric=egocentric),
        number or Field("direction", (1,), 0, 3),
        Text("goal", (12,), 0, VOCABULARY - 1, shared=True, lifetime=EPISODE),
        Mask("action_mask", (ACTIONS,)),
    )
    words = ("", *(f"w{i}" for i in range(1, VOCABULARY)))
    return EnvSpec(fields, 1, FixedActions(tuple("abcd")), words, 50, **extra)


SPEC = make_spec()


def make(spec=SPEC, **options):
    torch.manual_seed(0)
    policy = make_policy("viewread", spec, **options)
    torch.nn.init.normal_(policy.policy[2].weight)  # as made it is nearly indifferent, which would hide differences
    return policy


def observe(planes=3, seed=0):
    """Observation [T, B, …], missions [U, L], which of them is read, restarts and last actions."""
    rng = np.random.default_rng(seed)
    grid = rng.integers(0, 12, (STEPS, GAMES, 5, 5, planes))
    mask = np.ones((STEPS, GAMES, ACTIONS), np.int8)
    mask[..., 2] = rng.integers(0, 2, (STEPS, GAMES))
    goal = np.zeros((MISSIONS, 12), np.int16)
    for row, length in zip(goal, (3, 6, 1), strict=True):
        row[:length] = rng.integers(1, 12, length)
    observation = {
        "grid": torch.from_numpy(grid.astype(np.int16)),
        "direction": torch.from_numpy(rng.integers(0, 4, (STEPS, GAMES, 1)).astype(np.int16)),
        "action_mask": torch.from_numpy(mask),
    }
    restarts = torch.zeros(STEPS, GAMES, dtype=torch.bool)
    restarts[3, 1] = restarts[4, 0] = True
    last = torch.from_numpy(rng.integers(0, ACTIONS, (STEPS, GAMES))).masked_fill(restarts, -1)
    index = torch.from_numpy(rng.integers(0, MISSIONS, GAMES)).expand(STEPS, -1)
    return observation, torch.from_numpy(goal), index, restarts, last


def play(policy, seen, memory=None, steps=slice(None)):
    observation, goal, index, restarts, last = seen
    cut = {name: array[steps] for name, array in observation.items()}
    reading = Reading(policy.encode("mission", {"goal": goal}), index[steps])
    return policy(Batch(cut, {"mission": reading}, memory, restarts[steps], last[steps]))


def assert_same(one, other):
    torch.testing.assert_close(one.logits, other.logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(one.value, other.value, rtol=1e-4, atol=1e-5)


def test_other_names_for_all_words_change_nothing():
    """Words in grid and mission are renamed and the tables that know them likewise: nothing else knows a word."""
    policy, seen = make(), observe()
    expected = play(policy, seen)
    names = torch.cat((torch.zeros(1, dtype=torch.int64), 1 + torch.randperm(VOCABULARY - 1)))
    only_grid = ({**seen[0], "grid": names[seen[0]["grid"].long()]}, *seen[1:])
    assert not torch.allclose(play(policy, only_grid).value, expected.value, atol=1e-3)
    with torch.no_grad():
        policy.words.weight[names] = policy.words.weight.clone()
        planes = policy.symbols.weight.view(3, VOCABULARY, -1)
        planes[:, names] = planes.clone()
    assert_same(play(policy, (only_grid[0], names[seen[1].long()], *seen[2:])), expected)


def test_a_cell_is_known_by_where_its_words_stand_in_the_mission():
    """With nothing learnt of the words themselves, cells still differ by whether the mission names them."""
    policy = make()
    with torch.no_grad():
        policy.symbols.weight.zero_()
    text = policy.encode("mission", {"goal": torch.tensor([[5, 6, 0, 0]])})
    symbols = torch.tensor([[5, 6, 0], [5, 9, 0], [8, 9, 0], [9, 8, 0]])
    named, half, neither, other = policy.features_of(torch.zeros(4, dtype=torch.int64), symbols, text)
    torch.testing.assert_close(neither, other)
    assert not torch.allclose(named, half, atol=1e-4)
    assert not torch.allclose(half, neither, atol=1e-4)


def test_the_running_mean_of_views_is_learnt_with_gradients_and_kept_with_the_weights():
    policy = make(centred=True)
    with torch.no_grad():
        play(policy, observe(), policy.initial_memory(GAMES))
    assert not policy.usual.any()
    play(policy, observe(), policy.initial_memory(GAMES))
    assert policy.usual.any()
    assert "usual" in policy.state_dict()
