"""Engine: a game of TextWorld's PDDL engine, with the names and texts of ALFWorld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from magrounding.single.alfworld import package
from magrounding.single.alfworld.library import lend
from magrounding.single.alfworld.memo import remembering


@dataclass(frozen=True)
class Moment:
    """What the engine says after a reset or a step.

    Attributes:
        feedback: its answer.
        commands: what can be typed now, in alphabetic order.
        won: whether the goal is reached.
    """

    feedback: str
    commands: tuple[str, ...]
    won: bool


class Engine:
    """TextWorld's engine, a copy of its own; the package's code, with what is pure remembered.

    Raises:
        MissingExtra: alfworld is not installed.
    """

    def __init__(self) -> None:
        package.require()
        demangler = package.part("agents.utils.misc").Demangler
        self._name = lambda infos: demangler(game_infos=infos)
        with remembering():
            self._env: Any = package.engine().PddlEnv(import_module("textworld").EnvInfos())
        self._release = lend(self._env.downward_lib, self)
        self._game: Mapping[str, Any] = {}

    def start(self, game: Mapping[str, Any]) -> Moment:
        """Begin a game, given as what its file says."""
        with remembering():
            if game is not self._game:
                self._env.load(game)
                infos = self._env._entity_infos
                names = self._name(infos)
                for info in infos.values():
                    info.name = names.demangle_alfred_name(info.id)
                self._game = game
            return _moment(self._env.reset())

    def step(self, command: str) -> Moment:
        """Type a command; one that cannot be typed now changes nothing."""
        with remembering():
            return _moment(self._env.step(command)[0])

    def plan(self) -> list[str]:
        """The planner's commands from here to the goal; for tests, as it takes long and knows what is hidden."""
        state, infos = self._env._pddl_state, self._env._entity_infos
        with package.untouched():
            translate = import_module("fast_downward").pddl2sas
            _, wanted = translate(self._game["pddl_domain"], self._game["pddl_problem"], optimize=True)
            state.downward_lib.load_sas_replan(wanted.encode())
            return list(state.replan(infos))

    def close(self) -> None:
        """Release the copy of the planner's library; nothing can be played any more."""
        self._env = None
        self._release()


def _moment(state: Any) -> Moment:
    return Moment(state["feedback"], tuple(state["admissible_commands"]), bool(state["won"]))
