"""Script: the moves of one agent, written down beforehand in a text file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, DataNotFound, check_choice
from magrounding.single.tokenizer import split
from magrounding.spec import CHOICES, EnvSpec, TextChoices
from magrounding.storage import NOTE, lines_of, read_text, reason, user_path
from magrounding.vocabulary import plain_text

ANY, AGAIN = "?", "*"
_COMMENT = "#"
_LONGEST = 100_000
"""Moves that a script has at most, repetitions counted."""


@dataclass(frozen=True)
class Script:
    """Moves, a line each.

    A line names an action ("left"), gives its number ("3") or, where a world has texts to choose from, the words of
    the choice ("open drawer 1"). `?` stands for any legal action, "left * 4" for four lines. `*` alone, in the last
    line, lets the script begin again; without it every further move is any legal one. What follows `#` is a comment.
    A move that is not legal in its turn is played all the same, and does nothing; words that are not among the choices
    make the agent choose a row that has none, if there is one.

    Attributes:
        moves: one for each step.
        repeats: begin again after the last.
        source: its file, for errors.
    """

    __repr__ = brief

    moves: tuple[str, ...]
    repeats: bool = False
    source: str = "script"

    @classmethod
    def parse(cls, text: str, source: str = "script") -> Script:
        """Parse a script; ConfigurationError names the line that makes none."""
        moves: list[str] = []
        repeats = False
        for number, line in enumerate(lines_of(text), 1):
            move = line.partition(_COMMENT)[0].strip()
            if not move:
                continue
            if repeats:
                raise ConfigurationError(f"{source}, line {number}: nothing is played after a line of {AGAIN!r} alone")
            if move == AGAIN:
                repeats = True
                continue
            before, star, times = map(str.strip, move.rpartition(AGAIN))
            name, count = (before, _number(times)) if star and times.isdecimal() else (move, 1)
            if not name or not count or len(moves) + count > _LONGEST:
                raise ConfigurationError(
                    f"{source}, line {number}: expected a move and how often, 1 to {_LONGEST:,} in all, got {move!r}"
                )
            moves += [name] * count
        if not moves:
            raise ConfigurationError(f"{source} holds no move: write an action's name in each line")
        return cls(tuple(moves), repeats, source)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Script:
        """Read a script; DataNotFound, or ConfigurationError where it holds none."""
        try:
            return cls.parse(read_text(user_path(path), NOTE), str(path))
        except OSError as error:
            raise DataNotFound(f"the script {path} cannot be read: {reason(error)}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"the script {path} is not text in UTF-8") from None

    def at(self, step: int) -> str:
        """Return the move of a step, counted from 0."""
        if step < len(self.moves):
            return self.moves[step]
        return self.moves[step % len(self.moves)] if self.repeats else ANY


class ScriptedTeam:
    """All agents of a batch play one script, each episode from its first line.

    Where any legal action will do, `seed` decides the draws. A move that is no action of the environment is a
    ConfigurationError.
    """

    def __init__(self, script: Script, spec: EnvSpec, seed: int = 0) -> None:
        self.script, self._spec = script, spec
        self._in_words = isinstance(spec.actions, TextChoices)
        self._steps = np.zeros(0, np.int64)
        self._rng = np.random.default_rng(seed)
        names = {name.lower(): action for action, name in enumerate(spec.actions.names)}
        self._fixed: dict[str, int] = {}
        for move in dict.fromkeys(script.moves):
            action = _number(move) if move.isdecimal() else names.get(move.lower())
            if action is not None and action < spec.num_actions:
                self._fixed[move] = action
            elif move != ANY and not self._in_words:
                check_choice(f"action in {script.source}", move, (*spec.actions.names, ANY))

    def initial_memory(self, num_envs: int) -> None:
        """Go back to the first line in every episode."""
        self._steps = np.zeros(num_envs, np.int64)

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        memory: Any = None,
        info: Mapping[str, Any] | None = None,
        greedy: bool = True,
    ) -> tuple[np.ndarray, None]:
        mask = obs["action_mask"]
        if info is not None:
            self._steps[info["done"]] = 0
        actions = np.where(mask != 0, self._rng.random(mask.shape), -1.0).argmax(-1)
        for row, step in enumerate(self._steps.tolist()):
            move = self.script.at(step)
            if move in self._fixed:
                actions[row] = self._fixed[move]
            elif move != ANY:
                actions[row] = self._find(move, obs[CHOICES][row], mask[row])
        self._steps += 1
        return actions, None

    def _find(self, move: str, choices: np.ndarray, mask: np.ndarray) -> list[int]:
        """Return for each agent the row of `choices`, ids [(n,) C, L], with these words, or one that is masked."""
        words, found = " ".join(split(move)), []
        for legal, rows in zip(mask != 0, np.broadcast_to(choices, (len(mask), *choices.shape[-2:])), strict=True):
            rows_of = {plain_text(self._spec.words, rows[j].tolist()): int(j) for j in np.flatnonzero(legal)}
            found.append(rows_of.get(words, int(legal.argmin())))
        return found


def _number(digits: str) -> int:
    """Read a number; one of very many digits, which Python does not read, is too large for everything."""
    return int(digits) if len(digits) < 10 else 10**9
