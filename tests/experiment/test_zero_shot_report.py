"""Tables and figure of a zero-shot evaluation, from numbers made by hand."""

from pathlib import Path

import pytest

from magrounding.envs.published import PublishedResult
from magrounding.experiment.reports.zero_shot import overview, set_table, to_json
from magrounding.experiment.zero_shot import EvaluatedRun, ZeroShot
from tests.experiment.tiny_runs import tiny_settings

WINS = {"train": (0.4, 0.5, 0.6, 0.7, 0.9), "eval": (0.1, 0.2, 0.2, 0.3, 0.6)}


def results(run, evaluation_set, wins, **more):
    return [
        {"run": run, "set": evaluation_set, "play": "greedy", "seed": str(k), "games": 10, "win_rate": won}
        | {"length": 8.0 + k, **more}
        for k, won in enumerate(wins)
    ]


@pytest.fixture
def found():
    settings = tiny_settings(stages=("s1",))
    mixed = {"members": ("a", "b"), "win_rate_agent_0": 0.5, "win_rate_agent_1": 0.125}
    return ZeroShot(
        [EvaluatedRun(name, Path(name), settings, "s1", {}, {"max_cycles": 8}) for name in ("a", "b")],
        episodes=10,
        results=[
            each
            for name, wins in WINS.items()
            for each in (
                *results("a", name, wins, steps_to_win=5.0),
                *results("b", name, wins[:1], subgoal_conflicts=0.25),
            )
        ],
        baselines={name: {"random": {"win_rate": 0.05}, "oracle": {"win_rate": 1.0, "length": 6.0}} for name in WINS},
        published={
            "train": [PublishedResult(0.59, 0.01, "the best"), PublishedResult(0.38, 0.11, "another")],
            "eval": [PublishedResult(0.61, None, "the best")],
        },
        together=[each for name, wins in WINS.items() for each in results("a with b", name, wins[:2], **mixed)],
    )


def rows_of(text):
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines()]


def test_the_overview(found):
    assert rows_of(overview(found).markdown())[2:] == [
        ["a", "greedy", "62.0 % ± 19.2 %", "28.0 % ± 19.2 %"],
        ["b", "greedy", "40.0 %", "10.0 %"],
        ["a with b", "greedy", "45.0 % ± 7.1 %", "15.0 % ± 7.1 %"],
        ["random", "–", "5.0 %", "5.0 %"],
        ["oracle", "–", "100.0 %", "100.0 %"],
        ["paper: the best", "–", "59.0 % ± 1.0 %", "61.0 %"],
        ["paper: another", "–", "38.0 % ± 11.0 %", "–"],
    ]


def test_a_set(found):
    heads, _, a, b, together, random, oracle, best, another = rows_of(set_table(found, "train").markdown())
    assert heads[4:] == ["steps", "steps to win", "subgoal conflicts"]  # what nobody measured has no column
    assert a[3].startswith("IQM 60.0 % [")  # the middle three of five
    assert a[4:] == ["10.00 ± 1.58", "5.00 ± 0.00", "–"]
    assert b[2:] == ["40.0 %", "[15.3 %, 69.6 %] of 10 games", "8.00", "–", "25.0 %"]
    assert together[0] == "a with b"
    assert random[2:] == ["5.0 %", "–", "–", "–", "–"]
    assert oracle[2:] == ["100.0 %", "–", "6.00", "–", "–"]
    assert best[:3] == ["paper: the best", "–", "59.0 % ± 1.0 %"]
    assert another[:3] == ["paper: another", "–", "38.0 % ± 11.0 %"]


def test_the_json_holds_seeds_and_statistics(found):
    of_set = to_json(found, "a command", {"torch": "2"})["sets"]["eval"]
    assert of_set["options"] == {"max_cycles": 8, "agents": 2, "stage": "s1", "split": "eval"}
    one = of_set["runs"]["a"]["greedy"]
    assert [summary["win_rate"] for summary in one["seeds"].values()] == list(WINS["eval"])
    assert one["statistics"]["win_rate"]["mean"] == pytest.approx(0.28)
    assert one["statistics"]["win_rate"]["iqm"] == pytest.approx(0.7 / 3)
    assert "games" not in one["statistics"]
    assert of_set["cross_play"]["a with b"]["greedy"]["statistics"]["win_rate_agent_0"]["mean"] == 0.5
