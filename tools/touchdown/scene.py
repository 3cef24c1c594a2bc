"""A city drawn by chance: streets, junctions and what stands beside them, in metres; and its panoramas."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from magrounding.brief import brief
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, DEGREES, HORIZON, ROWS

EYE = 2.5
"""Height of the camera."""
HALF_ROAD, HALF_STREET = 5.0, 9.0
"""From the middle of a street to the kerb, and to the buildings."""
SPACING = 20.0
"""Distance between places of a street."""
SIGHT = 32.0
"""Distance up to which things can be distinguished."""

_CLASS = {name: number for number, name in enumerate(CLASSES)}

LANDMARKS = ("bus", "truck", "person", "motorcycle", "bicycle", "light", "sign", "fence", "wall", "trees")
"""Things that instructions name."""

_SIZES = {
    "bus": (9.0, 0.0, 3.4),
    "truck": (6.5, 0.0, 3.0),
    "car": (4.4, 0.0, 1.6),
    "person": (1.0, 0.0, 1.9),
    "motorcycle": (2.2, 0.0, 1.4),
    "bicycle": (1.9, 0.0, 1.2),
    "light": (1.0, 2.8, 4.6),
    "sign": (1.4, 1.8, 3.0),
    "fence": (8.0, 0.0, 1.6),
    "wall": (8.0, 0.0, 2.6),
    "trees": (5.0, 0.0, 7.0),
}
"""Width, and where it begins and ends above the ground."""
_ON_A_POLE = ("light", "sign")


@dataclass(frozen=True)
class Thing:
    """Something that stands at a place.

    Attributes:
        kind: of CLASSES.
        x, y: metres east and north.
    """

    kind: str
    x: float
    y: float


@dataclass
class City:
    """Places, ways and things of one area.

    Attributes:
        x, y: of each place, metres.
        links: each place's neighbours.
        things: those that belong to each place.
        tall: seed of the buildings' heights.
    """

    __repr__ = brief

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    links: list[list[int]] = field(default_factory=list)
    things: list[list[Thing]] = field(default_factory=list)
    tall: int = 0

    def heading(self, start: int, end: int) -> float:
        """Degrees clockwise from north."""
        return bearing(self.x[end] - self.x[start], self.y[end] - self.y[start])

    def bearing_of(self, place: int, thing: Thing) -> float:
        """In what direction a thing is seen from a place, degrees clockwise from north."""
        return bearing(thing.x - self.x[place], thing.y - self.y[place])

    def distance(self, place: int, thing: Thing) -> float:
        """Metres."""
        return math.hypot(thing.x - self.x[place], thing.y - self.y[place])

    def in_sight(self, place: int) -> list[Thing]:
        """Return the things at a place and its neighbours, the farthest first."""
        near = [thing for each in (place, *self.links[place]) for thing in self.things[each]]
        near = [thing for thing in near if self.distance(place, thing) <= SIGHT]
        return sorted(near, key=lambda thing: -self.distance(place, thing))

    def add(self, x: float, y: float) -> int:
        """A new place; its number."""
        self.x.append(x)
        self.y.append(y)
        self.links.append([])
        self.things.append([])
        return len(self.x) - 1

    def join(self, places: list[int]) -> None:
        """Link places in a row, both ways."""
        for a, b in pairwise(places):
            self.links[a].append(b)
            self.links[b].append(a)


def bearing(east: float, north: float) -> float:
    """Degrees clockwise from north."""
    return math.degrees(math.atan2(east, north)) % 360


def draw_city(rng: np.random.Generator, rows: int, columns: int, x: float = 0.0) -> City:
    """An area of streets.

    Args:
        rng: what is drawn.
        rows, columns: of junctions.
        x: metres that it lies to the east.
    """
    city = City(tall=int(rng.integers(2**31)))
    side = 3 * SPACING
    junctions = {
        (i, j): city.add(x + side * j + float(rng.uniform(-6, 6)), side * i + float(rng.uniform(-6, 6)))
        for i in range(rows)
        for j in range(columns)
    }
    for a, b in _streets(rng, rows, columns):
        _lay(city, junctions[a], junctions[b])
    for place in range(len(city.x)):
        _furnish(city, place, rng)
    return city


_Junction = tuple[int, int]


def _streets(rng: np.random.Generator, rows: int, columns: int) -> list[tuple[_Junction, _Junction]]:
    """Pairs of junctions: most neighbours, some diagonals; each junction has two to five streets, all are connected."""
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    streets = all_streets = [(a, b) for a in cells for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)) if b in set(cells)]
    for k in rng.permutation(len(streets))[: len(streets) // 4].tolist():
        a, b = all_streets[k]
        fewer = [street for street in streets if street != (a, b)]
        if min(_degree(a, fewer), _degree(b, fewer)) >= 2 and _connected(cells, fewer):
            streets = fewer
    for i, j in cells:
        a, b = (i, j), (i + 1, j + 1)
        if b in set(cells) and max(_degree(a, streets), _degree(b, streets)) < 5 and rng.random() < 0.12:
            streets.append((a, b))
    return streets


def _degree(cell: _Junction, streets: list[tuple[_Junction, _Junction]]) -> int:
    return sum(cell in street for street in streets)


def _connected(cells: list[_Junction], streets: list[tuple[_Junction, _Junction]]) -> bool:
    reached, before = {cells[0]}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {b for a, b in streets if a in reached} | {a for a, b in streets if b in reached}
    return len(reached) == len(cells)


def _lay(city: City, a: int, b: int) -> None:
    """A street with places about SPACING apart."""
    length = math.hypot(city.x[b] - city.x[a], city.y[b] - city.y[a])
    count = max(2, round(length / SPACING))
    parts = [k / count for k in range(1, count)]
    middle = [city.add(city.x[a] + (city.x[b] - city.x[a]) * p, city.y[a] + (city.y[b] - city.y[a]) * p) for p in parts]
    city.join([a, *middle, b])


def _furnish(city: City, place: int, rng: np.random.Generator) -> None:
    """Things beside a place: two or three landmarks at a junction, at times one elsewhere, and parked cars."""
    headings = sorted(city.heading(place, end) for end in city.links[place])
    corners = [
        (headings[k] + ((headings[(k + 1) % len(headings)] - headings[k]) % 360 or 360) / 2) % 360
        for k in range(len(headings))
    ]
    junction = len(headings) > 2
    count = int(rng.integers(2, 4)) if junction else int(rng.random() < 0.35)
    kinds = rng.choice(LANDMARKS, size=min(count, len(corners)), replace=False)
    order = rng.permutation(len(corners))
    for kind, k in zip(kinds, order, strict=False):
        _stand(city, place, str(kind), corners[int(k)], 7.0 if junction else 6.5)
    for k in order[len(kinds) :]:
        if rng.random() < 0.3:
            _stand(city, place, "car", corners[int(k)], 5.5)


def _stand(city: City, place: int, kind: str, direction: float, away: float) -> None:
    angle = math.radians(direction)
    city.things[place].append(
        Thing(kind, city.x[place] + away * math.sin(angle), city.y[place] + away * math.cos(angle))
    )


def draw_panorama(city: City, place: int, yaw: float) -> np.ndarray:
    """Draw the panorama of a place: classes [47, 128] uint8, the yaw in the middle."""
    directions = yaw + (np.arange(COLUMNS) - COLUMNS // 2) * DEGREES  # of columns
    free, lateral = _free_way(city, place, directions)
    elevation = (HORIZON + 0.5 - np.arange(ROWS))[:, None] * DEGREES - DEGREES / 2  # of rows, degrees
    with np.errstate(divide="ignore"):
        ground = EYE / np.tan(np.radians(np.maximum(-elevation, 1e-6)))  # metres to the ground seen there
    height = 12 + (_hash(city.tall, place, np.floor(directions / 30)) % 5) * 6.0
    top = np.degrees(np.arctan2(height - EYE, free))
    panorama = np.full((ROWS, COLUMNS), _CLASS["sky"], np.uint8)
    panorama[elevation < top] = _CLASS["building"]
    on_ground = (elevation < 0) & (ground < free)
    panorama[on_ground] = _CLASS["sidewalk"]
    panorama[on_ground & (ground * lateral < HALF_ROAD)] = _CLASS["road"]
    for thing in city.in_sight(place):
        _draw_thing(panorama, city, place, thing, yaw)
    return panorama


def _free_way(city: City, place: int, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Metres to the buildings in each direction, and the sine of its angle to the nearest street."""
    free = np.full(COLUMNS, HALF_STREET)
    lateral = np.ones(COLUMNS)
    for end in city.links[place]:
        angle = np.radians(directions - city.heading(place, end))
        ahead = np.cos(angle) > 0
        sine = np.abs(np.sin(angle))
        reach = np.minimum(HALF_STREET / np.maximum(sine, 1e-3), 90.0)
        free = np.where(ahead, np.maximum(free, reach), free)
        lateral = np.where(ahead, np.minimum(lateral, sine), lateral)
    return free, lateral


