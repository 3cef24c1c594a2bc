"""Creatures: one function each draws a silhouette in the colour of its element, on a canvas of 100 × 100."""

from __future__ import annotations

from collections.abc import Callable

from magrounding.envs.drawing.pen import INK, PAPER, STEEL_SHADE, WOOD, Colour, Pen, hashed, mix


def _stare(pen: Pen, x: float, y: float, size: float = 7, white: Colour = PAPER) -> None:
    pen.eyes(x, y, size, size * 1.1, white)
    pen.eyes(x + 1.5, y + 1, size * 0.5, size * 0.62, INK)


def _cat(pen: Pen, colour: str, marks: str) -> None:
    light, dark = mix(colour, PAPER, 0.55), mix(colour, INK, 0.55)
    pen.eyes(23, 25, 15, 16, colour)
    pen.eyes(23, 26, 8, 9, dark)
    pen.ellipse(50, 55, 37, 35, colour)
    if marks == "spots":
        for x, y, r in ((50, 27, 5), (36, 31, 4), (64, 31, 4), (20, 58, 5), (80, 58, 5), (25, 72, 4), (75, 72, 4)):
            pen.ellipse(x, y, r, r, dark)
    if marks == "stripes":
        pen.polygon([(46, 20), (54, 20), (50, 38)], dark)
        for y in (48, 60, 72):
            pen.mirrored([(12, y - 3), (13, y + 5), (29, y + 2)], dark)
    _stare(pen, 34, 49, 8, "#fff3a8" if marks == "dark" else PAPER)
    pen.eyes(42, 69, 12, 10, light)
    pen.polygon([(42, 58), (58, 58), (50, 67)], INK)
    pen.arc(43, 70, 7, 6, 10, 170, 2.4, INK)
    pen.arc(57, 70, 7, 6, 10, 170, 2.4, INK)


def _wolf(pen: Pen, colour: str) -> None:
    light, dark = mix(colour, PAPER, 0.6), mix(colour, INK, 0.45)
    pen.mirrored([(12, 4), (42, 26), (14, 50)], colour)
    pen.mirrored([(17, 14), (32, 26), (18, 38)], dark)
    pen.polygon([(24, 24), (50, 16), (76, 24), (92, 58), (76, 66), (62, 90), (38, 90), (24, 66), (8, 58)], colour)
    pen.polygon([(50, 44), (66, 66), (60, 90), (40, 90), (34, 66)], light)
    pen.mirrored([(24, 44), (42, 50), (36, 58)], PAPER)
    pen.eyes(35, 51, 4, 4, INK)
    pen.ellipse(50, 72, 9, 6.5, INK)
    pen.line([(40, 84), (50, 81), (60, 84)], 2.4, INK)


def _goblin(pen: Pen, colour: str) -> None:
    dark = mix(colour, INK, 0.45)
    pen.mirrored([(34, 34), (0, 20), (10, 46), (30, 62)], colour)
    pen.mirrored([(27, 40), (9, 29), (16, 44), (28, 54)], dark)
    pen.polygon(
        [(26, 34), (36, 16), (50, 11), (64, 16), (74, 34), (72, 62), (60, 86), (50, 92), (40, 86), (28, 62)], colour
    )
    _stare(pen, 38, 44, 8, "#fff3a8")
    pen.line([(28, 31), (45, 38)], 3.4, INK)
    pen.line([(72, 31), (55, 38)], 3.4, INK)
    pen.polygon([(46, 48), (54, 48), (58, 62), (50, 66), (42, 62)], dark)
    pen.polygon([(33, 68), (67, 68), (60, 79), (50, 82), (40, 79)], INK)
    pen.mirrored([(38, 68), (44, 68), (41, 76)], PAPER)


def _wings(pen: Pen, colour: Colour) -> None:
    pen.mirrored(
        [(50, 36), (36, 34), (22, 16), (2, 14), (0, 66), (12, 55), (21, 70), (30, 59), (39, 74), (50, 64)], colour
    )


