"""Figures of MESSENGER: one function each draws one in colours of its own, on a canvas of 100 × 100."""

from __future__ import annotations

from collections.abc import Callable

from magrounding.envs.drawing.creatures import draw_creature
from magrounding.envs.drawing.pen import INK, PAPER, STEEL, STEEL_SHADE, WOOD, Pen, mix

_SKIN, _TAN, _BROWN = "#f3c9a2", "#dba676", "#a56f47"
_RED, _ORANGE, _GOLD = "#d9483b", "#f08a3c", "#f6c445"
_GREEN, _SKY, _BLUE, _VIOLET = "#4fae74", "#7cc4ee", "#3f78cf", "#7a52b8"


def _gaze(pen: Pen, x: float, y: float, size: float = 5) -> None:
    """Two friendly eyes, each with a glint."""
    pen.eyes(x, y, size, size * 1.2, INK)
    pen.eyes(x + size * 0.35, y - size * 0.45, size * 0.36, size * 0.4, PAPER)


def _airplane(pen: Pen) -> None:
    shade = mix(_BLUE, INK, 0.3)
    pen.mirrored([(46, 34), (2, 60), (2, 70), (46, 62)], _BLUE)
    pen.mirrored([(2, 63), (46, 52), (46, 62), (2, 70)], shade)
    pen.mirrored([(24, 44), (32, 39), (32, 60), (24, 60)], STEEL_SHADE)
    pen.mirrored([(47, 78), (26, 90), (26, 98), (47, 94)], _BLUE)
    pen.ellipse(50, 20, 10, 20, PAPER)
    pen.polygon([(40, 20), (60, 20), (55, 96), (50, 100), (45, 96)], PAPER)
    pen.polygon([(43, 12), (57, 12), (59, 20), (41, 20)], INK)
    pen.polygon([(50, 72), (53, 98), (47, 98)], _RED)


def _mage(pen: Pen) -> None:
    dark = mix(_VIOLET, INK, 0.4)
    pen.polygon([(24, 62), (76, 62), (92, 100), (8, 100)], _VIOLET)
    pen.ellipse(50, 54, 23, 20, _SKIN)
    pen.polygon([(27, 54), (40, 63), (60, 63), (73, 54), (68, 80), (50, 100), (32, 80)], PAPER)
    pen.mirrored([(50, 60), (34, 70), (50, 70)], STEEL)
    _gaze(pen, 41, 52, 4)
    pen.polygon([(60, 0), (80, 40), (20, 40), (44, 8)], _VIOLET)
    pen.ellipse(50, 40, 42, 7, dark)
    pen.ellipse(52, 22, 9, 9, _GOLD)
    pen.ellipse(56, 20, 7, 7, _VIOLET)


def _dog(pen: Pen) -> None:
    light, dark = mix(WOOD, PAPER, 0.65), mix(WOOD, INK, 0.4)
    pen.ellipse(50, 46, 33, 36, WOOD)
    pen.polygon([(46, 11), (54, 11), (58, 60), (42, 60)], light)
    pen.mirrored([(32, 12), (16, 14), (4, 40), (6, 66), (16, 72), (24, 60), (30, 30)], dark)
    pen.box(42, 74, 58, 98, 8, "#ee8093")
    pen.ellipse(50, 68, 23, 18, light)
    _gaze(pen, 37, 42, 5.5)
    pen.ellipse(50, 60, 10, 7, INK)
    pen.line([(50, 64), (50, 74)], 2.4, INK)
    pen.arc(42, 72, 8, 7, 0, 160, 2.6, INK)
    pen.arc(58, 72, 8, 7, 20, 180, 2.6, INK)


def _bird(pen: Pen) -> None:
    dark = mix(_SKY, INK, 0.45)
    pen.polygon([(34, 56), (4, 40), (0, 60), (30, 76)], mix(_SKY, INK, 0.6))
    pen.line([(46, 84), (42, 98)], 3.6, _ORANGE)
    pen.line([(58, 84), (60, 98)], 3.6, _ORANGE)
    pen.polygon([(80, 22), (100, 34), (80, 42)], _ORANGE)
    pen.ellipse(50, 62, 32, 26, _SKY)
    pen.ellipse(66, 32, 21, 22, _SKY)
    pen.ellipse(58, 70, 22, 17, PAPER)
    pen.ellipse(38, 61, 20, 15, dark)
    pen.polygon([(22, 50), (52, 52), (34, 76), (6, 72)], dark)
    pen.ellipse(71, 28, 5.5, 6.5, INK)
    pen.ellipse(73, 25, 2, 2.2, PAPER)


def _fish(pen: Pen) -> None:
    dark = mix(_ORANGE, INK, 0.35)
    pen.polygon([(70, 50), (98, 22), (92, 50), (98, 78)], dark)
    pen.polygon([(34, 30), (50, 8), (68, 14), (66, 34)], dark)
    pen.polygon([(44, 72), (54, 90), (64, 84), (62, 66)], dark)
    pen.ellipse(42, 50, 40, 28, _GOLD)
    pen.ellipse(24, 42, 8, 8.5, PAPER)
    pen.ellipse(22.5, 43, 4.5, 5, INK)
    pen.arc(6, 54, 16, 10, 10, 80, 2.6, INK)
    for x in (46, 62):
        pen.arc(x - 14, 50, 14, 20, -60, 60, 6, _RED)