def _draw_thing(panorama: np.ndarray, city: City, place: int, thing: Thing, yaw: float) -> None:
    width, low, high = _SIZES[thing.kind]
    away = city.distance(place, thing)
    middle = COLUMNS / 2 + ((city.bearing_of(place, thing) - yaw + 180) % 360 - 180) / DEGREES
    half = math.degrees(math.atan2(width / 2, away)) / DEGREES
    _fill(panorama, middle, half, low, high, away, thing.kind)
    if thing.kind in _ON_A_POLE:
        _fill(panorama, middle, 0.0, 0.0, low, away, "pole")


def _fill(panorama: np.ndarray, middle: float, half: float, low: float, high: float, away: float, kind: str) -> None:
    """A box of a kind; at least one patch."""
    first, last = round(middle - half), max(round(middle - half), round(middle + half) - 1)
    top, bottom = (HORIZON - math.degrees(math.atan2(height - EYE, away)) / DEGREES + 0.5 for height in (high, low))
    rows = slice(max(0, round(top)), max(round(top), round(bottom) - 1) + 1)
    panorama[rows, np.arange(first, last + 1) % COLUMNS] = _CLASS[kind]


def _hash(seed: int, place: int, numbers: np.ndarray) -> np.ndarray:
    mixed = (numbers.astype(np.int64) % 12 + 1) * 2654435761 + place * 40503 + seed
    return (mixed >> 7) ^ (mixed >> 15)
