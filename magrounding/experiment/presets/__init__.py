"""Presets by name and environment. A new one is an object and a line in `entries`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from magrounding.errors import ConfigurationError, check_choice
from magrounding.registry import PRESETS, env_entry, load

if TYPE_CHECKING:
    from magrounding.experiment.config import RunConfig

GENERAL = "general"
"""The name of the preset for every environment (`general.py`)."""
_GENERAL = "magrounding.experiment.presets.general:general_preset"  # torch, which the names of presets do without


def presets_of(env: str) -> tuple[str, ...]:
    """The names of the presets for an environment: its own, and the one for every environment."""
    return (*dict.fromkeys(entry.name for entry in PRESETS.values() if entry.env == env), GENERAL)


def find_preset(name: str, env: str, agent: str | None = None) -> RunConfig:
    """A preset for an environment, and for an agent where it has one of its own; ConfigurationError for none."""
    for entry in PRESETS.values():
        if (entry.name, entry.env) == (name, env) and agent in entry.agents:
            return replace(load(entry.preset), agent=agent)
    by_env = {entry.env: entry for entry in PRESETS.values() if entry.name == name and not entry.agents}
    if env in by_env:
        return load(by_env[env].preset)
    own = presets_of(env_entry(env).id)
    if not by_env or name == GENERAL:
        check_choice(f"preset of {env}", name, own)
        return load(_GENERAL)(env)
    raise ConfigurationError(
        f"preset {name!r} is not made for {env!r}; it serves: {', '.join(by_env)}; {env} has: {', '.join(own)}"
    )


def default_preset(env: str) -> str:
    """The name of the preset with the smallest budget for an environment; GENERAL for one without its own."""
    own = presets_of(env)
    return next(name for name in ("demo", "quick", "paper", *own) if name in own)
