"""The watch command shows one game of a trained team, and who takes what where agents divide."""

import sys

import numpy as np
import pytest
from PIL import Image

from benchmarks import watch
from magrounding.play.team import Team
from tests.experiment.tiny_runs import tiny_run

TEAM = "pretrained:ma_rtfm-s1-2agents"


@pytest.fixture(scope="module")
def dividing(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("runs") / "endi", "s1", agent="endi_dis", env_options={"max_cycles": 5})


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["watch", *map(str, arguments)])
    return watch.main()


def test_a_game_in_text(monkeypatch, capsys):
    assert run(monkeypatch, "--run", TEAM, "--game", 3) == 0
    shown = capsys.readouterr().out
    steps = shown.count("\nmanual:") - 1
    assert steps > 1
    assert shown.endswith(f"The game is won after {steps} steps.\n")
    assert "claimed by" not in shown
    run(monkeypatch, "--run", TEAM, "--game", 3)
    assert capsys.readouterr().out == shown
    run(monkeypatch, "--run", TEAM, "--game", 4)
    assert capsys.readouterr().out != shown


def test_who_takes_what(dividing, monkeypatch, capsys):
    monkeypatch.setattr(Team, "marks", lambda self, memory: np.ones((1, 2, 10, 10), np.int8))
    assert run(monkeypatch, "--run", dividing, "--split", "eval_10x10", "--play", "sampled") == 0
    shown = capsys.readouterr().out
    decided, end = shown.rsplit("\nstep ", 1)
    assert decided.count("claimed by agent 0, agent 1") == decided.count("(monster)") + decided.count("(item)")
    assert "claimed by" not in end


def test_a_film_and_a_sheet(monkeypatch, tmp_path, capsys):
    for name in ("game.gif", "game.png"):
        assert run(monkeypatch, "--run", TEAM, "--out", tmp_path / name, "--milliseconds", 250) == 0
    steps = int(capsys.readouterr().out.splitlines()[0].split(" after ")[1].split()[0])
    with Image.open(tmp_path / "game.gif") as film, Image.open(tmp_path / "game.png") as sheet:
        film.seek(steps)  # a picture before each step, and the end
        assert film.info["duration"] >= 250
        assert sheet.width % film.width == sheet.height % film.height == 0
        assert (sheet.width // film.width) * (sheet.height // film.height) >= steps + 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--split", "moon"], "unknown split 'moon'; choose from: train, eval"),
        (["--stage", "s5"], "unknown trained stage of this run 's5'; choose from: s1"),
        (["--trained-seed", "7"], "unknown seed of this run '7'"),
        (["--play", "slowly"], "unknown way to --play 'slowly'; choose from: greedy, sampled"),
        (["--out", "game.mp4"], "unknown ending of --out '.mp4'; choose from: .gif, .png"),
        (["--milliseconds", "0"], "--milliseconds must be positive, got 0"),
        (["--run", "nowhere"], "the folder does not exist"),
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, arguments, complaint):
    assert run(monkeypatch, "--run", TEAM, *arguments) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
