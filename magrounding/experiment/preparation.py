"""Callbacks of every run: what finds statements learns them before a stage, and games follow a phase's ramps."""

from __future__ import annotations

import time
from typing import cast

from magrounding.envs.vector import WorldVectorEnv
from magrounding.experiment.callbacks import Callback, RunState
from magrounding.experiment.segmenting import learn_segments_of, segmenters_of
from magrounding.experiment.stage import SEGMENTS, StageSession, derive_seed


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
