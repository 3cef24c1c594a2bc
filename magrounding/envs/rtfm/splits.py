"""Joint assignments for training, and those that are held out.

An assignment says for each monster its team and for each modifier its element. All assignments are numbered: 6 × 24
= 144 one-to-one ones, 1680 × 2520 = 4,233,600 many-to-one ones. Neighbours 2k and 2k + 1 are always on different
sides, and bit 0 of hash64(SPLIT_KEY, k) says which of them is for training. So the halves are equal and disjoint,
nothing depends on platform or process, and drawing from a half needs no list.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import numpy as np

from magrounding.envs.rtfm.ontology import ALL, EVAL, SPLITS, TRAIN
from magrounding.jit import inner_njit
from magrounding.seeding import below, hash64

SPLIT_KEY = np.uint64(0x5275_6C65_7321)


@inner_njit
def side(index):
    """TRAIN or EVAL: the side of assignment number `index`."""
    first = np.int64(hash64(SPLIT_KEY, index >> 1) & np.uint64(1))
    return TRAIN if (index & 1) == first else EVAL


@inner_njit
def draw_assignment(key, counter, which, total):
    """A uniform assignment number from one side (or from ALL)."""
    if which == ALL:
        return below(key, counter, total)
    pair = below(key, counter, total >> 1)
    index = pair << 1
    return index if side(index) == which else index + 1


@cache
def group_table(num_members: int, num_groups: int) -> np.ndarray:
    """All ways [ways, groups, m / groups] int16 to divide members 0 … m-1 evenly among groups; members ascend."""
    size = num_members // num_groups
    if size == 1:
        return np.array(list(permutations(range(num_members))), np.int16)[:, :, None]

    def divide(members: tuple[int, ...], groups: int) -> list[list[tuple[int, ...]]]:
        if groups == 1:
            return [[members]]
        return [
            [first, *rest]
            for first in combinations(members, size)
            for rest in divide(tuple(m for m in members if m not in first), groups - 1)
        ]

    return np.array(divide(tuple(range(num_members)), num_groups), np.int16)


def assignment_tables(group: bool) -> tuple[np.ndarray, np.ndarray]:
    """Monsters of each team [ways, 3, 1 or 3] and modifiers of each element [ways, 4, 1 or 2].

    Assignment number i is team division i // len(elements) with element division i % len(elements).
    """
    return (group_table(9, 3), group_table(8, 4)) if group else (group_table(3, 3), group_table(4, 4))


def letter_triples(task: str, split: str) -> np.ndarray:
    """Rock-paper-scissors: the ordered triples [P, 3] int64 of letters (x beats y, y beats z, z beats x) of one split.

    `permutation` divides the 20 cycles of 5 letters by `side`, all rotations of a cycle together. Of each three letters
    training has one of the two cycles: its games can be won by the letters alone. `released` divides the 60 ordered
    triples, as the released program does, which puts rotations of one cycle on both sides.
    `new_edge` takes letters 1, 2, 4 (train) or 2, 3, 5 (eval) of each of the 8 windows of 5 letters at step 2;
    `new_node` letters a–e or f–j.
    """
    which = SPLITS[split]
    if task == "permutation":
        cycles = [c for x, y, z in combinations(range(5), 3) for c in ((x, y, z), (x, z, y))]
        chosen = [c for i, c in enumerate(cycles) if side(i) == which]
        triples = [(*c[r:], *c[:r]) for c in chosen for r in range(3)]
    elif task == "released":
        triples = [t for i, t in enumerate(permutations(range(5), 3)) if side(i) == which]
    elif task == "new_edge":
        members = (0, 1, 3) if which == TRAIN else (1, 2, 4)
        triples = [t for w in range(0, 16, 2) for t in permutations([w + m for m in members])]
    else:
        first = 0 if which == TRAIN else 5
        triples = list(permutations(range(first, first + 5), 3))
    return np.array(triples, np.int64)
