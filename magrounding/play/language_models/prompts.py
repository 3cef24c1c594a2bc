"""Prompts: templates in files, and the move in a reply.

A template is a text file whose first line is its version, and whose parts begin with `=== NAME`: `system`, the
instructions; `again`, after a reply that names no legal move; `fact`, a question about the manual. A part has places
`$name`, which are filled once: nothing that a world or a model writes is read as a template.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from magrounding.errors import ConfigurationError, check_choice
from magrounding.storage import NOTE, parse_json, read_text, reason, user_path

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
_PACKAGE = "magrounding.play.language_models"
_MARKED = re.compile(r"<move>(.*?)</move>", re.DOTALL | re.IGNORECASE)
_LONGEST = 80
"""Letters of a move that is none, as it is repeated."""


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
                text = read_text(user_path(name), NOTE)
            except (OSError, UnicodeDecodeError) as error:
                why = reason(error) if isinstance(error, OSError) else "it is not UTF-8"
                raise ConfigurationError(f"the prompt {name} cannot be read: {why}") from None
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
    """Return the name of a move as it is looked up: in lower case, with single spaces."""
    return " ".join(name.lower().split())


def read_move(reply: str, form: str, legal: Mapping[str, int], known: Mapping[str, int]) -> tuple[int | None, str]:
    """Read the move of a reply.

    Args:
        reply: all that the model wrote; of several moves the last counts, as models think aloud.
        form: of REPLIES.
        legal, known: name → number of the legal actions, and of all that there are, `spelt`.

    Returns:
        its number, or None with the reason why there is none.
    """
    if form == MARKS:
        found = _MARKED.findall(reply)
        if not found:
            return None, "there is no move between <move> and </move>"
        move = found[-1]
    else:
        try:
            content = parse_json(reply)
        except ValueError:
            return None, "it is not JSON"
        move = content.get("move") if isinstance(content, dict) else None
        if isinstance(move, int) and not isinstance(move, bool):
            move = str(move)
        if not isinstance(move, str):
            return None, 'the object has no entry "move" that is a text'
    name = spelt(move).strip("\"'`*")
    for each in (name, name.rstrip(" .!")):
        if each in legal:
            return legal[each], ""
    shown = ascii(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")
    return None, f"{shown} is {'not legal now' if name in known else 'none of the moves'}"
