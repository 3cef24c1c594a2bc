"""Presets by name and environment. A new one is an object and a line in `entries`."""

from __future__ import annotations

from magrounding.errors import ConfigurationError, choose
from magrounding.experiment.presets.preset import IMITATE, REINFORCE, REMAINING_STAGES, Phase, Preset, Promotion
from magrounding.registry import PRESETS, load

__all__ = [
    "IMITATE",
    "REINFORCE",
    "REMAINING_STAGES",
    "Phase",
    "Preset",
    "Promotion",
    "default_preset",
    "find_preset",
]


def find_preset(name: str, env: str) -> Preset:
    """A preset for an environment; ConfigurationError where there is none."""
    by_env = {entry.env: entry for entry in PRESETS.values() if entry.name == name}
    own = [entry.name for entry in PRESETS.values() if entry.env == env]
    if not by_env:
        choose("preset", name, own or dict.fromkeys(entry.name for entry in PRESETS.values()))
    if env not in by_env:
        rest = f"; {env} has: {', '.join(own)}" if own else ""
        raise ConfigurationError(f"preset {name!r} is not made for {env!r}; it serves: {', '.join(by_env)}{rest}")
    return load(by_env[env].preset)


def default_preset(env: str) -> str:
    """The name of the preset with the smallest budget for an environment."""
    known = [entry.name for entry in PRESETS.values() if entry.env == env]
    return next((name for name in ("demo", "quick", "paper", *known) if name in known), "quick")
