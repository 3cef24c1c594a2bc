"""It learns from rewards more than chance, and to read from a teacher; nothing of the kind from shuffled signals."""

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
from magrounding.play.evaluate import REPORT_SEED, evaluate
from magrounding.play.scripted import RandomTeam
from magrounding.play.team import Team
from magrounding.threads import ThreadPlan, using
from magrounding.training import learner, ppo
from magrounding.training.imitation import ImitationConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.trajectory import Returns
from tests.full import in_the_full_suite

TASK = "simple_stationary_single_monster"
GAMES = 800


def by_reward(agent, steps, learning_rate, **network):
    """PPO alone, with a small network."""
    config = ppo.PPOConfig(
        epochs=2,
        warm_up=5_000,
        anneal_steps=1e9,
        learning_rate=learning_rate,
        entropy=0.01,
        final_entropy=0.01,
    )
    return RunConfig(
        preset="narrow",
        about="A network small enough to learn something within a minute or two of one core.",
        agent=agent,
        phases={"*": (Phase(config, Promotion(steps=steps), num_envs=128),)},
        env_options={"max_cycles": 80, "occupants": 1},
        network=network,
    )


NARROW = {
    "relread": by_reward("relread", 60_000, 3e-3, hidden=64, top=64),
    "txt2pi": by_reward("txt2pi", 420_000, 7e-4, channels=(8, 16, 16), document_hidden=32, head_width=64),
}


def shuffle_advantages(seed):
    """Every step gets the advantage of another: the same numbers, about nothing."""
    gae, generator = learner.gae, torch.Generator().manual_seed(seed)

    def shuffled(*given, **options):
        target, advantage = gae(*given, **options)
        flat = advantage.flatten()
        return Returns(target, flat[torch.randperm(len(flat), generator=generator)].view_as(advantage))

    learner.gae = shuffled


def trained(preset, task, seed, steps):
    """One agent's session after so many environment steps."""
    settings = replace(preset, env="rtfm", stages=(task,), seeds=(seed,))
    session = StageSession(settings, task, 0, seed, torch.device("cpu"))
    session.start()
    for done in range(0, steps, session.steps_per_update):
        session.iterate(done)
    return session


def train_and_play(agent, seed, shuffled):
    """Win rate of a trained policy that draws its actions, over games of the task as published: no early time limit."""
    if shuffled:
        shuffle_advantages(seed)
    with using(ThreadPlan()):
        [phase] = NARROW[agent].phases["*"]
        session = trained(NARROW[agent], TASK, seed, phase.until.steps)
        team = Team([each.policy for each in session.learners], session.vec.spec)
        return win_rate(team)


def win_rate(team):
    options = {"task": TASK, "occupants": 1, "max_cycles": 1000}
    return float(evaluate(team, "rtfm", options, GAMES, REPORT_SEED, num_envs=500, greedy=False).won.mean())


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


@pytest.mark.slow
@pytest.mark.timeout(900)  # txt2pi: two minutes on idle cores, over six where something else uses them
@pytest.mark.parametrize(
    ("agent", "least"),
    [
        pytest.param("relread", 0.9, marks=in_the_full_suite("half a core minute")),
        pytest.param("txt2pi", 0.42, marks=in_the_full_suite("four core minutes")),
    ],
)
def test_it_learns_and_not_from_noise(agent, least):
    # One process and one core each; a process of its own also keeps the control's tampering out of other tests.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        learnt, control = pool.map(train_and_play, (agent, agent), (1, 1), (False, True))
    chance = win_rate(RandomTeam(1, 5))
    assert chance == pytest.approx(0.35, abs=0.04)
    assert learnt >= least
    assert control < 0.42
    assert learnt - control > 0.05
