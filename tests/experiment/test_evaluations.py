"""What is played after and within phases, what is taken over, and how few games a small budget has."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

import magrounding as mg
from magrounding.cli import train
from magrounding.envs.make import Game
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.config import read_config
from magrounding.experiment.evaluate import play_baselines
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.presets import find_preset
from magrounding.experiment.reports.run import report
from magrounding.experiment.results import read_results
from magrounding.progress import Display
from magrounding.registry import AGENTS, ENVS
from magrounding.run_folder import METRICS_FILE
from magrounding.teams.evaluate import PLAYS, REPORT_SEED, evaluate
from tests.experiment.tiny_runs import learn, phases_of, tiny_run, tiny_settings


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A run of relread, what was played for it, and what it printed."""
    folder, played, out = tmp_path_factory.mktemp("runs") / "reader", [], io.StringIO()
    settings = tiny_settings(stages=("s1",), phases=phases_of(90))
    with pytest.MonkeyPatch.context() as patch:
        play = evaluation.play_set

        def noted(session, name, games, seed, **how):
            played.append((name, games, how["greedy"], how["manual"]))
            return play(session, name, games, seed, **how)

        patch.setattr(evaluation, "play_set", noted)
        learn(settings, folder, display=Display(Console(file=out, width=1000)))
    return folder, played, out.getvalue()


def test_the_same_games_are_played_once(reader):
    _, played, _ = reader
    assert played == [
        ("train", 6, False, "true"),
        *((name, 8, greedy, "true") for name in ("train", "eval_10x10", "eval_paraphrase") for greedy in (True, False)),
        *(("eval", 8, greedy, text) for text in ("reassigned", "of another game") for greedy in (True, False)),
    ]


def test_what_was_not_played_is_what_playing_gives(reader):
    folder, *_ = reader
    settings, team = read_config(folder), mg.load_team(folder)
    lines = [line for line in read_metrics(folder / METRICS_FILE) if line.get("when") == "after"]
    taken = [line for line in lines if line["set"] in ("eval", "eval_new") and line["manual"] == "true"]
    assert [(line["set"], line["play"]) for line in taken] == [
        (name, play) for name in ("eval", "eval_new") for play in PLAYS
    ]
    for line in taken:
        options = settings.resolve().stages["s1"].sets[line["set"]].options
        result = evaluate(team, "ma_rtfm", options, 8, REPORT_SEED, greedy=line["play"] == "greedy").summary()
        assert {name: line[name] for name in result} == result


def test_a_single_game_has_no_other_whose_manual_it_could_show(tmp_path):
    """A run with --games 1 ended with an error after its first phase."""
    settings = tiny_settings(stages=("s1",), phases=phases_of(30), report_games=1)
    assert tiny_settings(report_games=2).resolve().wrong_manuals == ("reassigned", "of another game")
    learn(settings, tmp_path / "run")
    lines = [line for line in read_metrics(tmp_path / "run" / METRICS_FILE) if line["kind"] == "evaluation"]
    assert {line["manual"] for line in lines} == {"true", "reassigned"}
    assert "| manual: reassigned |" in (tmp_path / "run" / "report.md").read_text()


def test_a_small_budget_has_fewer_games():
    whole = find_preset("quick", "ma_rtfm")
    small = whole.with_budget(0.02).evaluation
    assert (small.selection_games, small.report_games, small.every) == (100, 200, 25_000)
    assert (small.stage_sets, small.final_sets, small.read_always) == (("train", "eval"), None, False)
    tenth = whole.with_budget(0.1).evaluation
    assert (tenth.selection_games, tenth.report_games) == (200, 400)
    for factor in (0.25, 1, 3):
        more = whole.with_budget(factor).evaluation
        assert (more.selection_games, more.report_games, more.stage_sets) == (500, 1000, None)
        assert more.every == factor * 100_000
        assert more.read_always
        assert more.whole_games is None
    asked = train.Arguments(env="ma_rtfm", preset="quick", budget=0.02, paths=("evaluation.games=777",))
    assert train.requested(asked).evaluation.report_games == 777


def test_random_and_wrong_texts_have_fewer_games_where_these_last_long(monkeypatch):
    babyai = ENVS["babyai"]
    assert [babyai.evaluation.baseline_games(games) for games in (1000, 200, 50, 8)] == [125, 25, 25, 8]
    assert [ENVS["ma_rtfm"].evaluation.baseline_games(games) for games in (1000, 8)] == [1000, 8]
    entry = ENVS["ma_rtfm"]
    half = replace(entry, evaluation=replace(entry.evaluation, baseline_share=0.5))
    monkeypatch.setitem(ENVS._entries, "ma_rtfm", half)
    played = play_baselines(Game.of("ma_rtfm", {"stage": "s1", "agents": 2, "max_cycles": 20}), "train", 60)
    assert {who: summary["games"] for who, summary in played.items()} == {"random": 30, "oracle": 60}


@pytest.mark.parametrize("agent", ["emma", "flat"])
def test_a_set_that_a_network_cannot_play_costs_a_dash(tmp_path, monkeypatch, agent):
    """There was no report of a network of one's own that failed there, after all of its training."""
    monkeypatch.setitem(AGENTS._entries, "flat", mg.AgentEntry("flat", "tests.teams.test_team:Flat"))
    brief = {"phases": phases_of(30), "network": {}}
    folder = tiny_run(tmp_path / "run", "s1", agent=agent, final_sets=("eval", "eval_10x10"), seeds=(0,), **brief)
    lines = read_metrics(folder / METRICS_FILE)
    assert {line["set"] for line in lines if line.get("when") == "after"} == {"eval"}
    (line,) = (line for line in lines if line["kind"] == "unplayed")
    assert (line["set"], line["traceback"].startswith("Traceback")) == ("eval_10x10", True)
    told = report(read_results(folder))
    assert "| s1 | reinforcement alone | eval_10x10 | – | – | – |" in told
    assert line["reason"] in told
    assert {row.set for row in read_results(folder).measured if row.player == "team"} == {"", "eval"}
