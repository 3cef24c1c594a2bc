"""Completion of commands, their options and names in a shell: `eval "$(magrounding completion bash)"`."""

from __future__ import annotations

from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, make_dataclass
from importlib import import_module
from io import StringIO
from typing import Annotated, Any, Literal
from warnings import catch_warnings

import tyro

from magrounding.cli.command import CommandLine
from magrounding.pretrained import pretrained_names
from magrounding.registry import AGENTS, ENVS, PRESETS
from magrounding.schema import options_of


@dataclass(frozen=True)
class Arguments:
    """Print a script that completes commands and options; put what it prints into the folder of your shell's.

    magrounding completion bash > ~/.local/share/bash-completion/completions/magrounding
    magrounding completion zsh > ~/.zfunc/_magrounding
    """

    shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional]
    """bash or zsh."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Print tyro's script of all commands."""
    from magrounding.cli.main import NAME, commands

    named: dict[str, Any] = {
        "env": Literal[tuple(ENVS)],
        "agent": Literal[tuple(AGENTS)],
        "preset": Literal[tuple(entry.name for entry in PRESETS.values())],
        "pretrained": tuple[Literal[tuple(pretrained_names())], ...],
    }
    words = {}
    for command, entry in commands().items():
        taken = import_module(entry.module).Arguments
        known = options_of(taken).items()
        kinds = {name: named.get(name, option.type) for name, option in known}
        every = [
            (name, kinds[name]) if option.required else (name, kinds[name], option.default) for name, option in known
        ]
        words[command] = make_dataclass(command.title(), every, kw_only=True)
    printed = StringIO()
    # Defaults are none of the names, which tyro warns of; SystemExit is how it ends after it has printed.
    with redirect_stdout(printed), suppress(SystemExit), catch_warnings(action="ignore"):
        tyro.extras.subcommand_cli_from_dict(words, prog=NAME, args=["--tyro-print-completion", arguments.shell])
    for each in printed.getvalue().splitlines():
        # bash reads the answers line by line, and would offer the second line of a help text as a word.
        print(each.replace("\\n", " ") if each.startswith("COMPLETION_SPEC") else each)
