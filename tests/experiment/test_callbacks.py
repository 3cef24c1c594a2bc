"""What callbacks are told of a run, and how they end a phase."""

import ast
import re
from functools import partial
from unittest.mock import Mock

import pytest

from magrounding.errors import ConfigurationError
from magrounding.experiment import curriculum
from magrounding.experiment.callbacks import Callback
from magrounding.experiment.metrics import read_metrics
from magrounding.run_folder import METRICS_FILE
from magrounding.storage import read_json
from tests.experiment.tiny_runs import killed_run, learn, phases_of, tiny_settings
from tests.forked import ROOT

SOURCE = re.search(r"```python\n(# watching\.py\n.*?)```", (ROOT / "docs/your_algorithm.md").read_text(), re.DOTALL)[1]
"""Of the documentation: a tracker and an early stop."""
ONE = {"stages": ("s1",), "final_sets": ("eval",)}


@pytest.fixture
def own():
    """Both, the stop at the first evaluation."""
    made = {}
    exec(SOURCE, made)
    made["EnoughWins"].part = 0.0
    return made["WinsFile"](), made["EnoughWins"]()


def test_a_tracker_and_an_early_stop_take_few_lines(own, tmp_path):
    classes = [each for each in ast.parse(SOURCE).body if isinstance(each, ast.ClassDef)]
    assert [each.end_lineno - each.lineno < 15 for each in classes] == [True, True]
    learn(tiny_settings(**ONE), tmp_path / "run", callbacks=own)
    assert read_json(tmp_path / "run" / "s1" / "state.json")["phase_steps"] == 90  # of 240
    lines = [line for line in read_metrics(tmp_path / "run" / METRICS_FILE) if "win_rate" in line]
    shown = [line.split(",") for line in (tmp_path / "run" / "wins.csv").read_text().splitlines()]
    assert shown == [[line["kind"], str(line["total_steps"]), str(line["win_rate"])] for line in lines]


def test_a_phase_that_was_ended_stays_ended_after_a_kill(own, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(curriculum, "run_curriculum", partial(curriculum.run_curriculum, callbacks=own))
        killed_run(tiny_settings(**ONE), tmp_path / "run", lambda at: at["ended"])
    learn(tiny_settings(**ONE), tmp_path / "run", resume=True)
    assert read_json(tmp_path / "run" / "s1" / "state.json")["phase_steps"] == 90


def test_callbacks_are_told_in_order_and_of_errors(tmp_path):
    settings, told, error = (
        tiny_settings(**ONE, phases=phases_of(60), save_every=1e9),
        [],
        ConfigurationError("no more"),
    )

    def note(moment):
        return lambda self, run, *about: told.append((moment, run.at.total_steps, about)) or True

    moments = ("on_start", "on_phase", "on_update", "on_checkpoint", "on_end")
    noted = type("Noted", (Callback,), {moment: note(moment) for moment in moments})()
    refuses = type("Refuses", (Callback,), {"on_update": Mock(side_effect=error)})()
    with pytest.raises(ConfigurationError):
        learn(settings, tmp_path, callbacks=(noted, refuses))
    began = [("on_start", 0), ("on_phase", 0), ("on_update", 30)]
    assert [each[:2] for each in told] == [*began, ("on_end", 30)]
    assert told.pop()[-1] == (error,)
    told.clear()
    learn(settings, tmp_path, callbacks=(noted,), resume=True)
    assert [each[:2] for each in told] == [*began, ("on_update", 60), *[("on_checkpoint", 60)] * 2, ("on_end", 60)]
    assert told[-1][-1] == (None,)
