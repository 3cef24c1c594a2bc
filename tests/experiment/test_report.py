"""The report says what was measured: numbers by hand beside numbers in the table."""

from dataclasses import replace

import pytest

from magrounding.envs.published import PublishedResult
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.reports.run import (
    budget_table,
    reading_table,
    report,
    results_table,
)
from magrounding.experiment.results import RunResults
from magrounding.run_folder import RunFolder
from tests.experiment.tiny_runs import tiny_settings


def line(kind, seed, stage, steps, **more):
    where = {"kind": kind, "seed": seed, "stage": stage, "phase": "reinforce", "steps": steps, "total_steps": steps}
    return {**where, "seconds": 1.0, "training_seconds": 0.5, **more}


def measured(seed, wins):
    """What a seed's metrics say: training, one evaluation within s1, and final ones on both sets of s1 only."""
    common = {"games": 10, "return": 0.0, "timed_out": 0.0}
    greedy = {**common, "when": "after", "play": "greedy", "manual": "true"}
    sampled, misled = {**greedy, "play": "sampled"}, {**greedy, "manual": "of another game"}
    return [
        line("train", seed, "s1", 100, window_win_rate=0.1, win_rate=0.1),
        line("train", seed, "s1", 240, window_win_rate=0.3, win_rate=0.4),
        line("evaluation", seed, "s1", 100, set="train", win_rate=0.9, length=3.0, **{**sampled, "when": "within"}),
        line("evaluation", seed, "s1", 240, set="train", win_rate=wins, length=7.0 + seed, **greedy),
        line("evaluation", seed, "s1", 240, set="train", win_rate=wins / 4, length=4.0, **sampled),
        line("evaluation", seed, "s1", 240, set="eval", win_rate=wins / 2, length=8.0, **greedy),
        line("evaluation", seed, "s1", 240, set="eval", win_rate=wins / 8, length=4.0, **sampled),
        line("evaluation", seed, "s1", 240, set="eval", win_rate=wins / 10, length=8.0, **misled),
        line("evaluation", seed, "s1", 240, set="eval", win_rate=0.96, length=8.0, **{**misled, "play": "sampled"}),
        line(
            "phase",
            seed,
            "s1",
            240,
            best_steps=100 + 20 * seed,
            phase_seconds=60.0 * (1 + seed),
            training_seconds=300.0,
            spent={"world": 10.0, "acting": 20.0, "learning": 70.0},
        ),
    ]


@pytest.fixture
def run(tmp_path):
    return RunResults(
        folder=tmp_path,
        settings=tiny_settings(seeds=(0, 1)),
        config={"command": "python -m benchmarks.curriculum", "versions": {"torch": "2"}},
        lines={0: measured(0, 0.4), 1: measured(1, 0.8)},
        baselines={"s1/train": {"random": {"win_rate": 0.05}, "oracle": {"win_rate": 0.99}}},
        published={("s1", "train"): PublishedResult(0.84, 0.21, "table 1")},
    )


def test_the_table_has_the_numbers(run):
    rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in results_table(run).markdown().splitlines()]
    assert rows[2] == [
        "s1",
        "reinforcement alone",
        "train",
        "60.0 % ± 28.3 %",  # the sample deviation of 0.4 and 0.8
        "15.0 % ± 7.1 %",
        "[22.0 %, 92.3 %] of 2 × 10 games",  # over seeds and games: wider than from the one seed to the other
        "7.50 ± 0.71",
        "5.0 %",
        "99.0 %",
        "60.6 %",  # 60 of 99
        "84.0 % ± 21.0 % (table 1)",
    ]
    assert rows[3][2:5] == ["eval", "30.0 % ± 14.1 %", "7.5 % ± 3.5 %"]
    assert rows[3][7:] == ["–", "–", "–", "–"]
    sets = run.settings.entry.evaluation.sets
    assert [row[:4] for row in rows[4:]] == [["s3", "reinforcement alone", name, "–"] for name in sets]
    assert {row.count("|") for row in results_table(run).markdown().splitlines()} == {12}


def test_the_better_way_of_playing_leads(run):
    """Interval and steps are of draws where these win more."""
    assert run.better_play == "greedy"
    other = {"greedy": "sampled", "sampled": "greedy"}
    lines = {k: [{**x, "play": other.get(x.get("play"))} for x in own] for k, own in run.lines.items()}
    swapped = replace(run, lines=lines)
    assert swapped.better_play == "sampled"
    row = results_table(swapped).markdown().splitlines()[2]
    assert "| 15.0 % ± 7.1 % | 60.0 % ± 28.3 % | [22.0 %, 92.3 %] of 2 × 10 games | 7.50 ± 0.71 |" in row
    assert "Better way of playing on training games: **sampled**." in report(swapped)


def test_what_wrong_manuals_do(run, monkeypatch):
    """In the better way of playing, on the set for it; what was not measured is left open."""
    assert reading_table(run).markdown().splitlines() == [
        "| stage | learnt by | manual: true | manual: of another game |",
        "| --- | --- | --- | --- |",
        "| s1 | reinforcement alone | 30.0 % ± 14.1 % | 6.0 % ± 2.8 % |",
    ]
    assert not reading_table(replace(run, lines={0: [], 1: []}))
    monkeypatch.setattr(type(run), "plan", replace(run.plan, wrong_manuals=()))
    assert not reading_table(run)


def test_the_budget_is_the_mean_over_seeds(run):
    rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in budget_table(run).markdown().splitlines()]
    taken = ["240", "110", "1 min 30 s", "5 min 00 s"]
    assert rows[2:] == [
        ["s1", "reinforce", "after 240 steps", *taken],
        ["s3", "reinforce", "after 180 steps", "–", "–", "–", "–"],
    ]


def test_comparison_games_that_are_interrupted_end_as_undisturbed_ones(tmp_path, monkeypatch):
    plan = tiny_settings(stages=("s1",), final_sets=("train", "eval")).resolve()
    whole, struck = (RunFolder(tmp_path / name) for name in ("whole", "struck"))
    for folder in (whole, struck):
        (folder.path / "s1").mkdir(parents=True)
    evaluation.play_missing(plan, whole)
    play = evaluation.play_baselines

    def strike(game, name, games, **more):
        if name == "eval":
            raise KeyboardInterrupt
        return play(game, name, games, **more)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "play_baselines", strike)
        with pytest.raises(KeyboardInterrupt):
            evaluation.play_missing(plan, struck)
    assert list(struck.baselines()) == ["s1/train"]
    evaluation.play_missing(plan, struck)
    assert whole.baselines() == struck.baselines()
