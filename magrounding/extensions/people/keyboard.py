"""Keyboard: a person who plays games that are recorded to learn from, by lines of letters."""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.teams.action_names import letters_of
from magrounding.training.recording import StopRecording

STOP = "q"


class Keyboard:
    """Actor: a person who plays all agents of one game at the terminal, a line a step, and reads what each sees."""

    def __init__(self, vec: Any) -> None:
        self._vec, self._names, self._num_agents = vec, vec.spec.actions.names, vec.num_agents
        self._letters = letters_of(self._names, STOP)

    def act(self, obs: Any, memory: None, info: Any, greedy: bool = True) -> tuple[np.ndarray, None]:
        """Show the game and ask for a letter for each living agent; StopRecording at q or the end of the input."""
        if info["done"][0]:
            print(f"\nThe game is {'won' if info['won'][0] else 'lost'}.")
        living = np.flatnonzero(info["alive"][0]).tolist()
        for agent in living:
            print(f"\nAGENT {agent}\n\n{self._vec.describe(0, agent)}\n")
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
            chosen, mask = [self._letters.get(letter, -1) for letter in letters], obs["action_mask"][0]
            if len(chosen) == len(living) and all(
                action >= 0 and mask[agent, action] for agent, action in zip(living, chosen, strict=True)
            ):
                actions = np.zeros((1, self._num_agents), np.int64)
                actions[0, living] = chosen
                return actions, None
            print(f"expected {len(living)} letters of actions that are possible there, got {letters!r}")
