"""Colours, the font, and a pen that draws in hundredths of a square."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

Colour = str | tuple[int, int, int]
Point = tuple[float, float]

INK = "#23252e"
PAPER = "#ffffff"
ELEMENTS = {"fire": "#ef5a2a", "cold": "#62b8ee", "lightning": "#f4c81f", "poison": "#58b04c"}
AGENT_COLOURS = ("#3157c9", "#a8339b", "#0c8577", "#8a5a22", "#c42f5b", "#5a5f70")
TINTS = ("#b5482f", "#2f6db5", "#3c8f4d", "#8b4bb0", "#c08a1e", "#2b8f95", "#b23a72", "#6b5b4b", "#5869c9", "#7d8a2e")


def hashed(name: str, choices: Sequence[str]) -> str:
    """One of the choices, always the same for a name."""
    return choices[zlib.crc32(name.encode()) % len(choices)]


def quality_colour(quality: str) -> str:
    """The colour of an element, or a fixed tint of any other word."""
    return ELEMENTS.get(quality) or hashed(quality, TINTS)


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own scalable font, `size` in pixels."""
    return ImageFont.load_default(size=size)


class Pen:
    """Pen on a square image, in units of a hundredth of its side."""

    def __init__(self, side: int) -> None:
        self.image = Image.new("RGBA", (side, side), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self.image)
        self._unit = side / 100

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        """A filled polygon."""
        self._draw.polygon([(x * self._unit, y * self._unit) for x, y in points], fill)

    def mirrored(self, points: Sequence[Point], fill: Colour) -> None:
        """A polygon and its mirror image."""
        self.polygon(points, fill)
        self.polygon([(100 - x, y) for x, y in points], fill)

    def ellipse(self, x: float, y: float, rx: float, ry: float, fill: Colour) -> None:
        """A filled ellipse around (x, y)."""
        u = self._unit
        self._draw.ellipse(((x - rx) * u, (y - ry) * u, (x + rx) * u, (y + ry) * u), fill)

    def eyes(self, x: float, y: float, rx: float, ry: float, fill: Colour) -> None:
        """An ellipse and its mirror image."""
        self.ellipse(x, y, rx, ry, fill)
        self.ellipse(100 - x, y, rx, ry, fill)

    def box(self, x0: float, y0: float, x1: float, y1: float, radius: float, fill: Colour) -> None:
        """A filled rectangle with rounded corners."""
        u = self._unit
        self._draw.rounded_rectangle((x0 * u, y0 * u, x1 * u, y1 * u), radius * u, fill)

    def line(self, points: Sequence[Point], width: float, fill: Colour) -> None:
        """A line through the points."""
        u = self._unit
        self._draw.line([(x * u, y * u) for x, y in points], fill, max(1, round(width * u)), joint="curve")

    def arc(
        self, x: float, y: float, rx: float, ry: float, start: float, end: float, width: float, fill: Colour
    ) -> None:
        """Part of an ellipse's edge, clockwise from `start` to `end` degrees (0 is right, 90 down)."""
        u = self._unit
        place = ((x - rx) * u, (y - ry) * u, (x + rx) * u, (y + ry) * u)
        self._draw.arc(place, start, end, fill, max(1, round(width * u)))

    def text(self, x: float, y: float, text: str, size: float, fill: Colour) -> None:
        """Letters in bold, centred at (x, y)."""
        u = self._unit
        place = (x * u, y * u)
        self._draw.text(place, text, fill, font(round(size * u)), anchor="mm", stroke_width=1.2 * u, stroke_fill=fill)


def mix(colour: str, other: str, share: float) -> tuple[int, int, int]:
    """`colour` with a share of `other` in it; both "#rrggbb"."""
    a, b = (tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in (colour, other))
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue
