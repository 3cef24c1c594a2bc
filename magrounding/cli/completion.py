"""Completion of commands and their options in a shell: `eval "$(magrounding completion bash)"`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

import tyro

from magrounding.cli.command import CommandLine, explained
from magrounding.errors import check_choice

SHELLS = ("bash", "zsh")


@dataclass(frozen=True)
class Arguments:
    """Print a script that completes commands and options; put what it prints into the folder of your shell's.

    magrounding completion bash > ~/.local/share/bash-completion/completions/magrounding
    magrounding completion zsh > ~/.zfunc/_magrounding
    """

    shell: Annotated[str, tyro.conf.Positional]
    """bash or zsh."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Print tyro's script of all commands."""
    from magrounding.cli.main import MODULES, NAME

    shell = check_choice("shell", arguments.shell, SHELLS)
    commands = {name: explained(import_module(module).Arguments) for name, module in MODULES.items()}
    try:
        tyro.extras.subcommand_cli_from_dict(commands, prog=NAME, args=["--tyro-print-completion", shell])
    except SystemExit as end:  # how tyro ends after it has printed
        if end.code:
            raise
