"""Weights of a team on disk: `agent_<i>.safetensors` and a `state.json` of metadata, never a pickle."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from magrounding.errors import CheckpointError, Diverged
from magrounding.storage import ARRAYS, read_json, require_bytes, write_atomic, write_json
from magrounding.version import __version__

STATE_FILE = "state.json"
Weights = dict[str, Tensor]


def weights_file(agent: int) -> str:
    """Return the file name of one agent."""
    return f"agent_{agent}.safetensors"


def versions() -> dict[str, str]:
    """Return the versions that a checkpoint records."""
    own = {"magrounding": __version__, "python": platform.python_version(), "torch": torch.__version__}
    return own | {name: version(name) for name in ("numpy", "numba")}


def save_weights(folder: Path, weights: Sequence[Mapping[str, Tensor]], record: Mapping[str, Any]) -> None:
    """Write a team's weights, one state dict for each agent, and last of all the record that makes them valid.

    To the `record` for `state.json` "agents", "versions" and "files" (name → SHA-256) are added. Diverged, and nothing
    is written, where a weight is not finite.
    """
    files = {}
    for i, state in enumerate(weights):
        check_finite(state, f"the weights of agent {i},")
    for i, state in enumerate(weights):
        data = save({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()})
        write_atomic(folder / weights_file(i), data)
        files[weights_file(i)] = hashlib.sha256(data).hexdigest()
    facts = {**record, "agents": len(weights), "versions": versions(), "files": files}
    write_json(folder / STATE_FILE, facts, sealed=True)


def load_weights(
    folder: Path, *, env: str, vocabulary_hash: str | None, num_agents: int
) -> tuple[list[Weights], dict[str, Any]]:
    """Read a team's weights and their record, of the expected origin; any vocabulary where None is given.

    Raises:
        CheckpointError: missing, truncated or altered files; weights of another env, vocabulary or number of agents.
    """
    record = read_json(folder / STATE_FILE)
    check_origin(record, folder, env=env, vocabulary_hash=vocabulary_hash, num_agents=num_agents)
    return [_load_file(folder / weights_file(i), record) for i in range(num_agents)], record


def check_origin(
    record: Mapping[str, Any], source: Path, *, env: str, vocabulary_hash: str | None, num_agents: int
) -> None:
    """Raise a CheckpointError for a checkpoint of another env, vocabulary or number of agents."""
    expected = {"env": env, "agents": num_agents}
    if vocabulary_hash is not None:  # words would have other ids
        expected["vocabulary"] = vocabulary_hash
    for name, own in expected.items():
        if record.get(name) != own:
            raise CheckpointError(f"{source} was trained with {name} {record.get(name)!r}, not with {own!r}")


def fit_weights(module: nn.Module, weights: Mapping[str, Tensor], source: Path | str) -> None:
    """Copy weights into a network; CheckpointError where names or shapes differ."""
    try:
        module.load_state_dict(dict(weights))
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"the weights in {source} belong to another network: {reason}") from None


def parse_tensors(data: bytes, source: Path) -> Weights:
    """Parse a safetensors file in memory; CheckpointError where it is truncated or altered."""
    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{source} is truncated or damaged ({error}); restore it, or train again") from None


def _load_file(path: Path, record: Mapping[str, Any]) -> Weights:
    data = require_bytes(path, ARRAYS, missing=CheckpointError(f"{path} is missing; restore it, or train again"))
    files = record.get("files")
    if not isinstance(files, dict) or hashlib.sha256(data).hexdigest() != files.get(path.name):
        raise CheckpointError(
            f"{path} is truncated, altered or of another moment than its {STATE_FILE}; resume the run, or restore it"
        )
    return parse_tensors(data, path)


def check_finite(tensors: Mapping[str, Tensor], what: str) -> None:
    """Raise Diverged where a number of some tensors is not finite: `what` they are is never kept so."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise Diverged(f"{what} {name} are not finite, so they were not saved")
