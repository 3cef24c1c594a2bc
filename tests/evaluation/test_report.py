"""The report says what was measured: numbers by hand beside numbers in the table."""

import io
import json

import numpy as np
import pytest
from matplotlib.image import imread

from magrounding.errors import CheckpointError
from magrounding.evaluation import baselines, results
from magrounding.evaluation.plots import plot_curves
from magrounding.evaluation.report import report, results_table, rule_text, time_shares
from magrounding.evaluation.results import RunResults, read_results
from magrounding.registry import ENVS, load
from magrounding.storage import write_json
from magrounding.training.presets import Promotion
from tests.training.tiny_runs import tiny_settings

WINNING = "at 90.0 % wins over 1,000 training games"
SPENT = {"world": 10.0, "acting": 20.0, "learning": 70.0}


def line(kind, seed, stage, steps, **more):
    return {"kind": kind, "seed": seed, "stage": stage, "steps": steps, "total_steps": steps, "seconds": 1.0, **more}


def measured(seed, wins):
    """What a seed's metrics say: training, one evaluation within s1, and final ones on both sets of s1 only."""
    final = {"phase": "after", "games": 10, "return": 0.0, "timed_out": 0.0}
    return [
        line("train", seed, "s1", 100, window_win_rate=0.1, win_rate=0.1),
        line("train", seed, "s1", 240, window_win_rate=0.3, win_rate=0.4),
        line("evaluation", seed, "s1", 100, set="train", phase="within", games=5, win_rate=0.9, length=3.0),
        line("evaluation", seed, "s1", 240, set="train", win_rate=wins, length=7.0 + seed, **final),
        line("evaluation", seed, "s1", 240, set="eval", win_rate=wins / 2, length=8.0, **final),
        line(
            "stage",
            seed,
            "s1",
            240,
            best_steps=100,
            stage_seconds=60.0,
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
        published={("s1", "train"): (0.84, 0.21, "table 1")},
    )


def test_the_table_has_the_numbers(run):
    rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in results_table(run).splitlines()]
    assert rows[2] == [
        "s1",
        "train",
        "**60.0 %** ± 28.3 %",  # the sample deviation of 0.4 and 0.8
        "60.0 % [40.0 %, 80.0 %]",
        "7.5",
        "5.0 %",
        "99.0 %",
        "84.0 % ± 21.0 % (table 1)",
    ]
    assert rows[3][:3] == ["s1", "eval", "**30.0 %** ± 14.1 %"]
    assert rows[3][5:] == ["–", "–", "–"]
    assert [row[:3] for row in rows[4:]] == [["s3", name, "not reached"] for name in run.settings.entry.evaluation_sets]


def test_one_seed_has_no_deviation(run):
    alone = RunResults(run.folder, tiny_settings(seeds=(0,)), run.config, {0: run.lines[0]}, {}, {})
    assert "| s1 | train | **40.0 %** (one seed) | – |" in results_table(alone)


def test_shares_and_speed(run):
    text = time_shares(run)
    assert text.startswith("Wall time 3 min 20 s: world 10.0 %, acting 20.0 %, learning 70.0 %.")
    assert f"took {2 * 240 * 2 / 200:,.0f} agent samples a second" in text  # two seeds, two agents


def test_the_whole_report(run):
    text = report(run)
    for part in (
        "# ma_rtfm: 2 agents of `txt2pi`, preset `tiny`",
        "Next to nothing.",
        "seeds: 0, 1",
        "torch 2",
        "1 min 00 s",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Promotion(steps=5000), "after 5,000 steps"),
        (Promotion(steps=5000, win_rate=0.9), f"after 5,000 steps or {WINNING}"),
        (
            Promotion(steps=5000, win_rate=0.9, rule="all"),
            f"after 5,000 steps and {WINNING}",
        ),
        (Promotion(steps=5000, minutes=1.5), "after 5,000 steps, at the latest after 1.5 min"),
    ],
)
def test_rules_in_words(rule, text):
    assert rule_text(rule) == text


def test_curves_show_every_stage_and_seed(run):
    picture = imread(io.BytesIO(plot_curves(run)))
    fewer = imread(io.BytesIO(plot_curves(RunResults(run.folder, run.settings, {}, {0: run.lines[0], 1: []}, {}, {}))))
    assert picture.shape[0] > 400
    assert picture.shape[1] > 700

    def share_of(colour, image):
        return (np.abs(image[..., :3] * 255 - colour) < 20).all(-1).mean()

    blue, vermilion = (0, 114, 178), (213, 94, 0)
    assert share_of(blue, picture) > 1e-4
    assert share_of(vermilion, picture) > 1e-4
    assert share_of(vermilion, fewer) == 0


def test_published_numbers_belong_to_stages_and_sets():
    for env in ("rtfm", "ma_rtfm"):
        entry = ENVS[env]
        for (stage, name), (mean, std, source) in load(entry.published).items():
            assert stage in entry.stages
            assert name in entry.evaluation_sets
            assert 0 <= mean <= 1
            assert 0 <= std < 0.5
            assert source


def test_comparison_games_are_played_once(run, monkeypatch):
    played = []

    def pretend(env, options, games):
        played.append((options["stage"], options["split"], games))
        return {"random": {"win_rate": 0.0}}

    write_json(run.folder / "config.json", run.settings.to_dict())
    for seed in (0, 1):
        metrics = run.folder / f"seed_{seed}" / "metrics.jsonl"
        metrics.parent.mkdir()
        metrics.write_text("".join(json.dumps(entry) + "\n" for entry in run.lines[seed]))
    monkeypatch.setattr(results, "play_baselines", pretend)
    first, second = read_results(run.folder), read_results(run.folder)
    assert played == [("s1", "train", 8), ("s1", "eval", 8)]  # stages that were not reached are not compared
    assert first.baselines == second.baselines
    assert first.lines == run.lines


def test_a_run_without_measurements(tmp_path):
    write_json(tmp_path / "config.json", tiny_settings().to_dict())
    with pytest.raises(CheckpointError, match="no measurements yet"):
        read_results(tmp_path)


def test_baselines_are_random_and_the_oracle():
    played = baselines.play_baselines("ma_rtfm", {"stage": "s1", "agents": 2, "max_cycles": 60}, 20)
    assert played["oracle"]["win_rate"] > 0.9
    assert played["random"]["win_rate"] < 0.3
    assert played["oracle"]["games"] == 20
