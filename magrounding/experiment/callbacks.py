"""Callback: something beside training, which is told of a run's moments; and the small ones of every run."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from magrounding.envs.vector import WorldVectorEnv
from magrounding.experiment.config import RunConfig
from magrounding.experiment.phase import Phase
from magrounding.experiment.plan import Plan, Segment
from magrounding.experiment.progress import Display
from magrounding.experiment.segmenting import learn_segments_of, segmenters_of
from magrounding.experiment.stage import SEGMENTS, StageSession, derive_seed
from magrounding.play.run_folder import RunFolder, SeedFolder


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


@dataclass
class RunState:
    """One seed of a run, as callbacks see it.

    Attributes:
        plan: of the run.
        run_folder: its files.
        seed: which of its seeds.
        display: what the person sees.
        at: how far it is: environment steps, updates, and the best weights so far.
        session: the phase at work: `learners`, `players` (one an agent, each with its `policy`) and `vec`, the games.
            It is there from `on_phase` on.
    """

    plan: Plan
    run_folder: RunFolder
    seed: int
    display: Display = field(default_factory=Display)
    at: Position = field(default_factory=Position)
    session: StageSession = field(init=False)

    @property
    def settings(self) -> RunConfig:
        """Those of the run."""
        return self.plan.config

    @property
    def folder(self) -> SeedFolder:
        """The files of the seed."""
        return self.run_folder.seed(self.seed, len(self.settings.seeds))

    @property
    def segment_index(self) -> int:
        """Which of the plan's segments is at work."""
        before = self.settings.stages[: self.at.stage]
        return sum(len(self.plan.of_stage(stage)) for stage in before) + self.at.phase

    @property
    def segment(self) -> Segment:
        return self.plan.segments[self.segment_index]

    @property
    def stage(self) -> str:
        """Name of the stage at work."""
        return self.segment.stage.name

    @property
    def phase(self) -> Phase:
        """What is trained now, and until when."""
        return self.segment.phase

    def end_phase(self) -> None:
        """End the phase before its next rollout, as if its steps were spent; checkpoints keep that."""
        self.at.ended = True


class Callback:
    """Base of callbacks: each method is told of a moment in the run of a seed, and does nothing by itself.

    `run_curriculum(..., callbacks=(...))` takes them. What one raises ends the run. What they do is not part of the
    run's settings: hand the same ones to a run that is resumed.
    """

    def on_start(self, run: RunState) -> None:
        """A seed begins or goes on; `run.at` says where, and there is no session yet."""

    def on_phase(self, run: RunState) -> None:
        """A phase begins or goes on: the session's networks have their weights, and its games are about to begin."""

    def on_update(self, run: RunState, losses: list[dict[str, float]]) -> None:
        """A rollout was played and learnt from; `losses` are by name, one dict for each learner."""

    def on_line(self, run: RunState, line: Mapping[str, Any]) -> None:
        """A line was written to `metrics.jsonl`; a seed that goes on shows all lines of its checkpoint first.

        Each has "kind" ("train", "evaluation", "phase", …), "stage", "phase", "steps" and "total_steps".
        """

    def on_evaluation(self, run: RunState, line: Mapping[str, Any]) -> None:
        """An evaluation set was played; the line has "set", "when", "play", "manual" and, e.g., "win_rate"."""

    def on_checkpoint(self, run: RunState) -> None:
        """A checkpoint holds everything so far: it was written just now, or the seed goes on from it."""

    def on_end(self, run: RunState, error: BaseException | None) -> None:
        """The seed ends: it is finished, or stops by an error, of which Ctrl-C is one (KeyboardInterrupt)."""


class SegmentLearning(Callback):
    """Networks that find statements in running text learn it before the first phase of each stage."""

    def on_phase(self, run: RunState) -> None:
        if run.at.phase == run.at.updates == 0:
            prepare_segmenters(run.session)


def prepare_segmenters(session: StageSession) -> None:
    """Let what finds statements in a stage's running text learn it, the same in all networks."""
    since, networks = time.perf_counter(), [each.module for each in session.learners]
    segmenters = segmenters_of([*networks, *(player.policy for player in session.players)])
    if segmenters:
        stage = session.segment.stage
        seed = derive_seed(session.seed, SEGMENTS, stage.index)
        learnt = learn_segments_of(type(segmenters[0]), stage, seed).state_dict()
        for each in segmenters:
            each.load_state_dict(learnt)
        session.clock.add("teaching", since)


class Ramps(Callback):
    """Options of the games change within a phase, as `Phase.ramps` says."""

    def on_phase(self, run: RunState) -> None:
        if run.phase.ramps:
            cast(WorldVectorEnv, run.session.vec).adjust(**run.phase.ramped(run.at.steps))

    def on_update(self, run: RunState, losses: list[dict[str, float]]) -> None:
        self.on_phase(run)
