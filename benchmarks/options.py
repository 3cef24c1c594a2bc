"""Options of learners and networks on a command line: "name=value,…"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from magrounding.errors import ConfigurationError, choose


def parse_options(text: str, known: Mapping[str, Any], flag: str) -> dict[str, Any]:
    """The options in "name=value,…", values as in JSON; what is none is a string.

    Args:
        text: what stood on the command line.
        known: option → a value of its kind, such as its default.
        flag: where it stood, for errors.

    Raises:
        ConfigurationError: an option that is not known, or a value of another kind.
    """
    options: dict[str, Any] = {}
    for item in text.split(","):
        name, _, value = item.strip().partition("=")
        default = known[choose(f"option for {flag}", name, tuple(known))]
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
        same = type(options[name]) is type(default) or (type(default) is float and type(options[name]) is int)
        if not same or (not isinstance(default, str) and options[name] < 0):
            raise ConfigurationError(f"{flag} takes values like {name}={default}, got {item!r}")
    return options
