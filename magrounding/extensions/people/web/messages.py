"""Messages of clients, checked field by field, and the codes of what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.json import decode

from magrounding.errors import MagroundingError
from magrounding.extensions.people.web.limits import Pace

CODES: dict[str, str] = {
    "malformed": "a message is an object of JSON with a type",
    "unknown_type": "there is no such type of message",
    "unknown_field": "this type of message has no such field",
    "wrong_value": "a field is missing or of another kind",
    "too_big": "the message is too long",
    "too_fast": "too many messages: wait a moment",
    "foreign_origin": "only pages of this server may do this",
    "foreign_host": "this server does not go by that name",
    "no_game": "there is no such game; it may have ended for lack of players",
    "no_page": "there is no such page",
    "not_joined": "join a game first",
    "agent_taken": "somebody else plays this agent",
    "not_your_agent": "this agent is not yours to move",
    "not_begun": "the game has not begun: not everybody is here yet",
    "thinking": "the agents are thinking: your move was not taken",
    "stale": "the game has moved on since",
    "illegal_move": "the agent cannot do this now",
    "game_over": "the game is over",
    "not_over": "the game is still going on",
    "bad_game": "no game can be made of this",
    "bad_file": "this is no saved game that can be shown",
    "bad_answer": "an answer is missing or none of those offered",
    "no_invitation": "this study takes people by invitation: open the link that you were given",
    "not_stored": "this answer could not be stored; the host has been warned: please wait a moment, and try again",
    "quota": "there are as many games, connections or participants from your address as one may have",
    "full": "the server has as many games or visitors as it bears",
    "busy": "the server has too much to do: try again in a moment",
    "slow": "the connection is too slow for what it is sent",
    "lost": "the game's simulator or agents gave no answer: the game is lost",
    "internal": "the server made a mistake; it is in its log",
}
"""Code of a refusal → what it means. Codes are stable: programs may rely on them."""

Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""A whole number that a page can hold as well."""


class Refusal(MagroundingError):
    """A message that is not obeyed, with one of CODES; `sentence` is the mistake, where there is more to say."""

    def __init__(self, code: str, sentence: str = "") -> None:
        super().__init__(sentence or CODES[code])
        self.code = code

    def __reduce__(self) -> tuple[type[Refusal], tuple[str, str]]:
        return type(self), (self.code, *self.args)


def require(holds: object, code: str, sentence: str = "") -> None:
    """Raise a Refusal unless something holds."""
    if not holds:
        raise Refusal(code, sentence)


class Message(Struct, kw_only=True):
    """A message; its type is the name of its class in lower case. Fields with a default may be left out.

    Attributes:
        ref: a number of the client's, which comes back with the answer.
    """

    ref: Whole | None = None


class Create(Message):
    """Make a game."""

    env: str
    options: dict[str, Any]
    players: tuple[Any, ...]
    pace: Pace
    seed: Whole | None = None


class Join(Message):
    """Play an agent of a game, or watch."""

    code: str
    agent: Whole | None = None
    token: str | None = None


class Move(Message):
    """Choose an agent's action in a step."""

    agent: Whole
    step: Whole
    action: Whole


class Start(Message):
    """Begin without those who are not here."""


class Restart(Message):
    """Play the same game again, or the next one."""

    seed: Literal["same", "next"]


class Leave(Message):
    """Leave the game for good."""


class Enter(Message):
    """Take part in a study."""

    consent: bool
    answers: dict[str, Any]
    invitation: str = ""


class Proceed(Message):
    """Go on with a study."""

    ticket: str
    answers: dict[str, Any] | None = None


class Finish(Message):
    """End a study."""

    ticket: str
    answers: dict[str, Any]


_CLASSES = Create, Join, Move, Start, Restart, Leave, Enter, Proceed, Finish
MESSAGES: dict[str, type[Message]] = {each.__name__.lower(): each for each in _CLASSES}
"""Type → class."""


def read(text: str) -> dict[str, Any]:
    """Read the JSON of a message; Refusal "malformed" for anything but an object with a type.

    No text in it has half of a pair of surrogates, which no file could hold, and every number is finite.
    """
    try:
        content = decode(text)
    except (ValueError, RecursionError):
        raise Refusal("malformed") from None
    require(isinstance(content, dict) and isinstance(content.get("type"), str), "malformed")
    return content


def parse(content: Mapping[str, Any]) -> Message:
    """Return the message in what `read` found; Refusal for a type, field or value that cannot be."""
    kind = MESSAGES.get(content["type"])
    if kind is None:
        raise Refusal("unknown_type")
    require(content.keys() <= {"type", *kind.__struct_fields__}, "unknown_field")
    try:
        return convert(content, kind)
    except ValidationError as error:
        raise Refusal("wrong_value", str(error)) from None
