"""Checks of a run before it begins: what cannot work in any stage comes to light before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from magrounding.agents.building import freeze, make_policy
from magrounding.agents.policy import CONTRAST, Policy
from magrounding.agents.weights import fit_weights
from magrounding.capabilities import find_costs_to_go
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import RunConfig
from magrounding.experiment.initial import initial_policies
from magrounding.experiment.plan import Plan, Segment
from magrounding.play.actor import check_oracle, has_expert, make_expert
from magrounding.play.demonstrations import find_demonstrations
from magrounding.play.recording import check_texts
from magrounding.registry import is_simulator
from magrounding.spec import EnvSpec
from magrounding.training.algorithm import Teaching


def check_run(config: RunConfig) -> dict[str, str]:
    """Refuse what cannot work in any stage of a run, before it writes or measures anything.

    Returns:
        Path → who played, of every file of demonstrations in use.

    Raises:
        MagroundingError: networks, learners, experts, games or files of demonstrations that cannot be, or are missing.
    """
    plan = config.resolve()
    _check_learning(plan)
    if config.initial:
        initial_policies(plan)
    demonstrators = _check_teaching(plan)
    _check_games(plan)
    return demonstrators


def _check_games(plan: Plan) -> None:
    """Make one game of each kind that a run of a simulator is to play, as that alone tells what it lacks."""
    chosen = plan.config.evaluation.selection_set
    played = [each.games for each in plan.segments]
    played += [each.stage.sets[name] for each in plan.segments for name in (chosen, *each.reported)]
    known: list[Mapping[str, Any]] = []
    for games in played:
        if games.options not in known and is_simulator(games.config):
            known.append(games.options)
            games.config.make_env(None).close()


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
    for segment, teaching in plan.taught():
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
    return _check_demonstrations(plan) if files else {}


def _check_demonstrations(plan: Plan) -> dict[str, str]:
    """Return path → who played, of every file of demonstrations in use; see `_check_teaching`."""
    demonstrators = {}
    for segment, _ in plan.taught():
        until = segment.phase.until
        if until.win_rate is not None and (until.rule == "all" or until.steps is until.reading is None):
            raise ConfigurationError(
                f"the phase of imitation of {segment.stage.label} waits for wins, but with demonstrations no game is "
                "played: let it end after steps"
            )
        path, demonstrations = find_demonstrations(plan.config.demonstrations, segment.games)
        demonstrators[str(path)] = demonstrations.header.played_by
    if not demonstrators:
        raise ConfigurationError(
            f"preset {plan.config.preset!r} has no phase that learns from demonstrations: take another, or leave them"
        )
    return demonstrators
