"""Words "path=value" of command lines: whose they are, and what they may change."""

from importlib import import_module

import pytest

from magrounding.cli.command import PATHS, CommandLine
from magrounding.cli.main import commands


def parse(name, *words):
    return CommandLine(name, words).parse(import_module(commands()[name].module).Arguments)


@pytest.mark.parametrize(
    ("name", "words", "others"),
    [
        ("train", "--quiet env.size=9", {"quiet": True}),
        ("train", "env.size=9 --out a=b", {}),
        ("evaluate", "--run stage runs/x=1 env.size=9", {"run": ("stage", "runs/x=1")}),
        ("sweep", "--over learner.entropy=1,2 env.size=9", {"over": ("learner.entropy=1,2",)}),
        ("serve", "--player mine=script:a=b env.size=9", {"player": ("mine=script:a=b",)}),
        ("watch", "--run a env.size=9", {"file": None}),
        ("match", "--env rtfm --players oracle random env.size=9", {"players": ("oracle", "random")}),
    ],
)
def test_a_path_is_no_value_of_a_flag_and_no_flag_takes_it(name, words, others):
    found = parse(name, *words.split())
    assert getattr(found, PATHS) == ("env.size=9",)
    assert {each: getattr(found, each) for each in others} == others


def test_a_plan_is_printed_and_a_run_of_days_is_asked_for(tmp_path, capsys):
    def train(*words):
        line = ("--env", "ma_rtfm", "--out", str(tmp_path / "run"), *words)
        return CommandLine("magrounding train", line).run(import_module("magrounding.cli.train"))

    assert train("--preset", "demo", "--stages", "s1", "--plan") == 0
    assert "| s1 | imitate | imitation |" in capsys.readouterr().out
    assert train("--preset", "paper", "--stages", "s1") == 2
    for split in ("eval", "eval_new", "eval_paraphrase"):
        assert train("--preset", "demo", "--plan", f"env.split={split}") == 2
    assert not (tmp_path / "run").exists()
    capsys.readouterr()
    assert train("--preset", "quick", "--stages", "s3,s4", "--plan", "phases.s3.0.until.steps=7000") == 0
    assert capsys.readouterr().out.count("after 7,000 steps") == 1
