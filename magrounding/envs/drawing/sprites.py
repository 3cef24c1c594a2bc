"""Figures as small pictures: creatures, people, things, weapons, rune stones, numbered agents, each on its outline.

`data/figures.json` has a palette and, by group and name, the shapes of a figure on a canvas of 100 × 100: a method of
`Pen`, its numbers and points, and a colour. A colour is "#rrggbb", a name of the palette, "tint" (the figure's own), or
one of its `mixes`: the tint with a share of a palette's colour in it.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFilter

from magrounding.envs.drawing.pen import AGENT_COLOURS, INK, PAPER, TINTS, Colour, Pen, hashed, mix, quality_colour

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
