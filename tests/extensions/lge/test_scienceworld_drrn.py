"""DRRN in the real ScienceWorld: a run of a few steps that learns, is saved, and plays again."""

from dataclasses import replace
from shutil import which

import pytest

import magrounding as mg
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.config import make_config
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.phase import Phase, Promotion
from magrounding.extensions.lge.drrn_learner import DrrnLearnerConfig
from magrounding.run_folder import METRICS_FILE
from magrounding.teams.evaluate import evaluate
from magrounding.teams.scripted import RandomTeam
from tests.experiment.tiny_runs import learn

TASK = "lifespan-longest-lived"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("vocabulary", ["pieces"])
def test_a_run_of_a_few_steps(tmp_path, monkeypatch, vocabulary):
    pytest.importorskip("scienceworld", reason="needs the extra `scienceworld`")
    if which("java") is None:
        pytest.skip("needs Java, which is not installed")
    # A random team in the place of the reports' ceiling, which would look for gold paths for minutes.
    monkeypatch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(1, vec.spec.num_actions, obey_mask=True))
    settings = make_config("scienceworld", preset="quick", stages=(TASK,))
    learner = DrrnLearnerConfig(unroll=2, batch=8, updates=1.0)
    brief = replace(
        settings,
        phases={"*": (Phase(learner, Promotion(steps=24), num_envs=2),)},
        env_options={"max_cycles": 5},
        network={"vocabulary": vocabulary, "embedding": 16, "hidden": 16},
        evaluation=replace(settings.evaluation, selection_games=2, report_games=2),
        log_every=1,
    )
    learn(brief, tmp_path / "run")
    lines = [line for line in read_metrics(tmp_path / "run" / METRICS_FILE) if line["kind"] == "train"]
    last = lines[-1]
    assert {"learner_0/td_loss", "learner_0/q", "learner_0/temperature"} <= last.keys()
    assert last["learner_0/texts_shown"] > last["learner_0/texts_encoded"] > 100
    team = mg.load_team(tmp_path / "run")
    played = evaluate(team, "scienceworld", {"task": TASK, "split": "test", "max_cycles": 3}, 1)
    assert played.length[0] <= 3
