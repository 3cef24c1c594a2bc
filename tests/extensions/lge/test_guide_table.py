"""LGE table 1 and the command that trains a Guide, on trajectories of a toy."""

import json
import sys

import pytest

from benchmarks.tables import __main__
from magrounding.cli.command import CommandLine
from magrounding.extensions.lge.cli import guide
from magrounding.extensions.lge.guide import load_guide
from tests.extensions.lge.test_guide import THINGS, trajectory
from tools.scienceworld.collect_gold import append_trajectory


@pytest.fixture
def gold(tmp_path):
    file = tmp_path / "gold.jsonl"
    for thing in THINGS[:-1]:
        append_trajectory(file, trajectory(thing))
    append_trajectory(file, trajectory(THINGS[-1], "valid"))
    return file


def learn(gold, out, *more):
    arguments = ("--gold", str(gold), "--out", str(out), "--epochs", "2", *more)
    return CommandLine("magrounding guide", arguments).run(guide)


def test_a_guide_is_trained_and_judged(gold, tmp_path, capsys):
    out = tmp_path / "guide"
    assert learn(gold, out) == 0
    said = capsys.readouterr().out
    assert "15 gold actions of 5 training variations" in said
    assert "1 validation variations: RSR@50 1.000" in said, "fewer than 50 are valid: all are selected"
    assert load_guide(out).score("boil", ["a", "b"]).shape == (2,)
    record = json.loads((out / "guide.json").read_text())["record"]
    assert record["variations"] == {"train": 5, "valid": 1}
    assert learn(gold, out) == 2
    assert capsys.readouterr().err.startswith(f"error: {out / 'guide.json'} ")


def test_no_gold_is_one_sentence(tmp_path, capsys):
    assert learn(tmp_path / "none", tmp_path / "guide") == 2


def test_the_table(gold, tmp_path, monkeypatch, capsys):
    folder, out = tmp_path / "guide", tmp_path / "out"
    places = ("--gold", str(gold), "--guide", str(folder), "--out", str(out))
    monkeypatch.setattr(sys, "argv", ["tables", "lge_table1", "--no-train", *places])
    assert __main__.main() == 2
    learn(gold, folder)
    assert __main__.main() == 0
    page = (out / "lge_table1.md").read_text()
    assert "| Guide | 50 | 1.000 (0.99) |" in page
    assert "| G_τ | 50 | 0.333 (0.90) |" in page, "of three relevant actions only going to the kitchen is known"
    assert "3 steps of 1 validation variations" in page
    assert "on average 32 actions are valid" in page
    content = json.loads((out / "lge_table1.json").read_text())
    assert content["models"]["Guide"]["rsr"]["50"] == 1
