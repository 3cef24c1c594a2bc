"""A Scene as a picture: the board at the left; at the right inventories, the goal and the manual."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw

from magrounding.envs.drawing.sprites import (
    ELEMENTS,
    INK,
    LETTERS_ON_STONE,
    PAPER,
    Colour,
    agent_colour,
    font,
    mix,
    pill,
    quality_colour,
    ring,
    sprite,
)
from magrounding.envs.render import Figure, Scene
from magrounding.errors import ConfigurationError

WIDTH, HEIGHT = 1280, 840  # one size for every world, and even, as video encoders want it
_MARGIN, _BOARD = 20, 800
_PANEL = _MARGIN + _BOARD + 32  # left edge of the panel
_PANEL_WIDTH = WIDTH - _PANEL - _MARGIN
_LARGEST_CELL, _SMALLEST_LABELLED_CELL, _SMALLEST_LABEL = 130, 56, 10
_MOST_CELLS = _BOARD // 8
_RING = 0.25  # of a cell: one course of stones of a closed ring of walls is shown, as no agent stands there
_SPACE = 0.32  # between words, of the size of the letters

_BACKGROUND, _MUTED, _FAINT, _RULE = "#f6f2e9", "#6a6870", "#a3a0a0", "#dcd5c5"
_FLOOR = ("#efe8d6", "#e8e0cb")
_STONE, _STONE_LIGHT, _STONE_DARK = "#747986", "#8e94a1", "#5b606d"
_WON, _LOST, _PLAYING = "#2f8f4e", "#c23b31", "#7d7a80"

Line = tuple[str, Colour, Colour | None]
"""A line of a label: text, its colour, the colour of the ground behind it."""


def draw_scene(scene: Scene) -> np.ndarray:
    """The picture of a scene, [HEIGHT, WIDTH, 3] uint8; ConfigurationError for a map too large to be seen on it."""
    if max(scene.walls.shape) > _MOST_CELLS:
        raise ConfigurationError(
            f"a map of {'×'.join(map(str, scene.walls.shape))} cells is too large to be drawn on {WIDTH}×{HEIGHT}: "
            f'pictures show at most {_MOST_CELLS} cells a side, render_mode="ansi" shows all'
        )
    image = Image.new("RGB", (WIDTH, HEIGHT), _BACKGROUND)
    board, cell, inset = _board(scene.walls.tobytes(), scene.walls.shape)
    left, top = _MARGIN + (_BOARD - board.width) // 2, (HEIGHT - board.height) // 2
    image.paste(board, (left, top))
    left, top = left - inset, top - inset
    places: dict[tuple[int, int], list[Figure]] = defaultdict(list)
    for figure in scene.figures:
        places[figure.row, figure.column].append(figure)
    for (row, column), figures in places.items():
        _draw_cell(image, left + column * cell, top + row * cell, cell, figures, scene.inventories)
    speakers = {int(each.name): each for each in scene.figures if each.kind == "agent"}
    for agent, statement in scene.said.items():
        at = speakers.get(agent)  # one without a body speaks at the edge
        x, y = (_MARGIN, _MARGIN) if at is None else (left + at.column * cell, top + at.row * cell)
        _draw_bubble(image, x + cell // 2, y, cell if at else 0, statement, agent_colour(str(agent)))
    _draw_panel(image, scene)
    return np.array(image)


@lru_cache(maxsize=32)
def _board(walls: bytes, shape: tuple[int, int]) -> tuple[Image.Image, int, int]:
    """Floor and walls (read-only), the side of a cell in pixels, and how many of them are cut off at each edge."""
    solid = np.frombuffer(walls, np.bool_).reshape(shape)
    ring = solid[[0, -1]].all() and solid[:, [0, -1]].all()
    cell = min(_LARGEST_CELL, int(_BOARD / (max(shape) - 2 * (1 - _RING) * ring)))
    inset = round(cell * (1 - _RING)) if ring else 0
    image = Image.new("RGB", (cell * shape[1], cell * shape[0]), INK)
    draw = ImageDraw.Draw(image)
    for row, column in np.ndindex(*shape):
        x, y = column * cell, row * cell
        if solid[row, column]:
            _draw_stones(draw, x, y, cell)
        else:
            draw.rectangle((x, y, x + cell - 1, y + cell - 1), _FLOOR[(row + column) % 2])
    return image.crop((inset, inset, image.width - inset, image.height - inset)), cell, inset


def _draw_stones(draw: ImageDraw.ImageDraw, x: int, y: int, cell: int) -> None:
    """One cell of wall: courses of stones, lit from above."""
    draw.rectangle((x, y, x + cell - 1, y + cell - 1), _STONE_DARK)
    course, joint = cell / 4, max(1, cell // 40)
    for k in range(4):
        edges = (0, 0.5, 1) if k % 2 == 0 else (0, 0.25, 0.75, 1)
        for start, end in pairwise(edges):
            x0, x1 = x + start * cell + joint, x + end * cell - joint
            y0, y1 = y + k * course + joint, y + (k + 1) * course - joint
            draw.rectangle((x0, y0, x1, y1), _STONE)
            draw.rectangle((x0, y0, x1, y0 + joint), _STONE_LIGHT)


def _draw_cell(
    image: Image.Image, x: int, y: int, cell: int, figures: list[Figure], inventories: tuple[str, ...]
) -> None:
    """Draw the figures of a cell: one above a label, two or three in bands with labels beside them, more without."""
    labelled = cell >= _SMALLEST_LABELLED_CELL
    if len(figures) == 1:
        figure = figures[0]
        lines = _label(figure, inventories) if labelled else []
        line_height = cell * 0.165
        side = round(min(cell * 0.9, cell * 0.94 - line_height * len(lines)))
        _paste(image, figure, x + (cell - side) // 2, y + round(cell * 0.02), side, inventories)
        for k, line in enumerate(lines):
            _write(image, x + cell / 2, y + cell * 0.98 - line_height * (len(lines) - k - 0.5), line, cell, cell, "mm")
    elif len(figures) <= 3 and labelled:
        band = cell // len(figures)
        for k, figure in enumerate(figures):
            side = min(band, round(cell * 0.38)) - 2
            middle = y + k * band + band // 2
            _paste(image, figure, x + 2, middle - side // 2, side, inventories)
            lines = [] if figure.kind == "agent" else _label(figure, inventories)  # its item is in its hand
            room = cell - side - 12
            for m, line in enumerate(lines):
                height = middle + (m - (len(lines) - 1) / 2) * cell * 0.15
                _write(image, x + side + 8, height, line, cell * 0.85, room, "lm")
    else:
        across = int(np.ceil(np.sqrt(len(figures))))
        side = cell // across
        for k, figure in enumerate(figures):
            _paste(image, figure, x + k % across * side, y + k // across * side, side, inventories)


def _draw_bubble(image: Image.Image, x: int, y: int, cell: int, statement: str, colour: Colour) -> None:
    """Draw what an agent says above its cell, whose middle is at x and whose top is at y, or below it."""
    text = _text_block((statement,), frozenset(), INK, (280, 90), 20)
    width, height = text.width + 20, text.height + 12
    left = min(max(x - width // 2, _MARGIN), _MARGIN + _BOARD - width)
    above = y - height - 12 > _MARGIN
    top, foot, tip = (y - height - 12, y - 12, y) if above else (y + cell + 12, y + cell + 12, y + cell)
    draw = ImageDraw.Draw(image)
    draw.rounded_rectangle((left, top, left + width, top + height), 14, _BACKGROUND, colour, 4)
    draw.polygon(((x - 12, foot), (x + 12, foot), (x, tip)), colour)
    image.paste(text, (left + 10, top + 6))


def _label(figure: Figure, inventories: tuple[str, ...]) -> list[Line]:
    """Return the name of a figure, or the inventory of an agent."""
    if figure.kind == "agent":
        return [(word, agent_colour(figure.name), None) for word in _held(figure, inventories).rsplit(" ", 1) if word]
    if figure.kind == "monster":
        ground = ELEMENTS.get(figure.quality) or mix(quality_colour(figure.quality), PAPER, 0.6)
        return [line for line in ((figure.quality, INK, ground), (figure.name, INK, None)) if line[0]]
    name = "" if len(figure.name) <= LETTERS_ON_STONE else figure.name  # a rune stone says it itself
    return [(word, INK, None) for word in (figure.quality, name) if word]


def _held(figure: Figure, inventories: tuple[str, ...]) -> str:
    return inventories[int(figure.name)] if figure.name.isdigit() and int(figure.name) < len(inventories) else ""


def _paste(image: Image.Image, figure: Figure, x: int, y: int, side: int, inventories: tuple[str, ...]) -> None:
    """Paste a figure, an agent with its item in hand, an entity in a ring of the colours of agents that claim it."""
    held = _held(figure, inventories) if figure.kind == "agent" else ""
    picture = sprite(figure.kind, figure.name, figure.quality, side)
    image.paste(picture, (x - side // 8 if held else x, y), picture)
    if held:
        quality, _, name = held.rpartition(" ")
        hand = sprite("item", name, quality, round(side * 0.62))
        image.paste(hand, (x + round(side * 0.52), y + round(side * 0.12)), hand)
    if figure.claimed_by:
        circle = ring(tuple(agent_colour(str(agent)) for agent in figure.claimed_by), side)
        image.paste(circle, (x, y), circle)


def _write(image: Image.Image, x: float, y: float, line: Line, scale: float, room: float, anchor: str) -> None:
    """One line of a label, as large as its room allows."""
    text, colour, ground = line
    size = _fitting(text, max(9, round(scale * 0.155)), _SMALLEST_LABEL, room)
    while anchor == "lm" and len(text) > 1 and font(size).getlength(text) > room:
        text = text[:-2] + "…"  # rather cut off than over a figure, or in the next cell
    draw, length = ImageDraw.Draw(image), font(size).getlength(text)
    if ground is None:
        draw.text((x, y), text, colour, font(size), anchor=anchor, stroke_width=2, stroke_fill=_FLOOR[0])
        return
    left = x - length / 2 if anchor == "mm" else x
    _paste_pill(image, left - 6, y, length + 12, round(size * 1.15), ground)
    draw.text((x, y), text, colour, font(size), anchor=anchor)


def _fitting(text: str, size: int, least: int, room: float) -> int:
    """Return the largest size of letters up to `size` in which a text fits; `least` if none does."""
    while size > least and font(size).getlength(text) > room:
        size -= 1
    return size


def _paste_pill(image: Image.Image, x: float, middle: float, width: float, height: int, colour: Colour) -> None:
    picture = pill(round(width), height, colour)
    image.paste(picture, (round(x), round(middle - height / 2)), picture)


def _draw_panel(image: Image.Image, scene: Scene) -> None:
    draw = ImageDraw.Draw(image)
    right = _PANEL + _PANEL_WIDTH
    draw.text((_PANEL, 42), f"step {scene.step} of {scene.max_cycles}", INK, font(24), anchor="lm")
    badge = {"won": ("WON", _WON), "lost": ("LOST", _LOST)}.get(scene.outcome, ("PLAYING", _PLAYING))
    width = font(18).getlength(badge[0]) + 30
    _paste_pill(image, right - width, 41, width, 34, badge[1])
    draw.text((right - width / 2, 41), badge[0], PAPER, font(18), anchor="mm")
    _paste_pill(image, _PANEL, 73, _PANEL_WIDTH, 6, _RULE)
    _paste_pill(image, _PANEL, 73, max(6, min(1.0, scene.step / scene.max_cycles) * _PANEL_WIDTH), 6, badge[1])
    shown = [word for figure in scene.figures for word in (figure.quality, figure.name)]
    words = frozenset(word for word in (*shown, *" ".join(scene.inventories).split()) if word)
    top = 106
    if scene.goal:
        _draw_heading(draw, top, "GOAL")
        goal = _text_block((scene.goal,), words, INK, (_PANEL_WIDTH, 80), 25)
        image.paste(goal, (_PANEL, top + 16))
        top += 108
    _draw_heading(draw, top, "AGENTS")
    top = _draw_agents(image, scene, top + 16, 186) + 14
    _draw_heading(draw, top, "MANUAL")
    top += 18
    readers = tuple(tuple(agent_colour(str(agent)) for agent in known) for known in scene.readers)
    manual = _text_block(scene.manual, words, _MUTED, (_PANEL_WIDTH, HEIGHT - _MARGIN - top), 18, readers)
    image.paste(manual, (_PANEL, top))


def _draw_heading(draw: ImageDraw.ImageDraw, y: int, text: str) -> None:
    draw.text((_PANEL, y), text, _FAINT, font(14), anchor="lm")
    draw.line((_PANEL + font(14).getlength(text) + 10, y, _PANEL + _PANEL_WIDTH, y), _RULE, 1)


def _draw_agents(image: Image.Image, scene: Scene, top: int, room: int) -> int:
    """Draw the inventories, in as many columns as they need; return the lower edge."""
    draw = ImageDraw.Draw(image)
    count = len(scene.alive)
    columns = 1 if count <= 4 else 2 if count <= 12 else 4
    rows = -(-count // columns)
    pitch, width = min(56, room // rows), _PANEL_WIDTH // columns
    side = min(46, pitch - 4)
    for i, (alive, held) in enumerate(zip(scene.alive, scene.inventories, strict=True)):
        x, y = _PANEL + i // rows * width, top + i % rows * pitch
        picture = sprite("agent" if alive else "dead", str(i), "", side)
        image.paste(picture, (x, y), picture)
        text, colour = (held, INK) if held and alive else ("holds nothing" if alive else "dead", _MUTED)
        left = x + side + 10
        if held and alive:
            quality, _, name = held.rpartition(" ")
            hand = sprite("item", name, quality, side)
            image.paste(hand, (left - 4, y), hand)
            left += side + 4
        size = _fitting(text, 20, 9, x + width - left)
        draw.text((left, y + side / 2), text, colour, font(size), anchor="lm")
    return top + rows * pitch


@lru_cache(maxsize=64)
def _text_block(
    texts: tuple[str, ...],
    words: frozenset[str],
    colour: str,
    room: tuple[int, int],
    largest: int,
    readers: tuple[tuple[Colour, ...], ...] = (),
) -> Image.Image:
    """Sentences (read-only), wrapped, in the largest letters that fit; names of what is in the game stand out.

    Bullets of several have the colours of their `readers`, where these are given.
    """
    width, height = room
    sentences = [re.sub(r" ([,.;:!?])", r"\1", text) for text in texts if text]  # as people write
    dots = [known for known, text in zip(readers or [(_FAINT,)] * len(texts), texts, strict=True) if text]
    widest = max(map(len, dots), default=0) if len(texts) > 1 else 0
    size = largest
    while True:
        leading, gap, indent = size * 1.3, size * 0.55, size * (widest + 1) / 2 * (widest > 0)
        paragraphs = [_wrap(sentence, size, width - indent) for sentence in sentences]
        used = sum(map(len, paragraphs)) * leading + (len(paragraphs) - 1) * gap
        if used <= height or size <= _SMALLEST_LABEL:
            break
        size -= 1
    image = Image.new("RGB", (width, min(height, round(used))), _BACKGROUND)
    y = leading / 2
    for paragraph, known in zip(paragraphs, dots, strict=True):
        for k, dot in enumerate(known[:widest]):
            _paste_pill(image, size * 0.5 * k, y + 1, size * 0.36, round(size * 0.36), dot)
        for line in paragraph:
            x = float(indent)
            for word in line:
                _draw_word(image, x, y, word, words, colour, size)
                x += font(size).getlength(word) + size * _SPACE
            y += leading
        y += gap
    return image


def _draw_word(
    image: Image.Image, x: float, y: float, word: str, words: frozenset[str], colour: str, size: int
) -> None:
    draw, bare = ImageDraw.Draw(image), word.strip(",.;:!?")
    length = font(size).getlength(bare)
    if bare in ELEMENTS:
        _paste_pill(image, x - 3, y + 1, length + 6, round(size * 1.2), mix(ELEMENTS[bare], _BACKGROUND, 0.35))
    elif bare in words:
        draw.line((x, y + size * 0.58, x + length, y + size * 0.58), INK, 2)
    draw.text((x, y), word, INK if bare in words or bare in ELEMENTS else colour, font(size), anchor="lm")


def _wrap(text: str, size: int, width: float) -> list[list[str]]:
    """Lines of words that fit into `width`."""
    lines: list[list[str]] = [[]]
    used = 0.0
    for word in text.split():
        length = font(size).getlength(word)
        if lines[-1] and used + length > width:
            lines.append([])
            used = 0.0
        lines[-1].append(word)
        used += length + size * _SPACE
    return lines
