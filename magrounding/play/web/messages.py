"""Messages of clients: what they may say, checked field by field, and the codes of what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magrounding.errors import MagroundingError

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
    "seat_taken": "somebody else has this seat",
    "not_your_seat": "this agent is not yours to move",
    "not_begun": "the game has not begun: not everybody is here yet",
    "thinking": "the agents are thinking: your move was not taken",
    "stale": "the game has moved on since",
    "illegal_move": "the agent cannot do this now",
    "game_over": "the game is over",
    "not_over": "the game is still going on",
    "bad_game": "no game can be made of this",
    "bad_file": "this is no saved game that can be shown",
    "bad_answer": "an answer is missing or none of those offered",
    "full": "the server has as many games or visitors as it bears",
    "busy": "the server has too much to do: try again in a moment",
    "slow": "the connection is too slow for what it is sent",
    "lost": "the game's simulator or agents gave no answer: the game is lost",
    "internal": "the server made a mistake; it is in its log",
}
"""Code of a refusal → what it means. Codes are stable: programs may rely on them."""

_TEXT, _NUMBER, _WHOLE = (str,), (int, float), (int,)
_NOTHING = type(None)
FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "create": {
        "env": _TEXT,
        "options": (dict,),
        "players": (list,),
        "seed": (int, _NOTHING),
        "pace": _NUMBER,
    },
    "join": {"code": _TEXT, "seat": (int, _NOTHING), "token": (str, _NOTHING)},
    "move": {"agent": _WHOLE, "step": _WHOLE, "action": _WHOLE},
    "start": {},
    "restart": {"seed": _TEXT},
    "leave": {},
    "enter": {"consent": (bool,), "answers": (dict,)},
    "proceed": {"ticket": _TEXT, "answers": (dict, _NOTHING)},
    "finish": {"ticket": _TEXT, "answers": (dict,)},
}
"""Type of message → its fields and their kinds. Those that may be None may be left out."""
REF = "ref"
"""A whole number of the client's that comes back with the answer."""
_LONGEST = 2**53


class Refusal(MagroundingError):
    """A message that is not obeyed.

    Args:
        code: one of CODES.
        sentence: what was wrong, where there is more to say than the code's own.
    """

    def __init__(self, code: str, sentence: str = "") -> None:
        super().__init__(sentence or CODES[code])
        self.code = code

    def __reduce__(self) -> tuple[type[Refusal], tuple[str, str]]:
        return type(self), (self.code, *self.args)


@dataclass(frozen=True)
class Message:
    """What a client says.

    Attributes:
        kind: its type, a key of FIELDS.
        fields: by name.
        ref: see REF.
    """

    kind: str
    fields: Mapping[str, Any]
    ref: int | None


def parse(text: str) -> Message:
    """The message in a text; Refusal for anything but one."""
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refusal("malformed") from None
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise Refusal("malformed")
    kind = content.pop("type")
    if kind not in FIELDS:
        raise Refusal("unknown_type")
    ref = content.pop(REF, None)
    kinds = FIELDS[kind]
    if content.keys() - kinds.keys():
        raise Refusal("unknown_field")
    fields = {name: content.get(name) for name in kinds}
    for name, value in fields.items():
        if type(value) not in kinds[name] or not _is_sane(value):
            raise Refusal("wrong_value", f"{name} is missing or of another kind")
    if ref is not None and (type(ref) is not int or not _is_sane(ref)):
        raise Refusal("wrong_value", f"{REF} is a whole number")
    return Message(kind, fields, ref)


def ref_of(text: str) -> int | None:
    """The `ref` of a message that was refused, if it can be found."""
    try:
        ref = json.loads(text).get(REF)
    except (ValueError, RecursionError, AttributeError):
        return None
    return ref if type(ref) is int and _is_sane(ref) else None


def _is_sane(value: Any) -> bool:
    """Whether a number can be one in a page as well."""
    return not isinstance(value, int | float) or -_LONGEST <= value <= _LONGEST


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
