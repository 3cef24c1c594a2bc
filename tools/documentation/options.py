"""Tables of options, from the dataclasses that check them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta

from magrounding.endi.agent import GROUNDINGS, make_endi
from magrounding.experiment.config import RunConfig
from magrounding.experiment.phase import EvaluationConfig, Gate, Phase, Promotion
from magrounding.extensions.language_models.models import LanguageModel
from magrounding.registry import AGENTS, ALGORITHMS, ENVS, load
from magrounding.schema import INFINITE, MOST, OneOf, Options, options_of

HEADER = "| option | type | default | meaning |\n|---|---|---|---|"
_PACKAGE = "magrounding."
_NOUNS: dict[Any, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "true or false",
    type(None): "null",
    Any: "anything",
}
_ATTRIBUTE = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def sections() -> dict[str, list[tuple[str, type[Options]]]]:
    """Title of a section → (title of a table, the options that it shows); only what is the package's own."""
    envs = [(f"`{entry.id}`", load(entry.game)) for entry in ENVS.values() if entry.game.startswith(_PACKAGE)]
    learners = [(f"`{entry.id}`", load(entry.config)) for entry in ALGORITHMS.values()]
    learners = [(name, cls) for name, cls in learners if cls.__module__.startswith(_PACKAGE)]
    return {
        "Environments": envs,
        "Networks": networks(),
        "Learners": learners,
        "Run": [(f"`{cls.__name__}`", cls) for cls in (RunConfig, Phase, Promotion, Gate, EvaluationConfig)],
        "Language models": [(f"`{LanguageModel.__name__}`", LanguageModel)],
    }


def networks() -> list[tuple[str, type[Options]]]:
    """(Ids of the agents, options) of every network: agents whose networks have options of one class share a table."""
    found: dict[type[Options], list[str]] = {}
    for entry in AGENTS.values():
        if entry.policy.startswith(_PACKAGE):
            network = load(entry.policy)
            if network is make_endi:
                network = load(GROUNDINGS[entry.options.get("grounding", "txt2pi")])
            elif not isinstance(network, type):
                network = get_type_hints(network)["return"]
            config = get_type_hints(network.__init__)["config"]
            found.setdefault(config, []).append(f"`{entry.id}`")
    return [(", ".join(ids), config) for config, ids in found.items()]


def summary(cls: type[Options]) -> str:
    """The first line of a class's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def table(cls: type[Options]) -> str:
    """The options of a class, one a row."""
    said, by_name = meanings(cls), {each.name: each for each in fields(cls)}
    rows = [
        f"| `{name}` | {kind(option.type)} | {default(by_name[name])} | {said.get(name, '')} |".replace("  |", " |")
        for name, option in options_of(cls).items()
    ]
    return "\n".join([HEADER, *rows])


def meanings(cls: type) -> dict[str, str]:
    """Name → meaning, of the Attributes sections of a class and of those that it is made of."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        names: tuple[str, ...] = ()
        _, _, section = inspect.cleandoc(each.__doc__ or "").partition("\nAttributes:\n")
        for line in section.partition("\n\n")[0].splitlines():
            if match := _ATTRIBUTE.match(line.removeprefix("    ")):
                names = tuple(match[1].split(", "))
                found |= dict.fromkeys(names, match[2])
            elif line.startswith("        "):
                found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: meaning.replace("|", r"\|") for name, meaning in found.items()}


def kind(hint: Any) -> str:
    """Describe the values of an annotation in words: type, bounds and choices of an annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(parts[0], parts[1:])
    if origin is Literal:
        return f"one of {', '.join(_code(part) for part in parts)}"
    if origin in (Union, UnionType):
        return " or ".join(map(kind, parts))
    if origin is tuple:
        return f"list of {kind(parts[0])}"
    if origin is not None and issubclass(origin, Mapping):
        return "name → value" if parts[1] is Any else f"name → {kind(parts[1])}"
    return _NOUNS.get(hint) or f"`{hint.__name__}`"


def _bounded(hint: Any, marks: tuple[Any, ...]) -> str:
    words = kind(hint)
    for mark in marks:
        if isinstance(mark, OneOf):
            words = f"one of {', '.join(map(_code, mark.names))}"
        elif isinstance(mark, Meta):
            words += f" {', '.join(_bounds(mark))}" if mark.min_length is None else f" ({mark.min_length} or more)"
        elif mark == INFINITE:
            words += " or infinity"
    return words


def _bounds(mark: Meta) -> Iterator[str]:
    for sign, bound in (("≥", mark.ge), (">", mark.gt), ("≤", mark.le), ("<", mark.lt)):
        if bound is not None and bound != MOST:
            yield f"{sign} {bound:,}"


def default(each: Field[Any]) -> str:
    """The default of an option as JSON; an empty cell where it has to be given."""
    if each.default_factory is not MISSING:
        value = each.default_factory()
        return f"`{type(value).__name__}`" if isinstance(value, Options) else _code(value)
    return "" if each.default is MISSING else _code(each.default)


def _code(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`" if not isinstance(value, str) or not value else f"`{value}`"
