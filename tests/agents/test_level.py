"""Ways over a level that the world shows: the fewest actions, by the moves and cells that the spec names."""

import numpy as np
import pytest
import torch

from magrounding.agents.level import ShownLevel
from magrounding.agents.policy import Batch
from magrounding.agents.ways import BANDS, OUT_OF_REACH
from magrounding.single.nethack import NetHack
from magrounding.single.nethack.expert import find_ways
from magrounding.single.nethack.words import BLOCKED, KINDS, SHUT, UNMARKED, first_ids

SPEC = NetHack(level=True, crop=9).describe()
PER_MOVE = OUT_OF_REACH + 1
AGENT = "agent_0"


def observed(levels, positions):
    """A batch of N steps of one episode."""
    arrays = {"level": np.stack(levels)[:, None], "position": np.stack(positions)[:, None]}
    restarts = torch.zeros(len(levels), 1, dtype=torch.bool)
    return Batch(
        {name: torch.from_numpy(array) for name, array in arrays.items()},
        {},
        torch.full((len(levels), 1), -1),
        restarts,
        None,
    )


def episode(seed, steps):
    """Levels, positions and marks of an episode that the explorer and chance play in turns."""
    pytest.importorskip("nle", reason="the extra `nethack` is absent: nle")
    env, rng = NetHack(level=True, crop=9).make_env(), np.random.default_rng(seed)
    seen = [env.reset(seed=seed)[0][AGENT]]
    while env.agents and len(seen) < steps:
        best = int(env.best_actions()[0].argmax())
        action = best if rng.random() < 0.7 else int(rng.integers(1, 17))
        seen.append(env.step({AGENT: action})[0][AGENT])
    env.close()
    return [each for each in seen if each["position"][0] >= 0]


def explored(observation):
    """What the explorer's own search says of a level: actions to each cell [21, 79], and the first of them."""
    last = SPEC.words.index("mark:been there") - 1
    glyphs, marks = observation["level"][..., 0] - first_ids()[0], observation["level"][..., 1] - last
    kinds = np.where(glyphs >= 0, KINDS[np.maximum(glyphs, 0)], 0).astype(np.uint8)
    own = kinds[tuple(observation["position"])]
    kinds[marks == SHUT] = BLOCKED
    kinds[tuple(observation["position"])] = own  # a door stays one, though it was tried in vain before
    away, first, queue = np.zeros((21, 79), np.int16), np.zeros((21, 79), np.int16), np.zeros((21 * 79, 2), np.int16)
    find_ways(kinds, *observation["position"], away, first, queue)
    return away, first, glyphs, np.where(marks > UNMARKED, marks, UNMARKED)


@pytest.mark.parametrize("seed", range(4))
def test_ways_of_real_levels_are_the_explorers(seed):
    seen = episode(seed, 60)
    found = ShownLevel(SPEC).follow(observed([e["level"] for e in seen], [e["position"] for e in seen]), None)
    step, region = found.step.numpy(), found.region.numpy()
    scenery = {*SPEC["level"].scenery_ids}
    for n, observation in enumerate(seen):
        away, first, _, _ = explored(observation)
        level, here = observation["level"], tuple(observation["position"])
        cells = [cell for cell in np.ndindex(21, 79) if not {*level[cell].tolist()} <= scenery]
        assert found.symbol[step == n].tolist() == [level[cell].tolist() for cell in cells]
        for cell, at in zip(cells, region[step == n].tolist(), strict=True):
            move, band = divmod(at, PER_MOVE)
            if cell == here:
                assert at == len(SPEC.actions.moves) * PER_MOVE
            elif away[cell] < 0:
                assert band == OUT_OF_REACH
                towards = [int(np.sign(there - own)) for there, own in zip(cell, here, strict=True)]
                assert [*SPEC.actions.moves[move][1:3]] == towards
            else:
                assert band == np.searchsorted(BANDS, away[cell])
                assert SPEC.actions.moves[move].action == first[cell]


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_unseen_place_is_the_explorers(seed):
    seen = episode(seed, 60)
    found = ShownLevel(SPEC).follow(observed([e["level"] for e in seen], [e["position"] for e in seen]), None)
    there = 0
    for n, observation in enumerate(seen):
        away, first, _, _ = explored(observation)
        unseen = np.pad(observation["level"][..., 0] == 0, 1)
        around = sum(unseen[1 + r : 22 + r, 1 + c : 80 + c].astype(int) for r in (-1, 0, 1) for c in (-1, 0, 1))
        beside = unseen[:-2, 1:-1] | unseen[2:, 1:-1] | unseen[1:-1, :-2] | unseen[1:-1, 2:]
        cost = np.where((away > 0) & beside, 6.0 * away - np.minimum(around, 5), np.inf)
        if np.isinf(cost.min()):
            assert found.unexplored[n] == len(SPEC.actions.moves) * PER_MOVE + 1
            continue
        there += 1
        cell = np.unravel_index(cost.argmin(), cost.shape)
        move, band = divmod(int(found.unexplored[n]), PER_MOVE)
        assert (SPEC.actions.moves[move].action, band) == (first[cell], np.searchsorted(BANDS, away[cell]))
    assert there > 10


def test_more_things_than_there_was_room_for():
    level = np.zeros((1, 21, 79, 2), np.int16) + first_ids()[0]
    found = ShownLevel(SPEC).follow(observed([*level] * 2, [np.array((3, 3), np.int16)] * 2), None)
    assert found.step.tolist() == [0] * 21 * 79 + [1] * 21 * 79
