"""Dialogue: what a language model is asked in one game of one agent, and what becomes of its replies.

An agent that a model plays (`player.py`) and one that another framework trains (`open_game.py`) read the same messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from magrounding.extensions.language_models.chats import conversation, described, example_games, in_form
from magrounding.extensions.language_models.endpoint import Message
from magrounding.extensions.language_models.prompts import Prompt, answer_of, read_move, spelt
from magrounding.spec import MASK, EnvSpec, TextChoices
from magrounding.text_view import Happened, TextView, action_name
from magrounding.vector import Observation, observation_of

NO_OPS = "stay", "wait", "done"
"""Names of actions that do nothing."""
_LONGEST = 2**13
"""Letters of a reply that is read again: of a longer one its move alone, or its end."""
_DIGITS = 4
"""Decimals of a reward, which may be a difference of two sums in single precision."""


class Dialogue:
    """The conversation about one agent's game.

    In each step `ask` says what the agent sees; then `messages` are the request, until `answer` has set `action`. A
    reply without a legal move is asked for once more, with the reason; then the agent does nothing (`no_op`).

    Args:
        view: of the game.
        prompt, form: the template, and the form of a move in a reply.
        instructions: the first message, see `instructions`.
        history: steps before this one that are read again, at least; up to twice as many, less one, as the oldest are
            dropped together. Requests then begin alike, and servers reuse what they computed for the beginning.

    Attributes:
        messages: of the coming request.
        rules: texts that last the game, as in the present step.
        refused: replies in this step that named no legal move.
        action: of this step; None as long as a reply is needed.
    """

    def __init__(self, view: TextView, prompt: Prompt, form: str, instructions: str, history: int) -> None:
        self._view, self._prompt, self._form, self._instructions = view, prompt, form, instructions
        self._history, self._past = history, list[tuple[str, str, str]]()  # (rules, what the agent saw, its reply)
        self.messages: list[Message] = []
        self.rules, self.refused = "", 0
        self.action: int | None = None

    def ask(self, obs: Observation, row: int, agent: int, happened: Happened) -> None:
        """Begin a step of an agent in a row of a batch, whose last action came to `happened`."""
        spec = self._view.spec
        self.rules, self._now = described(self._view, obs, row, agent, happened, self.rules)
        self._mask = legal_mask(spec, obs, row, agent)
        self._names = _names(spec, obs, row, agent, self._mask)
        self._compose()
        self.action, self.refused = None, 0

    def read(self, reply: str, finish: str = "") -> tuple[int | None, str]:
        """Return the action of a reply to `messages`, or None with the reason why it is not played."""
        return read_move(reply, self._form, *self._names, finish)

    def answer(self, reply: str, finish: str = "") -> bool:
        """Take the reply to `messages`: it sets `action`, or the reason of its refusal is added to `messages`.

        `finish` is the endpoint's reason for the end of the reply. Returns whether it was refused.
        """
        self.action, reason = self.read(reply, finish)
        answer = answer_of(reply)
        if self.action is None:
            self.refused += 1
            again = self._prompt.fill("again", self._form, reason=reason)
            answer = answer[-_LONGEST:] or "-"
            self.messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": again}]
            if self.refused == 1:
                return True
            self.action = no_op(self._view.spec, self._mask)
            answer = in_form(self._view.spec.actions.names[self.action], self._form)
        elif len(answer) > _LONGEST:
            answer = in_form(next(name for name, k in self._names[0].items() if k == self.action), self._form)
        self._past.append((self.rules, self._now, answer))
        if len(self._past) >= 2 * self._history:
            del self._past[: len(self._past) - self._history]
        return bool(reason)

    def shorten(self) -> list[Message] | None:
        """Leave the older half of the steps before this one out of `messages`, for good; None where there is none."""
        if not self._past:
            return None
        again = self.messages[2 + 2 * len(self._past) :]
        del self._past[: (len(self._past) + 1) // 2]
        self._compose()
        self.messages += again
        return self.messages

    def _compose(self) -> None:
        """Begin the request of a step."""
        turns = [*self._past, (self.rules, self._now, "")]  # what is told since the first of them stands in the others
        self.messages = [*conversation(self._instructions, turns[0][0], [turn[1:] for turn in turns])]


def instructions(prompt: Prompt, form: str, env: str, options: Mapping[str, Any]) -> str:
    """Return the first message of every game of an environment; ConfigurationError where it cannot be filled."""
    games = example_games(env, options, form) if prompt.shows_games else ""
    return prompt.fill("system", form, games=games)


def outcome(action: int, illegal: bool, reward: float) -> Happened:
    """Return what an agent's last action came to, its reward as models read it."""
    return Happened(int(action), bool(illegal), round(float(reward), _DIGITS) + 0.0)


def legal_mask(spec: EnvSpec, obs: Observation, row: int, agent: int) -> np.ndarray:
    """Return an agent's legal actions [A] bool in a row of a batch."""
    return np.asarray(observation_of(spec, obs, row, agent)[MASK]) != 0


def no_op(spec: EnvSpec, mask: np.ndarray) -> int:
    """Return an action that does nothing: one of NO_OPS, or else one that is not legal, which does nothing either.

    Where all are legal and none is a no-op it is the first.
    """
    names = () if isinstance(spec.actions, TextChoices) else spec.actions.names
    for name in NO_OPS:
        if name in names and mask[names.index(name)]:
            return names.index(name)
    return int(np.argmin(mask))


def _names(
    spec: EnvSpec, obs: Observation, row: int, agent: int, mask: np.ndarray
) -> tuple[dict[str, int], dict[str, int]]:
    """Return name → number of the legal actions, and of all; a text to choose has its number as a name too."""
    legal, texts = dict[str, int](), isinstance(spec.actions, TextChoices)
    for action in np.flatnonzero(mask).tolist():
        name = action_name(spec, observation_of(spec, obs, row, agent), action)
        for each in (name, str(action), f"{action} {name}") if texts else (name, spec.actions.names[action]):
            legal.setdefault(spelt(each), action)
    return legal, {} if texts else {spelt(name): k for k, name in enumerate(spec.actions.names)}