def _scientist(pen: Pen) -> None:
    pen.polygon([(26, 76), (74, 76), (92, 100), (8, 100)], PAPER)
    pen.polygon([(38, 74), (62, 74), (50, 100)], _GREEN)
    for x, y in ((24, 34), (76, 34), (22, 48), (78, 48), (32, 20), (68, 20)):
        pen.ellipse(x, y, 14, 13, STEEL)
    pen.ellipse(50, 48, 28, 34, _TAN)
    pen.eyes(37, 46, 14, 14, INK)
    pen.line([(46, 46), (54, 46)], 4, INK)
    pen.eyes(37, 46, 10.5, 10.5, "#d6f1f7")
    pen.eyes(38, 47, 4, 5, INK)
    pen.arc(50, 66, 11, 7.7, 20, 160, 2.6, INK)


def _thief(pen: Pen) -> None:
    pen.polygon([(24, 76), (76, 76), (90, 100), (10, 100)], PAPER)
    pen.polygon([(21, 80), (79, 80), (83, 87), (17, 87)], INK)
    pen.polygon([(14, 93), (86, 93), (90, 100), (10, 100)], INK)
    pen.ellipse(50, 52, 32, 34, _SKIN)
    pen.polygon([(17, 30), (24, 10), (50, 1), (76, 10), (83, 30)], "#5b6172")
    pen.box(14, 26, 86, 37, 5, "#3f4454")
    pen.box(17, 41, 83, 59, 8, INK)
    pen.eyes(36, 50, 7, 6, PAPER)
    pen.eyes(38, 50, 3.2, 4, INK)
    pen.line([(40, 73), (54, 74), (62, 69)], 2.8, INK)


def _ship(pen: Pen) -> None:
    pen.box(47, 2, 53, 72, 1, WOOD)
    pen.polygon([(53, 2), (76, 8), (53, 15)], _RED)
    pen.polygon([(56, 18), (76, 36), (88, 64), (56, 64)], PAPER)
    pen.polygon([(44, 12), (24, 34), (10, 64), (44, 64)], PAPER)
    pen.polygon([(15, 52), (44, 52), (44, 64), (10, 64)], _RED)
    pen.polygon([(56, 52), (83, 52), (88, 64), (56, 64)], _RED)
    pen.polygon([(2, 70), (98, 70), (82, 96), (18, 96)], WOOD)
    pen.polygon([(2, 70), (98, 70), (94, 77), (6, 77)], mix(WOOD, INK, 0.45))
    for x in (32, 50, 68):
        pen.ellipse(x, 86, 4, 4, _GOLD)


def _ball(pen: Pen) -> None:
    pen.ellipse(50, 50, 46, 46, _RED)
    pen.ellipse(50, 50, 31, 46, PAPER)
    pen.ellipse(50, 50, 13, 46, _BLUE)
    pen.ellipse(50, 10, 13, 6, _GOLD)


def _queen(pen: Pen) -> None:
    hair = mix(_BROWN, INK, 0.6)
    pen.box(16, 30, 84, 92, 26, hair)
    pen.polygon([(30, 80), (70, 80), (92, 100), (8, 100)], _RED)
    pen.ellipse(50, 57, 27, 31, _BROWN)
    pen.polygon([(23, 54), (28, 34), (72, 34), (77, 54), (50, 40)], hair)
    _gaze(pen, 38, 57, 4.6)
    pen.eyes(31, 68, 5, 3.6, "#c4684f")
    pen.polygon([(42, 73), (47, 71), (50, 73), (53, 71), (58, 73), (50, 79)], _RED)
    pen.polygon([(20, 38), (14, 6), (34, 20), (50, 0), (66, 20), (86, 6), (80, 38)], _GOLD)
    pen.box(20, 31, 80, 40, 3, mix(_GOLD, INK, 0.2))
    for x, y, colour in ((50, 25, _RED), (31, 27, _BLUE), (69, 27, _BLUE)):
        pen.ellipse(x, y, 4.5, 4.5, colour)


def _letter(pen: Pen) -> None:
    paper, shade = "#fbf4e2", "#d8c8a4"
    pen.box(3, 18, 97, 84, 5, paper)
    pen.mirrored([(5, 82), (42, 50), (44, 53), (10, 83)], shade)
    pen.polygon([(4, 19), (96, 19), (50, 60)], shade)
    pen.polygon([(10, 19), (90, 19), (50, 54)], paper)
    pen.ellipse(50, 56, 14, 14, _RED)
    pen.ellipse(50, 56, 9, 9, mix(_RED, INK, 0.25))


FIGURES: dict[str, Callable[[Pen], None]] = {
    "airplane": _airplane,
    "mage": _mage,
    "dog": _dog,
    "bird": _bird,
    "fish": _fish,
    "scientist": _scientist,
    "thief": _thief,
    "ship": _ship,
    "ball": _ball,
    "robot": lambda pen: draw_creature(pen, "robot", _GREEN),
    "queen": _queen,
    "message": _letter,
}
"""Draws each figure by its name; the sword is with the weapons."""
