"""Instructions of our own for walks in a drawn city: they name what stands there, and on which side it is seen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np

from magrounding.single.touchdown.layout import turn
from tools.touchdown.scene import LANDMARKS, SIGHT, City, Thing

_NAMES = {
    "trees": ("trees", "the", "some"),
    "light": ("traffic light", "the", "a"),
    "sign": ("traffic sign", "the", "a"),
}

_SIDES = {
    "left": ("on your left", "to your left", "on the left side"),
    "right": ("on your right", "to your right", "on the right side"),
    "ahead": ("ahead of you", "in front of you", "straight ahead"),
    "behind": ("behind you", "at your back"),
}

_FIRST = (
    "face so that {a} {thing} is {side} and go forward .",
    "turn until {the} {thing} is {side} , then walk .",
    "start by heading off with {a} {thing} {side} .",
    "begin your walk with {the} {thing} {side} .",
)
_TURNS = (
    "when you reach the corner where {a} {thing} is {side} , turn {way} .",
    "turn {way} at the junction with {the} {thing} {side} .",
    "take a {way} where you see {a} {thing} {side} .",
    "at the crossing , with {the} {thing} {side} , go {way} .",
    "you will come to {a} {thing} {side} : there you make a {way} .",
)
_STRAIGHT = (
    "go straight on at the corner with {the} {thing} {side} .",
    "keep going past the junction where {a} {thing} is {side} .",
    "pass {the} {thing} {side} and stay on the same street .",
    "do not turn at the crossing with {a} {thing} {side} .",
)
_LAST = (
    "stop when {the} {thing} is {side} .",
    "you have arrived once you see {a} {thing} {side} .",
    "wait beside {the} {thing} {side} .",
    "the place to stop has {a} {thing} {side} .",
)
_BARE = ("stop there .", "walk a little further and stop .", "stop soon after that .")

AHEAD, TURNED = 35.0, 45.0
"""Degrees up to which something is ahead, and from which on a change of heading is a turn."""


def side_of(angle: float) -> str:
    """Return the side on which a thing is seen, by the angle to it in degrees: "left", "right", "ahead" or "behind"."""
    if abs(angle) <= AHEAD:
        return "ahead"
    if abs(angle) >= 180 - AHEAD:
        return "behind"
    return "right" if angle > 0 else "left"


def instruction(city: City, walk: Sequence[int], rng: np.random.Generator) -> str | None:
    """Sentences for a walk; None where what stands at its junctions does not tell them apart.

    Args:
        city: the area.
        walk: places, each next to the one before.
        rng: chooses among landmarks and phrases.
    """
    headings = [city.heading(a, b) for a, b in pairwise(walk)]
    junctions = [k for k in range(1, len(walk) - 1) if len(city.links[walk[k]]) > 2]
    chosen = _tell_apart([_landmarks(city, walk[k]) for k in junctions], rng)
    if chosen is None:
        return None
    sentences = [_say(_FIRST, city, walk[0], thing, headings[0], rng) for thing in _one(_seen(city, walk[0]), rng)]
    for k, thing in zip(junctions, chosen, strict=True):
        angle = turn(headings[k - 1], headings[k])
        phrases, way = (_STRAIGHT, "") if abs(angle) < TURNED else (_TURNS, "right" if angle > 0 else "left")
        sentences.append(_say(phrases, city, walk[k], thing, headings[k - 1], rng, way))
    last = [_say(_LAST, city, walk[-1], thing, headings[-1], rng) for thing in _one(_landmarks(city, walk[-1]), rng)]
    sentences += last or [str(rng.choice(_BARE))]
    return " ".join(sentences)


def words_of_phrases() -> set[str]:
    """Every word that an instruction can have."""
    sides = [phrase for phrases in _SIDES.values() for phrase in phrases]
    names = [" ".join(name) for name in _NAMES.values()]
    texts = (*_FIRST, *_TURNS, *_STRAIGHT, *_LAST, *_BARE, *sides, *names, *LANDMARKS, "left right a the")
    return {word for text in texts for word in text.split() if "{" not in word}


def _landmarks(city: City, place: int) -> list[Thing]:
    """Return landmarks of a place whose kind stands there once only."""
    kinds = [thing.kind for thing in city.things[place]]
    return [thing for thing in city.things[place] if thing.kind in LANDMARKS and kinds.count(thing.kind) == 1]


def _seen(city: City, place: int) -> list[Thing]:
    """Landmarks in sight of a place whose kind is seen once only."""
    near = [thing for thing in city.in_sight(place) if city.distance(place, thing) < SIGHT]
    kinds = [thing.kind for thing in near]
    return [thing for thing in near if thing.kind in LANDMARKS and kinds.count(thing.kind) == 1]


def _one(things: list[Thing], rng: np.random.Generator) -> list[Thing]:
    return [things[int(rng.integers(len(things)))]] if things else []


def _tell_apart(offered: list[list[Thing]], rng: np.random.Generator) -> list[Thing] | None:
    """A landmark for each junction, all of different kinds, and none of a kind that stands at another junction."""
    kinds = [{thing.kind for thing in things} for things in offered]
    ways = [
        list(each)
        for each in product(*offered)
        if not any(thing.kind in kinds[j] for i, thing in enumerate(each) for j in range(len(kinds)) if i != j)
    ]
    return ways[int(rng.integers(len(ways)))] if ways else None


def _say(
    phrases: Sequence[str],
    city: City,
    place: int,
    thing: Thing,
    heading: float,
    rng: np.random.Generator,
    way: str = "",
) -> str:
    sides = _SIDES[side_of(turn(heading, city.bearing_of(place, thing)))]
    name, the, a = _NAMES.get(thing.kind, (thing.kind, "the", "a"))
    phrase = phrases[int(rng.integers(len(phrases)))]
    sentence = phrase.format(the=the, a=a, thing=name, side=sides[int(rng.integers(len(sides)))], way=way)
    return sentence.replace("trees is", "trees are")
