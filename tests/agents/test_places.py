"""A map of places is what views have shown, from the agent's own moves alone, and its ways are the shortest."""

from collections import deque

import numpy as np
import pytest
import torch

from magrounding.agents.building import make_policy
from magrounding.agents.places import BANDS, OUT_OF_REACH, REGIONS, Places
from magrounding.agents.policy import Batch, Reading
from magrounding.single.babyai import BabyAI
from magrounding.single.babyai.words import VIEW, VOCABULARY

SPEC = BabyAI(displacement=True).describe()
AHEAD = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""Row and column of a step east, south, west, north."""
LEFT, RIGHT, FORWARD = 0, 1, 2
STEPS, GAMES = 7, 4


def episode(level, seed, steps):
    """Observations of an episode that the bot and chance play in turns, and the actions between them."""
    pytest.importorskip("minigrid", reason="needs the extra `babyai`")
    env, rng = BabyAI(level, displacement=True).make_env(), np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    seen, actions = [observations["agent_0"]], []
    while env.agents and len(actions) < steps:
        best = int(env.best_actions()[0].argmax())
        actions.append(best if rng.random() < 0.8 else int(rng.integers(7)))
        seen.append(env.step({"agent_0": actions[-1]})[0]["agent_0"])
    return seen, actions


def can_be_passed(words):
    return bool({VOCABULARY.decode([word]) for word in words} & {"empty", "open"})


def poses(seen, actions):
    """Row, column and direction in each step, from turns, from moves, and from views that say which moves succeed."""
    row, column, face = 0, 0, int(seen[0]["direction"][0])
    yield row, column, face
    for before, action in zip(seen, actions, strict=False):
        face = (face + (action == RIGHT) - (action == LEFT)) % 4
        if action == FORWARD and can_be_passed(before["grid"][VIEW - 2, VIEW // 2]):
            row, column = row + AHEAD[face][0], column + AHEAD[face][1]
        yield row, column, face


def remembered(seen, actions):
    """After each step: the pose, and place → words of all that was seen, as last seen."""
    known = {}
    for observation, (row, column, face) in zip(seen, poses(seen, actions), strict=True):
        (down, right), (down_aside, right_aside) = AHEAD[face], AHEAD[(face + 1) % 4]
        for i, j in np.ndindex(VIEW, VIEW):
            far, aside = VIEW - 1 - i, j - VIEW // 2
            words = tuple(observation["grid"][i, j].tolist())
            if (far or aside) and VOCABULARY.decode(words[:1]) != "unseen":
                known[row + down * far + down_aside * aside, column + right * far + right_aside * aside] = words
        yield (row, column, face), dict(known)


def lengths(known, start, enter=False):
    """The length of the shortest way to each place that was seen, or lies beside one that can be passed."""
    found, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        if (enter or here != start) and not can_be_passed(known.get(here, ())):
            continue
        for down, right in AHEAD:
            there = here[0] + down, here[1] + right
            if there not in found:
                found[there] = found[here] + 1
                queue.append(there)
    return found


def batch(observations):
    """Return the steps of one episode as a Batch."""
    seen = {
        name: torch.from_numpy(np.stack([each[name] for each in observations]))[:, None] for name in observations[0]
    }
    restarts = torch.arange(len(observations)).unsqueeze(1) == 0
    return Batch(seen, {}, None, restarts, torch.zeros_like(restarts, dtype=torch.int64))


def anything():
    """Steps [T, B] of any cells, poses and restarts, and missions."""
    rng, steps = np.random.default_rng(0), (STEPS, GAMES)
    restarts = torch.zeros(steps, dtype=torch.bool)
    restarts[0] = restarts[3, 1] = restarts[5, 0] = True
    seen = {
        "grid": rng.integers(1, 20, (*steps, VIEW, VIEW, 3)),
        "displacement": rng.integers(-19, 20, (*steps, 2)),
        "direction": rng.integers(0, 4, (*steps, 1)),
        "action_mask": np.ones((*steps, 7)),
    }
    seen["grid"][..., 1] = rng.choice([VOCABULARY["empty"], VOCABULARY["red"]], seen["grid"].shape[:-1], p=[0.7, 0.3])
    observation = {name: torch.from_numpy(array.astype(np.int16)) for name, array in seen.items()}
    last = torch.from_numpy(rng.integers(0, 7, steps)).masked_fill(restarts, -1)
    return Batch(observation, {}, None, restarts, last), torch.from_numpy(rng.integers(1, 30, (GAMES, 5)))


def play(policy, steps, goal, memory=None, cut=slice(None)):
    reading = Reading(policy.encode("mission", {"goal": goal}), torch.arange(GAMES).expand(STEPS, -1)[cut])
    observation = {name: array[cut] for name, array in steps.observation.items()}
    return policy(Batch(observation, {"mission": reading}, memory, steps.restarts[cut], steps.last_action[cut]))


def make(**options):
    torch.manual_seed(0)
    policy = make_policy("viewread", SPEC, places=True, **options)
    torch.nn.init.normal_(policy.policy[2].weight)  # as made it is nearly indifferent, which would hide differences
    return policy


@pytest.mark.parametrize("level", ["GoToLocal", "Unlock", "BossLevel", "PutNext"])
def test_displacement_follows_from_views_and_moves_alone(level):
    for seed in range(3):
        seen, actions = episode(level, seed, 150)
        for observation, (row, column, face) in zip(seen, poses(seen, actions), strict=True):
            assert observation["displacement"].tolist() == [row, column]
            assert observation["direction"].tolist() == [face]


@pytest.mark.parametrize("level", ["GoToLocal", "Unlock", "BossLevel"])
def test_maps_and_ways_are_those_of_a_slow_search(level):
    memory, vocabulary, bands = Places(SPEC), len(VOCABULARY), set()
    seen, actions = episode(level, 5, 120)
    found = memory.follow(batch(seen), None)
    middle, begun = memory.side // 2, int(seen[0]["direction"][0])
    for t, ((row, column, face), known) in enumerate(remembered(seen, actions)):
        expected = np.zeros((memory.side, memory.side))
        for (y, x), words in known.items():
            expected[y + middle, x + middle] = np.polyval(words, vocabulary)
        np.testing.assert_array_equal(found.maps[t, 0, :-1].view(memory.side, -1), expected)
        way = lengths(known, (row, column))
        beside = [(row + AHEAD[(face + k) % 4][0], column + AHEAD[(face + k) % 4][1]) for k in range(4)]
        first = [lengths(known, each, enter=True) for each in beside]
        there = [
            (words, place)
            for place, words in known.items()
            if VOCABULARY.decode(words[:1]) not in ("wall", "empty") and place != (row, column)
        ]
        mine = found.step == t
        got = sorted(zip(map(tuple, found.symbol[mine].tolist()), found.region[mine].tolist(), strict=True))
        assert [words for words, _ in got] == sorted(words for words, _ in there)
        possible = {}
        for words, place in there:
            band = np.searchsorted(BANDS, way[place]) if place in way else OUT_OF_REACH
            bands.add(int(band))
            ways = [k for k in range(4) if place in way and first[k].get(place) == way[place] - 1]
            ways = ways if place in way else range(4)
            possible.setdefault(words, []).append({k * (OUT_OF_REACH + 1) + int(band) for k in ways})
        for words, region in got:
            assert any(region in regions for regions in possible[words])
        unseen = [length for place, length in way.items() if place not in known and length]
        region = int(found.unexplored[t])
        if unseen:
            assert region % (OUT_OF_REACH + 1) == np.searchsorted(BANDS, min(unseen))
        assert (region == REGIONS) == (not unseen)
        ahead, right = (np.sign([np.dot(AHEAD[(begun + turn) % 4], place) for _, place in there]) for turn in (0, 1))
        sectors = zip((words for words, _ in there), (3 * (1 + ahead) + 1 + right).tolist(), strict=True)
        got = zip(map(tuple, found.symbol[mine].tolist()), found.sector[mine].tolist(), strict=True)
        assert sorted(got) == sorted(sectors)
    assert len(bands) > 4


def test_what_was_seen_counts_until_the_episode_ends():
    policy, (steps, goal) = make(), anything()
    with torch.no_grad():
        policy.memory.weight_hh.zero_()  # only the map remembers
    before, memory = play(policy, steps, goal), policy.initial_memory(GAMES)
    door = VOCABULARY["door"] * len(VOCABULARY) ** 2
    memory[:, 128:-1] = door * (torch.rand(memory[:, 128:-1].shape) < 0.1)
    steps.restarts[0, 2] = False
    after = play(policy, steps, goal, memory)
    changed = (before.value - after.value).abs() > 1e-6
    assert changed[:, 2].all()
    assert not changed[:, [0, 1, 3]].any()


def test_every_parameter_learns():
    policy, (steps, goal) = make(), anything()
    output = play(policy, steps, goal)
    (output.logits.softmax(-1)[..., 0].sum() + output.value.square().sum()).backward()
    assert [name for name, each in policy.named_parameters() if each.grad is None or not each.grad.any()] == []
