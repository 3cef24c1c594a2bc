"""load_team: the trained agents of a run folder, or those that come with the package."""

from __future__ import annotations

from operator import index
from os import PathLike

import torch

from magrounding.agents.building import build_policy
from magrounding.agents.remapping import reads_any_words
from magrounding.agents.weights import fit_weights, load_weights
from magrounding.errors import CheckpointError, ConfigurationError, RegistrationError, check_choice
from magrounding.play.run_folder import RunFolder
from magrounding.play.team import Team
from magrounding.registry import env_entry


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
    config = run.config()
    try:
        seeds, stages = [str(index(k)) for k in config["seeds"]], list(config["stages"])
        if not seeds or not stages or not all(isinstance(name, str) for name in stages):
            raise TypeError("a seed or a stage")
        env, agent, num_agents = env_entry(config["env"]), config["agent"], int(config["agents"])
        env_options = dict(config["env_options"])
        network = dict(config["network"] if "network" in config else config["policy_options"])  # as it was called
    except RegistrationError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{run.config_file} is damaged: {error} is missing or of the wrong kind") from None
    folder = run.seed(check_choice("seed of this run", seeds[0] if seed is None else str(seed), seeds), len(seeds))
    trained, halfway = [name for name in stages if folder.is_trained(name)], folder.trained_phases()
    if not trained and not halfway:
        raise CheckpointError(f"{run} holds no trained stage yet; let its run go on with --resume")
    stage = check_choice("trained stage of this run", stage or (trained or halfway)[-1], [*trained, *halfway])
    spec = env.describe(**{**env_options, **env.with_stage(stage.split("/")[0])})
    first = build_policy(agent, spec, network, seed=0)
    known = None if reads_any_words(first) else spec.vocabulary_hash
    weights, _ = load_weights(folder.weights(stage), env=env.id, vocabulary_hash=known, num_agents=num_agents)
    if not run.about.exists() and any(each.dtype is torch.float16 for state in weights for each in state.values()):
        raise CheckpointError(
            f"{run} lacks {run.about.name}: a team of which only a part was published; publish it again"
        )
    policies = [first, *(build_policy(agent, spec, network, seed=0) for _ in weights[1:])]
    for policy, state in zip(policies, weights, strict=True):
        fit_weights(policy, state, folder.weights(stage))
        policy.to(device).eval()
    return Team(policies, spec, env=env.id, options=env_options)


def _find_device(device: str | torch.device) -> torch.device:
    """The device of that name; ConfigurationError where networks cannot go there."""
    try:
        if not isinstance(device, str | torch.device):
            raise TypeError("it is no name of a device")
        found = torch.device(device)
        if torch.zeros(1, device=found).is_meta:
            raise TypeError("nothing is computed there")
    except (TypeError, RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError(
            f'networks cannot go to device {device!r} ({reason}): choose "cpu", or "cuda" where torch sees a GPU'
        ) from None
    return found
