"""Settings of runs that take a second or two, the whole road from the first stage to the report."""

import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from magrounding.agents.weights import load_weights
from magrounding.experiment import curriculum, seed_run
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.config import RunConfig, read_config
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.phase import EvaluationConfig, Phase, Promotion
from magrounding.experiment.reports import run as report
from magrounding.progress import Display
from magrounding.registry import ENVS
from magrounding.run_folder import METRICS_FILE, RunFolder
from magrounding.schema import options_of
from magrounding.teams.scripted import RandomTeam
from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.imitation import ImitationConfig
from magrounding.training.impala import ImpalaConfig

NETWORK = {"hidden": 8, "top": 8}

LEARNER = ImpalaConfig(unroll=5, learning_rate=0.01, epsilon=1e-3, anneal_steps=600)
IMITATION = ImitationConfig(unroll=5, minibatches=2, learning_rate=0.01, warm_up=30, anneal_steps=300, teacher_steps=90)


def phases_of(promotions: int | Mapping[str, Promotion], *learners: AlgorithmConfig) -> dict[str, tuple[Phase, ...]]:
    """Stage → a phase with each of the learners (LEARNER by default), with the steps or the promotion of that stage."""
    if isinstance(promotions, int):
        promotions = {"*": Promotion(steps=promotions)}
    return {
        stage: tuple(Phase(learner, until, num_envs=6) for learner in learners or (LEARNER,))
        for stage, until in promotions.items()
    }


TINY = RunConfig(
    preset="tiny",
    about="Next to nothing.",
    agent="relread",
    phases=phases_of({"s1": Promotion(steps=240), "*": Promotion(steps=180)}),
    env_options={"max_cycles": 8},
    network=NETWORK,
    evaluation=EvaluationConfig(every=90, selection_games=6, report_games=8),
    log_every=2,
    save_every=0.0,
)


def tiny_settings(*, stages=("s1", "s3"), agents=2, **changes) -> RunConfig:
    """TINY in multi-agent RTFM, with changes of the run or of its evaluation."""
    evaluation = {name: changes.pop(name) for name in options_of(EvaluationConfig) if name in changes}
    evaluation = replace(TINY.evaluation, **evaluation)
    return replace(TINY, env="ma_rtfm", agents=agents, stages=stages, evaluation=evaluation, **changes)


def quiet() -> Display:
    return Display(Console(file=io.StringIO()))


def learn(
    settings: RunConfig, folder: Path, *, device: str = "cpu", display: Display | None = None, **how: Any
) -> RunFolder:
    """Train a run to its end, on the CPU and without a display unless others are named."""
    return curriculum.run_curriculum(settings, folder, device=device, display=display or quiet(), **how)


def resume(folder: Path, **how: Any) -> RunFolder:
    """Go on with a run by its own settings."""
    return learn(read_config(folder), folder, resume=True, **how)


def tiny_run(folder: Path, *stages: str, **changes: Any) -> Path:
    """A finished run of two seeds, a report against a random "oracle" included."""
    brief = {"phases": phases_of(60), "every": None, "final_sets": ("eval",)}
    changes = {"seeds": (0, 1), **brief, **changes}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(vec.num_agents, 5))
        patch.setattr(report, "plot_curves", lambda run: b"")  # figures have tests of their own
        learn(tiny_settings(stages=stages, **changes), folder)
    return folder


def weights_of(folder: Path, stage: str = "s3") -> torch.Tensor:
    """[agents, parameters] of a stage's folder."""
    vocabulary_hash = ENVS["ma_rtfm"].describe().vocabulary_hash
    weights, _ = load_weights(folder / stage, env="ma_rtfm", vocabulary_hash=vocabulary_hash, num_agents=2)
    return torch.stack([torch.cat([tensor.flatten() for _, tensor in sorted(state.items())]) for state in weights])


def timeless(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics without what depends on the clock."""
    clocks = ("seconds", "training_seconds", "phase_seconds", "spent", "steps_per_second")
    return [{k: v for k, v in line.items() if k not in clocks} for line in read_metrics(folder / METRICS_FILE)]


class Killed(BaseException):
    """Nothing catches it, as nothing catches a kill."""


def killed_run(settings: RunConfig, folder: Path, last: Callable[[dict[str, Any]], bool]) -> None:
    """A run that is killed right after the first checkpoint for whose position `last` is true."""
    save = seed_run.save_checkpoint

    def save_and_die(path: Path, record: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
        save(path, record, tensors)
        if last(record["position"]):
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seed_run, "save_checkpoint", save_and_die)
        with pytest.raises(Killed):
            learn(settings, folder)
