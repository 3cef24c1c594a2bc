"""A game of ScienceWorld as text, and that text as a picture."""

from __future__ import annotations

import textwrap

import numpy as np

from magrounding.single.scienceworld.simulation import Moment

WIDTH, HEIGHT = 960, 720
_COLUMNS, _LINE, _SIZE = 110, 17, 14


def ansi(task: str, moment: Moment, step: int, max_cycles: int, score: float) -> str:
    """Return progress, task, the answer to the last command, the room and the inventory as text.

    An answer that only says what is around, as the first one does, is not shown twice.

    Args:
        task: its text.
        moment: the last step.
        step, max_cycles: how far the game has come.
        score: 0 to 100.
    """
    answer = f"> {moment.observation}" if moment.observation.strip() != moment.look.strip() else ""
    parts = (
        f"step {step} of {max_cycles} · score {score:g} of 100 · {len(moment.actions)} actions",
        task,
        answer,
        moment.look,
        moment.inventory,
    )
    return "\n\n".join(part.strip().expandtabs(4) for part in parts if part)


def rgb_array(text: str) -> np.ndarray:
    """Return a text as a picture [HEIGHT, WIDTH, 3] uint8; what does not fit is cut off."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (WIDTH, HEIGHT), "#ffffff")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=_SIZE)
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, _COLUMNS) or [""]]
    for k, line in enumerate(lines[: HEIGHT // _LINE - 1]):
        draw.text((12, 8 + k * _LINE), line, "#23252e", font)
    return np.array(image)
