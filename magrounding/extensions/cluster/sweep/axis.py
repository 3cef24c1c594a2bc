"""Axis: an option of a sweep, and the values that it takes; the points of a grid, and random ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, inf, log, prod
from typing import Self

import numpy as np

from magrounding.errors import ConfigurationError

FIXED = ("env", "agents", "stages", "seeds", "evaluation", "workers", "preset", "budget")
"""Entries of a run that all points share: what is compared has the same games, and as many steps."""

MOST_POINTS = 10_000
"""The largest number of points of a sweep."""
_MOST = 2**53
"""The largest whole number up to which a float has all."""
_WHOLE = re.compile(r"[-+]?\d+")
_DRAWS = 100_000
"""Draws in which no new point was found, after which there is none: of `MOST_POINTS` the last is found before."""

Values = dict[str, str]
"""Path of an option → its value, as a word of a command line: a point of a sweep."""

_COMMA = re.compile(r",(?![^\[]*\])")
"""A comma that is not within a list."""
_LOG = ":log"


@dataclass(frozen=True)
class Axis:
    """An option, and what it may be.

    Attributes:
        path: "learner.<option>", "network.<option>", "env.<option>", or any other path of a run's config.json.
        values: those of a list, as they were typed; () for a range.
        low, high: ends of a range; ints for one of whole numbers.
        log: a range that is drawn from by its logarithm.
    """

    path: str
    values: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    log: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """The axis of "path=0.1,0.2" or "path=1e-4..1e-2:log"; ConfigurationError for anything else."""
        path, _, content = (part.strip() for part in text.partition("="))
        values = tuple(value.strip() for value in _COMMA.split(content))
        fixed = path in FIXED or path.startswith("evaluation.")
        if not path or not all(values) or len(set(values)) < len(values) or fixed:
            raise ConfigurationError(
                f"--over takes an option and its values, each once, as in learner.entropy=0.003,0.01, or a range, as "
                f"in learner.entropy=1e-3..1e-1:log; all points have the same {', '.join(FIXED)}: {text!r}"
            )
        if len(values) > 1 or ".." not in content:
            return cls(path, values)
        ends, logarithmic = content.removesuffix(_LOG).split(".."), content.endswith(_LOG)
        whole = all(_WHOLE.fullmatch(end.strip()) for end in ends)
        try:
            low, high = [int(end) if whole else float(end) for end in ends if "_" not in end]  # to Python 1_0 is ten
        except ValueError:
            low = high = 0
        least, most = (0 if logarithmic else -inf), (_MOST if whole else inf)
        if not (least < low < high and high - low < inf and max(-low, high) <= most):
            raise ConfigurationError(
                f"a range goes from a number to a greater one, as in 0.1..0.5, of :log from a positive one; whole ones "
                f"lie within ±2**53: {content!r}"
            )
        return cls(path, (), low, high, logarithmic)

    @property
    def whole(self) -> bool:
        """Whether it is a range of whole numbers."""
        return isinstance(self.low, int) and not self.values

    @property
    def size(self) -> float:
        """The number of values; infinity for a range of real numbers."""
        return len(self.values) or (self.high - self.low + 1 if self.whole else inf)

    @property
    def ends(self) -> tuple[str, ...]:
        """All values of a list, or both ends of a range."""
        return self.values or (str(self.low), str(self.high))

    def word(self, number: float) -> str:
        """A number of the range as a word."""
        return str(round(number) if self.whole else float(number))

    def draw(self, random: np.random.Generator) -> str:
        """A value, each as likely as any other; of a range by its logarithm where that is asked."""
        if self.values:
            return self.values[random.integers(len(self.values))]
        if self.whole and not self.log:
            return self.word(int(random.integers(int(self.low), int(self.high), endpoint=True)))
        drawn = random.uniform(log(self.low), log(self.high)) if self.log else random.uniform(self.low, self.high)
        return self.word(min(self.high, max(self.low, exp(drawn) if self.log else drawn)))


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """The axes of all --over; ConfigurationError for none."""
    if not texts:
        raise ConfigurationError("a sweep takes --over PATH=VALUES, for each option once")
    return tuple(map(Axis.parse, texts))


def grid(axes: Sequence[Axis]) -> list[Values]:
    """Every combination of values; ConfigurationError for a range, or more than `MOST_POINTS`."""
    if size_of(axes) > MOST_POINTS or not all(axis.values for axis in axes):
        raise ConfigurationError(
            f"a grid has no ranges, and {MOST_POINTS:,} points at most: say how many points to take, by --random or "
            "--optuna"
        )
    paths = [axis.path for axis in axes]
    return [dict(zip(paths, values, strict=True)) for values in product(*(axis.values for axis in axes))]


def random_points(axes: Sequence[Axis], count: int) -> list[Values]:
    """Draw so many points, the same ones each time; none comes twice, so there are no more than there can be."""
    random, points = np.random.default_rng(0), list[Values]()
    seen = set[tuple[str, ...]]()
    while len(points) < count and (point := new_point(axes, seen, random)) is not None:
        points.append(point)
        seen.add(tuple(point.values()))
    return points


def new_point(axes: Sequence[Axis], seen: Collection[tuple[str, ...]], random: np.random.Generator) -> Values | None:
    """Draw a point whose values are not among those `seen`, in the order of the axes; None where none is left."""
    for _ in range(_DRAWS if len(seen) < size_of(axes) else 0):
        point = {axis.path: axis.draw(random) for axis in axes}
        if tuple(point.values()) not in seen:
            return point
    return None


def size_of(axes: Sequence[Axis]) -> float:
    """The number of points that there can be; infinity where an axis is a range of real numbers."""
    return prod(axis.size for axis in axes)


def one_by_one(axes: Sequence[Axis]) -> Iterator[Values]:
    """Points that have every value of every axis, the other axes at their first, to find values that cannot be."""
    first = {axis.path: axis.ends[0] for axis in axes}
    yield first
    for axis in axes:
        yield from ({**first, axis.path: value} for value in axis.ends[1:])
