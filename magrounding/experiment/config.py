"""RunConfig: everything that decides what a run computes. A preset is one that names no environment yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta

from magrounding.agents.building import make_policy
from magrounding.agents.policy import CONTRAST, Policy
from magrounding.errors import CheckpointError, ConfigurationError, RegistrationError, check_choice
from magrounding.experiment.phase import EvaluationConfig, Gate, Phase
from magrounding.experiment.plan import Plan, make_plan
from magrounding.experiment.presets import find_preset
from magrounding.registry import ENVS, EnvEntry, agent_entry, env_entry
from magrounding.run_folder import RunFolder
from magrounding.schema import Natural, NonNegative, OneOf, Options, Positive, Share, load, options_of
from magrounding.storage import digest
from magrounding.training.algorithm import AlgorithmConfig
from magrounding.vector import check_count

REMAINING_STAGES = "*"
Seed = Annotated[int, Meta(ge=0, lt=2**31)]
RAY_WORKERS = r"^ray:[1-9][0-9]{0,2}$"
_SMALL = 0.25
"""Part of a preset's budget below which evaluations spare time; the tables that we publish have this much or more."""


@dataclass(frozen=True)
class RunConfig(Options):
    """Configuration of a run: environment, agents, phases, evaluation, seeds.

    Attributes:
        env: environment id; "": a preset, which is checked where an environment is given.
        agent: id of the networks.
        phases: stage → its phases in order, each kind at most once; "*" for every other stage.
        preset: the name under which the preset is registered that it began with.
        about: the budget in a sentence, for reports.
        agents: n; 0: the environment's.
        stages: in order; none: the environment's curriculum.
        seeds: one whole curriculum each.
        env_options: of the environment, beside stage and number of agents, for training and every evaluation set; what
            a set or a phase says itself goes before.
        network: options of the agent's network.
        evaluation: how often, and on which games, agents are evaluated.
        team_reward: part of each agent's reward that is the team's mean instead of its own.
        share_parameters: one network plays for all agents and learns from all of them; else each has its own.
            Algorithms whose learner sees the whole team (`AlgorithmConfig.joint`) always do.
        share_from: number of agents from which on a preset shares parameters by itself; None: never.
        carry_optimizer: a phase inherits the optimiser's statistics along with the weights, as RTFM's program does,
            where the phase before had the same algorithm.
        log_every: updates between two lines of metrics.
        save_every: seconds between checkpoints.
        budget: how many times the registered preset's environment steps these are.
        demonstrations: path → SHA-256 of files that phases of imitation learn from; without any, an oracle teaches.
        initial: a run's folder, "pretrained:<name>" or "hub:<owner>/<name>": every seed begins with the weights of its
            first seed after its last stage, which have to stay there until all seeds have begun; "": untrained.
        against: a team, named as in `initial`: agent 0 alone learns, beside the others of that team, who do not (a best
            response).
        workers: processes that simulators are shared among; 0 plays them in this one, "ray:K" in K actors of Ray. No
            result depends on it.
        unlearnt: what follows a stage that misses its gate (`Phase.gate`): "stop" ends the run there with exit code 3,
            "continue" says so and goes on. A run that goes on may have the other.
    """

    env: str = field(default="", kw_only=True)
    agent: str
    phases: Mapping[str, tuple[Phase, ...]]
    preset: str = ""
    about: str = ""
    agents: Natural = 0
    stages: tuple[str, ...] = ()
    seeds: Annotated[tuple[Seed, ...], Meta(min_length=1)] = (0,)
    env_options: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    team_reward: Share = 0.0
    share_parameters: bool = False
    share_from: Natural | None = None
    carry_optimizer: bool = True
    log_every: Annotated[int, Meta(ge=1)] = 10
    save_every: NonNegative = 120.0
    budget: Positive = 1.0
    demonstrations: Mapping[str, str] = field(default_factory=dict)
    initial: str = ""
    against: str = ""
    workers: Natural | Annotated[str, Meta(pattern=RAY_WORKERS)] = 0
    unlearnt: Annotated[str, OneOf(("continue", "stop"))] = "continue"

    def __post_init__(self) -> None:
        super().__post_init__()
        for stage, phases in self.phases.items():
            names = [phase.name for phase in phases]
            if not names or len(set(names)) < len(names):
                raise ConfigurationError(f"a stage has one or two phases of different kinds, {stage} has {names}")
        if not self.env:
            return
        entry = self.entry  # it and the agent decide what is filled in
        agents = self.agents or (entry.options["agents"] if entry.multi_agent else 1)
        team = {"agents": agents} if entry.multi_agent else {}
        needed = agent_entry(self.agent).env_options
        for name, value in needed.items():
            if self.env_options.get(name, value) != value:
                raise ConfigurationError(f"agent {self.agent!r} needs {name}={value}, got {self.env_options[name]}")
        complete = {
            "agents": agents,
            "stages": self.stages or entry.curriculum,
            "env_options": {**self.env_options, **needed, **team},
        }
        for name, value in complete.items():
            object.__setattr__(self, name, value)
        for stage in self.stages:
            check_choice(f"stage of {self.env}", stage, entry.stages)
        if any(phase.learner.joint for _, phase in self.walk()):
            object.__setattr__(self, "share_parameters", True)
        if not entry.multi_agent and self.agents != 1:
            several = ", ".join(env.id for env in ENVS.values() if env.multi_agent)
            raise ConfigurationError(f"{self.env} is played by one agent, got {self.agents}; several play: {several}")
        for what, values in (("stage", self.stages), ("seed", self.seeds)):
            if len(set(values)) < len(values):
                raise ConfigurationError(f"each {what} can be named once, got {', '.join(map(str, values))}")

    @property
    def chosen_env_options(self) -> dict[str, Any]:
        """Options of the environment but those that the agent's networks and the number of agents decide."""
        decided = {"agents", *agent_entry(self.agent).env_options}
        return {name: value for name, value in self.env_options.items() if name not in decided}

    def resolve(self) -> Plan:
        """Return what this decides, computed and checked once; ConfigurationError for what cannot be."""
        return self._plan

    def make_network(self) -> Policy:
        """Return an untrained network of this run; ConfigurationError where its options do not make one."""
        return make_policy(self.agent, self.resolve().games.spec, **self.network)

    _plan = cached_property(make_plan)

    @property
    def entry(self) -> EnvEntry:
        return env_entry(self.env)

    @property
    def imitates(self) -> bool:
        """Some phase learns from a teacher or from demonstrations."""
        return any(phase.learner.teaching is not None for _, phase in self.walk())

    @property
    def title(self) -> str:
        """Environment, agents and preset in a line."""
        team = f"{self.agents} × {self.agent}" if self.agents > 1 else self.agent
        shared = ", shared" if self.agents > 1 and self.share_parameters else ""
        return f"{self.env} · {team}{shared} · preset {self.preset}"

    @property
    def num_learners(self) -> int:
        """Networks that learn apart."""
        return 1 if self.share_parameters else len(self.learning_agents)

    @property
    def learning_agents(self) -> range:
        """Agents whose networks learn."""
        return range(1 if self.against else self.agents)

    @property
    def max_envs(self) -> int:
        """Games of the largest batch."""
        return max(phase.num_envs for _, phase in self.walk())

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides what a run computes: two runs with the same one differ in words at most.

        Options at their defaults are left out, so that a later version, which has more of them, gets the same one; so
        are gates.
        """
        phases = {stage: [replace(phase, gate=Gate()) for phase in self.of_stage(stage)] for stage in self.stages}
        same = replace(self, workers=0, about="", budget=1.0, phases=phases, unlearnt="continue")
        return digest(same.as_dict(changed=True))

    @property
    def ungated(self) -> Self:
        """The same without gates, which decide nothing of what is learnt before them: for runs that are compared."""
        return replace(self.with_phases(lambda phase: replace(phase, gate=Gate())), unlearnt="continue")

    def of_stage(self, stage: str) -> tuple[Phase, ...]:
        """The phases of a stage; ConfigurationError where there are none for it."""
        found = self.phases.get(stage) or self.phases.get(REMAINING_STAGES)
        if found is None:
            raise ConfigurationError(
                f"preset {self.preset!r} has phases for {', '.join(self.phases) or 'no stage'}, none for {stage!r}: "
                f"choose among its --stages, or give it phases for {REMAINING_STAGES!r}, all others"
            )
        return found

    def walk(self) -> Iterator[tuple[str, Phase]]:
        """(stage, phase) of the whole run, in order."""
        for stage in self.stages:
            for phase in self.of_stage(stage):
                yield stage, phase

    def with_phases(self, change: Callable[[Phase], Phase]) -> Self:
        """Return the same with every phase changed."""
        return replace(self, phases={stage: tuple(map(change, phases)) for stage, phases in self.phases.items()})

    def with_learners(self, change: Callable[[AlgorithmConfig], AlgorithmConfig]) -> Self:
        """Return the same with every phase's learner changed."""
        return self.with_phases(lambda phase: replace(phase, learner=change(phase.learner)))

    def with_budget(self, factor: float) -> Self:
        """The same for so many times the environment steps in every phase, schedules and evaluations with them.

        A small budget would go into evaluations almost whole, so they are fewer there.
        """
        about = f"{self.about} Here with {factor:g} times its budget."
        scaled = replace(self, about=about, budget=factor * self.budget)  # a budget that can be
        evaluation = self.evaluation.with_budget(factor)
        return replace(
            scaled.with_phases(lambda phase: phase.with_budget(factor)),
            evaluation=evaluation if factor >= _SMALL else evaluation.sparing(factor / _SMALL),
        )


