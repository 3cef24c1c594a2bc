"""Callback: something beside training, which is told of a run's moments; and the small ones of every run."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Mapping
from itertools import chain
from typing import Any, cast

from magrounding.envs.vector import WorldVectorEnv
from magrounding.errors import Diverged
from magrounding.experiment.checkpoint import Position
from magrounding.experiment.phase import Phase
from magrounding.experiment.plan import Plan, Segment
from magrounding.experiment.stage import StageSession
from magrounding.progress import Display
from magrounding.registry import PREPARATIONS, agent_entry, load
from magrounding.run_folder import RunFolder
from magrounding.training.gradient_step import can_be_learnt_from


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


class Preparation(Callback):
    """Networks learn what is learnt before the first phase of each stage."""

    def on_phase(self, run: RunState) -> None:
        if run.at.phase == run.at.updates == 0:
            prepare(run.session)


def prepare(session: StageSession) -> None:
    """Call all of `registry.PREPARATIONS`."""
    for each in PREPARATIONS.values():
        load(each.code)(session)


class Ramps(Callback):
    """Options of the games change within a phase, as `Phase.ramps` says."""

    def on_phase(self, run: RunState) -> None:
        if run.phase.ramps:
            cast(WorldVectorEnv, run.session.vec).adjust(**run.phase.ramped(run.at.steps))

    def on_update(self, run: RunState, losses: list[dict[str, float]]) -> None:
        self.on_phase(run)


class Divergence(Callback):
    """A run ends with its first loss that is not finite, and the error says where, and what to type."""

    def on_update(self, run: RunState, losses: list[dict[str, float]]) -> None:
        """Raise Diverged for a loss without a finite square, as of learners that take gradient steps by themselves."""
        for log in losses:
            for name, number in log.items():
                if name.endswith("loss") and not can_be_learnt_from(number):
                    raise Diverged(f"{name} is {number:g}")

    def on_end(self, run: RunState, error: BaseException | None) -> None:
        if not isinstance(error, Diverged):
            return
        where = f"{run.stage}, phase {run.phase.name}," if run.stage else f"phase {run.phase.name}"
        rate, command = getattr(run.phase.learner, "learning_rate", None), run.run_folder.config().get("command")
        now = "" if rate is None else f" ({rate:g} now)"
        again = f"; begin again with, e.g.: {_again(command, run, rate / 10)}" if command and rate else ""
        raise Diverged(
            f"{where} diverged after {run.at.steps:,} environment steps ({run.phase.learner.algorithm}): {error}; "
            f"nothing of it was saved, and an earlier checkpoint is whole: try a lower learning_rate{now}, "
            f"clip_gradient, smaller rewards (reward_scale), or float32 (learner.bf16=false){again}"
        ) from None


def _again(command: str, run: RunState, rate: float) -> str:
    """Return the command that began a run, with another rate and another folder.

    A run of one seed begins with the weights after its last finished stage, where its agent can.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--out")
    parser.add_argument("--stages")
    typed, words = parser.parse_known_args(shlex.split(command))
    flags, paths = {"--out": f"{run.run_folder}-again"}, {"learner.learning_rate": f"{rate:g}"}
    settings, left = run.settings, run.settings.stages[run.at.stage :]
    if len(settings.seeds) == 1 and left != settings.stages and agent_entry(settings.agent).algorithm is None:
        flags["--stages"], paths["initial"] = ",".join(left), str(run.run_folder)
    elif typed.stages:
        flags["--stages"] = typed.stages
    words = [word for word in words if word.partition("=")[0] not in paths]
    at = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
    last = (f"{path}={value}" for path, value in paths.items())
    return shlex.join([*words[:at], *chain.from_iterable(flags.items()), *words[at:], *last])
