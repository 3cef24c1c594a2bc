"""A run whose workers are killed and frozen while it trains."""

import json
import os
import signal
from dataclasses import replace

from magrounding.experiment import stage
from magrounding.experiment.phase import Phase, Promotion
from magrounding.experiment.presets.babyai import QUICK_RL_BABYAI
from magrounding.training.ppo import PPOConfig
from tests.experiment.tiny_runs import learn


def train_while_struck(monkeypatch, folder, *, workers, times, more, patience):
    """Kill or freeze one of two workers before each of so many updates, and train so many `more`.

    Returns:
        the signals that were sent, and the lines of the run's metrics.
    """
    monkeypatch.setattr(stage, "HANGING_SECONDS", patience)
    struck = []
    iterate = stage.StageSession.iterate

    def struck_while_training(session, steps):
        if len(struck) < times:
            struck.append(signal.SIGKILL if len(struck) % 2 else signal.SIGSTOP)
            os.kill(session.vec.pids[len(struck) // 2 % 2], struck[-1])
        return iterate(session, steps)

    monkeypatch.setattr(stage.StageSession, "iterate", struck_while_training)
    learner = PPOConfig(unroll=8, epochs=1, minibatches=2)
    settings = replace(
        QUICK_RL_BABYAI,
        env="babyai",
        stages=("GoToObj",),
        phases={"*": (Phase(learner, Promotion(steps=(times + more) * 8 * 8), num_envs=8),)},
        evaluation=replace(QUICK_RL_BABYAI.evaluation, every=None, selection_games=4, report_games=4),
        log_every=1,
        workers=workers,
    )
    learn(settings, folder)
    return struck, [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
