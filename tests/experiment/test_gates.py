"""Gates: a stage that is not learnt is said so, and ends its run where that is asked; nothing is learnt otherwise."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from magrounding.cli import train
from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.config import make_config, read_config
from magrounding.experiment.phase import Gate, NotLearnt
from magrounding.experiment.reports.compare import comparison
from magrounding.experiment.results import read_results
from magrounding.teams.evaluate import TRUE_MANUAL
from tests.experiment.tiny_runs import learn, phases_of, tiny_settings, weights_of

BRIEF = {"every": None, "report_games": 10, "final_sets": ("eval",), "phases": phases_of(60)}


def gated(unlearnt="stop", win_rate=0.5, reading=0.3, **changes):
    """Two stages of 60 steps with a gate after each."""
    gate = {"win_rate": win_rate, "reading": reading}
    phases = {stage: [{**vars(each), "gate": gate} for each in of] for stage, of in BRIEF["phases"].items()}
    return tiny_settings(**{**BRIEF, "stages": ("s1", "s2"), "phases": phases, "unlearnt": unlearnt, **changes})


def command(folder, *words):
    return CommandLine("magrounding train", ("--out", str(folder), "--resume", "--quiet", *words)).run(train)


def judged(folder):
    return [(line["seed"], line["stage"], line["learnt"]) for line in read_results(folder).select("gate")]


def winning(monkeypatch, **won):
    """Let teams win so many evaluation games of a stage with true manuals, and a tenth with wrong ones."""
    evaluate = evaluation.play_set

    def decided(session, *which, **how):
        result = evaluate(session, *which, **how)
        share = won.get(session.segment.stage.name, 0.0) if how["manual"] == TRUE_MANUAL else 0.1
        result.won[:] = np.arange(len(result.won)) < share * len(result.won)
        return result

    monkeypatch.setattr(evaluation, "play_set", decided)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same run without gates."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    learn(gated().ungated, folder)
    return folder


def test_a_run_stops_where_a_stage_is_not_learnt_and_goes_on_if_that_is_asked(whole, tmp_path, monkeypatch):
    winning(monkeypatch)
    folder = tmp_path / "run"
    with pytest.raises(NotLearnt) as stopped:
        learn(gated(), folder)
    assert judged(folder) == [(0, "s1", False)]
    assert (folder / "s1").exists()
    assert not (folder / "s2").exists()
    assert read_results(folder).select("gate")[0]["says"] == str(stopped.value)
    assert str(stopped.value) in (folder / "report.md").read_text()
    assert command(folder) == NotLearnt.code  # it says so again
    assert judged(folder) == [(0, "s1", False)]
    assert not (folder / "s2").exists()
    assert command(folder, "unlearnt=continue") == 0
    assert judged(folder) == [(0, "s1", False), (0, "s2", False)]
    assert read_config(folder) == gated("continue")
    assert command(folder) == 0
    for stage in ("s1", "s2"):
        assert torch.equal(weights_of(folder, stage), weights_of(whole, stage))
    page = comparison({"gated": read_results(folder), "whole": read_results(whole)}, "")
    assert all(line["says"] in page for line in read_results(folder).select("gate"))


def test_a_run_that_is_to_go_on_says_what_is_not_learnt_and_ends_well(tmp_path, monkeypatch):
    winning(monkeypatch, s1=0.9)
    learn(gated("continue"), tmp_path / "run")
    assert judged(tmp_path / "run") == [(0, "s1", True), (0, "s2", False)]


@pytest.mark.parametrize(
    ("gate", "won", "learnt"),
    [
        ({"reading": 0.0}, 0.4, False),  # too few wins
        ({"win_rate": 0.0}, 0.3, False),  # as many with wrong manuals, nearly
        ({"reading": 0.0}, 0.5, True),
    ],
)
def test_the_last_stage_has_a_gate_too_which_every_seed_passes_by_itself(tmp_path, monkeypatch, gate, won, learnt):
    winning(monkeypatch, s2=won)
    settings = gated(**gate, stages=("s2",), seeds=(0, 1))
    if learnt:
        learn(settings, tmp_path)
    else:
        with pytest.raises(NotLearnt):
            learn(settings, tmp_path)
        assert command(tmp_path) == NotLearnt.code
    assert judged(tmp_path) == [(0, "s2", learnt), (1, "s2", learnt)]
    assert (tmp_path / "report.md").exists()


def test_gates_decide_nothing_that_is_learnt():
    settings = gated()
    assert settings.digest == settings.ungated.digest == tiny_settings(**BRIEF, stages=("s1", "s2")).digest


def test_a_gate_that_nothing_could_judge_is_refused():
    gate = Gate(reading=0.1)
    with pytest.raises(ConfigurationError):
        make_config("nethack", preset="quick").with_phases(lambda phase: replace(phase, gate=gate)).resolve()


@pytest.mark.parametrize(
    ("env", "agent", "preset"),
    [
        ("rtfm", "txt2pi", "quick"),
        ("ma_rtfm", "endi_dis", "quick"),
        ("ma_rtfm", "endi_dis", "quick_reasons"),
        ("ma_rtfm", None, "paper"),
        ("rtfm", "sir", "silg"),
        ("messenger", "emma", "quick"),
        ("messenger", None, "paper"),
        ("ma_messenger", None, "paper"),
        ("messenger", None, "silg"),
    ],
)
def test_presets_of_the_papers_learners_stop_at_a_gate_after_every_stage(env, agent, preset):
    settings = make_config(env, agent, preset=preset)
    assert settings.unlearnt == "stop"
    assert all(settings.of_stage(stage)[-1].gate.reading for stage in settings.stages)
    assert make_config("ma_rtfm", preset="demo").unlearnt == "continue"
