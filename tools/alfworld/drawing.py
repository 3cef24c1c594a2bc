"""Draw scenes of ALFWorld from a seed, each in one split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.single.alfworld import kinds
from magrounding.single.alfworld.scenes import CLEAN, COOL, HEAT, LOOK, PLACE, SPLITS, TASKS, TWO, Scene
from tools.alfworld.rooms import FOUND, NARROW_SPACE, ROOMS, ROOMY, ROOMY_SPACE

ROOM_NUMBERS = {"train": range(1, 13), "valid": range(13, 17), "test": range(17, 21)}
"""A room (kitchen 3) has the same furniture in every scene, and is in one split only."""

_ROOMS_OF = {
    PLACE: ("kitchen", "livingroom", "bedroom", "bathroom"),
    LOOK: ("livingroom", "bedroom"),
    CLEAN: ("kitchen", "bathroom"),
    HEAT: ("kitchen",),
    COOL: ("kitchen",),
    TWO: ("kitchen", "livingroom", "bedroom", "bathroom"),
}
_FIT_FOR = {CLEAN: kinds.CLEANABLE, HEAT: kinds.HEATABLE, COOL: kinds.COOLABLE}
_PART = {0: "test", 1: "valid"}
_PARTS = 5
_SHIFT: dict[str, int] = dict(zip(TASKS, (0, 1, 2, 3, 4, 2), strict=True))


def targets(task: str, split: str) -> tuple[str, ...]:
    """Kinds of objects that a task is about in a split.

    They are disjoint between the splits of a task: of its kinds, in alphabetic order and counted on from a number of
    the task's own, every fifth is for "test", the one after it for "valid", the others for "train". Every kind is what
    some task of "train" is about: what is heated in tests has been cooled or carried in training, but never heated.
    """
    chosen = []
    for place, kind in enumerate(_candidates(task), _SHIFT[task]):
        if _PART.get(place % _PARTS, "train") == split:
            chosen.append(kind)
    return tuple(chosen)


def furniture(room: str) -> tuple[str, ...]:
    """Kind of each receptacle of a room: drawn from its name, so the same in every scene."""
    kind, number = room.rsplit("-", 1)
    rng = np.random.default_rng([int(number), sorted(ROOMS).index(kind)])
    counts = {name: int(rng.integers(low, high + 1)) for name, (low, high) in ROOMS[kind].items()}
    return tuple(name for name, count in counts.items() for _ in range(count))


def draw_scenes(split: str, count: int, seed: int) -> Iterator[Scene]:
    """Scenes of a split, the six tasks in turn; the same seed, the same scenes.

    Args:
        split: one of SPLITS.
        count: how many.
        seed: at least 0.
    """
    if count < 0 or seed < 0:
        raise ConfigurationError(f"a number of scenes and a seed are at least 0, got {count} and {seed}")
    for number in range(count):
        rng = np.random.default_rng([seed, SPLITS.index(split), number])
        scene = None
        while scene is None:
            scene = _draw(TASKS[number % len(TASKS)], split, rng)
        yield scene


def _candidates(task: str) -> list[str]:
    """In alphabetic order, the kinds that a task can be about."""
    found = {kind for room in _ROOMS_OF[task] for kind in FOUND[room]}
    return sorted(found & _FIT_FOR.get(task, found))


def _draw(task: str, split: str, rng: np.random.Generator) -> Scene | None:
    """A scene; None where the room that was drawn has no place for the task."""
    target = _pick(targets(task, split), rng)
    kind = _pick([room for room in _ROOMS_OF[task] if target in FOUND[room]], rng)
    room = f"{kind}-{_pick(ROOM_NUMBERS[split], rng)}"
    receptacles = furniture(room)
    takers = sorted({name for name in receptacles if target in kinds.HOLDS[name]})
    goal = "" if task == LOOK else _pick(takers, rng)
    free = [ROOMY_SPACE if name in ROOMY else NARROW_SPACE for name in receptacles]
    things: list[tuple[str, int]] = []

    def lay(thing: str, but: str = "") -> bool:
        places = [
            place
            for place, name in enumerate(receptacles)
            if free[place] and name != but and thing in kinds.HOLDS[name]
        ]
        if places:
            place = _pick(places, rng)
            free[place] -= 1
            things.append((thing, place))
        return bool(places)

    count = (2 if task == TWO else 1) + int(rng.integers(2))
    if task == LOOK and not lay(kinds.LAMP):
        return None
    laid = [lay(target, goal) for _ in range(count)]
    if not all(laid):
        return None
    if task != LOOK and rng.random() < 0.5:
        lay(kinds.LAMP)
    others = [thing for thing in FOUND[kind] if thing != target]
    for thing in rng.choice(others, min(len(others), int(rng.integers(8, 15))), replace=False):
        for _ in range(1 + int(rng.random() < 0.25)):
            lay(str(thing))
    order = rng.permutation(len(things))
    return Scene(task, target, goal, room, int(rng.integers(2)), receptacles, tuple(things[i] for i in order))


def _pick(values: Any, rng: np.random.Generator) -> Any:
    """One of some values."""
    return values[int(rng.integers(len(values)))]
