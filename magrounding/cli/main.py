"""The console command `magrounding`: it imports the one command that is asked for, and nothing else."""

from __future__ import annotations

import sys
from importlib import import_module

from magrounding import __version__
from magrounding.cli.command import HELP, CommandLine, run_command
from magrounding.errors import check_choice

NAME = "magrounding"

COMMANDS = {
    "train": "Train agents through a curriculum, evaluate them, and write a report.",
    "evaluate": "Evaluate trained teams on evaluation sets, beside a random team and the oracle.",
    "watch": "Show one game of a trained team, as text, film or pictures.",
    "record": "Record games of the oracle, a trained team or a person, to learn from.",
    "play": "Play at this terminal together with agents, or watch them.",
    "serve": "Serve a page on which people and agents play together in the browser.",
    "study": "Print the table of results of a study that was held in the browser.",
    "match": "Compare line-ups of agents, oracles, scripts and random players on the same games.",
    "replay": "Replay saved games, check them, and show one as text, film or page.",
    "export-chats": "Write games of the oracle, teams or people as chats, to fine-tune language models.",
    "guide": "Train LGE's Guide, which selects the relevant ones among many valid actions.",
    "compare": "Compare finished runs: a table for each stage, and learning curves.",
    "sweep": "Train a run at each point of a grid, or at those that Optuna chooses, and compare them.",
    "jobs": "Print a run's commands, one for each seed, for Slurm, GNU parallel or xargs.",
    "track": "Send what a run measured to TensorBoard, W&B, MLflow or Trackio.",
    "publish": "Keep a trained team by a name, or give it to others with a model card.",
    "segments": "Give a trained team a reader of running text (docs/running_text.md).",
    "templates": "Check a file of sentences for RTFM's manuals, and list what twenty manuals claim.",
    "pieces": "Train a vocabulary of word pieces on an environment's texts.",
    "bench": "Measure the speed of environments and learners.",
    "list": "List environments, agents, algorithms, presets, trained teams and extras.",
    "doctor": "Print versions, cores, threads and GPU of this machine, and what each extra lacks.",
    "completion": "Print a script that completes commands and options in bash or zsh.",
}
"""Name → what it does."""
STARTING = {"serve": "starting: PyTorch and the environments are loaded first, which takes seconds\n"}
"""Name → the first line of a command whose reader waits for an address."""
_LIGHT = {"train": "magrounding.cli.run_arguments"}
"""Name → the module that has its arguments without what it computes with, for help."""
MODULES = {name: f"magrounding.cli.{name.replace('-', '_')}" for name in COMMANDS}


def main() -> int:
    """Run the command that is named first, and return its exit code."""
    name, *arguments = sys.argv[1:] or [""]
    if name in ("-h", "--help"):
        return run_command(lambda: print(usage()))
    if name == "--version":
        print(f"{NAME} {__version__}")
        return 0
    if name not in COMMANDS:
        return run_command(lambda: check_choice("command", name, COMMANDS))
    print(end=STARTING.get(name, ""), file=sys.stderr)  # and not its method: a closed one (`2>&-`) is None
    line = CommandLine(f"{NAME} {name}", tuple(arguments))
    if name in _LIGHT and HELP.intersection(arguments):
        line.parse(import_module(_LIGHT[name]).Arguments)
    return line.run(import_module(MODULES[name]))


def usage() -> str:
    """Return the text of `--help`."""
    width = max(map(len, COMMANDS))
    lines = [f"    {name:{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join([f"usage: {NAME} COMMAND …", "", *lines, "", f"{NAME} COMMAND --help says what a command takes."])


if __name__ == "__main__":
    sys.exit(main())
