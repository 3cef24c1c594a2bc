"""Origin: the environment that a team was trained in, and whether it can act on an observation.

Other sizes of map, stages, splits, sentences and layouts of the same environment are fine; other agents, words, fields
or actions are refused with an error, as networks would silently misread them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from magrounding.brief import brief
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError, DataNotFound, Unplayable
from magrounding.registry import ENVS
from magrounding.spec import EnvSpec, Field, FixedActions, Grid, Mask, Text
from magrounding.vector import VectorEnv

_PLACE = "position"


EnvLike = VectorEnv | Game


@dataclass(frozen=True)
class Origin:
    """Environment that a team of n agents was trained in.

    Attributes:
        env, options: its id and options; "" and none where they are not known.
    """

    __repr__ = brief

    spec: EnvSpec
    num_agents: int
    env: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def refuse(self, was_shown: str, *, expected: str = "") -> Unplayable:
        """Return the error for an environment or observation that does not fit."""
        agents = f"{self.num_agents} agent{'s' if self.num_agents > 1 else ''}"
        knows = f"this team was trained on {self.env or 'games'} with {agents}{f' and {expected}' if expected else ''}"
        return Unplayable(f"{knows}; it was shown {was_shown}: let it play games like those")

    def check_games(self, spec: EnvSpec, env: str) -> None:
        """Raise a ConfigurationError for an environment that differs in more than size, stage, split or sentences."""
        games = f"games of {env}" if env else "games"
        if spec.num_agents != self.num_agents:
            raise self.refuse(f"{games} with {spec.num_agents}")
        if spec.vocabulary_hash != self.spec.vocabulary_hash:
            known, other = (f"a vocabulary of {each.vocabulary_size:,}" for each in (self.spec, spec))
            raise self.refuse(
                f"{games} with {other} other words or ids",
                expected=f"{known} words (`team.for_games(env)` reads others, where a network can)",
            )
        mine, theirs = self.spec.actions, spec.actions
        if type(mine) is not type(theirs) or (isinstance(mine, FixedActions) and mine.names != theirs.names):
            raise self.refuse(f"{games} with the actions {list(theirs.names)[:9]}", expected=f"{list(mine.names)[:9]}")
        for each in self.spec.fields:
            if each.name not in spec:
                raise self.refuse(f"{games} without it", expected=f"looks at {each.name!r}")
            self._check_shape(each, spec[each.name].shape, games)

    def check_seen(self, seen: Mapping[str, Any], batch: tuple[int, ...], *, shared: tuple[int, ...]) -> None:
        """Raise a ConfigurationError for arrays that are no observation of such an environment.

        Leading axes of each agent's own arrays are `batch`, [B, n] or none in a single env, of others `shared`.
        """
        if not isinstance(seen, Mapping):
            raise self.refuse(f"a {type(seen).__name__}", expected="takes a dict of arrays")
        for each in self.spec.fields:
            array, axes = seen.get(each.name), shared if each.shared else batch
            if not isinstance(array, np.ndarray):
                shown = f"{type(array).__name__} for it among {', '.join(map(str, seen))}"
                raise self.refuse(shown, expected=f"looks at the array {each.name!r}")
            if array.shape[: len(axes)] != axes:
                expected = f"takes {[*axes, *each.shape]} here"
                raise self.refuse(f"{each.name!r} of shape {list(array.shape)}", expected=expected)
            self._check_shape(each, array.shape[len(axes) :], "games")
            if array.dtype.kind not in ("iu" if np.dtype(each.dtype).kind in "iu" else "iuf"):
                raise self.refuse(f"{each.name!r} of {array.dtype}", expected=f"takes it as {each.dtype}")
        sides = seen[self._map].shape[len(batch) :][:2] if self._map else ()
        for each in self.spec.fields:
            self._check_values(each, seen[each.name], sides)

    @cached_property
    def _map(self) -> str:
        """Name of the grid; "" where there is none."""
        return next((each.name for each in self.spec.fields if isinstance(each, Grid)), "")

    @cached_property
    def _shapes(self) -> dict[str, set[tuple[int, ...]]]:
        """Shapes that each field has in any stage and layout of the environment, maps without height and width."""
        specs = [self.spec]
        if entry := ENVS.get(self.env):
            for stage, layout in product(entry.stages, entry.in_layouts()):
                # There may be no room for so many agents, or not one of these layouts.
                with suppress(ConfigurationError, DataNotFound):
                    specs.append(entry.describe(**{**self.options, **entry.with_stage(stage), **layout}))
        return {
            each.name: {_but_size(spec[each.name], spec[each.name].shape) for spec in specs if each.name in spec}
            for each in self.spec.fields
        }

    def _check_shape(self, own: Field, shape: tuple[int, ...], games: str) -> None:
        """Refuse the shape of a field; maps may have any size, all else that of any stage."""
        free = isinstance(own, Text) and not self.env  # the shapes in other stages are unknown
        free = free or not isinstance(self.spec.actions, FixedActions)  # fields have as many rows as there are choices
        fits = len(shape) == len(own.shape) and (free or _but_size(own, shape) in self._shapes[own.name])
        if not fits:
            mine = f"[{', '.join([*'HW', *map(str, own.shape[2:])] if isinstance(own, Grid) else map(str, own.shape))}]"
            raise self.refuse(f"{games} with one of {list(shape)}", expected=f"looks at {own.name!r} of {mine}")

    def _check_values(self, own: Field, array: np.ndarray, sides: tuple[int, ...]) -> None:
        """Refuse numbers outside the bounds of a field, which would be places or words that do not exist."""
        if not array.size:
            return
        low, high = own.low, own.high
        if own.name == _PLACE and sides and not self.spec.grid.egocentric:
            high = max(sides) - 1
        elif not isinstance(own, Grid | Text | Mask):
            high = max(high, *sides, 0)
        least, most = array.min(), array.max()
        if not (low <= least and most <= high):  # also true of nan
            raise self.refuse(
                f"{own.name!r} from {least:g} to {most:g}", expected=f"{own.name!r} from {low:g} to {high:g}"
            )


def _but_size(own: Field, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of a field without the axes that may differ: height and width of a map."""
    return shape[2:] if isinstance(own, Grid) else shape
