"""`make`, `make_vec` and `Game`: a registered environment by its id, one or a batch, or with its options checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import gymnasium
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

from magrounding.envs.parallel import WorldEnv
from magrounding.envs.vector import WorldVectorEnv
from magrounding.errors import ConfigurationError, check_bool
from magrounding.plain import plain
from magrounding.registry import EnvConfig, describe, env_entry, is_simulator
from magrounding.simulators.vectorize import check_workers, vectorize
from magrounding.spec import EnvSpec
from magrounding.text_view import TextView, find_text_view
from magrounding.vector import VectorEnv, check_count

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


@dataclass(frozen=True, eq=False)
class Game:
    """Games of an environment with some options, which are checked once; nothing is started for it.

    Attributes:
        id: of the environment.
        options: as given, as files can hold them.
        config: what makes them.
    """

    id: str
    options: dict[str, Any]
    config: EnvConfig

    @classmethod
    def of(cls, id: str, options: Mapping[str, Any]) -> Game:
        """Return those of an environment with these options; ConfigurationError for options that cannot be."""
        entry = env_entry(id)
        known = entry.check_options(options)
        return cls(id, known, entry.configure(**known))

    def but(self, **options: Any) -> Game:
        """Return the same with other options; itself where none is another."""
        changed = {**self.options, **options}
        return self if changed == self.options else Game.of(self.id, changed)

    @cached_property
    def spec(self) -> EnvSpec:
        """Their description."""
        return describe(self.config)

    @property
    def whole(self) -> Mapping[str, Any]:
        """What makes them games in which all agents read all; nothing where they do."""
        return getattr(self.config, "whole", {})

    def make(self, render_mode: str | None = None) -> ParallelEnv:
        """Make one; arguments and errors as of `make`."""
        self.spec.require_memory(1)
        if not is_simulator(self.config):
            return WorldEnv(self.config.make_world(1, 1), id=self.id, options=self.options, render_mode=render_mode)
        env = self.config.make_env(render_mode)
        if isinstance(env, gymnasium.Env):
            raise ConfigurationError(
                f"{self.id} makes Gymnasium's {type(env).__name__}, where one game is a PettingZoo ParallelEnv: "
                f"make_vec({self.id!r}, num_envs), training and matches play it as it is"
            )
        return with_render_mode(env, find_text_view(self.id, self.spec), render_mode)

    def make_vec(
        self, num_envs: int, *, num_threads: int = 1, workers: int | str = 0, timeout: float = 60.0, copy: bool = False
    ) -> VectorEnv:
        """Make a batch; arguments and errors as of `make_vec`."""
        num_envs, num_threads = check_count("num_envs", num_envs, 1), check_count("num_threads", num_threads, 1)
        workers = check_workers(workers, timeout)
        copy = plain(copy)
        check_bool("copy", copy)
        self.spec.require_memory(num_envs)
        if not is_simulator(self.config):
            return WorldVectorEnv(self.config.make_world(num_envs, num_threads), self.id, self.options, copy=copy)
        same = {"id": self.id, "options": self.options, "spec": self.spec, "timeout": timeout, "copy": copy}
        return vectorize(partial(self.config.make_env, None), num_envs, workers, **same)


def make(id: str, *, render_mode: str | None = None, **options: Any) -> ParallelEnv:
    """Make an environment as a PettingZoo ParallelEnv.

    Args:
        id: environment id, e.g. "ma_rtfm".
        render_mode: None, "rgb_array", "ansi" (what agents see, in words, see `text_view.TextView`) or "ansi_full" (the
            whole game as text, for developers). An env of your own may lack all but "ansi".
        options: options of the environment, see its documentation.

    Raises:
        ConfigurationError: an unknown id, option or render mode, an env that is larger than the memory, or an
            environment of your own that is no ParallelEnv.
    """
    return Game.of(id, options).make(render_mode)


def make_vec(
    id: str,
    num_envs: int,
    *,
    num_threads: int = 1,
    workers: int | str = 0,
    timeout: float = 60.0,
    copy: bool = False,
    **options: Any,
) -> VectorEnv:
    """Make a batch of envs that restart by themselves.

    Args:
        id: environment id.
        num_envs: B.
        num_threads: threads that share the rows of a world that simulates batches; the episodes do not depend on it.
        workers: processes that share the rows of a simulator of one env; 0 plays them in this process, "ray:K" in K
            actors of Ray (see `vectorize`).
        timeout: seconds without an answer after which a worker counts as hung and is replaced.
        copy: return fresh arrays instead of buffers that the next step overwrites.
        options: options of the environment.

    Raises:
        ConfigurationError: an unknown id or option, a number that is none, or more envs than the memory holds.
    """
    how = {"num_threads": num_threads, "workers": workers, "timeout": timeout, "copy": copy}
    return Game.of(id, options).make_vec(num_envs, **how)
