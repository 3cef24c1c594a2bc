"""Directives by which pages show what the code says: options, docstrings, commands, presets, networks.

`{environment} ID`, `{env-options} ID`, `{env-docstring} ID`, `{agents} ID …`, `{algorithm} ID`, `{run-options} CLASS`,
`{command} MODULE` and `{presets} ENV`. They write no headings: MyST puts those before everything else that they write.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from magrounding.agents.building import make_policy
from magrounding.errors import MagroundingError, MissingExtra
from magrounding.registry import AGENTS, ALGORITHMS, ENVS, EnvEntry, load
from tools.documentation import commands, docstrings, options, pictures, presets

PICTURES = "_pictures"
"""Folder below `docs/` of the pictures that a build draws."""


class Generated(SphinxDirective):
    """A directive whose content is Markdown that `written` makes of its arguments."""

    required_arguments = 1
    optional_arguments = 99
    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            text = self.written(self.arguments)
        except MagroundingError as error:
            raise self.error(str(error)) from error
        return self.parse_text_to_nodes(text)

    def written(self, names: list[str]) -> str:
        """The Markdown."""
        raise NotImplementedError


class Environment(Generated):
    """An environment by its id; lines of the content are options of its picture."""

    def written(self, names: list[str]) -> str:
        entry = ENVS.find(names[0])
        config = load(entry.game)
        facts = {
            "id": _codes([entry.id]),
            "in PettingZoo" if entry.multi_agent else "in PettingZoo and Gymnasium": _codes(
                [f"magrounding/{entry.versioned_id}"]
            ),
            "extra": _codes(filter(None, [getattr(config, "extra", "")])),
            entry.stage_option: _codes(filter(None, entry.stages)),
            "curriculum": _codes(filter(None, entry.curriculum)),
            "evaluation sets": _codes(entry.evaluation.sets_of(entry.curriculum[-1])),
        }
        parts = ["\n".join(f"* {what}: {value}" for what, value in facts.items() if value), self._picture(entry)]
        return "\n\n".join(filter(None, parts))

    def _picture(self, entry: EnvEntry) -> str:
        """A picture of the environment, drawn now; "" where it draws none or its package is absent."""
        chosen = {}
        for line in self.content:
            name, _, value = line.partition("=")
            chosen[name] = entry.schema[name].parse(value)
        path = Path(self.env.srcdir) / PICTURES / f"{entry.id}.png"
        try:
            if not pictures.draw(entry.id, chosen, path):
                return ""
        except MissingExtra:
            return ""
        said = ", ".join([repr(entry.id), *(f"{name}={value!r}" for name, value in chosen.items())])
        return f"![{entry.id}](/{PICTURES}/{path.name})\n\n`mg.make({said})`, some random moves later."


class EnvironmentOptions(Generated):
    """Options of an environment, by its id."""

    def written(self, names: list[str]) -> str:
        return options.table(load(ENVS.find(names[0]).game))


class EnvironmentDocstring(Generated):
    """Rules, texts and observations of an environment, by its id: the docstring of its package."""

    def written(self, names: list[str]) -> str:
        package = load(ENVS.find(names[0]).game).__module__.rpartition(".")[0]
        return docstrings.markdown(inspect.getdoc(import_module(package)) or "", but=("Arguments",))


class Agents(Generated):
    """Agents whose networks have options of one class; lines of the content are environments, to count parameters."""

    def written(self, names: list[str]) -> str:
        ids, config = next(each for each in options.networks() if f"`{names[0]}`" in each[0].split(", "))
        owner = ids.split(", ")[0]
        table = f"\n\n{options.table(config)}" if owner == f"`{names[0]}`" else f" as of {owner}."
        rows = [f"| `{id}` | {_sets(AGENTS.find(id).options)} | {self._parameters(id)} |" for id in names]
        head = "| id | sets | parameters |\n|---|---|---|"
        return "\n".join([head, *rows, "", f"Options (`network.name=value`):{table}"])

    def _parameters(self, id: str) -> str:
        """Numbers of parameters of an agent's network in the environments of the content, "env option=value …"."""
        said = []
        for line in self.content:
            env, *chosen = line.split()
            entry = ENVS.find(env)
            pairs = (part.split("=", 1) for part in chosen)
            made = {name: entry.schema[name].parse(text) for name, text in pairs}
            try:
                network = make_policy(id, entry.describe(**AGENTS[id].env_options, **made))
            except MagroundingError:  # an environment that it is not made for, or a language model that is not named
                continue
            said.append(f"{sum(each.numel() for each in network.parameters()):,} in `{line}`")
        return "; ".join(said) or "–"


class Algorithm(Generated):
    """Options of a learner, by its id."""

    def written(self, names: list[str]) -> str:
        return options.table(load(ALGORITHMS.find(names[0]).config))


class RunOptions(Generated):
    """Options of a class of the tables, by its name."""

    def written(self, names: list[str]) -> str:
        config = next(cls for each in options.sections().values() for _, cls in each if cls.__name__ == names[0])
        return f"{options.summary(config)}\n\n{options.table(config)}"


class Command(Generated):
    """Arguments of a command, by the module that has them."""

    def written(self, names: list[str]) -> str:
        about = inspect.getdoc(import_module(names[0]).Arguments) or ""
        return "\n\n".join([docstrings.summary(about), docstrings.markdown(about), commands.table(names[0])])


class Presets(Generated):
    """Presets of an environment, by its id."""

    def written(self, names: list[str]) -> str:
        return presets.table(names[0])


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _sets(chosen: Mapping[str, Any]) -> str:
    said = {name: value if isinstance(value, str) else json.dumps(value) for name, value in chosen.items()}
    return _codes(f"{name}={value}" for name, value in said.items()) or "–"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives with Sphinx."""
    for name, directive in {
        "environment": Environment,
        "env-options": EnvironmentOptions,
        "env-docstring": EnvironmentDocstring,
        "agents": Agents,
        "algorithm": Algorithm,
        "run-options": RunOptions,
        "command": Command,
        "presets": Presets,
    }.items():
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
