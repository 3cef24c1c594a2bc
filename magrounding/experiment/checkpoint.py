"""The state of a run in one file: weights, optimisers, random numbers, games, counters.

One file is replaced in one operation, so a run killed at any moment finds the state before or the state after, never a
mixture.
"""

from __future__ import annotations

import hashlib
import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from magrounding.agents.own_defaults import bfloat16
from magrounding.agents.policy import evaluating
from magrounding.agents.weights import check_finite, check_origin, fit_weights, parse_tensors, versions
from magrounding.errors import CheckpointError, Diverged
from magrounding.experiment.config import RunConfig
from magrounding.experiment.stage import StageSession
from magrounding.machine import machine_memory
from magrounding.run_folder import SeedFolder
from magrounding.storage import json_text, parse_json, require_bytes, write_atomic
from magrounding.teams.player import Player
from magrounding.training.clock import TRAINING
from magrounding.training.learner import Learner
from magrounding.training.prefixes import under
from magrounding.training.trajectory import Trajectory

FORMAT = 4
"""Version of the format; it grows whenever an old file could not be read as it was meant."""


@dataclass
class Position:
    """Position of one seed in its curriculum; JSON-able, part of every checkpoint."""

    stage: int = 0  # index among the run's stages
    phase: int = 0  # index among the stage's phases
    steps: int = 0  # environment steps in the phase
    updates: int = 0  # in the phase
    total_steps: int = 0  # in all phases
    evaluated_at: int = 0  # steps of the phase's last evaluation
    best: float = -math.inf  # win rate, or score, of the phase's best weights; −∞ before the first evaluation
    best_steps: int = 0  # steps of the phase at which those were
    reading: float | None = None  # wins with true manuals less those with reassigned ones, in the last evaluation
    began_at: float = 0.0  # seconds of training of the seed when the phase began
    seconds: float = 0.0  # wall time of the seed
    spent: dict[str, float] = field(default_factory=dict)  # seconds by what they were spent on
    metrics_size: int = 0  # bytes of metrics.jsonl that belong to this state
    ended: bool = False  # a callback has ended the phase
    finished: bool = False
    unlearnt: str = ""  # by the gate of the phase before, in a sentence

    def __post_init__(self) -> None:
        self.best = -math.inf if self.best is None else self.best  # JSON has no −∞

    @property
    def training_seconds(self) -> float:
        """Seconds of the seed spent on training: without evaluation, saving and compilation."""
        return sum(self.spent.get(what, 0.0) for what in TRAINING)


def position_of(folder: SeedFolder) -> Position:
    """How far a seed is; one that was published has weights and no checkpoint."""
    if folder.checkpoint.exists():
        return Position(**_parse_header(folder.checkpoint)[1]["position"])
    return Position(finished=folder.has_weights())


def is_finished(settings: RunConfig, folder: SeedFolder) -> bool:
    """Return whether the whole curriculum of a seed is learnt; CheckpointError where its state is damaged."""
    at = position_of(folder)
    return folder.checkpoint.exists() and at.finished and at.stage + 1 == len(settings.stages)


