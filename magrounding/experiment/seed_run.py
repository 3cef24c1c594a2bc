"""SeedRun: the curriculum of one seed, from stage to stage and phase to phase, and what is saved and logged of it."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.weights import save_weights
from magrounding.errors import CheckpointError
from magrounding.experiment.beginning import load_initial
from magrounding.experiment.callbacks import Callback, Divergence, Preparation, Ramps, RunState
from magrounding.experiment.checkpoint import (
    Position,
    load_checkpoint,
    pack_learners,
    pack_session,
    save_checkpoint,
    unpack_learners,
    unpack_session,
)
from magrounding.experiment.compiling import Compilation
from magrounding.experiment.evaluate import Evaluations
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.metrics import MetricsLog
from magrounding.experiment.phase import NotLearnt
from magrounding.experiment.plan import Plan
from magrounding.experiment.stage import StageSession
from magrounding.progress import Display, duration
from magrounding.run_folder import RunFolder
from magrounding.teams.evaluate import REASSIGNED, TRUE_MANUAL
from magrounding.training.clock import Clock
from magrounding.training.prefixes import prefixed, under
from magrounding.training.rollout import FinishedEpisodes

_STEADY = 10
"""Updates of an algorithm from which its speed is known; the first ones compile."""


class SeedRun(RunState):
    """The curriculum of one seed; `run` trains what is left of it, and tells callbacks."""

    def __init__(
        self,
        plan: Plan,
        run_folder: RunFolder,
        seed: int,
        device: torch.device,
        display: Display,
        stop: StopRequest,
        callbacks: Sequence[Callback],
    ) -> None:
        super().__init__(plan, run_folder, seed, display)
        self.device, self._stop = device, stop
        self._callbacks = Divergence(), Preparation(), Compilation(), Ramps(), *callbacks
        self._window: deque[float] = deque()
        self._best: dict[str, Tensor] = {}  # weights and optimiser statistics of the phase's best evaluation
        self._carried: dict[str, Tensor] = {}  # those of the previous phase
        self._resumed: dict[str, Tensor] = {}  # the state within a phase that a checkpoint gave back
        self._games: list[FinishedEpisodes] = []  # since the last line of metrics
        self._losses: list[list[dict[str, float]]] = []
        self._last_save = self._last_tick = time.monotonic()
        self._rates: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=4 * _STEADY))

    def run(self) -> None:
        """Train all phases of all stages that are left.

        KeyboardInterrupt after a signal, the state saved; Diverged; NotLearnt at a gate that is or was missed.
        """
        self._load()
        self._clock = Clock(self.at.spent)
        with ExitStack() as stack:
            for callback in self._callbacks:
                callback.on_start(self)
                stack.push(partial(self._end, callback))
            log = MetricsLog(self.folder, self.at.metrics_size, lambda line: self._tell("on_line", line))
            self._log = stack.enter_context(closing(log))
            if self.folder.checkpoint.exists():
                self._tell("on_checkpoint")
            self._evaluations = Evaluations(self.plan, self.seed, self._write, self.display, self._stop)
            self._last_tick = time.monotonic()
            while True:
                if self.at.unlearnt and self.settings.unlearnt == "stop":
                    raise NotLearnt(self.at.unlearnt)
                if self.at.finished:
                    return
                self.segment = self.plan.of_stage(self.settings.stages[self.at.stage])[self.at.phase]
                self._measure = self.segment.stage.measure
                beside = self._clock, self.folder, self.display
                self.session = StageSession(self.segment, self.seed, self.device, *beside)
                with closing(self.session):
                    self._enter()
                    self._train()
                    self._finish()

    def _end(self, callback: Callback, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        """Tell a callback that the seed ends; whatever it returns, an error goes on."""
        callback.on_end(self, error)

    def _tell(self, moment: str, *about: Any) -> None:
        """Tell all callbacks of a moment."""
        for callback in self._callbacks:
            getattr(callback, moment)(self, *about)

    def _load(self) -> None:
        """Go on from an earlier process's checkpoint, if any; CheckpointError for another run's, or a damaged one."""
        path = self.folder.checkpoint
        if not path.exists():
            # A stage's weights are written after a checkpoint: to begin again would write over what was learnt.
            if self.folder.has_weights():
                raise CheckpointError(f"{path} is missing, but weights were trained here: restore it")
            return
        record, tensors = load_checkpoint(path, **self.plan.origin)
        if (record.get("seed"), record.get("config")) != (self.seed, self.settings.digest):
            raise CheckpointError(
                f"{path} is of another seed or other settings than this run's, as if it was moved here: train again"
            )
        self.at = Position(**record["position"])
        self._resumed = under("now/", tensors)
        self._best, self._carried = under("best/", tensors), under("carried/", tensors)
        if self.at.finished and self.at.stage + 1 < len(self.settings.stages):  # a finished run that gets more stages
            if not self._carried:
                raise CheckpointError(f"{path} keeps nothing that another stage could go on from: train from the first")
            self.at.stage, self.at.finished = self.at.stage + 1, False

    def _enter(self) -> None:
        """Begin the phase in its session, or resume it where the checkpoint left it."""
        source, session, resumed = self.folder.checkpoint, self.session, self._resumed
        self._resumed, games, window = {}, {}, []
        if resumed:
            window = resumed["window"].tolist()
            games = unpack_session(under("session/", resumed), session, source)
        elif self._carried:
            # An optimiser's statistics are useless to another algorithm.
            before = self.plan.segments[self.plan.segments.index(self.segment) - 1].phase
            same = before.learner.algorithm == self.phase.learner.algorithm
            optimizer = same and self.settings.carry_optimizer
            unpack_learners(self._carried, session.learners, source, optimizer=optimizer)
        elif self.settings.initial:
            load_initial(self.plan, [session.players[i].policy for i in self.settings.learning_agents])
        self._tell("on_phase")
        self._window = deque(map(float, window), maxlen=self.phase.until.window)
        if resumed:
            session.resume(games, self.at.total_steps)
            return
        session.start()
        if self.at.phase and self.settings.evaluation.every:
            self._evaluate_within()  # weights to fall back on if training makes them worse

    def _train(self) -> None:
        """Iterate until the phase is over."""
        every, phase = self.settings.evaluation.every, self.phase
        whole_run = phase.learner.schedule == "run"
        while True:
            if every and self.at.steps - self.at.evaluated_at >= every:
                self._save()
                self._evaluate_within()
            if self._stop.requested:
                self._save()
                self._stop.stop()
            ramping = any(self.at.steps < ramp.end for ramp in phase.ramps.values())
            minutes = (self.at.training_seconds - self.at.began_at) / 60
            won = len(self._window), self._window_mean() or 0.0
            if self.at.ended or phase.until.reached(self.at.steps, *won, minutes, self.at.reading, ramping=ramping):
                return
            games, losses = self.session.iterate(self.at.total_steps if whole_run else self.at.steps)
            self._count(games, losses)
            self._tell("on_update", losses)
            if self.at.updates % self.settings.log_every == 0:
                self._write_line()
                if time.monotonic() - self._last_save >= self.settings.save_every:
                    self._save()

    def _finish(self) -> None:
        """Choose the phase's best weights, write them, report on them, and step on to the next phase or stage."""
        session = self.session
        self._save()
        if self.at.best > -math.inf and self.at.evaluated_at < self.at.steps:
            self._evaluate_within()
        if self._best:
            unpack_learners(self._best, session.learners, self.folder.checkpoint, optimizer=False)
        else:
            self._best, self.at.best_steps = pack_learners(session.learners), self.at.steps
        record = {
            "env": self.settings.env,
            "vocabulary": session.vec.spec.vocabulary_hash,
            "stage": self.stage,
            "phase": self.phase.name,
            "seed": self.seed,
            "steps": self.at.best_steps,
            "phase_steps": self.at.steps,
            "total_steps": self.at.total_steps,
            "config": self.settings.as_dict(),
        }
        last_phase = self.segment.ends_stage
        last_stage = self.at.stage + 1 == len(self.settings.stages)
        place = self.stage if last_phase else f"{self.stage}/{self.phase.name}"
        save_weights(self.folder.weights(place), session.weights(), record)
        unlearnt = self._evaluations.after(session)
        self._tick()
        took = {
            "best_steps": self.at.best_steps,
            "phase_seconds": round(self.at.training_seconds - self.at.began_at, 2),
            "spent": {name: round(seconds, 2) for name, seconds in self.at.spent.items()},
        }
        self._write("phase", took)
        self._carried, self._best = self._best, {}
        self.at = Position(
            stage=self.at.stage + (last_phase and not last_stage),
            phase=0 if last_phase else self.at.phase + 1,
            total_steps=self.at.total_steps,
            began_at=self.at.training_seconds,
            seconds=self.at.seconds,
            spent=self.at.spent,
            finished=last_phase and last_stage,
            unlearnt=unlearnt,
        )
        self._save(within=False)

    def _evaluate_within(self) -> None:
        """Evaluate within a phase; one set's games choose the best weights, those of others are only reported."""
        results, config = self._evaluations.within(self.session), self.settings.evaluation
        chosen = config.selection_set, config.selection_play
        result, wrong = (results.get((*chosen, manual)) for manual in (TRUE_MANUAL, REASSIGNED))
        if result is not None and result[self._measure] >= self._least(int(result["games"])):
            self._best = pack_learners(self.session.learners)
            self.at.best, self.at.best_steps = result[self._measure], self.at.steps
        if result is not None and wrong is not None:
            self.at.reading = result[self._measure] - wrong[self._measure]
        self.at.evaluated_at = self.at.steps

    def _least(self, games: int) -> float:
        """Result that weights need to become the phase's best.

        To replace those of the previous phase, they have to win more by the standard error of a difference: the games
        are few, and of several weights that are equally good one always seems better.
        """
        best = self.at.best
        inherited = self.at.phase > 0 and self.at.best_steps == 0 and best > -math.inf
        if not inherited or self._measure != "win_rate":
            return best
        return best + math.sqrt(2 * best * (1 - best) / games)

    def _count(self, games: FinishedEpisodes, losses: list[dict[str, float]]) -> None:
        self.at.updates += 1
        self.at.steps += self.session.steps_per_update
        self.at.total_steps += self.session.steps_per_update
        self._window.extend((games.score if self._measure == "score" else games.won).tolist())
        self._games.append(games)
        self._losses.append(losses)
        for fault in self.session.new_faults():
            self._write("fault", fault)
        self._rates[self.phase.learner.algorithm].append(self._tick() / self.session.steps_per_update)
        self._show()

    @property
    def _speed(self) -> float:
        """Steps a second of the last updates; single slow ones, which compile or follow an evaluation, do not count."""
        return 1 / median(self._rates[self.phase.learner.algorithm])

    def _tick(self) -> float:
        """Add the wall time since the last call to `seconds`, and return it."""
        now = time.monotonic()
        seconds, self._last_tick = now - self._last_tick, now
        self.at.seconds += seconds
        return seconds

    def _window_mean(self) -> float | None:
        return sum(self._window) / len(self._window) if self._window else None

    def _write(self, kind: str, result: dict[str, Any]) -> dict[str, Any]:
        """Write a line of metrics of a kind, and return it."""
        line = {
            "kind": kind,
            "seed": self.seed,
            "stage": self.stage,
            "phase": self.phase.name,
            "steps": self.at.steps,
            "total_steps": self.at.total_steps,
            "seconds": round(self.at.seconds, 2),
            "training_seconds": round(self.at.training_seconds, 2),
            **result,
        }
        self._log.write(line)
        if kind == "evaluation":
            self._tell("on_evaluation", line)
        return line

    def _write_line(self) -> None:
        """One line of metrics about everything since the last."""
        if not self._losses:
            return
        games = FinishedEpisodes.of(self._games, self.settings.agents)
        line: dict[str, Any] = {"games": len(games.won), "steps_per_second": self._speed}
        if len(games.won):
            line["win_rate"] = float(games.won.mean())
            line["score"] = float(games.score.mean())
            line["length"] = float(games.length.mean())
            line.update({f"agent_{i}/return": float(value) for i, value in enumerate(games.returns.mean(0))})
        if self._window:
            line[self.segment.stage.windowed] = self._window_mean()
        for i in range(self.settings.num_learners):
            own = [losses[i] for losses in self._losses]
            for name in dict.fromkeys(name for each in own for name in each):  # not every update has every loss
                line[f"learner_{i}/{name}"] = float(np.mean([each[name] for each in own if name in each]))
        self._write("train", line)
        self._games, self._losses = [], []

    def _show(self) -> None:
        """Update the progress line."""
        budget, steps, mean = self.phase.until.steps, self.at.steps, self._window_mean()
        what, form = ("score", ".2f") if self._measure == "score" else ("wins", ".1%")
        numbers = (
            f"{duration(self._seconds_left())} left",
            f"{what} –" if mean is None else f"{what} {mean:{form}}",
            f"{steps:,} steps" if budget is None else f"{steps:,} of {budget:,} steps",
            f"{self._speed:,.0f} steps/s",
        )
        part = None if budget is None else min(1.0, steps / budget)
        self.display.show(f"seed {self.seed} {self.segment.label}", part, numbers)

    def _seconds_left(self) -> float | None:
        """Seconds left at the speed of each algorithm so far, if no phase ends early; None where one is not known."""
        total = 0.0
        for i, segment in enumerate(self.plan.segments[self.plan.segments.index(self.segment) :]):
            steps, rates = segment.phase.until.steps, self._rates[segment.phase.learner.algorithm]
            if steps is None or len(rates) < _STEADY:
                return None
            total += max(0, steps - (self.at.steps if i == 0 else 0)) * median(rates)
        return total * (1 + self.at.spent.get("evaluation", 0.0) / self.at.training_seconds)

    def _save(self, *, within: bool = True) -> None:
        """Write the line of metrics that is due, and the checkpoint, of a state within a phase or between two."""
        self._write_line()
        since = time.perf_counter()
        self._tick()
        self.at.metrics_size = self._log.sync()
        tensors = {**prefixed("carried/", self._carried), **prefixed("best/", self._best)}
        if within:
            tensors |= prefixed("now/session/", pack_session(self.session))
            tensors["now/window"] = torch.tensor(list(self._window), dtype=torch.float32)
        record = {
            "env": self.settings.env,
            "vocabulary": self.plan.games.spec.vocabulary_hash,
            "agents": self.settings.agents,
            "seed": self.seed,
            "config": self.settings.digest,
            "position": asdict(self.at),
        }
        save_checkpoint(self.folder.checkpoint, record, tensors)
        self._tell("on_checkpoint")
        self._last_save = time.monotonic()
        self._clock.add("saving", since)
