"""TextRender: observations as text, for an env that draws nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

from magrounding.errors import ConfigurationError
from magrounding.text_view import TextView

_ANSI = "ansi"


class TextRender(BaseParallelWrapper):
    """An env whose `render` returns the last observations as text, see `text_view.TextView`."""

    render_mode = _ANSI

    def __init__(self, env: ParallelEnv, view: TextView) -> None:
        super().__init__(env)
        self.metadata = {**getattr(env, "metadata", {}), "render_modes": [_ANSI]}
        self.view, self.seen = view, dict[str, Any]()

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        result = super().reset(seed, options)
        self.seen = dict(result[0])
        return result

    def step(self, actions: Any) -> Any:
        result = super().step(actions)
        self.seen |= result[0]
        return result

    def render(self) -> str:
        """Return the observations of all agents as text; shared fields appear once."""
        return self.view.describe_all(self.seen, {})


def with_render_mode(env: Any, view: TextView, render_mode: str | None) -> Any:
    """Return an env made with a render mode, or for "ansi" a `TextRender` of one that draws nothing.

    Raises:
        ConfigurationError: another mode, of an env that does not have it.
    """
    metadata = getattr(env, "metadata", None)
    modes = metadata.get("render_modes") if isinstance(metadata, Mapping) else None
    draws = getattr(type(env), "render", ParallelEnv.render) is not ParallelEnv.render
    if render_mode is None or (draws and (modes is None or render_mode in modes)):
        return env
    if render_mode == _ANSI:
        return TextRender(env, view)
    raise ConfigurationError(
        f"{type(env).__name__} has no render mode {render_mode!r}: give it `render`, and the mode among the "
        "'render_modes' of its metadata, or look at its games as text"
    )