def save_checkpoint(path: Path, record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a run's state: JSON-able counters, the origin ("env", "agents", "vocabulary"), and all that is an array."""
    text = json_text({"format": FORMAT, "versions": versions(), **record})
    metadata = {"record": text, "digest": digest(text, tensors)}
    write_atomic(path, save({k: v.contiguous() for k, v in tensors.items()}, metadata=metadata))


def load_checkpoint(
    path: Path, *, env: str, vocabulary_hash: str | None, num_agents: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `save_checkpoint` wrote; the vocabulary may be any where None is given.

    Raises:
        CheckpointError: a file that is missing, truncated, altered, or of another env, vocabulary or number of agents.
    """
    missing = CheckpointError(f"{path} is missing: there is no state to resume")
    tensors = parse_tensors(require_bytes(path, machine_memory(), missing=missing), path)
    metadata, record = _parse_header(path)
    if record.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {record.get('format')}, this version reads {FORMAT}: train again, or use its version"
        )
    if metadata.get("digest") != digest(metadata["record"], tensors):
        raise CheckpointError(f"{path} is damaged: it does not hold what was written; restore it, or train again")
    check_origin(record, path, env=env, vocabulary_hash=vocabulary_hash, num_agents=num_agents)
    return record, tensors


def _parse_header(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """The metadata of a file and the record in it, its tensors unread; CheckpointError where there is none."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        return metadata, dict(parse_json(metadata["record"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        raise CheckpointError(f"{path} is no checkpoint of a run: it lacks its record") from None


def digest(record: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of a record and of all tensors, with their names, types and shapes: the format itself checks nothing."""
    total = hashlib.sha256(record.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


@torch.no_grad()
def check_answers(player: Player, trajectory: Trajectory) -> None:
    """Raise Diverged unless what a network says at the end of its trajectory is finite, squares of values too.

    Weights can be finite and of no use: one step at a rate of 10¹⁰ makes such. Nothing goes on from them at any rate.
    """
    policy, inputs = player.policy, trajectory.on(player.device).boundary()
    with (
        evaluating(policy),
        torch.random.fork_rng(devices=[]),
        bfloat16(player.device, player.bf16),
    ):
        output = policy(policy.encode_batch(inputs))
    answers = output.logits.float().softmax(-1).sum() + output.value.float().square().sum()
    if not answers.isfinite():
        raise Diverged("with the weights that were learnt, what the network answers is not finite")


def pack_session(session: StageSession) -> dict[str, Tensor]:
    """The state that decides how a phase goes on, by name; Diverged where nothing could go on from it."""
    if session.rollout is not None:
        for player, trajectory in zip(session.players, session.rollout.trajectories, strict=True):
            check_answers(player, trajectory)
    games = pack_arrays(session.source.snapshot(), "games/")
    beside = [pack_arrays(learner.snapshot(), f"beside_{i}/") for i, learner in enumerate(session.learners)]
    return {**pack_learners(session.learners), **pack_players(session.players), **games, **ChainMap(*beside)}


def unpack_session(tensors: Mapping[str, Tensor], session: StageSession, source: Path) -> dict[str, np.ndarray]:
    """Put back what `pack_session` took, but the games, which are returned for `StageSession.resume`."""
    unpack_learners(tensors, session.learners, source)
    for i, learner in enumerate(session.learners):
        learner.restore(unpack_arrays(tensors, f"beside_{i}/"))
    unpack_players(tensors, session.players)
    return unpack_arrays(tensors, "games/")


def pack_learners(learners: Sequence[Learner]) -> dict[str, Tensor]:
    """Weights and optimiser states, by name; Diverged where one is not finite."""
    tensors: dict[str, Tensor] = {}
    for i, learner in enumerate(learners):
        for name, tensor in learner.module.state_dict().items():
            tensors[f"learner_{i}/weights/{name}"] = tensor.detach().cpu().clone()
        for name, parameter in learner.module.named_parameters():
            for key, value in learner.optimizer.state.get(parameter, {}).items():
                tensors[f"learner_{i}/optimizer/{name}/{key}"] = torch.as_tensor(value).detach().cpu().clone()
    check_finite(tensors, "the weights or the optimiser's statistics")
    return tensors


def unpack_learners(
    tensors: Mapping[str, Tensor], learners: Sequence[Learner], source: Path, *, optimizer: bool = True
) -> None:
    """Put back what `pack_learners` took, or the weights alone; CheckpointError where the networks differ."""
    for i, learner in enumerate(learners):
        fit_weights(learner.module, under(f"learner_{i}/weights/", tensors), source)
        if optimizer:
            _restore_optimizer(learner, under(f"learner_{i}/optimizer/", tensors))


def pack_players(players: Sequence[Player]) -> dict[str, Tensor]:
    """Random generators, memories and what was done last, by name."""
    tensors: dict[str, Tensor] = {}
    for i, player in enumerate(players):
        tensors[f"player_{i}/last_action"] = torch.from_numpy(player.last_action.copy())
        if player.generator is not None:
            tensors[f"player_{i}/generator"] = player.generator.get_state()
        if player.memory is not None:
            tensors[f"player_{i}/memory"] = player.memory.detach().cpu().clone()
    return tensors


def unpack_players(tensors: Mapping[str, Tensor], players: Sequence[Player]) -> None:
    """Put back what `pack_players` took."""
    for i, player in enumerate(players):
        player.last_action = tensors[f"player_{i}/last_action"].numpy().copy()
        if player.generator is not None:
            player.generator.set_state(tensors[f"player_{i}/generator"])
        if f"player_{i}/memory" in tensors:
            player.memory = tensors[f"player_{i}/memory"].to(player.device)


def _restore_optimizer(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    """Set an optimiser's running statistics from tensors named <parameter>/<statistic>."""
    for name, parameter in learner.module.named_parameters():
        # Counters stay on the CPU, where the optimiser keeps them; statistics go where their parameter is.
        state = {
            key: tensor.clone() if tensor.dim() == 0 else tensor.to(parameter.device, copy=True)
            for key, tensor in under(f"{name}/", tensors).items()
        }
        if state:
            learner.optimizer.state[parameter] = state


def pack_arrays(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, Tensor]:
    """NumPy arrays as tensors under a prefix."""
    return {f"{prefix}{name}": torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def unpack_arrays(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, np.ndarray]:
    """The arrays that `pack_arrays` took, without the prefix."""
    return {name: tensor.numpy() for name, tensor in under(prefix, tensors).items()}
