"""Prompts: templates in files, and the move in a reply.

A template is a text file whose first line is its version, and whose parts begin with `=== NAME`: `system`, the
instructions; `again`, after a reply that names no legal move; `fact`, a question about the manual. A part has places
`$name`, which are filled once: nothing that a world or a model writes is read as a template.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

import msgspec

from magrounding.errors import ConfigurationError, check_choice
from magrounding.storage import NOTE, require_bytes, text_of, user_path

PROMPTS = "naive", "chain_of_thought", "few_games"
"""Templates of the package."""
MARKS, JSON = REPLIES = "marks", "json"
"""Forms of a move in a reply."""
PARTS = "system", "again", "fact"
_FORMS = {
    MARKS: "between <move> and </move>, as in <move>NAME</move>",
    JSON: 'as JSON, an object with the one entry "move", as in {"move": "NAME"}',
}
_ENDING = ".txt"
_PACKAGE = "magrounding.extensions.language_models"
_THOUGHTS = re.compile(
    r"(?:[<◁]|\[(?=/?think\]))(/?)(?:seed:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?)\s{0,9}[]>▷]", re.IGNORECASE
)
"""A mark at which thoughts begin, or, with "/", end."""
_LONGEST = 80
"""Letters of a move that is none, as it is repeated."""
_CUT = "length", "max_length", "model_length", "max_tokens", "max_output_tokens", "max_completion_tokens"
"""Reasons of endpoints for the end of a reply that reached its limit of tokens."""
_BEGINNING, _MOST = 2**10, 2**17
"""Letters at the beginning and at the end of a longer reply that are read."""
_MOST_KEPT, _END = 60_000, 10_000
"""Bytes of a reply as JSON that are kept at most, and letters at the end of a longer one: six bytes each at most."""
_OBJECTS, _BEHIND = 64, 2**14
"""Braces that an object of JSON is looked for at, and letters at the end of a reply in which these are."""


@dataclass(frozen=True)
class Prompt:
    """A template.

    Attributes:
        name: of the package's, or of the file.
        version: its first line.
        hash: the beginning of a SHA-256 of the whole file.
        parts: name → text.
    """

    name: str
    version: str
    hash: str
    parts: Mapping[str, str]

    @classmethod
    @cache
    def load(cls, name: str) -> Prompt:
        """Read a template by its name, or from a file of one's own; ConfigurationError where there is none."""
        if name.endswith(_ENDING):
            try:
                text = text_of(require_bytes(user_path(name), NOTE, refused=ConfigurationError))
            except UnicodeDecodeError:
                raise ConfigurationError(f"the prompt {name} cannot be read: it is not UTF-8") from None
        else:
            check_choice("prompt", name, PROMPTS)
            text = files(_PACKAGE).joinpath("prompts", name + _ENDING).read_text(encoding="utf-8")
        version, *rest = re.split(r"^=== (\w+)\n", text, flags=re.MULTILINE)
        parts = {part: body.strip() for part, body in zip(rest[::2], rest[1::2], strict=True)}
        if set(parts) != set(PARTS) or not version.strip():
            raise ConfigurationError(
                f"the prompt {name} begins with its version, and has the parts {', '.join(PARTS)}, each behind a line "
                f"'=== NAME'; it has {', '.join(parts) or 'none'}"
            )
        return cls(name, version.strip(), hashlib.sha256(text.encode()).hexdigest()[:12], parts)

    @property
    def shows_games(self) -> bool:
        """True for a template of which games of an expert are a part."""
        return "$games" in self.parts["system"]

    def fill(self, part: str, reply: str, **places: str) -> str:
        """Return a part with its places filled; `reply` is the form of replies."""
        return Template(self.parts[part]).safe_substitute(places, form=_FORMS[reply])


def spelt(name: str) -> str:
    """Return the name of a move as it is looked up: in lower case, with single spaces, and none before a comma."""
    return " ".join(name.lower().split()).replace(" ,", ",")


def answer_of(reply: str) -> str:
    """Return a reply without the thoughts before it, which may lack their first mark or, cut off, their last."""
    if len(reply) > _MOST:
        reply = f"{reply[:_BEGINNING]}\n{reply[-_MOST:]}"
    answer, *marked = _THOUGHTS.split(reply)
    before = []
    for ends, text in zip(marked[::2], marked[1::2], strict=True):
        if not ends:
            before.append(answer)
        answer = text if ends else ""
    return "".join([*before, answer])


def was_cut(finish: str) -> bool:
    """Return whether an endpoint's reason for the end of a reply is its limit of tokens."""
    return finish.lower() in _CUT


def kept(reply: str) -> str:
    """Return what is kept of a reply, and read: all of it, or the end of its answer where it is too long."""
    short = len(reply) <= _MOST_KEPT and len(msgspec.json.encode(reply)) <= _MOST_KEPT
    return reply if short else answer_of(reply)[-_END:]


def read_move(
    reply: str, form: str, legal: Mapping[str, int], known: Mapping[str, int], finish: str = ""
) -> tuple[int | None, str]:
    """Read the move of a reply, in a time that its length bounds, whatever it holds.

    Args:
        reply: all that the model wrote; thoughts are set apart, and of several moves the last counts.
        form: of REPLIES.
        legal, known: name → number of the legal actions, and of all that there are, `spelt`.
        finish: the endpoint's reason for its end.

    Returns:
        its number, or None with the reason why there is none.
    """
    move, why = (_marked if form == MARKS else _in_json)(answer_of(reply))
    if why:
        return None, f"{why}, as it was cut at its limit of tokens" if was_cut(finish) else why
    name = spelt(move).strip("\"'`*")
    for each in (name, name.strip("\"'`* .!")):
        if each in legal:
            return legal[each], ""
    shown = ascii(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")
    return None, f"{shown} is {'not legal now' if name in known else 'none of the moves'}"


def _marked(text: str) -> tuple[str, str]:
    """Return the move between marks, or the reason why there is none."""
    before, end, _ = text.lower().rpartition("</move>")
    _, begin, move = before.rpartition("<move>")
    return (move.partition("</move>")[0], "") if begin and end else ("", "there is no move between <move> and </move>")


def _in_json(text: str) -> tuple[str, str]:
    """Likewise of an object of JSON, which other words or a fence may enclose."""
    try:
        content = json.loads(text[text.find("{") : text.rfind("}") + 1] or text)
    except (ValueError, RecursionError):
        content = _last_object(text[-_BEHIND:])
    if content is None:
        return "", "it is not JSON"
    move = content.get("move") if isinstance(content, dict) else None
    if isinstance(move, int) and not isinstance(move, bool):
        move = str(move)
    return (move, "") if isinstance(move, str) else ("", 'the object has no entry "move" that is a text')


def _last_object(text: str) -> Any:
    """Return the last object of JSON that has a move, or else one that has none; None without any."""
    found, decoder = None, json.JSONDecoder()
    for brace in [each.start() for each in re.finditer("{", text)][: -_OBJECTS - 1 : -1]:
        try:
            found = decoder.raw_decode(text, brace)[0]
        except (ValueError, RecursionError):
            continue
        if "move" in found:
            break
    return found