def _bat(pen: Pen, colour: str) -> None:
    dark = mix(colour, INK, 0.35)
    _wings(pen, colour)
    for end in ((12, 55), (30, 59)):
        pen.line([(24, 20), end], 2, dark)
        pen.line([(76, 20), (100 - end[0], end[1])], 2, dark)
    pen.mirrored([(33, 14), (48, 32), (34, 44)], dark)
    pen.ellipse(50, 52, 19, 24, dark)
    _stare(pen, 43, 45, 5.5, "#fff3a8")
    pen.mirrored([(41, 58), (47, 58), (44, 68)], PAPER)
    pen.line([(38, 58), (62, 58)], 2, INK)


def _imp(pen: Pen, colour: str) -> None:
    dark = mix(colour, INK, 0.5)
    pen.line([(64, 84), (82, 88), (90, 74), (86, 62)], 4, colour)
    pen.polygon([(80, 64), (94, 62), (86, 48)], colour)
    pen.mirrored([(30, 34), (14, 22), (17, 2), (26, 16), (44, 24)], dark)
    pen.mirrored([(24, 46), (8, 44), (22, 60)], colour)
    pen.ellipse(50, 54, 32, 34, colour)
    pen.mirrored([(26, 42), (46, 50), (42, 58), (30, 56)], "#fff3a8")
    pen.eyes(39, 52, 3.4, 4, INK)
    pen.polygon([(32, 66), (68, 66), (62, 77), (50, 81), (38, 77)], INK)
    pen.mirrored([(36, 66), (43, 66), (40, 73)], PAPER)
    pen.polygon([(46, 66), (54, 66), (50, 73)], PAPER)


def _shaman(pen: Pen, colour: str) -> None:
    dark, light = mix(colour, INK, 0.45), mix(colour, PAPER, 0.5)
    pen.line([(86, 26), (86, 96)], 5, WOOD)
    pen.ellipse(86, 18, 10, 10, light)
    pen.ellipse(86, 18, 5, 5, colour)
    pen.polygon([(46, 4), (66, 22), (72, 46), (82, 96), (10, 96), (20, 46), (26, 22)], colour)
    pen.polygon([(46, 96), (40, 70), (52, 70)], dark)
    pen.ellipse(46, 42, 19, 22, INK)
    pen.ellipse(39, 41, 5, 5, "#fff3a8")
    pen.ellipse(53, 41, 5, 5, "#fff3a8")
    pen.line([(38, 54), (54, 54)], 2.5, light)
    for x in (41, 46, 51):
        pen.line([(x, 51), (x, 57)], 1.8, light)


def _witch(pen: Pen, colour: str) -> None:
    dark, light = mix(colour, INK, 0.5), mix(colour, PAPER, 0.45)
    pen.polygon([(26, 52), (74, 52), (84, 96), (16, 96)], dark)
    pen.ellipse(50, 58, 23, 25, light)
    pen.polygon([(54, 0), (72, 38), (28, 38)], colour)
    pen.ellipse(50, 40, 42, 8, colour)
    pen.line([(31, 34), (69, 34)], 5, dark)
    _stare(pen, 41, 55, 5.5)
    pen.polygon([(48, 58), (52, 58), (58, 69), (48, 68)], dark)
    pen.arc(50, 68, 11, 9, 20, 160, 2.6, INK)


def _ghost(pen: Pen, colour: str) -> None:
    light = mix(colour, PAPER, 0.35)
    pen.ellipse(50, 42, 35, 36, light)
    pen.box(15, 42, 85, 84, 0, light)
    for x in (26.7, 50, 73.3):
        pen.ellipse(x, 84, 11.7, 11, light)
    pen.polygon([(68, 14), (85, 42), (85, 88), (76, 92), (72, 60)], colour)
    pen.ellipse(38, 42, 7, 10, INK)
    pen.ellipse(60, 42, 7, 10, INK)
    pen.ellipse(40, 38, 2.4, 3, PAPER)
    pen.ellipse(62, 38, 2.4, 3, PAPER)
    pen.ellipse(49, 64, 7, 9, INK)


