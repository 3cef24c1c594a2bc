"""What users get of a run: a tidy row for each number, with pandas and without."""

import math
import sys

import numpy as np
import pytest

import magrounding as mg
from magrounding.experiment.tables import Row, Table, interval, tidy
from magrounding.statistics import statistics_of
from tests.experiment.tiny_runs import tiny_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return mg.load_run(tiny_run(tmp_path_factory.mktemp("runs") / "run", "s1"))


def test_rows_are_a_data_frame_where_pandas_is_installed(run):
    pandas = pytest.importorskip("pandas")
    rows = run.rows
    assert isinstance(rows, pandas.DataFrame)
    assert list(rows.columns) == list(Row._fields)
    after = rows[(rows.when == "after") & (rows.metric == "win_rate") & (rows.player == "team")]
    found = after[after.manual == "true"].groupby(["set", "play"]).value.mean()
    for (name, play), mean in found.items():
        assert run.after("s1", "reinforce", name, play).mean == pytest.approx(mean)
    assert set(rows[rows.player == "random"].games) == {8}
    trained = rows[(rows.when == "training") & (rows.metric == "window_win_rate")]
    assert set(trained.seed) == {"0", "1"}
    assert {"best_steps", "spent/learning"} <= set(rows[rows.when == "end"].metric)


def test_rows_are_arrays_where_it_is_not(run, monkeypatch):
    whole = len(run.rows)
    monkeypatch.setitem(sys.modules, "pandas", None)
    rows = run.rows
    assert list(rows) == list(Row._fields)
    assert all(isinstance(column, np.ndarray) and len(column) == whole for column in rows.values())
    assert rows["value"].dtype == np.float64


def test_numbers_become_rows_and_all_else_says_where():
    line = {"kind": "evaluation", "stage": "s1", "when": "within", "games": 4, "score": 2.0, "score_std": 0.5}
    rows = list(tidy([{**line, "win_rate": None, "faults": True}], run="a", seed=3))
    assert [(row.run, row.seed, row.when, row.metric, row.value, row.games) for row in rows] == [
        ("a", "3", "within", "score", 2.0, 4),
        ("a", "3", "within", "score_std", 0.5, 4),
    ]
    assert rows[0].std == 0.5
    assert math.isnan(rows[1].std)


def test_fewer_than_five_seeds_have_no_interquartile_mean():
    rates = [0.1, 0.2, 0.3, 0.4, 0.9]
    for count in (3, 5):
        table = Table.of([0], {"": lambda _, k=count: interval(statistics_of(rates[:k], "win_rate"))})
        assert ("IQM" in table.markdown()) == (count == 5)
