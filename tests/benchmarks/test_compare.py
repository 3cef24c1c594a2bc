"""Runs side by side: the numbers of each in its own line, curves that are drawn, and refusals."""

import io
import re
from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from magrounding.cli import compare
from magrounding.cli.command import CommandLine
from magrounding.cli.compare import COMPARISON_FILE, FIGURE_FILE
from magrounding.errors import ConfigurationError
from magrounding.experiment.reports.compare import comparison, plot, shared_stages, stage_table
from magrounding.experiment.results import read_results
from tests.experiment.tiny_runs import tiny_run

WINS = {"true": 0.5, "reassigned": 0.25, "of another game": 0.125}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return [tiny_run(root / "long", "s1", "s2"), tiny_run(root / "short", "s1")]


def run(*arguments):
    return CommandLine("magrounding compare", tuple(map(str, arguments))).run(compare)


def cells(text):
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines()]


def test_every_run_has_a_line_with_its_own_numbers(folders):
    runs = dict(zip(("two", "one"), map(read_results, folders), strict=True))
    altered = {seed: [dict(line) for line in lines] for seed, lines in runs["one"].lines.items()}
    for seed, lines in altered.items():
        for line in lines:
            if line["kind"] == "evaluation":
                line["win_rate"] = WINS[line["manual"]] + seed / 8
    runs["one"] = replace(runs["one"], lines=altered)
    heads, _, two, one, random, oracle = cells(stage_table(runs, "s1").markdown())
    assert heads[:2] == ["run", "train"]
    assert heads[-4:] == ["manual: reassigned", "manual: of another game", "environment steps", "training"]
    assert [row[0] for row in (two, one, random, oracle)] == ["two", "one", "random", "oracle"]
    assert one[heads.index("eval")] == "56.2 % ± 8.8 %"
    assert one[heads.index("manual: reassigned")] == "31.2 % ± 8.8 %"
    assert one[heads.index("manual: of another game")] == "18.8 % ± 8.8 %"
    assert two[heads.index("environment steps")] == "60"
    assert shared_stages(runs) == ["s1"]
    assert [row[0] for row in cells(stage_table(runs, "s2").markdown())[2:]] == ["two", "random", "oracle"]


def test_the_command_writes_a_page_and_a_picture(folders, tmp_path, capsys):
    out = tmp_path / "new" / "ab"
    assert run("--runs", *folders, "--names", "with", "without", "--out", out) == 0
    text = (out / COMPARISON_FILE).read_text()
    assert "with, without" in text.splitlines()[0]
    play = read_results(folders[0]).settings.evaluation.selection_play
    assert f"({play} play, mean over seeds)" in text
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["s1", "Runs"]
    assert f"({FIGURE_FILE})" in text
    picture = imread(io.BytesIO((out / FIGURE_FILE).read_bytes()))
    assert picture[..., :3].min() < 0.5 < picture[..., :3].mean()
    assert str(out) in capsys.readouterr().out


def test_it_says_how_agents_played_in_the_evaluations_of_the_curves(folders):
    runs = dict(zip(("two", "one"), map(read_results, folders), strict=True))

    def greedily(run):
        evaluation = replace(run.settings.evaluation, selection_play="greedy")
        return replace(run, settings=replace(run.settings, evaluation=evaluation))

    for changed, plays in (((), "sampled"), (("two",), "greedy or sampled"), (runs, "greedy")):
        shown = {name: greedily(run) if name in changed else run for name, run in runs.items()}
        assert f"Lines are evaluations during training ({plays} play, mean" in comparison(shown, "x.png")


def test_a_curve_has_every_evaluation_during_training_and_not_that_of_the_best_weights(folders, monkeypatch):
    run = read_results(folders[1])
    line = {
        "kind": "evaluation",
        "stage": "s1",
        "phase": "reinforce",
        "set": "eval",
        "play": "sampled",
        "manual": "true",
    }
    told = [(10, "within", 0.25), (20, "within", 0.5), (20, "after", 0.75)]  # the best may be from before the end
    measured = [
        {**line, "steps": steps, "total_steps": steps, "when": when, "win_rate": rate} for steps, when, rate in told
    ]
    run = replace(run, lines=dict.fromkeys(run.settings.seeds, measured))
    drawn = []
    monkeypatch.setattr(Axes, "plot", lambda _, x, y, **style: drawn.append((list(x), list(y))))
    plot({"one": run, "another": run})
    assert drawn == 2 * [([10, 20], [25, 50])]


@pytest.mark.parametrize("arguments", [[], [0], [0, 1, "--names", "one", "one"], [0, "nowhere"]])
def test_nonsense_is_refused(folders, tmp_path, arguments):
    chosen = [folders[a] if isinstance(a, int) else a for a in arguments]
    assert run("--runs", *chosen, "--out", tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()


def test_runs_of_different_teams_are_not_compared(folders):
    runs = dict(zip("ab", map(read_results, folders), strict=True))
    alone = replace(runs["b"], settings=replace(runs["b"].settings, agents=3))
    with pytest.raises(ConfigurationError):
        comparison({**runs, "b": alone}, "x.png")