def _zombie(pen: Pen, colour: str) -> None:
    dark, cloth = mix(colour, INK, 0.45), mix(colour, INK, 0.72)
    pen.box(26, 60, 74, 98, 6, cloth)
    pen.box(2, 62, 36, 75, 6, colour)
    pen.box(64, 62, 98, 75, 6, colour)
    for x in (4, 90):
        for y in (60, 66, 72):
            pen.box(x, y, x + 6, y + 4.5, 2, colour)
    pen.box(24, 6, 76, 66, 14, colour)
    pen.polygon([(24, 22), (30, 5), (70, 5), (76, 22), (66, 15), (56, 23), (46, 14), (36, 22)], dark)
    pen.ellipse(38, 36, 9, 9, PAPER)
    pen.ellipse(39, 37, 3.5, 3.5, INK)
    pen.line([(56, 31), (68, 41)], 3.2, INK)
    pen.line([(68, 31), (56, 41)], 3.2, INK)
    pen.line([(34, 55), (66, 53)], 3, INK)
    for x in (40, 48, 56, 63):
        pen.line([(x, 49), (x, 59)], 2.2, INK)


def _robot(pen: Pen, colour: str) -> None:
    dark = mix(colour, INK, 0.5)
    pen.line([(50, 6), (50, 22)], 4, STEEL_SHADE)
    pen.ellipse(50, 7, 6, 6, colour)
    pen.box(8, 40, 92, 62, 6, STEEL_SHADE)
    pen.box(18, 20, 82, 84, 12, colour)
    pen.box(26, 30, 74, 54, 8, INK)
    pen.eyes(38, 42, 7, 7, "#fff3a8")
    pen.box(30, 62, 70, 76, 4, dark)
    for x in (38, 46, 54, 62):
        pen.line([(x, 62), (x, 76)], 2, colour)


def _dragon(pen: Pen, colour: str) -> None:
    light, dark = mix(colour, PAPER, 0.5), mix(colour, INK, 0.45)
    _wings(pen, dark)
    pen.mirrored([(38, 28), (24, 12), (26, 0), (36, 12), (48, 22)], light)
    pen.polygon(
        [(30, 26), (50, 16), (70, 26), (76, 48), (66, 66), (64, 90), (50, 97), (36, 90), (34, 66), (24, 48)], colour
    )
    pen.mirrored([(31, 42), (46, 48), (42, 57), (34, 54)], "#fff3a8")
    pen.eyes(40, 50, 2.6, 4.4, INK)
    pen.eyes(44, 78, 3, 3.6, INK)
    pen.line([(39, 88), (50, 92), (61, 88)], 2.6, INK)
    pen.polygon([(50, 18), (55, 34), (50, 44), (45, 34)], light)


_CREATURES: dict[str, Callable[[Pen, str], None]] = {
    "wolf": _wolf,
    "jaguar": lambda pen, colour: _cat(pen, colour, "spots"),
    "panther": lambda pen, colour: _cat(pen, colour, "dark"),
    "tiger": lambda pen, colour: _cat(pen, colour, "stripes"),
    "bear": lambda pen, colour: _cat(pen, colour, ""),
    "goblin": _goblin,
    "bat": _bat,
    "imp": _imp,
    "shaman": _shaman,
    "witch": _witch,
    "ghost": _ghost,
    "zombie": _zombie,
    "robot": _robot,
    "dragon": _dragon,
}
_KIN = {"puma": "panther", "elf": "goblin", "vampire": "bat", "gremlin": "imp", "specter": "ghost"}


def draw_creature(pen: Pen, name: str, colour: str) -> None:
    """Draw a creature; a name that is not listed gets always the same one of those that are."""
    name = _KIN.get(name, name)
    _CREATURES[name if name in _CREATURES else hashed(name, tuple(_CREATURES))](pen, colour)
