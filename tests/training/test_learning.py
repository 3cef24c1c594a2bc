"""It learns to read from a teacher; nothing of the kind from shuffled labels."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import torch

from magrounding.agents.policy import LABELS
from magrounding.experiment.config import RunConfig
from magrounding.experiment.phase import Phase, Promotion
from magrounding.experiment.stage import StageSession
from magrounding.play.evaluate import REPORT_SEED
from magrounding.threads import ThreadPlan, using
from magrounding.training.imitation import ImitationConfig
from magrounding.training.rollout import RolloutWorker


def trained(preset, task, seed, steps):
    """One agent's session after so many environment steps."""
    settings = replace(preset, env="rtfm", stages=(task,), seeds=(seed,))
    session = StageSession(settings, task, 0, seed, torch.device("cpu"))
    session.start()
    for done in range(0, steps, session.steps_per_update):
        session.iterate(done)
    return session


LESSONS = 24_000  # environment steps, some three seconds of a core

STUDENT = RunConfig(
    preset="student",
    about="A small reader that is taught the first task of RTFM.",
    agent="relread",
    phases={
        "*": (
            Phase(
                ImitationConfig(
                    minibatches=8,
                    learning_rate=4e-3,
                    warm_up=2_400,
                    anneal_steps=LESSONS,
                    teacher_steps=LESSONS,
                    entropy=0.0,
                ),
                Promotion(steps=LESSONS),
                num_envs=128,
            ),
        )
    },
    env_options={"max_cycles": 40},
    network={"hidden": 64, "top": 64},
)


def shuffle_labels(seed):
    """Every state gets the best moves of another: those of them that are legal there, or all that are."""
    collect, generator = RolloutWorker.collect, np.random.default_rng(seed)

    def shuffled(*given):
        rollout = collect(*given)
        for trajectory in rollout.trajectories:
            legal = trajectory.observation["action_mask"][:-1][trajectory.alive] == 1
            labels = trajectory.extras[LABELS][:-1]
            moves = generator.permutation(labels[trajectory.alive]) & legal
            labels[trajectory.alive] = np.where(moves.any(-1, keepdims=True), moves, legal)
        return rollout

    RolloutWorker.collect = shuffled


def be_taught(seed, shuffled):
    """Win rates in held-out games with the true manual and, for labels that teach, one whose statements are false."""
    if shuffled:
        shuffle_labels(seed)
    with using(ThreadPlan()):
        session = trained(STUDENT, "simple_stationary", seed, LESSONS)
        return [
            float(session.evaluate("eval", 200, REPORT_SEED, greedy=False, manual=manual).won.mean())
            for manual in (("true",) if shuffled else ("true", "reassigned"))
        ]


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_it_learns_to_read_from_a_teacher_and_not_from_mixed_up_labels():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        (learnt, misled), (control,) = pool.map(be_taught, (1, 1), (False, True))
    # Who does not read wins at most a quarter: one of two items and one of two monsters are the right ones.
    assert learnt > 0.45
    assert misled < 0.25
    assert control < 0.25
