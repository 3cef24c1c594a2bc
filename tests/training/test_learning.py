"""It learns to read from a teacher; nothing of the kind from shuffled labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from magrounding.agents.policy import LABELS
from magrounding.experiment.config import RunConfig
from magrounding.experiment.evaluate import play_set
from magrounding.experiment.phase import Phase, Promotion
from magrounding.experiment.stage import StageSession
from magrounding.teams.evaluate import REPORT_SEED
from magrounding.training.imitation import ImitationConfig
from magrounding.training.rollout import RolloutWorker

LESSONS = 24_000  # environment steps, some three seconds of a core

STUDENT = RunConfig(
    preset="student",
    about="A small reader that is taught the first task of RTFM.",
    agent="relread",
    env="rtfm",
    stages=("simple_stationary",),
    seeds=(1,),
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


def shuffle_labels(monkeypatch, seed):
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

    monkeypatch.setattr(RolloutWorker, "collect", shuffled)


def be_taught(*manuals):
    """Win rates in held-out games with each of some manuals."""
    (seed,) = STUDENT.seeds
    session = StageSession(STUDENT.resolve().segments[0], seed, torch.device("cpu"))
    session.start()
    for done in range(0, LESSONS, session.steps_per_update):
        session.iterate(done)
    return [
        float(play_set(session, "eval", 200, REPORT_SEED, greedy=False, manual=manual).won.mean()) for manual in manuals
    ]


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_it_learns_to_read_from_a_teacher_and_not_from_mixed_up_labels(monkeypatch):
    learnt, misled = be_taught("true", "reassigned")
    shuffle_labels(monkeypatch, 1)
    (control,) = be_taught("true")
    # Who does not read wins at most a quarter: one of two items and one of two monsters are the right ones.
    assert learnt > 0.45
    assert misled < 0.25
    assert control < 0.25
