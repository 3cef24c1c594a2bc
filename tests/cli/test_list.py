"""`magrounding list`: everything that is registered, as a table and as JSON."""

import json
import sys

import pytest

from magrounding import extras
from magrounding.cli import main as console
from magrounding.pretrained import PREFIX, pretrained_names
from magrounding.registry import AGENTS, ALGORITHMS, ENVS, PRESETS


@pytest.fixture(autouse=True)
def one_extra_missing(monkeypatch):
    monkeypatch.setattr(extras, "extras", lambda: ("nethack", "web"))
    monkeypatch.setattr(extras, "state", lambda name: "lacks nle" if name == "nethack" else "installed")


def listed(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["magrounding", "list", *arguments])
    assert console.main() == 0
    return capsys.readouterr().out


def test_everything_is_listed(monkeypatch, capsys):
    found = json.loads(listed(monkeypatch, capsys, "--json"))
    ids = {kind: [row["id"] for row in rows] for kind, rows in found.items()}
    assert ids["envs"] == list(ENVS)
    assert ids["agents"] == list(AGENTS)
    assert ids["algorithms"] == list(ALGORITHMS)
    assert set(ids["presets"]) == {entry.name for entry in PRESETS.values()} | {"general"}
    assert ids["teams"] == [PREFIX + name for name in pretrained_names()]
    assert ids["extras"] == ["nethack", "web"]


def test_an_environment_says_which_extra_is_missing(monkeypatch, capsys):
    rows = {line.split()[0]: line for line in listed(monkeypatch, capsys, "envs").splitlines() if line}
    assert rows["nethack"].endswith("extra nethack, lacks nle")
    assert "extra" not in rows["rtfm"]


def test_an_unknown_kind_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["magrounding", "list", "agent"])
    assert console.main() == 2


def test_a_team_is_listed_with_games_that_it_was_neither_trained_nor_chosen_by(monkeypatch, capsys):
    won = {row["id"]: row["won"] for row in json.loads(listed(monkeypatch, capsys, "teams", "--json"))["teams"]}
    assert {text.split("(")[1] for text in won.values()} == {"eval, greedy)", "test, greedy)"}
    assert won[PREFIX + "messenger-s3"].startswith("65.3%")
