"""NetHack's screen as text, and as a picture of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

CELL_HEIGHT, CELL_WIDTH, _SIZE = 17, 9, 14
_LINE = 79

_COLOURS = (
    "555753 cc3c3c 4e9a06 aa6e28 466ebe 965aa0 06989a c8cbc5 888a85 f5783c 8ae234 fce94f 729fcf c88cc8 34e2e2 ffffff"
)
_PALETTE = np.array([tuple(bytes.fromhex(colour)) for colour in _COLOURS.split()], np.uint8)
"""RGB of NetHack's 16 colours; black, the first, would not be seen as it is."""


def ansi(characters: np.ndarray, header: Sequence[str], footer: Sequence[str]) -> str:
    """Return lines above, the map of characters [21, 79], and lines below."""
    rows = [row.tobytes().decode("latin-1").rstrip() for row in np.ascontiguousarray(characters)]
    return "\n".join((*header, *rows, *footer))


def rgb_array(characters: np.ndarray, colours: np.ndarray, header: Sequence[str], footer: Sequence[str]) -> np.ndarray:
    """Return that as a picture [height, width, 3] uint8 in the terminal's colours; lines are cut at the map's width."""
    above, below = (np.array([_characters(line) for line in lines]) for lines in (header, footer))
    signs = np.concatenate((above, characters & 127, below))
    plain = (np.full(each.shape, 7) for each in (above, below))
    inks = np.concatenate((next(plain), colours & 15, next(plain)))
    shades = _shades()[signs].astype(np.uint16)[..., None]  # [rows, columns, CELL_HEIGHT, CELL_WIDTH, 1]
    cells = shades * _PALETTE[inks][:, :, None, None, :] // 255
    rows, columns = signs.shape
    return cells.astype(np.uint8).swapaxes(1, 2).reshape(rows * CELL_HEIGHT, columns * CELL_WIDTH, 3)


def _characters(line: str) -> list[int]:
    return list(line.encode("ascii", "replace")[:_LINE].ljust(_LINE))


@lru_cache(maxsize=1)
def _shades() -> np.ndarray:
    """[128, CELL_HEIGHT, CELL_WIDTH] uint8: how much ink each character puts where."""
    import matplotlib  # it brings a typewriter's font
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono.ttf", _SIZE)
    shades = np.zeros((128, CELL_HEIGHT, CELL_WIDTH), np.uint8)
    for sign in range(33, 127):
        image = Image.new("L", (CELL_WIDTH, CELL_HEIGHT))
        ImageDraw.Draw(image).text((0, 0), chr(sign), 255, font)
        shades[sign] = np.asarray(image)
    return shades
