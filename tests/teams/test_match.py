"""Matches: line-ups that play the same games."""

import json

import pytest

from magrounding.cli import match as command
from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import MATCH_SEED, Results, play_match, ratings
from magrounding.teams.saved_games import SavedEpisode, read_episodes

S1 = {"stage": "s1", "agents": 2, "max_cycles": 20}


def lineups(*texts):
    return [Lineup.parse(text, 2) for text in texts]


def results(**won):
    games = {
        name: [SavedEpisode(k, (), (), bool(w), float(w), 1, (0.0,), False) for k, w in enumerate(each)]
        for name, each in won.items()
    }
    return Results("ma_rtfm", {}, games, "won")


def test_every_lineup_meets_the_same_games_and_the_oracle_wins_more(tmp_path):
    found = play_match("ma_rtfm", S1, lineups("oracle", "random,oracle", "random"), 30, tmp_path)
    seeds = [[game.seed for game in games] for games in found.games.values()]
    assert seeds[0] == seeds[1] == seeds[2] == list(range(seeds[0][0], seeds[0][0] + 30))
    rates = [found.outcomes(name).mean() for name in found.games]
    assert rates[0] == 1 > rates[1] >= rates[2]
    assert list(found.games) == ["oracle", "random,oracle", "random"]


def test_a_match_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("magrounding.teams.match.ROWS", 8)
    whole = play_match("ma_rtfm", S1, lineups("random"), 20, tmp_path / "whole")
    play_match("ma_rtfm", S1, lineups("random"), 8, tmp_path / "parts")
    file = tmp_path / "parts" / "games_0.jsonl"
    file.write_bytes(file.read_bytes()[:-100])  # a kill while the eighth game was written
    assert play_match("ma_rtfm", S1, lineups("random"), 20, tmp_path / "parts").games == whole.games
    assert len(read_episodes(file)[1]) == 20
    with pytest.raises(CheckpointError):
        play_match("ma_rtfm", S1, lineups("random"), 20, tmp_path / "parts", seed=3)
    with pytest.raises(CheckpointError):
        play_match("ma_rtfm", S1, lineups("oracle"), 20, tmp_path / "parts")


def test_who_cannot_play_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigurationError):
        play_match("ma_rtfm", S1, lineups("random", "oracle:3"), 4, tmp_path / "match")
    assert not (tmp_path / "match").exists()


def test_seeds_of_a_match(tmp_path):
    """Trained teams play the last that the command takes; one out of bounds is refused before anything is written."""
    seed = MATCH_SEED + 2**20 * (2**31 - 1)
    options = {"stage": "s2", "agents": 2, "max_cycles": 3}
    played = play_match("ma_rtfm", options, lineups("pretrained:ma_rtfm-s2-2agents"), 2, tmp_path / "match", seed)
    assert [game.seed for game in played.games["pretrained:ma_rtfm-s2-2agents"]] == [seed, seed + 1]
    for wrong in (-1, 2**62):
        with pytest.raises(ConfigurationError):
            play_match("ma_rtfm", S1, lineups("random"), 2, tmp_path / "none", wrong)
    assert not (tmp_path / "none").exists()


def test_ratings_of_bradley_and_terry():
    """Two line-ups: the odds of the model are those of the games, with one game drawn added."""
    found = ratings(results(a=[1] * 30 + [0] * 10, b=[0] * 30 + [1] * 10))
    odds = 10 ** ((found["a"].value - found["b"].value) / 400)
    assert odds == pytest.approx(30.5 / 10.5, rel=1e-6)
    assert found["a"].value == pytest.approx(-found["b"].value)
    assert found["a"].low < found["a"].value < found["a"].high
    equal = ratings(results(a=[1, 0, 1], b=[1, 0, 1], c=[1, 0, 1]))
    assert all(each.value == pytest.approx(0) for each in equal.values())


def test_the_command(capsys, tmp_path):
    (tmp_path / "moves.txt").write_text("right\n*")
    script = f"script:{tmp_path}/moves.txt,oracle"
    line = ["--env", "ma_rtfm", "--stage", "s1", "--games", "6", "--out", str(tmp_path / "out")]
    assert CommandLine("magrounding match", (*line, "--players", script, "oracle")).run(command) == 0
    assert "| kills | items | rating |" in capsys.readouterr().out
    found = json.loads((tmp_path / "out" / "match.json").read_text())
    assert list(found["lineups"]) == [script, "oracle"]
    assert sum(found["lineups"]["oracle"]["kills"]) == 2, "each game has two monsters, and the oracle wins all"
    assert found["lineups"]["oracle"]["won"]["value"] == 1
    files = {"match.md", "match.json", "match.rows.json", "match.png", "games_0.jsonl", "games_1.jsonl"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    assert CommandLine("magrounding match", (*line, "--players", "oracle", "oracle")).run(command) == 2
