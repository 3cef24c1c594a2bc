"""RunSettings: everything that decides what a run computes, as `config.json` holds it and a resumed run reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from magrounding.agents.building import build_policy, make_policy
from magrounding.agents.policy import CONTRAST, Policy
from magrounding.agents.remapping import reads_any_words
from magrounding.brief import brief
from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.experiment.presets import IMITATE, Phase, Preset, Promotion, find_preset
from magrounding.plain import make_plain
from magrounding.play.evaluate import OTHER_GAME, REASSIGNED
from magrounding.play.loading import CONFIG_FILE
from magrounding.registry import ENVS, EnvEntry, agent_entry, algorithm_entry, env_entry, is_simulator
from magrounding.spec import SCORE, EnvSpec
from magrounding.storage import digest, read_json
from magrounding.training.algorithm import Teaching, parse_config


def check_seed(seed: int) -> None:
    """ConfigurationError for what is no seed."""
    if not 0 <= seed < 2**31:
        raise ConfigurationError(f"a seed is an integer in [0, 2**31), got {seed}")


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
        share_parameters: one network plays for all agents and learns from all of them; else each has its own.
            Algorithms whose learner sees the whole team (`AlgorithmConfig.joint`) always do.
        workers: processes that simulators are shared among; 0 plays them in this one. No result depends on it.
        demonstrations: path → SHA-256 of files that phases of imitation learn from; without any, an oracle teaches.
    """

    __repr__ = brief

    env: str
    agent: str
    agents: int
    preset: Preset
    stages: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    share_parameters: bool = False
    demonstrations: Mapping[str, str] = field(default_factory=dict)
    workers: int = 0
    _entry: EnvEntry = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        make_plain(self)
        entry = env_entry(self.env)
        object.__setattr__(self, "_entry", entry)
        own = agent_entry(self.agent).algorithm
        if self.agents < 1:
            raise ConfigurationError(f"the number of agents must be positive, got {self.agents}")
        if not entry.multi_agent and self.agents != 1:
            several = ", ".join(env.id for env in ENVS.values() if env.multi_agent)
            raise ConfigurationError(f"{self.env} is played by one agent, got {self.agents}; several play: {several}")
        for stage in self.stages:
            choose(f"stage of {self.env}", stage, entry.stages)
        for what, values in (("stage", self.stages), ("seed", self.seeds)):
            if not values:
                raise ConfigurationError(f"at least one {what} is needed")
            if len(set(values)) < len(values):
                raise ConfigurationError(f"each {what} can be named once, got {', '.join(map(str, values))}")
        for seed in self.seeds:
            check_seed(seed)
        for stage, phase in self.phases():
            within = self.preset.watched_sets if self.preset.evaluate_every else ()
            for name in (self.preset.selection_set, *within, *self.evaluation_sets(stage, phase)):
                choose(f"evaluation set of {self.env}", name, tuple(entry.evaluation.sets_of(stage)))
            algorithm = phase.learner.algorithm
            if (own or algorithm) != algorithm or (algorithm_entry(algorithm).own_agents and own != algorithm):
                raise ConfigurationError(
                    f"agent {self.agent!r} cannot learn by {algorithm}, as preset {self.preset.name!r} has it: choose "
                    "another agent or preset"
                )
            if phase.learner.joint:
                object.__setattr__(self, "share_parameters", True)

    @property
    def entry(self) -> EnvEntry:
        return self._entry

    def measure(self, stage: str) -> str:
        """What promotion, selection and reports go by in a stage: an entry of `Evaluation.summary`."""
        return "score" if self.describe(stage).outcome == SCORE else "win_rate"

    def windowed(self, stage: str) -> str:
        """What a run's log calls the measure's mean over the last training games (see `Promotion.window`)."""
        return f"window_{self.measure(stage)}"

    @property
    def imitates(self) -> bool:
        """Whether any phase learns from a teacher or from demonstrations."""
        return next(self.taught(), None) is not None

    @property
    def title(self) -> str:
        """Environment, agents and preset in a line."""
        team = f"{self.agents} × {self.agent}" if self.agents > 1 else self.agent
        shared = ", shared" if self.agents > 1 and self.share_parameters else ""
        return f"{self.env} · {team}{shared} · preset {self.preset.name}"

    @property
    def num_learners(self) -> int:
        """Networks that learn apart."""
        return 1 if self.share_parameters else self.agents

    @property
    def max_envs(self) -> int:
        """Games of the largest batch."""
        return max(phase.num_envs for _, phase in self.phases())

    @property
    def simulated(self) -> bool:
        """Whether the games are a simulator's, which plays one at a time."""
        return is_simulator(self.entry.configure(**self.stage_options(self.stages[0])))

    @property
    def policy_options(self) -> Mapping[str, Any]:
        """Options of the networks: the preset's, unless they are other ones than its own, and not built on those."""
        own = self.preset.agent in (self.agent, agent_entry(self.agent).built_on)
        return self.preset.policy_options if own else {}

    def frozen(self, phase: Phase) -> tuple[str, ...]:
        """Beginnings of the names of what does not learn in a phase; of another agent than the preset's all learns."""
        return phase.frozen if self.agent == self.preset.agent else ()

    @property
    def env_options(self) -> dict[str, Any]:
        """Options of the environment, all but its stage: the preset's, and what the networks need."""
        team = {"agents": self.agents} if self.entry.multi_agent else {}
        return {**self.preset.env_options, **agent_entry(self.agent).env_options, **team}

    def stage_options(self, stage: str, evaluation_set: str | None = None) -> dict[str, Any]:
        """Options of the environment in a stage, as trained on, or as an evaluation set has it."""
        changed = {} if evaluation_set is None else self.entry.evaluation.sets_of(stage)[evaluation_set]
        return {**self.env_options, **self.entry.with_stage(stage), **changed}

    def stage_name(self, stage: str) -> str:
        """What people are shown as the stage: the environment's id where it has no stages."""
        return stage or self.env

    def phase_options(self, stage: str, phase: Phase) -> dict[str, Any]:
        """Options of the environment in the games that a phase of a stage learns from."""
        return {**self.stage_options(stage), **phase.games}

    def describe(self, stage: str, evaluation_set: str | None = None, **games: Any) -> EnvSpec:
        """The environment of a stage, with other options where `games` has any; nothing is started for it."""
        return self.entry.describe(**{**self.stage_options(stage, evaluation_set), **games})

    def evaluation_sets(self, stage: str, phase: Phase) -> tuple[str, ...]:
        """The sets to report on after a phase."""
        if phase is not self.preset.of_stage(stage)[-1]:
            return self.preset.watched_sets
        sets = self.preset.final_sets if stage == self.stages[-1] else self.preset.stage_sets
        return tuple(self.entry.evaluation.sets_of(stage)) if sets is None else sets

    def make_network(self) -> Policy:
        """An untrained network of these settings; ConfigurationError where its options do not make one."""
        return make_policy(self.agent, self.describe(self.stages[0]), **self.policy_options)

    def with_network(self, options: Mapping[str, Any]) -> RunSettings:
        """These settings with options of the network changed, which makes it the preset's own."""
        preset = replace(self.preset, agent=self.agent, policy_options={**self.policy_options, **options})
        if self.agent != self.preset.agent:  # what another network freezes says nothing of this one
            phases = {
                stage: tuple(replace(each, frozen=()) for each in phases) for stage, phases in preset.phases.items()
            }
            preset = replace(preset, phases=phases)
        return replace(self, preset=preset)

    @property
    def wrong_manuals(self) -> tuple[str, ...]:
        """Kinds of wrong rules that evaluations give agents, to see whether they read; OTHER_GAME takes two games."""
        plan, games = self.entry.evaluation, self.preset.report_games
        reassigned = (REASSIGNED,) if "manual" in self.entry.options else ()
        other = plan.rules_text and min(games, plan.max_envs or games) > 1
        return (*reassigned, OTHER_GAME) if other else reassigned

    @property
    def origin(self) -> dict[str, Any]:
        """What `load_checkpoint` compares a file with; for networks that read any words, not with which."""
        spec = self.describe(self.stages[0])
        network = build_policy(self.agent, spec, self.policy_options, seed=0)
        known = None if reads_any_words(network) else spec.vocabulary_hash
        return {"env": self.env, "vocabulary_hash": known, "num_agents": self.agents}

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides what a run computes: two runs with the same one differ in words at most."""
        phases = {stage: self.preset.of_stage(stage) for stage in self.stages}
        preset = replace(self.preset, about="", budget=1.0, phases=phases)
        return digest(replace(self, workers=0, preset=preset).to_dict())

    def phases(self) -> Iterator[tuple[str, Phase]]:
        """(stage, phase) of the whole run, in order."""
        for stage in self.stages:
            for phase in self.preset.of_stage(stage):
                yield stage, phase

    def taught(self) -> Iterator[tuple[str, Phase, Teaching]]:
        """(stage, phase, how it is taught) of the phases that learn from an expert or from demonstrations, in order."""
        for stage, phase in self.phases():
            if (teaching := phase.learner.teaching) is not None:
                yield stage, phase, teaching

    def learnt_by(self, stage: str, phase: str) -> str:
        """How the weights at the end of a phase came about, in words that a report can print."""
        walked = [(name, each.name) for name, each in self.phases()]
        before = [name for _, name in walked[: walked.index((stage, phase))]]
        if phase == IMITATE:
            return "imitation"
        return "reinforcement after imitation" if IMITATE in before else "reinforcement alone"

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
            "share_parameters": self.share_parameters,
            "demonstrations": dict(self.demonstrations),
            "workers": self.workers,
            "preset": _preset_to_dict(self.preset),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RunSettings:
        """The inverse of `to_dict`; CheckpointError where the content is damaged."""
        try:
            preset = dict(content["preset"])
            preset["phases"] = {stage: tuple(map(_parse_phase, phases)) for stage, phases in preset["phases"].items()}
            # JSON has lists only; options are compared, and tuples are what they were.
            lists = preset["policy_options"].items()
            preset["policy_options"] = {name: tuple(v) if isinstance(v, list) else v for name, v in lists}
            for name in ("watched_sets", "stage_sets", "final_sets"):
                preset[name] = None if preset[name] is None else tuple(preset[name])
            return cls(
                env=content["env"],
                agent=content["agent"],
                agents=content["agents"],
                preset=Preset(**preset),
                stages=tuple(content["stages"]),
                seeds=tuple(content["seeds"]),
                share_parameters=content["share_parameters"],
                demonstrations=dict(content["demonstrations"]),
                workers=content.get("workers", 0),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"the run's config.json is damaged, or of another version: {error}") from None


def _preset_to_dict(preset: Preset) -> dict[str, Any]:
    content = asdict(replace(preset, phases={}))
    content["phases"] = {
        stage: [{**asdict(replace(phase, learner=None)), "learner": phase.learner.to_dict()} for phase in phases]  # type: ignore[arg-type]
        for stage, phases in preset.phases.items()
    }
    return content


def _parse_phase(content: Mapping[str, Any]) -> Phase:
    until = Promotion(**content["until"])
    games, frozen = dict(content.get("games", {})), tuple(content.get("frozen", ()))  # runs of before have neither
    return Phase(parse_config(content["learner"]), until, content["num_envs"], games, frozen)


def make_settings(
    env: str,
    agent: str | None = None,
    agents: int | None = None,
    preset: str = "demo",
    stages: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] = (0,),
) -> RunSettings:
    """Settings from what a command line names; the preset's agent, the environment's team and curriculum by default.

    The contrastive loss of a preset is left out for networks that have none.
    """
    entry, chosen = env_entry(env), find_preset(preset, env)
    team: int = entry.options["agents"] if entry.multi_agent else 1
    team = team if agents is None else agents
    own = agent in (None, chosen.agent)
    settings = RunSettings(
        env,
        agent or chosen.agent,
        team,
        chosen,
        entry.curriculum if stages is None else stages,
        seeds,
        share_parameters=own and chosen.share_from is not None and team >= chosen.share_from,
    )
    contrasted = any(phase.learner.weights.get(CONTRAST) for _, phase in settings.phases())
    if own or not contrasted or settings.make_network().contrasts:
        return settings
    without = chosen.with_learners(lambda learner: replace(learner, weights={**learner.weights, CONTRAST: 0.0}))
    return replace(settings, preset=without)


def read_settings(folder: Path) -> RunSettings:
    """The settings of a run folder; CheckpointError where it is none."""
    if not folder.is_dir():
        raise CheckpointError(f"there is no run in {folder}: the folder does not exist")
    return RunSettings.from_dict(read_json(folder / CONFIG_FILE))
