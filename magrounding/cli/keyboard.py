"""Keyboard: a person at the terminal as an actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from magrounding.play.action_names import letters_of
from magrounding.play.recording import StopRecording
from magrounding.vector import VectorEnv

STOP = "q"


class Keyboard:
    """A person who plays all agents of one game at the terminal, a line a step.

    Args:
        vec: the game.
        show: what the person sees of it now.

    Raises:
        ConfigurationError: actions without letters, such as texts to choose from.
    """

    def __init__(self, vec: VectorEnv, show: Callable[[], object]) -> None:
        self._show = show
        self._names = vec.spec.actions.names
        self._num_agents = vec.num_agents
        self._letters = letters_of(self._names, STOP)

    def act(self, obs: Any, memory: None, info: Any, greedy: bool = True) -> tuple[np.ndarray, None]:
        """Show the game and ask for a letter for each living agent; StopRecording at q or the end of the input."""
        if info["done"][0]:
            print(f"\nThe game is {'won' if info['won'][0] else 'lost'}.")
        print(f"\n{self._show()}\n")
        living = np.flatnonzero(info["alive"][0]).tolist()
        names = ", ".join(f"{letter} {self._names[action]}" for letter, action in self._letters.items())
        prompt = f"a letter for each of agents {', '.join(map(str, living))} ({names}; {STOP} to stop): "
        while True:
            try:
                letters = "".join(input(prompt).lower().split())
            except (EOFError, KeyboardInterrupt):
                print()
                raise StopRecording from None
            if letters == STOP:
                raise StopRecording
            if wrong := self._complaint(letters, living, obs["action_mask"][0]):
                print(wrong)
                continue
            actions = np.zeros((1, self._num_agents), np.int64)
            actions[0, living] = [self._letters[letter] for letter in letters]
            return actions, None

    def _complaint(self, letters: str, living: list[int], mask: np.ndarray) -> str:
        """Return the mistake in a line, or ""."""
        if len(letters) != len(living):
            return f"expected {len(living)} letters, got {len(letters)}"
        for agent, letter in zip(living, letters, strict=True):
            if letter not in self._letters:
                return f"{letter!r} is no action"
            if not mask[agent, self._letters[letter]]:
                return f"agent {agent} cannot go {self._names[self._letters[letter]]} there"
        return ""
