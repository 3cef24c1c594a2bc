"""Figures as small pictures: creatures, people, things, weapons, rune stones, numbered agents, each on its outline.

`data/figures.json` has a palette and, by group and name, the shapes of a figure on a canvas of 100 × 100: a method of
`Pen`, its numbers and points, and a colour. A colour is "#rrggbb", a name of the palette, "tint" (the figure's own), or
one of its `mixes`: the tint with a share of a palette's colour in it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFilter, ImageFont

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


Group = Literal["creatures", "entities", "weapons"]
LETTERS_ON_STONE = 2
"""A name so short is written on a rune stone."""

_SUPERSAMPLING = 3
_OUTLINE = 2.6  # of 100


def agent_colour(name: str) -> str:
    """The colour of an agent, by its number."""
    return AGENT_COLOURS[int(name) % len(AGENT_COLOURS)] if name.isdigit() else hashed(name, AGENT_COLOURS)


@cache
def figures() -> dict[str, dict[str, Any]]:
    """Return the palette, and name → figure of each group."""
    return json.loads(files("magrounding.envs.drawing").joinpath("data/figures.json").read_text(encoding="utf-8"))


def draw_figure(pen: Pen, group: Group, name: str, tint: str = "") -> None:
    """Draw a figure of a group in a tint; an unlisted name always gets the same one of those with shapes."""
    data = figures()
    listed = data[group]
    name = listed.get(name, {}).get("like", name)
    if name not in listed:
        name = hashed(name, [each for each, figure in listed.items() if "shapes" in figure])
    colours: dict[str, Colour] = {**data["palette"], "tint": tint}
    for mixed, (other, share) in listed[name].get("mixes", {}).items():
        colours[mixed] = mix(tint, data["palette"][other], share)
    for shape, *numbers, colour in listed[name]["shapes"]:
        getattr(pen, shape)(*numbers, colours.get(colour, colour))


def _token(pen: Pen, name: str, tint: str) -> None:
    """A rune stone for what has only a letter or a number."""
    pen.box(14, 14, 86, 86, 20, "#e9e2d0")
    pen.box(20, 20, 80, 80, 15, mix(tint, PAPER, 0.8))
    pen.text(50, 50, name, 48 if len(name) == 1 else 30, mix(tint, INK, 0.35))


def _agent(pen: Pen, name: str, colour: str) -> None:
    pen.eyes(34, 89, 13, 7, mix(colour, INK, 0.5))
    pen.ellipse(50, 48, 42, 42, colour)
    pen.ellipse(50, 48, 34, 34, mix(colour, PAPER, 0.16))
    pen.text(50, 47, name, 46 if len(name) == 1 else 32, PAPER)


@lru_cache(maxsize=1024)
def sprite(kind: str, name: str, quality: str, side: int) -> Image.Image:
    """Picture of a `Figure` (or of the kind "dead", a fallen agent), RGBA [side, side]; treat it as read-only."""
    pen = Pen(side * _SUPERSAMPLING)
    if kind in ("agent", "dead"):
        _agent(pen, name, "#a9a9ad" if kind == "dead" else agent_colour(name))
    elif kind == "monster":
        draw_figure(pen, "creatures", name, quality_colour(quality or name))
    elif name in figures()["entities"]:
        draw_figure(pen, "entities", name)
    elif len(name) <= LETTERS_ON_STONE:
        _token(pen, name, hashed(name, TINTS))
    else:
        draw_figure(pen, "weapons", name, hashed(quality or name, TINTS))
        pen.image = pen.image.rotate(-40, Image.Resampling.BICUBIC)
    return _outlined(pen.image).reduce(_SUPERSAMPLING)


@lru_cache(maxsize=256)
def ring(colours: tuple[Colour, ...], side: int) -> Image.Image:
    """A ring of as many equal arcs as colours, RGBA [side, side]; treat it as read-only."""
    pen, arc = Pen(side * _SUPERSAMPLING), 360 / len(colours)
    pen.arc(50, 50, 48, 48, 0, 360, 7, PAPER)  # an edge that stands out from any ground
    for k, colour in enumerate(colours):
        pen.arc(50, 50, 47, 47, k * arc - 90, (k + 1) * arc - 90, 5, colour)
    return pen.image.reduce(_SUPERSAMPLING)


@lru_cache(maxsize=1024)
def pill(width: int, height: int, colour: Colour) -> Image.Image:
    """A ground for words: RGBA, as round at its ends as it is high; treat it as read-only."""
    image = Image.new("RGBA", (width * _SUPERSAMPLING, height * _SUPERSAMPLING), (0, 0, 0, 0))
    radius = min(image.size) / 2
    ImageDraw.Draw(image).rounded_rectangle((0, 0, image.width - 1, image.height - 1), radius, colour)
    return image.reduce(_SUPERSAMPLING)


def _outlined(drawing: Image.Image) -> Image.Image:
    """The drawing, a little smaller, on its own dark silhouette."""
    side = drawing.width
    edge = max(2, round(side * _OUTLINE / 100))
    inner = drawing.resize((side - 2 * edge, side - 2 * edge), Image.Resampling.BILINEAR)
    picture = Image.new("RGBA", drawing.size, (0, 0, 0, 0))
    picture.paste(inner, (edge, edge))
    # A blur cut off low widens the silhouette by about its radius, and faster than a maximum filter.
    shadow = picture.getchannel("A").filter(ImageFilter.GaussianBlur(edge * 0.8)).point([0] * 24 + [255] * 232)
    ground = Image.new("RGBA", drawing.size, INK)
    ground.putalpha(shadow)
    ground.alpha_composite(picture)
    return ground