def make_config(
    env: str,
    agent: str | None = None,
    agents: int | None = None,
    preset: str = "demo",
    stages: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] = (0,),
) -> RunConfig:
    """The configuration of what a command line names; of a preset's agent, its network and what of it is frozen.

    An agent that is built on the preset's gets its options and, where it says which part of its network that is
    (`AgentEntry.part`), what of it is frozen.

    The contrastive loss of a preset is left out for networks that have none.

    `resolve` refuses what cannot be: options may still be changed before.
    """
    found, entry = find_preset(preset, env, agent), env_entry(env)
    agent, own = agent or found.agent, agent in (None, found.agent)
    if not own:
        known = agent_entry(agent)
        built_on = known.built_on == found.agent
        several = entry.multi_agent and (agents or entry.options["agents"]) > 1
        inside = f"{known.part}." if several else ""  # for one agent it is the network that it is built on
        kept = built_on and known.part
        found = replace(found, agent=agent, network=found.network if built_on else {}).with_phases(
            lambda phase: replace(phase, frozen=tuple(f"{inside}{name}" for name in phase.frozen if kept))
        )
    if stages is not None and not stages:
        raise ConfigurationError("at least one stage is needed")
    if agents is not None:
        check_count("agents", agents, 1)
    config = replace(found, env=entry.id, preset=preset, agents=agents or 0, stages=stages or found.stages, seeds=seeds)
    if own and config.share_from is not None and config.agents >= config.share_from:
        config = replace(config, share_parameters=True)
    contrasted = any(phase.learner.weights.get(CONTRAST) for _, phase in config.walk())
    if not own and contrasted and not config.make_network().contrasts:
        config = config.with_learners(lambda learner: replace(learner, weights={**learner.weights, CONTRAST: 0.0}))
    return config


def read_config(folder: Path) -> RunConfig:
    """The configuration of a run folder; CheckpointError where it is none."""
    return parse_config(RunFolder(folder).config())


def parse_config(content: Mapping[str, Any]) -> RunConfig:
    """The configuration that a run's `config.json` holds, beside facts about the run.

    Raises:
        CheckpointError: a file that is damaged.
        RegistrationError: a run in an environment or of an agent that is not registered here.
    """
    try:
        config = load(RunConfig, {name: content[name] for name in options_of(RunConfig) if name in content})
        config.resolve()
        return config
    except RegistrationError:
        raise
    except (KeyError, TypeError, AttributeError, ConfigurationError) as error:
        raise CheckpointError(f"the run's config.json is damaged, or of another version: {error}") from None
