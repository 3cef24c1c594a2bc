"""Film: the pictures of an episode as a moving picture, as a sheet, and as a page with a slider."""

from __future__ import annotations

import base64
import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
from PIL import Image

from magrounding.errors import ConfigurationError, needed
from magrounding.storage import json_text

GIF, PNG, MP4 = ENDINGS = (".gif", ".png", ".mp4")
_LAST_FRAMES = 3
"""Number of times that a film repeats its last picture, so that the end can be seen."""
_SHEET = 2000
"""Pixels that a sheet is wide or high at most."""
_SMALLEST = 400
"""Pixels that a picture on it is wide at least."""
_ON_PAGE = 960
"""Pixels that a picture on a page is wide at most."""


def film(frames: Sequence[Any], ending: str, milliseconds: int, *, unscaled: bool = False) -> bytes:
    """Encode pictures in the format of a file's ending, one of ENDINGS; a film stays at its end for a while.

    Pictures are arrays [height, width, 3] uint8, or images of Pillow; `unscaled` see `sheet`. An .mp4
    without imageio is a MissingExtra.
    """
    pictures = [_image(frame) for frame in frames]
    if ending == PNG:
        return sheet(pictures, unscaled=unscaled)
    shown = [*pictures, *pictures[-1:] * (_LAST_FRAMES - 1)]
    if ending == MP4:
        with needed("a film in .mp4", "play"):
            import imageio.v3 as imageio
        arrays = [np.asarray(each.convert("RGB").resize([side // 2 * 2 for side in each.size])) for each in shown]
        how: dict[str, Any] = {"extension": MP4, "fps": 1000 / milliseconds, "macro_block_size": 1, "codec": "libx264"}
        return imageio.imwrite("<bytes>", np.stack(arrays), **how)
    return _saved(shown[0], "gif", save_all=True, append_images=shown[1:], duration=milliseconds, loop=0)  # for ever


def picture_of(env: Any, marks: np.ndarray | None = None) -> Any:
    """Render an env; ConfigurationError where it shows nothing."""
    frame = env.render() if marks is None else env.render(marks=marks)
    if frame is None:
        raise ConfigurationError(f"{type(env).__name__} shows no {env.render_mode} of its games: it cannot be watched")
    return frame


def beside_words(picture: np.ndarray, words: Sequence[str], attention: Mapping[str, np.ndarray]) -> np.ndarray:
    """Draw a picture and, right of it, agents' attention to words, as a map of heat (Zhong et al. 2020, figure 5).

    Args:
        picture: [height, width, 3] uint8.
        words: L.
        attention: by the agent's name, [1 + K, L], see `agents.policy.WORD_ATTENTION`.

    Returns:
        [height', width', 3] uint8, of the same size for as many words and agents.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    figure = Figure((8 + 2 * len(attention), max(6.6, len(words) / 7)), layout="constrained")
    board, *panels = figure.subplots(1, 1 + len(attention), width_ratios=[6] + [1] * len(attention))
    board.imshow(picture)
    board.axis("off")
    for panel, (agent, weights) in zip(panels, attention.items(), strict=True):
        # A power below 1, as a seventh of the attention is to be told from none.
        panel.imshow(weights[:, : len(words)].T, "Blues", norm=PowerNorm(0.5, 0, 1), aspect="auto")
        layers = [f"layer {k}" for k in range(1, len(weights))]
        panel.set_xticks(range(len(weights)), ["goal", *layers], rotation=90)
        panel.set_yticks(range(len(words)), words, fontsize=8)
        panel.set_title(agent)
    figure.colorbar(panels[0].images[0], ax=panels, label="attention: each column sums up to 1")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def page(title: str, frames: Sequence[Any], texts: Sequence[str], about: str, milliseconds: int = 600) -> str:
    """Return a self-contained page of HTML: a slider through the pictures, and beside each its text.

    Keys: left and right arrow, Home, End; space plays, each picture for so many milliseconds. `about` is a text of the
    whole episode, such as its manual. Pictures are those of `film`.
    """
    sources = []
    for frame in frames:
        small = _image(frame).convert("RGB")
        small.thumbnail((_ON_PAGE, 2 * _ON_PAGE), Image.Resampling.LANCZOS)
        # The median cut merges rare colours, such as an element's, which decides what beats a monster.
        encoded = _saved(small.quantize(method=Image.Quantize.FASTOCTREE), "png", optimize=True)
        sources.append("data:image/png;base64," + base64.b64encode(encoded).decode())
    steps = json_text([{"src": src, "text": text} for src, text in zip(sources, texts, strict=True)])
    parts = {"title": html.escape(title), "about": html.escape(about), "steps": steps.replace("<", "\\u003c")}
    parts["milliseconds"] = str(milliseconds)
    template = resources.files("magrounding.teams").joinpath("film.html").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: parts[found[1]], template)


def sheet(pictures: list[Image.Image], *, unscaled: bool = False) -> bytes:
    """Encode pictures beside and below each other (.png); no side is longer than _SHEET pixels.

    Of a long episode they are as many as can be recognised, at even distances, the first and the last among them; with
    `unscaled`, as many as fit without being made smaller.
    """
    width, height = (max(getattr(picture, side) for picture in pictures) for side in ("width", "height"))
    small = 1.0 if unscaled else min(1.0, _SMALLEST / width)
    most = max(1, int(_SHEET // (small * width))) * max(1, int(_SHEET // (small * height)))
    chosen = [pictures[k] for k in np.linspace(0, len(pictures) - 1, min(most, len(pictures))).round().astype(int)]
    columns = math.ceil(math.sqrt(len(chosen) * height / width))
    rows = math.ceil(len(chosen) / columns)
    scale = min(1.0, _SHEET / (columns * width), _SHEET / (rows * height))
    size = max(1, int(scale * width)), max(1, int(scale * height))
    whole = Image.new("RGB", (columns * size[0], rows * size[1]), "white")
    for k, picture in enumerate(chosen):
        part = picture if scale == 1 else picture.resize(size, Image.Resampling.LANCZOS)
        whole.paste(part, (k % columns * size[0], k // columns * size[1]))
    return _saved(whole, "png", optimize=True)


def _image(frame: Any) -> Image.Image:
    return Image.fromarray(np.asarray(frame))


def _saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    with io.BytesIO() as file:
        picture.save(file, kind, **options)
        return file.getvalue()
