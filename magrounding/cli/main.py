"""The console command `magrounding`: it imports the one command that is asked for, and nothing else."""

from __future__ import annotations

import sys
from importlib import import_module

from magrounding import __version__
from magrounding.cli.command import HELP, CommandLine, run_command
from magrounding.errors import check_choice
from magrounding.registry import COMMANDS, CommandEntry

NAME = "magrounding"

_CORE = {
    "train": "Train agents through a curriculum, evaluate them, and write a report.",
    "evaluate": "Evaluate trained teams on evaluation sets, beside a random team and the oracle.",
    "watch": "Show one game of a trained team, as text, film or pictures.",
    "record": "Record games of the oracle, a trained team or a person, to learn from.",
    "match": "Compare line-ups of agents, oracles, scripts and random players on the same games.",
    "replay": "Replay saved games, check them, and show one as text, film or page.",
    "compare": "Compare finished runs: a table for each stage, and learning curves.",
    "publish": "Keep a trained team by a name, or give it to others with a model card.",
    "bench": "Measure the speed of environments and learners.",
    "list": "List environments, agents, algorithms, presets, trained teams and extras.",
    "doctor": "Print versions, cores, threads and GPU of this machine, and what each extra lacks.",
    "completion": "Print a script that completes commands and options in bash or zsh.",
}
"""Name → what it does, of the commands in this folder."""
_LIGHT = {"train": "magrounding.cli.run_arguments"}
"""Name → the module that has its arguments without what it computes with, for help."""


def commands() -> dict[str, CommandEntry]:
    """Name → command; those of extensions stand behind the one of the core that they name."""
    found = {}
    for name, about in _CORE.items():
        found[name] = CommandEntry(name, about, f"{__package__}.{name}")
        found |= {other: entry for other, entry in COMMANDS.items() if entry.behind == name}
    return found


def main() -> int:
    """Run the command that is named first, and return its exit code."""
    name, *arguments = sys.argv[1:] or [""]
    if name in ("-h", "--help"):
        return run_command(lambda: print(usage()))
    if name == "--version":
        print(f"{NAME} {__version__}")
        return 0
    known = commands()
    if name not in known:
        return run_command(lambda: check_choice("command", name, known))
    print(end=known[name].starting, file=sys.stderr)  # and not its method: a closed one (`2>&-`) is None
    line = CommandLine(f"{NAME} {name}", tuple(arguments))
    if name in _LIGHT and HELP.intersection(arguments):
        line.parse(import_module(_LIGHT[name]).Arguments)
    return line.run(import_module(known[name].module))


def usage() -> str:
    """Return the text of `--help`."""
    width = max(map(len, known := commands()))
    lines = [f"    {name:{width}}  {entry.about}" for name, entry in known.items()]
    return "\n".join([f"usage: {NAME} COMMAND …", "", *lines, "", f"{NAME} COMMAND --help says what a command takes."])


if __name__ == "__main__":
    sys.exit(main())
