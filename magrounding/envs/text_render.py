"""TextRender: observations as text, for an env that draws nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec, Field, Grid, Mask, Text

_ANSI = "ansi"


class TextRender(BaseParallelWrapper):
    """An env whose `render` returns the last observations as text, field by field as its `spec` has them."""

    render_mode = _ANSI

    def __init__(self, env: ParallelEnv, spec: EnvSpec) -> None:
        super().__init__(env)
        self.metadata = {**getattr(env, "metadata", {}), "render_modes": [_ANSI]}
        self.fields, self.words, self.seen = spec.fields, spec.words, {}

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
        lines: list[str] = []
        for field in self.fields:
            shown = {agent: seen[field.name] for agent, seen in self.seen.items() if field.name in seen}
            if isinstance(field, Mask) or not shown:
                continue
            if field.shared:
                shown = {"": next(iter(shown.values()))}
            for agent, array in shown.items():
                shown_lines = self._lines(field, np.asarray(array))
                lines.append(" ".join(filter(None, (agent and f"{agent}'s", field.name))) + ":")
                lines += [f"  {line}" for line in shown_lines]
        return "\n".join(lines)

    def _lines(self, field: Field, array: np.ndarray) -> list[str]:
        """Return the lines of a field: words for ids of words, the numbers themselves for all else."""
        if not self.words or not isinstance(field, Text | Grid):
            return str(array).splitlines()
        if isinstance(field, Grid):
            cells = [["+".join(self._word(i) for i in cell if i) or "." for cell in row] for row in array]
            width = max((len(cell) for row in cells for cell in row), default=0)
            return ["  ".join(cell.ljust(width) for cell in row).rstrip() for row in cells]
        texts = array.reshape(-1, array.shape[-1])
        return [" ".join(self._word(i) for i in text if i) for text in texts if text.any()]

    def _word(self, i: int) -> str:
        return self.words[i] if 0 <= i < len(self.words) else f"#{i}"


def with_render_mode(env: Any, spec: EnvSpec, render_mode: str | None) -> Any:
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
        return TextRender(env, spec)
    raise ConfigurationError(
        f"{type(env).__name__} has no render mode {render_mode!r}: give it `render`, and the mode among the "
        "'render_modes' of its metadata, or look at its games as text"
    )
