"""Weapons: one function each draws one upright on a canvas of 100 × 100; `tint` colours guard and bindings."""

from __future__ import annotations

from collections.abc import Callable

from magrounding.envs.drawing.pen import INK, STEEL, STEEL_SHADE, WOOD, Pen, hashed


def _hilt(pen: Pen, tint: str, guard: float, top: float = 72) -> None:
    """Guard of half-width `guard` at `top`, grip and pommel below it."""
    pen.box(46, top, 54, 94, 2, WOOD)
    pen.ellipse(50, 94, 6, 6, tint)
    pen.box(50 - guard, top - 4, 50 + guard, top + 4, 3, tint)


def _sword(pen: Pen, tint: str) -> None:
    pen.polygon([(50, 0), (58, 12), (58, 72), (42, 72), (42, 12)], STEEL)
    pen.polygon([(50, 0), (58, 12), (58, 72), (50, 72)], STEEL_SHADE)
    _hilt(pen, tint, 20)


def _knife(pen: Pen, tint: str) -> None:
    pen.polygon([(44, 14), (56, 28), (60, 60), (44, 60)], STEEL)
    pen.polygon([(44, 14), (50, 22), (50, 60), (44, 60)], STEEL_SHADE)
    pen.box(43, 62, 57, 92, 5, WOOD)
    pen.box(40, 57, 62, 65, 3, tint)


def _katana(pen: Pen, tint: str) -> None:
    pen.polygon([(66, 0), (66, 10), (58, 36), (55, 68), (46, 68), (48, 38), (55, 12)], STEEL)
    pen.polygon([(66, 0), (55, 12), (48, 38), (46, 68), (50, 68), (52, 40), (58, 16)], STEEL_SHADE)
    pen.box(45, 70, 56, 98, 3, INK)
    for y in (76, 84, 92):
        pen.polygon([(50.5, y - 3), (54.5, y), (50.5, y + 3), (46.5, y)], tint)
    pen.ellipse(50.5, 69, 12, 5, tint)


def _cutlass(pen: Pen, tint: str) -> None:
    pen.polygon([(72, 2), (72, 24), (66, 48), (57, 70), (42, 70), (46, 46), (54, 22), (64, 8)], STEEL)
    pen.polygon([(72, 2), (64, 8), (54, 22), (46, 46), (42, 70), (48, 70), (52, 50), (60, 26)], STEEL_SHADE)
    pen.arc(54, 82, 17, 15, -70, 95, 5, tint)
    pen.box(45, 70, 54, 98, 4, WOOD)
    pen.box(34, 67, 62, 74, 3, tint)


def _haft(pen: Pen, tint: str, top: float) -> None:
    pen.box(46.5, top, 53.5, 100, 2, WOOD)
    pen.box(45.5, 84, 54.5, 90, 2, tint)


def _axe(pen: Pen, tint: str) -> None:
    _haft(pen, tint, 4)
    pen.polygon([(52, 14), (70, 6), (88, 10), (94, 29), (88, 48), (70, 52), (52, 42)], STEEL)
    pen.polygon([(88, 10), (94, 29), (88, 48), (82, 29)], STEEL_SHADE)
    pen.polygon([(48, 20), (32, 29), (48, 37)], STEEL)
    pen.box(44, 16, 56, 41, 3, tint)


def _tomahawk(pen: Pen, tint: str) -> None:
    _haft(pen, tint, 10)
    pen.polygon([(50, 16), (84, 12), (78, 46), (50, 32)], STEEL)
    pen.polygon([(84, 12), (78, 46), (74, 28)], STEEL_SHADE)
    pen.polygon([(46, 34), (34, 56), (42, 60), (48, 40)], tint)
    pen.box(45, 14, 55, 34, 3, tint)


def _morningstar(pen: Pen, tint: str) -> None:
    _haft(pen, tint, 40)
    for points in ([(50, 0), (57, 14), (43, 14)], [(50, 56), (57, 42), (43, 42)], [(22, 28), (36, 21), (36, 35)]):
        pen.polygon(points, STEEL)
    pen.polygon([(78, 28), (64, 21), (64, 35)], STEEL)
    pen.mirrored([(30, 8), (44, 14), (36, 22)], STEEL)
    pen.mirrored([(30, 48), (36, 34), (44, 42)], STEEL)
    pen.ellipse(50, 28, 18, 18, STEEL_SHADE)
    pen.ellipse(45, 23, 7, 7, STEEL)
    pen.box(44, 44, 56, 51, 2, tint)


def _polearm(pen: Pen, tint: str) -> None:
    _haft(pen, tint, 10)
    pen.polygon([(50, 0), (56, 18), (50, 24), (44, 18)], STEEL)
    pen.polygon([(53, 20), (72, 14), (78, 30), (68, 46), (53, 38)], STEEL)
    pen.polygon([(72, 14), (78, 30), (68, 46), (68, 30)], STEEL_SHADE)
    pen.polygon([(47, 24), (26, 22), (47, 36)], STEEL_SHADE)
    pen.box(45, 40, 55, 46, 2, tint)


def _spear(pen: Pen, tint: str) -> None:
    _haft(pen, tint, 24)
    pen.polygon([(50, 0), (60, 16), (54, 32), (46, 32), (40, 16)], STEEL)
    pen.polygon([(50, 0), (60, 16), (54, 32), (50, 32)], STEEL_SHADE)
    pen.mirrored([(48, 34), (38, 44), (48, 41)], tint)
    pen.box(44, 31, 56, 37, 2, tint)


def _sun(pen: Pen, tint: str) -> None:
    _haft(pen, tint, 46)
    for points in ([(50, 0), (56, 14), (44, 14)], [(17, 31), (32, 25), (32, 37)], [(83, 31), (68, 25), (68, 37)]):
        pen.polygon(points, "#f6b73c")
    pen.mirrored([(26, 8), (42, 16), (34, 24)], "#f6b73c")
    pen.mirrored([(26, 54), (34, 38), (42, 46)], "#f6b73c")
    pen.ellipse(50, 31, 18, 18, "#fbd873")
    pen.ellipse(50, 31, 9, 9, tint)


_WEAPONS: dict[str, Callable[[Pen, str], None]] = {
    "sword": _sword,
    "axe": _axe,
    "morningstar": _morningstar,
    "polearm": _polearm,
    "knife": _knife,
    "katana": _katana,
    "cutlass": _cutlass,
    "spear": _spear,
    "tomahawk": _tomahawk,
    "sunglow": _sun,
}
_ALIKE = {"sabre": "cutlass"}


def draw_weapon(pen: Pen, name: str, tint: str) -> None:
    """Draw a weapon; a name that is not listed gets always the same one of those that are."""
    name = _ALIKE.get(name, name)
    _WEAPONS[name if name in _WEAPONS else hashed(name, tuple(_WEAPONS))](pen, tint)
