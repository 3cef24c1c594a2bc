"""Sprites: the package's own drawings of figures as small PNGs, under names that tell a client nothing of files."""

from __future__ import annotations

import hashlib
import io
from functools import lru_cache

from magrounding.envs.drawing.sprites import sprite
from magrounding.envs.render import Figure

_SIDE = 96
_MOST = 8192


class Sprites:
    """Who has been on a picture: key → what is drawn under it. Only what games have shown can be asked for."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str, str]] = {}

    def key(self, figure: Figure) -> str:
        """Under which name a figure's picture is to be had."""
        drawn = figure.kind, figure.name, "" if figure.kind == "agent" else figure.quality
        key = _digest(drawn)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = drawn
        return key

    def png(self, key: str) -> bytes | None:
        """The picture; None for a name that no game has shown."""
        drawn = self._known.get(key)
        return None if drawn is None else _png(*drawn)


@lru_cache(maxsize=4096)
def _digest(drawn: tuple[str, str, str]) -> str:
    return hashlib.sha256("\0".join(drawn).encode()).hexdigest()[:16]


@lru_cache(maxsize=1024)
def _png(kind: str, name: str, quality: str) -> bytes:
    with io.BytesIO() as file:
        sprite(kind, name, quality, _SIDE).save(file, "png")
        return file.getvalue()
