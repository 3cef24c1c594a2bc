"""Which assignments are for training: equal, disjoint halves by a fixed rule."""

import hashlib
from itertools import permutations

import numpy as np
import pytest
from numba import njit

import magrounding as mg
from magrounding.envs.rtfm import splits
from magrounding.envs.rtfm.arrays import ELEMENT_DIVISION, TEAM_DIVISION
from magrounding.envs.rtfm.ontology import PROSE_SPLITS
from tests.envs.reference_rtfm import ELEMENTS, TEAMS
from tests.envs.rtfm_games import document_of

SIMPLE, GROUP = 144, 4_233_600
LETTERS = "abcdefghijklmnopqrst"


@njit
def all_sides(total):
    sides = np.empty(total, np.uint8)
    for index in range(total):
        sides[index] = splits.side(index)
    return sides


def splitmix(key, counter):
    """SplitMix64 in Python's own integers."""
    mask = 2**64 - 1
    z = (key + 0x9E3779B97F4A7C15 * (counter + 1)) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def documented_side(index):
    """The rule as the module's docstring words it: one of each pair of neighbours, by a bit of a hash of the pair."""
    return (index & 1) ^ (splitmix(0x5275_6C65_7321, index >> 1) & 1)


def test_the_halves_of_the_simple_assignments_are_disjoint_and_equal():
    """All 144, as people would write them down: the rule's halves, and what worlds of each split really tell."""
    assert all_sides(SIMPLE).tolist() == [documented_side(i) for i in range(SIMPLE)]
    teams, elements = splits.assignment_tables(False)
    meanings = []
    for t in teams:
        for e in elements:
            names = {f"monster {m}": team for m, team in zip(t[:, 0], TEAMS, strict=True)}
            names |= {f"modifier {m}": element for m, element in zip(e[:, 0], ELEMENTS, strict=True)}
            meanings.append(tuple(sorted(names.items())))
    assert len(set(meanings)) == SIMPLE
    halves = [{meanings[i] for i in range(SIMPLE) if splits.side(i) == s} for s in (splits.TRAIN, splits.EVAL)]
    assert [len(half) for half in halves] == [72, 72]
    assert not halves[0] & halves[1]


def told_by(split, task="simple", rows=1500):
    vec = mg.make_vec("rtfm", rows, task=task, split=split)
    vec.reset(seed=123)
    documents = [document_of(vec.world, b) for b in range(rows)]
    return {(tuple(sorted(d.team_of.items())), tuple(sorted(d.beats.items()))) for d in documents}


def test_documents_of_train_and_eval_never_tell_the_same_assignment():
    train, held_out, paraphrased = (told_by(split) for split in ("train", "eval", "eval_paraphrase"))
    assert len(train) == len(held_out) == 72
    assert not train & held_out
    assert paraphrased == held_out
    assert len(told_by("eval_new")) == SIMPLE
    assert not told_by("train", "nl") & told_by("eval", "nl")


def test_the_halves_of_the_group_assignments_are_disjoint_and_equal():
    sides = all_sides(GROUP)
    assert (sides == splits.TRAIN).sum() == (sides == splits.EVAL).sum() == GROUP // 2
    assert (sides[0::2] ^ sides[1::2] == 1).all()
    sample = np.random.default_rng(0).integers(0, GROUP, 5000).tolist()
    assert sides[sample].tolist() == [documented_side(i) for i in sample]
    # Frozen: results of today's training must not leak into tomorrow's evaluation.
    assert hashlib.sha256(sides[:SIMPLE].tobytes()).hexdigest()[:16] == "c9a63c713b6e3426"
    assert hashlib.sha256(sides.tobytes()).hexdigest()[:16] == "1ceca2644457ae6d"


def test_no_team_or_element_division_belongs_to_one_side():
    """Half of the assignments of every division are for training, nearly: the joint assignment is what is held out."""
    sides = all_sides(GROUP).reshape(1680, 2520)
    assert (sides.mean(1) == 0.5).all()
    assert abs(sides.mean(0) - 0.5).max() < 5 * 0.5 / np.sqrt(1680)


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("split", [split for split in splits.SPLITS if split not in PROSE_SPLITS])
def test_draws_land_on_their_side_only(group, split):
    vec = mg.make_vec("rtfm", 20_000, task="group" if group else "simple", split=split)
    vec.reset(seed=31)
    scalars, (_, elements) = vec.world._games.scalars, splits.assignment_tables(group)
    numbers = scalars[:, TEAM_DIVISION] * len(elements) + scalars[:, ELEMENT_DIVISION]
    sides = all_sides(GROUP if group else SIMPLE)
    assert numbers.min() >= 0
    assert numbers.max() < len(sides)
    drawn = set(sides[numbers].tolist())
    assert drawn == {"train": {0}, "eval": {1}, "eval_paraphrase": {1}, "eval_new": {0, 1}}[split]
    if not group:
        assert len(set(numbers.tolist())) == (SIMPLE if split == "eval_new" else 72)


def triples(task, split):
    return [tuple(t) for t in splits.letter_triples(task, split).tolist()]


def rotations(triple):
    return {triple, (*triple[1:], triple[0]), (*triple[2:], *triple[:2])}


def test_permutation_keeps_all_rotations_of_a_cycle_on_one_side():
    train, held_out = triples("permutation", "train"), triples("permutation", "eval")
    assert len(train) == len(set(train)) == len(held_out) == len(set(held_out)) == 30
    assert set(train) | set(held_out) == set(permutations(range(5), 3))
    assert not set(train) & set(held_out)
    for side in (train, held_out):
        assert all(rotations(t) <= set(side) for t in side)
        assert len({min(rotations(t)) for t in side}) == 10


@pytest.mark.parametrize("task", ["permutation", "released", "new_edge", "new_node"])
def test_rock_paper_scissors_tells_the_triples_of_its_split_only(task):
    told = {}
    for split in ("train", "eval"):
        vec = mg.make_vec("rock_paper_scissors", 2000, task=task, split=split)
        vec.reset(seed=3)
        told[split] = set()
        for b in range(2000):
            beats = document_of(vec.world, b).beats
            low = min(beats)
            told[split].add((low, beats[low], beats[beats[low]]))
        allowed = [min(rotations(tuple(LETTERS[i] for i in t))) for t in triples(task, split)]
        assert told[split] == set(allowed)
    assert bool(told["train"] & told["eval"]) is (task == "released")
