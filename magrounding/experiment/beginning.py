"""The beginning of a run: what cannot work is refused before anything is written or learnt."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any

from magrounding.agents.building import freeze, make_policy
from magrounding.agents.policy import CONTRAST, Policy
from magrounding.agents.weights import fit_weights, versions
from magrounding.capabilities import find_costs_to_go
from magrounding.errors import CheckpointError, ConfigurationError, check_choice
from magrounding.experiment.config import RunConfig, parse_config, read_config
from magrounding.experiment.plan import Plan, Segment
from magrounding.experiment.results import TEXT
from magrounding.pretrained import find_run
from magrounding.registry import algorithm_entry, is_simulator
from magrounding.run_folder import RunFolder
from magrounding.schema import dump
from magrounding.spec import EnvSpec
from magrounding.teams.actor import check_oracle, has_expert, make_expert
from magrounding.teams.loading import load_team
from magrounding.teams.team import Team
from magrounding.training.algorithm import Teaching
from magrounding.training.demonstrations import find_demonstrations
from magrounding.training.recording import check_texts

PARTS = "parts"
"""Entry of `config.json`: into how many parts minibatches are divided, which decides the last bits of sums."""


def choose_seeds(seeds: Collection[int], settings: RunConfig, resume: bool) -> tuple[int, ...]:
    """Some of a run's seeds; ConfigurationError for others, and before the run has begun."""
    for seed in seeds:
        check_choice("seed of the run", str(seed), map(str, settings.seeds))
    if seeds and not resume:
        raise ConfigurationError("some of the seeds are trained in a run that has begun: prepare it first")
    return tuple(seeds)


def begin(settings: RunConfig, run: RunFolder, about: Mapping[str, Any]) -> None:
    """Write `config.json`, with facts about the run; CheckpointError where one stands there."""
    if run.holds_run:
        raise CheckpointError(f"{run} exists already: add --resume to go on with it, or name another with --out")
    text = settings.resolve().games.spec.source
    run.write_config({**settings.as_dict(), "versions": versions(), **about, **({TEXT: text} if text else {})})


def go_on(settings: RunConfig, run: RunFolder) -> None:
    """Raise CheckpointError where a run began with other settings, or with other sentences than its files hold now."""
    config = run.config()
    before, found, now = parse_config(config), config.get(TEXT), settings.resolve().games.spec.source
    if found is not None and found != now:
        raise CheckpointError(f"the run in {run} read {found}, which is {now} now: restore the files, or train again")
    if before.digest != settings.digest:
        raise CheckpointError(f"the run in {run} has other settings: resume it with its own (read_config)")
    if before.unlearnt != settings.unlearnt:
        run.write_config({**config, "unlearnt": settings.unlearnt})


def check_run(config: RunConfig) -> dict[str, str]:
    """Refuse what cannot work in any stage of a run, before it writes or measures anything.

    Returns:
        Path → who played, of every file of demonstrations in use.

    Raises:
        MagroundingError: networks, learners, experts, games or files of demonstrations that cannot be, or are missing.
    """
    plan, chosen = config.resolve(), config.evaluation.selection_set
    _check_learning(plan)
    if config.initial:
        load_initial(plan, [config.make_network()])
    if config.against:
        load_partners(plan)
    demonstrators = _check_teaching(plan)
    played = [each.games for each in plan.segments]
    played += [each.stage.sets[name] for each in plan.segments for name in (chosen, *each.reported)]
    known: list[Mapping[str, Any]] = []
    for games in played:  # one of each kind is made, as that alone tells what a simulator lacks
        if games.options not in known and is_simulator(games.config):
            known.append(games.options)
            games.config.make_env(None).close()
    return demonstrators


def _check_learning(plan: Plan) -> None:
    """Make the networks and learners of all phases once, and forget them; worlds that are alike need one network."""
    networks: dict[tuple[EnvSpec, tuple[str, ...]], Policy] = {}
    network: Policy | None = None
    for segment in plan.segments:
        spec, frozen, learner = segment.games.spec, segment.phase.frozen, segment.phase.learner
        if (spec, frozen) not in networks:
            networks[spec, frozen] = make_policy(plan.config.agent, spec, **plan.config.network)
            freeze(networks[spec, frozen], frozen)
        before, network = network, networks[spec, frozen]
        if before is not None and before is not network:
            fit_weights(network, before.state_dict(), f"what is learnt before {segment.stage.label}")
        if learner.weights.get(CONTRAST) and not network.contrasts:
            raise ConfigurationError(
                f"agent {plan.config.agent!r} as it is configured has no contrastive loss, by which "
                f"{segment.stage.label} is to be learnt: set its weight to 0 (learner.weights.contrast=0), or other "
                "options of the network"
            )
        learner.require()
        try:
            learner.make_learner(network, spec, segment.phase.num_envs, seed=0)
        except ValueError as error:  # also an optimiser's, of a rate that cannot be
            where = f"{learner.algorithm} cannot learn {segment.stage.label}"
            raise ConfigurationError(f"{where} with its options: {error}") from error


