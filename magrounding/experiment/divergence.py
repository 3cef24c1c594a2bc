"""Divergence: losses that training cannot go on from end a run, with advice."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from itertools import chain

from magrounding.agents.gradient_step import can_be_learnt_from
from magrounding.errors import Diverged
from magrounding.experiment.callbacks import Callback, RunState
from magrounding.registry import agent_entry


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
