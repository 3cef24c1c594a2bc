"""The zero-shot command plays the run's teams on the sets asked for, and refuses nonsense in one sentence."""

import json
import sys

import pytest

from benchmarks import zero_shot
from magrounding.agents.scripted import RandomTeam
from magrounding.evaluation import baselines
from magrounding.training.metrics import METRICS_FILE, read_metrics
from tests.training.tiny_runs import tiny_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("runs") / "run", "s2")


def run(monkeypatch, *arguments):
    monkeypatch.setattr(baselines, "load", lambda entry: lambda vec: RandomTeam(vec.num_agents, 5))
    monkeypatch.setattr(sys, "argv", ["zero_shot", *map(str, arguments)])
    return zero_shot.main()


def test_it_repeats_the_runs_own_report(finished, monkeypatch, capsys, tmp_path):
    out = tmp_path / "numbers.json"
    assert run(monkeypatch, "--run", finished, "--splits", "eval,eval_10x10", "--episodes", 8, "--json", out) == 0
    printed = capsys.readouterr().out
    rows = ("eval | greedy", "eval | sampled", "eval_10x10 | greedy", "eval_10x10 | sampled")
    for line, row in zip(printed.splitlines()[2:], rows, strict=True):
        assert line.startswith(f"| {row} |")
    results = json.loads(out.read_text())["results"]
    assert [result["set"] for result in results] == ["eval", "eval_10x10"]
    assert results[0]["baselines"]["random"]["games"] == 8
    for play in ("greedy", "sampled"):
        assert len(results[0]["seeds"][play]) == 2
        for k, summary in enumerate(results[0]["seeds"][play]):
            lines = read_metrics(finished / f"seed_{k}" / METRICS_FILE)
            reported = next(line for line in lines if line.get("when") == "after" and line["play"] == play)
            assert (reported["set"], reported["manual"]) == ("eval", "true")
            assert {name: reported[name] for name in summary} == pytest.approx(summary)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--splits", "moon"], "unknown evaluation set of ma_rtfm 'moon'"),
        (["--stage", "s1"], "unknown stage of this run 's1'"),
        (["--episodes", "0"], "--episodes must be positive, got 0"),
        (["--run", "nowhere"], "the folder does not exist"),
    ],
)
def test_bad_input_is_one_sentence(finished, monkeypatch, capsys, arguments, complaint):
    assert run(monkeypatch, "--run", finished, *arguments) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
