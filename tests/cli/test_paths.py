"""Words "path=value" of command lines: whose they are, and the flags that they are in the place of."""

from dataclasses import fields
from importlib import import_module

import pytest

from magrounding.cli.command import FORMER, PATHS, CommandLine
from magrounding.cli.main import commands
from magrounding.errors import ConfigurationError


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


@pytest.mark.parametrize("name", commands())
def test_a_flag_of_before_is_refused_with_its_path(name):
    known = {f"--{each.name.replace('_', '-')}" for each in fields(import_module(commands()[name].module).Arguments)}
    for flag in FORMER.keys() - known if "--paths" in known else ():
        with pytest.raises(ConfigurationError) as refused:
            parse(name, flag, "1")
        assert FORMER[flag] in str(refused.value)


def test_a_plan_is_printed_and_a_run_of_days_is_asked_for(tmp_path, capsys):
    def train(*words):
        line = ("--env", "ma_rtfm", "--out", str(tmp_path / "run"), *words)
        return CommandLine("magrounding train", line).run(import_module("magrounding.cli.train"))

    assert train("--preset", "demo", "--stages", "s1", "--plan") == 0
    assert "| s1 | imitate | imitation |" in capsys.readouterr().out
    assert train("--preset", "paper", "--stages", "s1") == 2
    assert not (tmp_path / "run").exists()
