"""Training goes on while the workers of its simulators are killed and frozen, and every fault is in the log."""

import json
import os
import signal
from dataclasses import replace

import pytest

from magrounding.experiment import stage
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.phase import Phase, Promotion
from magrounding.experiment.presets.babyai import QUICK_RL_BABYAI
from magrounding.training.ppo import PPOConfig
from tests.experiment.tiny_runs import quiet
from tests.full import in_full

FAULTS = in_full(10, 4)


@pytest.mark.slow
def test_workers_die_and_hang_many_times_in_a_run(tmp_path, monkeypatch):
    pytest.importorskip("minigrid", reason="the extra `babyai` is absent: minigrid")
    monkeypatch.setattr(stage, "HANGING_SECONDS", 2.0)
    struck = []
    iterate = stage.StageSession.iterate

    def struck_while_training(session, steps):
        """Before every update one worker is killed or frozen, FAULTS times in all."""
        if len(struck) < FAULTS:
            struck.append(signal.SIGKILL if len(struck) % 2 else signal.SIGSTOP)
            os.kill(session.vec.pids[len(struck) // 2 % 2], struck[-1])
        return iterate(session, steps)

    monkeypatch.setattr(stage.StageSession, "iterate", struck_while_training)
    learner = PPOConfig(unroll=8, epochs=1, minibatches=2)
    settings = replace(
        QUICK_RL_BABYAI,
        env="babyai",
        stages=("GoToObj",),
        phases={"*": (Phase(learner, Promotion(steps=(FAULTS + 5) * 8 * 8), num_envs=8),)},
        evaluation=replace(QUICK_RL_BABYAI.evaluation, every=None, selection_games=4, report_games=4),
        log_every=1,
        workers=2,
    )
    run_curriculum(settings, tmp_path / "run", display=quiet(), device="cpu")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    faults = [line for line in lines if line["kind"] == "fault"]
    assert len(faults) == FAULTS == len(struck)
    assert {tuple(line["rows"]) for line in faults} == {(0, 1, 4, 5), (2, 3, 6, 7)}  # never another worker's games
    assert sum("SIGKILL" in line["reason"] for line in faults) == FAULTS // 2
    trained = [line for line in lines if line["kind"] == "train"]
    assert len(trained) == FAULTS + 5
    assert faults[-1]["steps"] == FAULTS * 8 * 8  # and it went on for five updates
    assert (tmp_path / "run" / "report.md").exists()
    assert (
        f"{FAULTS} workers of simulators were replaced, {4 * FAULTS} games lost"
        in (tmp_path / "run/report.md").read_text()
    )
