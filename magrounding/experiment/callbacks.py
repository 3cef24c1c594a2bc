"""Callback: something beside training, which is told of a run's moments; and the small ones of every run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast

from magrounding.envs.vector import WorldVectorEnv
from magrounding.experiment.checkpoint import Position
from magrounding.experiment.phase import Phase
from magrounding.experiment.plan import Plan, Segment
from magrounding.experiment.progress import Display
from magrounding.experiment.segmenting import learn_segments_of, segmenters_of
from magrounding.experiment.stage import SEGMENTS, StageSession, derive_seed
from magrounding.play.run_folder import RunFolder


class RunState:
    """One seed of a run, as callbacks see it.

    Attributes:
        plan, settings: of the run.
        run_folder, folder: files of the run, and of the seed.
        seed: which of the run's seeds.
        display: what the person sees.
        at: how far it is: environment steps, updates, and the best weights so far.
        segment, stage, phase: what is trained now, the name of its stage, and how it learns and until when.
        session: the phase at work: `learners`, `players` (one an agent, each with its `policy`) and `vec`, the games.
            It is there from `on_phase` on, as are the three before.
    """

    segment: Segment
    session: StageSession

    def __init__(
        self, plan: Plan, run_folder: RunFolder, seed: int, display: Display | None = None, at: Position | None = None
    ) -> None:
        self.plan, self.settings = plan, plan.config
        self.run_folder, self.folder = run_folder, run_folder.seed(seed, len(plan.config.seeds))
        self.seed, self.display, self.at = seed, display or Display(), at or Position()

    @property
    def stage(self) -> str:
        return self.segment.stage.name

    @property
    def phase(self) -> Phase:
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
