"""Report what this machine offers, and what is missing: `magrounding doctor`."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from magrounding import __version__, extras
from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError
from magrounding.machine import machine_memory
from magrounding.storage import json_text, user_data
from magrounding.threads import core_limits, plan_threads

_GAMES, _WORLD = 64, 1024
"""Games side by side of a training, and of a world alone, whose threads are shown."""

Findings = dict[str, dict[str, str]]
"""Section → name → what was found."""


@dataclass(frozen=True)
class Arguments:
    """Say which versions are installed, what this machine has, and what each extra lacks.

    The exit code is 2 where a package that magrounding requires is missing or of another version.
    """

    json: bool = False
    """Print JSON: section → name → finding."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Look, print, and fail where the package itself lacks something."""
    found = findings()
    if arguments.json:
        print(json_text(found, indent=2))
    else:
        width = max(len(name) for section in found.values() for name in section)
        for section, lines in found.items():
            print("\n".join([section, *(f"  {name:{width}}  {text}" for name, text in lines.items()), ""]))
    if lacking := extras.missing_packages():
        raise ConfigurationError(f"magrounding lacks {', '.join(lacking)}: install it again with pip")


def findings() -> Findings:
    """Return what was found, section by section."""
    return {
        "magrounding": {
            "version": __version__,
            "python": f"{platform.python_version()}, {platform.platform()}",
            "package": str(Path(extras.__file__).parent),
            "teams and studies": str(user_data()),
        },
        "packages": {each.name: extras.version_of(each.name) or "missing" for each in extras.requirements()},
        "machine": _machine(),
        "extras": {name: extras.state(name) for name in extras.extras()},
    }


def _machine() -> dict[str, str]:
    plan = plan_threads(2, _GAMES)
    limit, cores = min(core_limits().items(), key=lambda each: each[1])
    return {
        "cores": f"{cores} for this process by {limit}, of {os.cpu_count()}",
        "memory": f"{machine_memory() / 2**30:.1f} GiB",
        "threads, 2 agents": f"{plan.agents} for agents, {plan.parts} for parts of a minibatch of each, "
        f"{plan.world} for the world, with {_GAMES} games",
        "threads, world": f"{plan_threads(1, _WORLD).world} with {_WORLD} games",
        "GPU": _gpu(),
    }


def _gpu() -> str:
    import torch

    if not torch.cuda.is_available():
        return f"torch {torch.__version__} sees none"
    names = (torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count()))
    return ", ".join(f"{each.name}, {each.total_memory / 2**30:.0f} GiB" for each in names)
