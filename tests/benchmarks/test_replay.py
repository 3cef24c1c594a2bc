"""`magrounding replay`: saved games checked and shown."""

import re

import numpy as np
import pytest

from magrounding.cli import record, replay
from magrounding.cli.command import CommandLine
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import play_match
from magrounding.teams.saved_games import read_episodes
from magrounding.training.demonstrations import Demonstrations

S1 = {"stage": "s1", "agents": 2, "max_cycles": 6}


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    folder = tmp_path_factory.mktemp("match")
    play_match("ma_rtfm", S1, [Lineup.parse("oracle,random", 2)], 3, folder)
    return folder / "games_0.jsonl"


def run(capsys, *arguments):
    code = CommandLine("magrounding replay", tuple(map(str, arguments))).run(replay)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_all_games_are_checked(capsys, games):
    code, out, _ = run(capsys, games)
    assert code == 0
    assert re.fullmatch(rf"{games}: 3 games of ma_rtfm by oracle,random, wins [\d.]+%; all go as they did\n", out)


def test_a_game_as_text(capsys, games):
    code, out, _ = run(capsys, games, "--game", 1)
    assert code == 0
    assert re.search(r"The game is (won|lost) after \d steps\.\n$", out)
    assert "goal" in out.lower()


def test_a_game_as_a_page_a_film_and_a_sheet(capsys, games, tmp_path):
    for ending, begin in ((".html", b"<!doctype html>"), (".gif", b"GIF89a"), (".png", b"\x89PNG")):
        out = tmp_path / f"game{ending}"
        assert run(capsys, games, "--game", 0, "--out", out, "--quiet")[:2] == (0, f"{out}\n")
        assert out.read_bytes().startswith(begin)
    page = (tmp_path / "game.html").read_text()
    assert "agent_0 (oracle): " in page
    assert "setInterval(next, 600)" in page
    assert not re.search(r"(src|href)=.https?:", page)  # nothing is loaded from elsewhere


def test_a_film_in_mp4(capsys, games, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / "game.mp4"
    assert run(capsys, games, "--game", 0, "--out", out)[0] == 0
    assert out.read_bytes()[4:8] == b"ftyp"


def test_what_was_altered_is_not_shown(capsys, games, tmp_path):
    changed = tmp_path / "games.jsonl"
    changed.write_bytes(games.read_bytes().replace(b'"won":true', b'"won":false', 1).replace(b"oracle", b"random", 1))
    code, out, err = run(capsys, changed, "--game", 0)
    assert (code, out) == (2, "")
    assert "is damaged" in err


def test_saved_games_are_demonstrations(capsys, games, tmp_path):
    """The same moves, labelled as such."""
    _, saved = read_episodes(games)
    out = tmp_path / "demos.npz"
    line = ("--env", "ma_rtfm", "--player", f"saved:{games}", "--out", str(out))
    assert CommandLine("magrounding record", line).run(record) == 0
    shown = Demonstrations.load(out)
    assert (shown.header.played_by, shown.header.games) == ("oracle,random", 3)
    assert shown.won.tolist() == [game.won for game in saved]
    moves = [step for game in saved for step in game.actions]
    np.testing.assert_array_equal(np.where(shown.alive, shown.actions, 0)[shown.acted.any(1)], moves)
    capsys.readouterr()
    for other in (("--stage", "s2"), ("--games", "2"), ("--seed", "1"), ("--split", "eval"), ("--workers", "2")):
        again = (*line[:-1], str(tmp_path / "other.npz"), *other)
        assert CommandLine("magrounding record", again).run(record) == 2
        assert "with options of their own: say --env ma_rtfm and leave out others" in capsys.readouterr().err
