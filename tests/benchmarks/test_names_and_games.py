"""Comparisons count the games that runs met, and show every name as it was typed."""

import json
from dataclasses import replace

import pytest

from magrounding.cli import compare, match
from magrounding.cli.command import CommandLine
from magrounding.experiment.reports.compare import comparison, met_games, plot
from magrounding.experiment.results import TEXT, read_results
from tests.experiment.tiny_runs import tiny_run

NAMES = ("lr$1_$2", "_a|b*")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return {name: read_results(tiny_run(root / str(k), "s1", seeds=(0,))) for k, name in enumerate("ab")}


def changed(run, games=None, text=None, **options):
    lines = {k: [{**line, **({"games": games} if games else {})} for line in own] for k, own in run.lines.items()}
    settings = replace(run.settings, env_options={**run.settings.env_options, **options})
    config = {**run.config, **({TEXT: text} if text else {})}
    return replace(run, lines=lines, config=config, settings=settings)


def test_runs_of_the_same_games_are_said_to_have_met_them(runs):
    assert met_games(runs) == "Every run met the same games, 8 on each set."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"games": 200}, "| games on each set | 8 | 200 |"),
        ({"max_cycles": 9}, "| max_cycles | 8 | 9 |"),
        ({"size": 10}, "| size | 8 | 10 |"),
        ({"text": "other sentences"}, "| text | not stated | other sentences |"),
    ],
)
def test_what_differs_in_their_games_is_said(runs, change, said):
    told = met_games({**runs, "b": changed(runs["b"], **change)})
    assert told.startswith("The runs did not meet the same games:\n\n|  | a | b |\n")
    assert told.splitlines()[4:] == [said]
    assert told in comparison({**runs, "b": changed(runs["b"], **change)}, "x.png")


def test_names_are_shown_as_they_are(runs, tmp_path):
    folders = [str(run.folder) for run in runs.values()]
    line = ("--runs", *folders, "--names", *NAMES, "--out", str(tmp_path))
    assert CommandLine("magrounding compare", line).run(compare) == 0
    text = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert text.startswith("# ma_rtfm, 2 agents: lr$1_$2, \\_a|b\\*\n")
    assert "| lr$1_$2 |" in text
    assert "| \\_a\\|b\\* |" in text


def test_the_legend_has_every_name_and_fits(runs, monkeypatch):
    from matplotlib.figure import Figure

    drawn, save = [], Figure.savefig

    def look(figure, *args, **kwargs):
        figure.draw_without_rendering()
        (legend,) = figure.legends
        drawn.append(([text.get_text() for text in legend.get_texts()], legend.get_window_extent(), figure.bbox))
        save(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", look)
    plot(dict(zip((*NAMES, "x" * 150), [*runs.values(), runs["a"]], strict=True)))
    ((texts, legend, whole),) = drawn
    assert any(text.startswith("lr\\$1_\\$2") for text in texts)
    assert any(text.startswith(" _a|b*") for text in texts)
    assert 0 <= legend.x0 < legend.x1 <= whole.width
    assert 0 <= legend.y0 < legend.y1 <= whole.height


@pytest.mark.parametrize(("players", "games"), [(("random",), 1), (("random",), 4), (("random", "oracle"), 1)])
def test_a_match_of_one_has_dashes_and_nulls(tmp_path, capsys, players, games):
    line = ("--env", "messenger", "--stage", "s1", "--players", *players, "--games", str(games), "--out", str(tmp_path))
    assert CommandLine("magrounding match", line).run(match) == 0
    assert "nan" not in capsys.readouterr().out.lower()
    text = (tmp_path / "match.json").read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    ratings = [each["rating"] for each in found["lineups"].values()]
    if len(players) == 1:
        assert ratings == [None]
    else:
        assert [each["low"] for each in ratings] == [None, None]
    assert "max_cycles" not in found["options"]  # it is the stage's own limit
