"""Tables of what commands take, from the dataclasses that parse them and the texts behind their fields."""

from __future__ import annotations

import re
from importlib import import_module

from magrounding.cli.command import described

HEADER = "| option | value | default | meaning |\n|---|---|---|---|"
_DEFAULT = re.compile(r" \(default: (.*)\)$")


def table(module: str) -> str:
    """The arguments of a command, its own before those that many have; `module` has the dataclass `Arguments`."""
    arguments = import_module(module).Arguments
    rows = sorted(described(arguments), key=lambda row: row[0] not in arguments.__annotations__)
    return "\n".join([HEADER, *(_row(*row[1:]) for row in rows)])


def _row(flag: str, value: str, meaning: str) -> str:
    default = _DEFAULT.search(meaning)
    shown = (f"`{flag or value}`", value if flag else "", default[1] if default else "", _DEFAULT.sub("", meaning))
    return "| " + " | ".join(cell.replace("|", r"\|").replace("<", r"\<") for cell in shown) + " |"
