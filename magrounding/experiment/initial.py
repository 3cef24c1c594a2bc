"""Weights of another run, with which a run begins."""

from __future__ import annotations

from magrounding.agents.policy import Policy
from magrounding.agents.weights import fit_weights
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.config import read_config
from magrounding.experiment.plan import Plan
from magrounding.play.loading import load_team
from magrounding.pretrained import find_run
from magrounding.registry import algorithm_entry


def initial_policies(plan: Plan) -> list[Policy]:
    """Return a policy for each agent, with the weights of the team that `RunConfig.initial` names.

    Raises:
        CheckpointError: no trained team there, or one that a team of this run could not go on from.
        ConfigurationError: other words or actions than the run's, or an algorithm whose state is more than a policy.
    """
    settings, first = plan.config, plan.segments[0]
    source, algorithm = settings.initial, first.phase.learner.algorithm
    if algorithm_entry(algorithm).own_agents:
        raise ConfigurationError(f"{algorithm} begins with weights of its own: leave out initial")
    team, found = load_team(source), read_config(find_run(source))
    for name in ("env", "agent", "agents", "share_parameters"):
        has, asked = getattr(found, name), getattr(settings, name)
        if has != asked:
            raise CheckpointError(f"the team of {source} has {name} {has}, this run {asked}: begin with another one")
    team.origin.check_games(first.games.spec, settings.env)
    for policy in team.policies:
        fit_weights(settings.make_network(), policy.state_dict(), source)
    return team.policies
