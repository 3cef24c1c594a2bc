"""Engine: games of ALFWorld, one at a time, on a copy of the planner's library."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from magrounding.single.alfworld import package

NOTHING = "Nothing happens."

_IDLE: list[Any] = []
"""Copies of the planner's library, of which every engine needs one of its own: used again, and never unloaded. The
copies of a process share a list of what they register. Unloading one would leave entries in that list which point to
nothing, and the next copy to be loaded would crash the process."""


@dataclass(frozen=True)
class Moment:
    """State of a game after a reset or a step: the engine's answer, commands that can be typed, in alphabetic order."""

    feedback: str
    commands: tuple[str, ...]
    won: bool


class Engine:
    """A game, with the names and texts of ALFWorld; MissingExtra where that is not installed."""

    def __init__(self) -> None:
        package.require()
        self._pddl = package.engine()
        self._demangler = package.part("agents.utils.misc").Demangler
        self.library = _IDLE.pop() if _IDLE else import_module("fast_downward").load_lib()
        self._release = weakref.finalize(self, _take_back, self.library)
        self._release.atexit = False
        self._game: Mapping[str, Any] = {}
        self._episode: Any = None

    def start(self, game: Mapping[str, Any]) -> Moment:
        """Begin a game, given as the content of its file."""
        self._game = game
        translated = self._pddl.translate(game["pddl_domain"], game["pddl_problem"], game["grammar"])
        self._episode = self._pddl.Episode(translated, self.library, self._demangler)
        return self._moment(self._episode.write("#intro#", {}))

    def step(self, command: str) -> Moment:
        """Type a command; one that cannot be typed now changes nothing."""
        answer = self._episode.play(command)
        return self._moment(NOTHING if answer is None else answer)

    def plan(self) -> list[str]:
        """Return the planner's commands to the goal; for tests, as it takes long and knows what is hidden."""
        return self._pddl.plan(self._game["pddl_domain"], self._game["pddl_problem"], self._episode)

    def close(self) -> None:
        """Release the copy of the planner's library; nothing can be played any more. Twice is fine."""
        self._episode = None
        self._release()

    def _moment(self, feedback: str) -> Moment:
        return Moment(feedback, tuple(sorted(self._episode.actions)), self._episode.state.check_goal())


def _take_back(library: Any) -> None:
    library.cleanup()
    _IDLE.append(library)
