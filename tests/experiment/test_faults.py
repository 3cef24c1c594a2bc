"""Training goes on while the workers of its simulators are killed and frozen, and every fault is in the log."""

import pytest

from magrounding.experiment import evaluate as evaluation
from magrounding.teams.evaluate import evaluate
from tests.experiment.struck_run import train_while_struck
from tests.full import in_full

FAULTS = in_full(10, 2)


@pytest.fixture(autouse=True)
def evaluations_have_no_workers(monkeypatch):
    """Training is what is struck; two processes for each of seven evaluations would take most of the time."""
    monkeypatch.setattr(evaluation, "evaluate", lambda *given, **how: evaluate(*given, **how | {"workers": 0}))


@pytest.mark.slow
def test_workers_die_and_hang_many_times_in_a_run(tmp_path, monkeypatch):
    pytest.importorskip("minigrid", reason="the extra `babyai` is absent: minigrid")
    struck, lines = train_while_struck(monkeypatch, tmp_path / "run", workers=2, times=FAULTS, more=5, patience=8.0)
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
