"""RunSettings: everything that decides what a run computes, as `config.json` holds it and a resumed run reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.registry import EnvEntry, agent_entry, env_entry
from magrounding.training.algorithms import parse_config
from magrounding.training.presets import Preset, Promotion, find_preset


@dataclass(frozen=True)
class RunSettings:
    """What to train, on what, for how long.

    Attributes:
        env: environment id.
        agent: id of the networks.
        agents: n.
        preset: budgets and options.
        stages: in order.
        seeds: one whole curriculum each.
    """

    env: str
    agent: str
    agents: int
    preset: Preset
    stages: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    _entry: EnvEntry = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        entry = env_entry(self.env)
        object.__setattr__(self, "_entry", entry)
        agent_entry(self.agent)
        if self.agents < 1:
            raise ConfigurationError(f"the number of agents must be positive, got {self.agents}")
        if not entry.multi_agent and self.agents != 1:
            raise ConfigurationError(f"{self.env} is played by one agent, got {self.agents}; several play: ma_rtfm")
        for stage in self.stages:
            choose(f"stage of {self.env}", stage, entry.stages)
        for what, values in (("stage", self.stages), ("seed", self.seeds)):
            if not values:
                raise ConfigurationError(f"at least one {what} is needed")
            if len(set(values)) < len(values):
                raise ConfigurationError(f"each {what} can be named once, got {', '.join(map(str, values))}")
        for seed in self.seeds:
            if not 0 <= seed < 2**31:
                raise ConfigurationError(f"a seed is an integer in [0, 2**31), got {seed}")

    @property
    def entry(self) -> EnvEntry:
        return self._entry

    @property
    def policy_options(self) -> Mapping[str, Any]:
        """Options of the networks: the preset's, unless another agent than its own was asked for."""
        return self.preset.policy_options if self.agent == self.preset.agent else {}

    @property
    def env_options(self) -> dict[str, Any]:
        """Options of the environment, all but its stage."""
        team = {"agents": self.agents} if self.entry.multi_agent else {}
        return {**self.preset.env_options, **team}

    def stage_options(self, stage: str, evaluation_set: str | None = None) -> dict[str, Any]:
        """Options of the environment in a stage, as trained on, or as an evaluation set has it."""
        changed = {} if evaluation_set is None else self.entry.evaluation_sets[evaluation_set]
        return {**self.env_options, self.entry.stage_option: stage, **changed}

    def evaluation_sets(self, stage: str) -> tuple[str, ...]:
        """The sets to report on after a stage."""
        if stage != self.stages[-1]:
            return self.preset.stage_sets
        return tuple(self.entry.evaluation_sets) if self.preset.final_sets is None else self.preset.final_sets

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `load_team` reads the same keys."""
        return {
            "env": self.env,
            "agent": self.agent,
            "agents": self.agents,
            "stages": list(self.stages),
            "seeds": list(self.seeds),
            "env_options": self.env_options,
            "policy_options": dict(self.policy_options),
            "preset": asdict(self.preset),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RunSettings:
        """The inverse of `to_dict`; CheckpointError where the content is damaged."""
        try:
            preset = dict(content["preset"])
            preset["learner"] = parse_config(preset["learner"])
            preset["promotions"] = {stage: Promotion(**rule) for stage, rule in preset["promotions"].items()}
            # JSON has lists only; options are compared, and tuples are what they were.
            lists = preset["policy_options"].items()
            preset["policy_options"] = {name: tuple(v) if isinstance(v, list) else v for name, v in lists}
            for name in ("stage_sets", "final_sets"):
                preset[name] = None if preset[name] is None else tuple(preset[name])
            return cls(
                env=content["env"],
                agent=content["agent"],
                agents=content["agents"],
                preset=Preset(**preset),
                stages=tuple(content["stages"]),
                seeds=tuple(content["seeds"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"the run's config.json is damaged, or of another version: {error}") from None


def make_settings(
    env: str,
    agent: str | None = None,
    agents: int | None = None,
    preset: str = "demo",
    stages: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] = (0,),
) -> RunSettings:
    """Settings from what a command line names; the preset's agent, the environment's team and curriculum by default."""
    entry, chosen = env_entry(env), find_preset(preset, env)
    team: int = entry.options["agents"] if entry.multi_agent else 1
    return RunSettings(
        env,
        agent or chosen.agent,
        team if agents is None else agents,
        chosen,
        entry.curriculum if stages is None else stages,
        seeds,
    )
