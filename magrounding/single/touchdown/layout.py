"""Touchdown's sizes, names and formulas: panoramas, classes, columns of directions."""

from __future__ import annotations

ROWS, COLUMNS = 47, 128
"""Patches of a panorama, each of 23 × 23 pixels (SILG, app. E)."""

DEGREES = 360 / COLUMNS
"""Degrees of a patch, in both directions."""

HORIZON = 23
"""The row at the camera's height."""

CLASSES = tuple(
    "road sidewalk building wall fence pole light sign trees terrain sky person rider car truck bus train motorcycle "
    "bicycle".split()
)
"""Classes of Cityscapes, in its order; each is called by one word, which is the same one in instructions."""

MAX_DIRECTIONS = 5
LIMIT = 64

SPLITS = {"train": "train.json", "valid": "dev.json", "test": "test.json"}
"""Split → its file of routes."""


def column_of(yaw: float, heading: float) -> int:
    """Return the column of a panorama in which a heading lies; `yaw` is the middle's. Degrees clockwise from north."""
    return (COLUMNS // 2 - int(COLUMNS * (yaw - heading) / 360)) % COLUMNS


def turn(heading: float, other: float) -> float:
    """Return the degrees from one heading to the other, clockwise, in [−180, 180)."""
    return (other - heading + 180) % 360 - 180
