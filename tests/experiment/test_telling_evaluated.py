"""Teams whose manual is split, beside a floor that tells nothing and a ceiling that reads all."""

import pytest

from magrounding.envs.rtfm.arrays import FIRST_TELL
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.experiment.reports.run import reading_table, results_table
from magrounding.experiment.reports.zero_shot import set_table
from magrounding.experiment.results import read_results
from magrounding.experiment.tables import percent
from magrounding.experiment.zero_shot import open_runs, zero_shot
from magrounding.teams.evaluate import MUTED, OTHER_LINES, evaluate
from tests.experiment.tiny_runs import learn, phases_of, tiny_settings

SPLIT = {"reading": "kind", "max_cycles": 40}
GAMES = 40


@pytest.fixture(autouse=True, scope="module")
def weak_oracle():
    """In place of that of other tests: oracles are what these are about."""


@pytest.fixture(scope="module")
def folder(weak_oracle, tmp_path_factory):
    settings = tiny_settings(
        stages=("s2g",), phases=phases_of(30), every=None, final_sets=("eval",), env_options=SPLIT, report_games=GAMES
    )
    return learn(settings, tmp_path_factory.mktemp("telling") / "run").path


def test_a_report_has_floor_ceiling_and_what_else_is_heard(folder):
    found = read_results(folder)
    won = {player: found.baseline("s2g", "eval", player).mean for player in ("silent", "oracle", "all")}
    assert won["silent"] < 0.8 < won["oracle"] <= won["all"]
    team = found.after("s2g", "reinforce", "eval", found.better_play).mean
    table = results_table(found)
    closed = (team - won["silent"]) / (won["all"] - won["silent"])
    assert table.rows[0][table.heads.index("gap closed")] == percent(closed)
    assert {f"manual: {OTHER_LINES}", f"manual: {MUTED}"} < set(reading_table(found).heads)


def test_an_evaluation_has_them_too(folder):
    found = zero_shot(open_runs({"a": folder}), ("eval",), GAMES, ("greedy",))
    table = set_table(found, "eval")
    rows = {row[0]: dict(zip(table.heads, row, strict=True)) for row in table.rows}
    assert [*rows] == ["a", f"a, {OTHER_LINES}", f"a, {MUTED}", "random", "oracle", "silent", "all"]
    assert [rows[name]["gap closed"] for name in ("silent", "all")] == [percent(0), percent(1)]
    assert rows["silent"]["lines told"].mean == rows["silent"]["needed lines told"].mean == 0
    assert rows["oracle"]["needed lines told"].mean > 0.6
    assert rows["all"]["lines told"] is None


def test_what_is_told_is_counted():
    """Again from the moves: each line is told once, and before its game's last step."""
    told = []

    class Listening(Oracle):
        def act(self, obs, memory=None, info=None, greedy=True, rows=None):
            actions, memory = super().act(obs, memory, info, greedy, rows)
            told.append((actions[rows] >= FIRST_TELL).sum())
            return actions, memory

    found = evaluate(Listening, "ma_rtfm", {"stage": "s2g", **SPLIT}, GAMES, diagnose=True).summary()
    assert found["lines_told"] == pytest.approx(sum(told) / GAMES)


@pytest.mark.parametrize(("manual", "heard"), [(OTHER_LINES, "another"), (MUTED, "none")])
def test_what_is_heard_instead(manual, heard):
    played = []

    def oracle(vec):
        played.append(vec.options["heard"])
        return Oracle(vec)

    evaluate(oracle, "ma_rtfm", {"stage": "s2g", **SPLIT}, 1, manual=manual)
    assert played == [heard]
