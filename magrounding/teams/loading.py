"""load_team: the trained agents of a run folder, or those that come with the package."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any

import torch
from msgspec import Meta, Struct, ValidationError, convert

from magrounding.agents.building import build_policy
from magrounding.agents.remapping import reads_any_words
from magrounding.agents.weights import fit_weights, load_weights
from magrounding.errors import CheckpointError, ConfigurationError, check_choice
from magrounding.registry import env_entry
from magrounding.run_folder import RunFolder
from magrounding.teams.team import Team


class _Config(Struct):
    """What a team is built by, of the settings of its run."""

    env: str
    agent: str
    agents: int
    env_options: dict[str, Any]
    seeds: Annotated[list[int], Meta(min_length=1)]
    stages: Annotated[list[str], Meta(min_length=1)]
    network: dict[str, Any]


def load_team(
    source: str | PathLike[str], seed: int | None = None, stage: str | None = None, device: str | torch.device = "cpu"
) -> Team:
    """Load trained agents.

    Args:
        source: the run folder, "pretrained:<name>" or "hub:<owner>/<name>" (see `magrounding.pretrained`).
        seed: which of the run's seeds; the first by default.
        stage: whose weights; those of the last finished stage by default. "<stage>/imitate": as they were before the
            stage went on without a teacher.
        device: where the networks go.

    Raises:
        CheckpointError: no run there, nothing trained yet, or files that are damaged or foreign.
        ConfigurationError: a seed or stage that the run does not have, an unknown pretrained team, or a device that
            is not there.
    """
    device = _find_device(device)
    run = RunFolder.find(source)
    try:
        config = convert(run.config(), _Config)
    except ValidationError as error:
        raise CheckpointError(f"{run.config_file} is damaged: {error}") from None
    env, seeds = env_entry(config.env), list(map(str, config.seeds))
    folder = run.seed(check_choice("seed of this run", seeds[0] if seed is None else str(seed), seeds), len(seeds))
    trained, halfway = [name for name in config.stages if folder.is_trained(name)], folder.trained_phases()
    if not trained and not halfway:
        raise CheckpointError(
            f"{folder.path} holds no trained stage yet: let its run go on with --resume, or choose another seed"
        )
    stage = check_choice(f"trained stage of {folder.path}", stage or (trained or halfway)[-1], [*trained, *halfway])
    spec = env.describe(**{**config.env_options, **env.with_stage(stage.split("/")[0])})
    first = build_policy(config.agent, spec, config.network, seed=0)
    known = None if reads_any_words(first) else spec.vocabulary_hash
    weights, _ = load_weights(folder.weights(stage), env=env.id, vocabulary_hash=known, num_agents=config.agents)
    policies = [first, *(build_policy(config.agent, spec, config.network, seed=0) for _ in weights[1:])]
    for policy, state in zip(policies, weights, strict=True):
        fit_weights(policy, state, folder.weights(stage))
        policy.to(device).eval()
    return Team(policies, spec, env=env.id, options=config.env_options)


def _find_device(device: str | torch.device) -> torch.device:
    """The device of that name; ConfigurationError where networks cannot go there."""
    try:
        found = torch.device(device)
        if not torch.zeros(1, device=found).is_meta:
            return found
        reason = "nothing is computed there"
    except (TypeError, RuntimeError, AssertionError, NotImplementedError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
    raise ConfigurationError(
        f'networks cannot go to device {device!r} ({reason}): choose "cpu", or "cuda" where torch sees a GPU'
    )
