"""Tables of what commands take, from the dataclasses that parse them and the texts behind their fields."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro
from sphinx.pycode import ModuleAnalyzer

from magrounding.cli.command import SOURCE

HEADER = "| option | value | default | meaning |\n|---|---|---|---|"
_KINDS = {int: "integer", float: "number", str: "string", Path: "path"}


def table(module: str) -> str:
    """The arguments of a command, its own before those that many have; `module` has the dataclass `Arguments`."""
    arguments = import_module(module).Arguments
    hints, said = get_type_hints(arguments, include_extras=True), meanings(arguments)
    order = sorted(fields(arguments), key=lambda each: each.name not in arguments.__annotations__)
    return "\n".join([HEADER, *(_row(each, hints[each.name], said[each.name]) for each in order)])


def meanings(arguments: type) -> dict[str, str]:
    """Field → the text behind it, of a dataclass and of those that it inherits from."""
    found: dict[str, str] = {}
    for cls in reversed(arguments.__mro__[:-1]):
        for (owner, name), lines in ModuleAnalyzer.for_module(cls.__module__).find_attr_docs().items():
            if owner == cls.__name__:
                found[name] = " ".join(lines).strip().replace("|", r"\|").replace("<", r"\<")
    return found


def _row(each: Field[Any], hint: Any, meaning: str) -> str:
    kind, marks = (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
    flag = f"--{each.name.replace('_', '-')}"
    if tyro.conf.Positional in marks:
        flag = each.name.upper()
    elif kind is bool and tyro.conf.FlagCreatePairsOff not in marks:
        flag = f"{flag}`, `--no-{each.name.replace('_', '-')}"
    return f"| `{flag}` | {_kind(kind)} | {_default(each)} | {meaning} |".replace("|  |", "| |")


def _kind(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_kind(part) for part in parts if part is not NoneType)
    if origin is tuple:
        return f"{_kind(parts[0])} …"
    if origin is Annotated:
        return _kind(parts[0])
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    return "" if hint is bool else _KINDS.get(hint, getattr(hint, "__name__", str(hint)))


def _default(each: Field[Any]) -> str:
    if source := each.metadata.get(SOURCE):
        return source
    if each.default is MISSING or isinstance(each.default, bool):
        return "" if each.default is not True else "on"
    if isinstance(each.default, tuple | list):
        return " ".join(f"`{part}`" for part in each.default)
    return f"`{each.default if isinstance(each.default, str | Path) else json.dumps(each.default)}`"
