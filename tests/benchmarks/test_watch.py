"""The watch command shows one game of a trained team, and who takes what where agents divide."""

import io

import numpy as np
import pytest
from PIL import Image

from magrounding.cli import watch
from magrounding.cli.command import CommandLine
from magrounding.cli.replay import ending, show_film
from magrounding.teams import film
from magrounding.teams.team import Team
from tests.experiment.tiny_runs import tiny_run

TEAM = "pretrained:ma_rtfm-s1-2agents"
NETWORK = {"channels": (4, 4), "goal_hidden": 2, "inventory_hidden": 2, "document_hidden": 4}


@pytest.fixture(scope="module")
def dividing(tmp_path_factory):
    return tiny_run(
        tmp_path_factory.mktemp("runs") / "endi", "s1", agent="endi_dis_relread", env_options={"max_cycles": 5}
    )


def run(*arguments):
    return CommandLine("magrounding watch", tuple(map(str, arguments))).run(watch)


def test_a_game_in_text(capsys):
    assert run("--run", TEAM, "--game", 3) == 0
    shown = capsys.readouterr().out
    steps = shown.count("\nstep ") - 1
    assert steps > 1
    assert shown.count("manual:") == 1
    assert shown.count("agent_0: ") == shown.count("agent_1: ") == steps  # the moves between two pictures
    assert shown.endswith(f"The game is won after {steps} steps.\n")
    assert "claimed by" not in shown
    run("--run", TEAM, "--game", 3)
    assert capsys.readouterr().out == shown
    run("--run", TEAM, "--game", 4)
    assert capsys.readouterr().out != shown


def test_what_belongs_to_an_agent_stays_below_its_name(capsys):
    frames = ["MANUAL\nred cures\n\nAGENT a\n\nYOU\nill\n\nAGENT b\n\nYOU\nill"] * 2
    show_film(frames, ["a: red\nb: red"], ending(True, 1), None, 600, quiet=False)
    shown = capsys.readouterr().out
    assert shown == f"{frames[0]}\n\na: red\nb: red\n\nThe game is won after 1 step.\n"


def test_who_takes_what(dividing, monkeypatch, capsys):
    monkeypatch.setattr(Team, "marks", lambda self, memory: np.ones((1, 2, 10, 10), np.int8))
    assert run("--run", dividing, "--split", "eval_10x10", "--play", "sampled") == 0
    shown = capsys.readouterr().out
    decided, end = shown.rsplit("\nstep ", 1)
    assert decided.count("claimed by agent 0, agent 1") == decided.count("(monster)") + decided.count("(item)")
    assert "claimed by" not in end


def test_a_film_and_a_sheet(tmp_path, capsys):
    for name in ("game.gif", "game.png"):
        assert run("--run", TEAM, "--out", tmp_path / name, "--milliseconds", 250) == 0
    steps = int(capsys.readouterr().out.splitlines()[0].split(" after ")[1].split()[0])
    with Image.open(tmp_path / "game.gif") as film, Image.open(tmp_path / "game.png") as sheet:
        film.seek(steps)  # a picture before each step, and the end
        assert film.info["duration"] >= 250
        assert max(sheet.size) <= 2000
        wide = round(sheet.width / film.width * film.height / sheet.height * 100) / 100  # columns / rows
        assert any(abs(c / r - wide) < 0.05 for r in range(1, 9) for c in range(1, 9) if c * r >= steps + 1)


@pytest.mark.parametrize(
    ("count", "size"), [(1, (1280, 840)), (2, (1280, 840)), (20, (1280, 840)), (400, (1280, 840)), (90, (64, 64))]
)
def test_a_sheet_has_a_bound(count, size):
    """The first picture is at the upper left, the last in the last place that is not white."""
    pictures = [Image.new("RGB", size, (0, k // 256, k % 256)) for k in range(count)]
    with Image.open(io.BytesIO(film.sheet(pictures))) as sheet:
        assert max(sheet.size) <= 2000
        red, green, blue = np.moveaxis(np.asarray(sheet.convert("RGB"), np.int32), 2, 0)
    numbers = set(np.unique((green * 256 + blue)[red == 0]).tolist())
    assert {0, count - 1} <= numbers
    assert len(numbers) == (count if size == (64, 64) else min(count, 35))


def test_attention_to_words_is_beside_the_map(tmp_path, capsys, monkeypatch):
    drawn, draw = [], watch.beside_words
    monkeypatch.setattr(watch, "beside_words", lambda *shown: drawn.append((*shown, draw(*shown))) or drawn[-1][-1])
    team = tiny_run(tmp_path / "run", "s1", agent="endi_dis", env_options={"max_cycles": 2}, network=NETWORK)
    assert run("--run", team, "--attention", "--out", tmp_path / "words.png") == 0
    *steps, end = drawn
    for _, words, attention, _ in steps:
        for agent in ("agent_0", "agent_1"):
            assert attention[agent].shape == (1 + len(NETWORK["channels"]), len(words))
            np.testing.assert_allclose(attention[agent].sum(1), 1, rtol=1e-5)
    assert not any(weights.any() for weights in end[2].values())  # nobody is to move any more
    assert {picture.shape for *_, picture in drawn} == {(660, drawn[0][-1].shape[1], 3)}
    with Image.open(tmp_path / "words.png") as sheet:
        assert drawn[0][-1].shape[1] <= sheet.width <= 2000  # no word is made smaller
    assert run("--run", TEAM, "--attention", "--out", tmp_path / "none.png") == 2
    assert run("--run", team, "--attention") == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_quiet_prints_only_where_the_pictures_are(tmp_path, capsys):
    assert run("--run", TEAM, "--quiet", "--out", tmp_path / "game.png") == 0
    assert capsys.readouterr().out == f"{tmp_path / 'game.png'}\n"
    assert run("--run", TEAM, "--quiet") == 2


@pytest.mark.parametrize(
    "arguments",
    ["--split moon", "--stage s5", "--trained-seed 7", "--out game.avi", "--run nowhere"],
)
def test_bad_input_is_one_sentence(capsys, arguments):
    assert run("--run", TEAM, *arguments.split()) == 2
    assert capsys.readouterr().err.count("\n") == 1
