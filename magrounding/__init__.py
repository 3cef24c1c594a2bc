"""magrounding: language-grounded multi-agent reinforcement learning. Importing it never imports torch."""

from __future__ import annotations

import sys
from os import PathLike
from typing import TYPE_CHECKING

from magrounding.builtin import register_builtin
from magrounding.envs.make import make, make_vec
from magrounding.errors import MagroundingError
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import (
    AGENTS,
    ALGORITHMS,
    ENVS,
    PRESETS,
    TRACKERS,
    AgentEntry,
    AlgorithmEntry,
    EnvEntry,
    PresetEntry,
    TrackerEntry,
    register_agent,
    register_algorithm,
    register_env,
    register_preset,
    register_tracker,
)
from magrounding.renamed import Renamed
from magrounding.simulators.vectorize import vectorize
from magrounding.version import __version__

if TYPE_CHECKING:
    import torch

    from magrounding.experiment.results import RunResults
    from magrounding.teams.team import Team

__all__ = [
    "AGENTS",
    "ALGORITHMS",
    "ENVS",
    "PRESETS",
    "TRACKERS",
    "AgentEntry",
    "AlgorithmEntry",
    "EnvEntry",
    "EvaluationPlan",
    "MagroundingError",
    "PresetEntry",
    "TrackerEntry",
    "__version__",
    "by_split",
    "load_run",
    "load_team",
    "make",
    "make_vec",
    "register_agent",
    "register_algorithm",
    "register_env",
    "register_preset",
    "register_tracker",
    "vectorize",
]

register_builtin()
sys.meta_path.append(Renamed())


def load_run(source: str | PathLike[str]) -> RunResults:
    """Read what a training run measured, by its folder, as plain data: `rows`, `config`, `settings`.

    Raises:
        CheckpointError: no run there, one that has measured nothing yet, or a damaged one.
    """
    from magrounding.experiment.results import read_results
    from magrounding.pretrained import find_run

    return read_results(find_run(source))


def load_team(
    source: str | PathLike[str], seed: int | None = None, stage: str | None = None, device: str | torch.device = "cpu"
) -> Team:
    """Load trained agents, ready for a single env or a vector env (see `teams.loading.load_team`).

    Args:
        source: a run folder, "pretrained:<name>", or "hub:<owner>/<name>" of a model hub (extra `hub`).
        seed: which of the run's seeds; the first by default.
        stage: stage after which the weights were saved; the last finished one by default.
        device: device of the networks.
    """
    from magrounding.teams.loading import load_team as load

    return load(source, seed, stage, device)
