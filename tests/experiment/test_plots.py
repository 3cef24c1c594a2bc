"""Figures of any number of stages: panels in rows, a legend within the picture, markers beside each other."""

import pytest
from matplotlib.figure import Figure

from magrounding.experiment.curves import plot_curves
from magrounding.experiment.results import RunResults
from tests.experiment.tiny_runs import tiny_settings


@pytest.fixture
def saved(monkeypatch):
    """The figures that were saved."""
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **_: figures.append(figure) or file.write(b"png"))
    return figures


def results(tmp_path, seeds=(0, 1), stages=("s1", "s2")):
    lines = {}
    for seed in seeds:
        lines[seed] = [
            {"kind": "evaluation", "seed": seed, "stage": stage, "phase": "reinforce", "set": name, "play": "sampled"}
            | {"steps": steps, "total_steps": steps, "manual": "true", "when": "within", "win_rate": 0.5 + seed / 10}
            for stage in stages
            for steps in (100, 200)
            for name in ("train", "eval")
        ]
    return RunResults(tmp_path, tiny_settings(seeds=seeds, stages=stages), {}, lines, {}, {})


def test_stages_of_different_measures_have_axes_of_their_own(saved, tmp_path, monkeypatch):
    run = results(tmp_path)
    monkeypatch.setattr(type(run.settings), "measure", lambda self, stage: "score" if stage == "s2" else "win_rate")
    for line in (line for lines in run.lines.values() for line in lines):
        line["score"] = 1000.0
    plot_curves(run)
    first, second = saved[0].axes
    assert (first.get_ylabel(), second.get_ylabel()) == ("games won (%)", "score")
    assert first.get_ylim()[1] == 102
    assert second.get_ylim()[1] > 900
