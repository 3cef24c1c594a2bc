"""Tables of presets: what each stage learns by, for how many environment steps, in how many games at once."""

from __future__ import annotations

from magrounding.experiment.config import RunConfig
from magrounding.experiment.phase import Phase
from magrounding.registry import PRESETS, PresetEntry, load

HEADER = "| preset | network | stage | learns by | environment steps | games at once |\n|---|---|---|---|---|---|"
_ALL = "*"


def table(env: str) -> str:
    """The presets of an environment, one phase a row, and the sentence that each says of its budget."""
    entries = [entry for entry in PRESETS.values() if entry.env == env]
    said = [f"* `{entry.name}`{_for(entry)}: {load(entry.preset).about}" for entry in entries]
    return "\n".join([*said, "", HEADER, *(row for entry in entries for row in _rows(entry, load(entry.preset)))])


def _for(entry: PresetEntry) -> str:
    """The agents that a preset is for, where it is for some alone."""
    return f" of {', '.join(f'`{id}`' for id in entry.agents)}" if entry.agents else ""


def _rows(entry: PresetEntry, config: RunConfig) -> list[str]:
    network = f"`{entry.agents[0] if entry.agents else config.agent}`"
    if len(entry.agents) > 1:
        network += " and others"
    rows = []
    for stage, phases in config.phases.items():
        for phase in phases:
            name = f"`{stage}`" if stage != _ALL else "every other stage" if len(config.phases) > 1 else "all"
            cells = (f"`{entry.name}`", network, name, _learner(phase), _until(phase), phase.num_envs)
            rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def _learner(phase: Phase) -> str:
    changed = "".join(f"; `{name}` {ramp.first:g} → {ramp.last:g}" for name, ramp in phase.ramps.items())
    return f"{phase.learner.algorithm}{changed}"


def _until(phase: Phase) -> str:
    until = phase.until
    parts = [f"{until.steps:,}"] if until.steps is not None else []
    if until.win_rate is not None:
        parts.append(f"until {100 * until.win_rate:g} % of training games are won")
    return {"any": " or ", "all": " and "}[until.rule].join(parts)