def check_costs_to_go(config: RunConfig) -> None:
    """Raise ConfigurationError where phases learn from costs of moves, and no expert of the run knows them.

    For options that a person chooses: presets have it in every stage, and the experts of some do not know costs.
    """
    plan = config.resolve()
    asking = [(segment, teaching) for segment, teaching in plan.taught() if teaching.costs_to_go]
    if asking and not any(_judges(plan, *each) for each in asking):
        raise ConfigurationError(
            "cost_to_go takes an expert that says what each move costs, and none teaches in any stage of this run: "
            "leave it out"
        )


def _judges(plan: Plan, segment: Segment, teaching: Teaching) -> bool:
    """Return whether the expert of a phase knows costs of moves; demonstrations do not keep them."""
    if plan.config.demonstrations or teaching.demonstrations:
        return False
    with closing(segment.games.make_vec(1)) as vec:
        return find_costs_to_go(make_expert(vec, teaching.oracle)) is not None


def _check_teaching(plan: Plan) -> dict[str, str]:
    """Refuse phases without an expert; return path → who played, of every file of demonstrations in use."""
    files, shared = plan.config.demonstrations, plan.config.share_parameters and plan.config.agents > 1
    demonstrators = {}
    for segment, teaching in plan.taught():
        until = segment.phase.until
        check_oracle(plan.config.env, teaching.oracle)
        if teaching.demonstrations and not files:
            check_texts(segment.games.spec)
        if shared and teaching.carry_memory and (files or teaching.demonstrations):
            raise ConfigurationError("carry_memory=true takes a network for each agent: add share_parameters=false")
        if not files and not has_expert(plan.config.env, segment.games.spec):
            where = f" in stage {segment.stage.name!r}" if segment.stage.name else ""
            raise ConfigurationError(
                f"{plan.config.env} has no expert that can teach{where}: learn from demonstrations=FILE, or without "
                "imitation"
            )
        if files and until.win_rate is not None and (until.rule == "all" or until.steps is until.reading is None):
            raise ConfigurationError(
                f"the phase of imitation of {segment.stage.label} waits for wins, but with demonstrations no game is "
                "played: let it end after steps"
            )
        if files:
            path, demonstrations = find_demonstrations(files, segment.games)
            demonstrators[str(path)] = demonstrations.header.played_by
    if files and not demonstrators:
        raise ConfigurationError(
            f"preset {plan.config.preset!r} has no phase that learns from demonstrations: take another, or leave them"
        )
    return demonstrators


def load_initial(plan: Plan, policies: Sequence[Policy]) -> None:
    """Load the weights of the team that `RunConfig.initial` names into the policies of its first agents.

    A network that stands on another (`Policy.grounding_module`) begins with a team of that one, too.

    Raises:
        CheckpointError: no trained team there, or one that a team of this run could not go on from.
        ConfigurationError: other words or actions than the run's, or an algorithm whose state is more than a policy.
    """
    settings = plan.config
    source, algorithm = settings.initial, plan.segments[0].phase.learner.algorithm
    if algorithm_entry(algorithm).own_agents:
        raise ConfigurationError(f"{algorithm} begins with weights of its own: leave out initial")
    team = load_team(source)
    below = policies[0].grounding_module is type(team.policies[0])
    same = ("share_parameters",) * (not settings.against) + ("agent",) * (not below)
    _check_team(plan, source, team, same)
    for policy, before in zip(policies, team.policies, strict=False):
        policy.begin_with(before, source)


def load_partners(plan: Plan) -> list[Policy]:
    """Return the policies of all agents but the first, of the team that `RunConfig.against` names.

    Raises:
        CheckpointError: no trained team there, or one of other networks.
        ConfigurationError: other words or actions than the run's, or a network that plays for all agents.
    """
    settings = plan.config
    if settings.share_parameters or settings.agents == 1:
        raise ConfigurationError(
            "against=TEAM trains one of several agents: name 2 or more, and share_parameters=false"
        )
    team = load_team(settings.against)
    _check_team(plan, settings.against, team, ("agent",))
    partners = [settings.make_network() for _ in team.policies[1:]]
    for policy, before in zip(partners, team.policies[1:], strict=True):
        fit_weights(policy, before.state_dict(), settings.against)
        policy.requires_grad_(False).eval()
    return partners


def _check_team(plan: Plan, source: str, team: Team, same: Sequence[str]) -> None:
    """Raise the errors of a team that cannot play in a run, or has something else than it that is to be the same."""
    found = read_config(find_run(source))
    for name in ("env", "agents", *same):
        has, asked = getattr(found, name), getattr(plan.config, name)
        if has != asked:
            raise CheckpointError(f"the team of {source} has {name} {has}, this run {asked}: begin with another one")
    has, asked = (dump(getattr(each, "config", {})) for each in (team.policies[0], plan.config.make_network()))
    if others := [f"network.{k}={json.dumps(v)}" for k, v in has.items() if asked.get(k, v) != v]:
        raise CheckpointError(f"the team of {source} has other networks than this run: add {' '.join(others)}")
    team.origin.check_games(plan.segments[0].games.spec, plan.config.env)
