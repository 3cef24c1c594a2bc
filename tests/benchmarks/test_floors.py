"""Teams without training that bound what telling is worth."""

from benchmarks.floors import teams
from magrounding.envs.make import Game
from magrounding.teams.evaluate import evaluate


def test_each_team_wins_more_than_the_one_before_and_tells_no_more_than_it_may():
    game = Game.of("ma_rtfm", {"stage": "s2g", "reading": "kind", "agents": 3, "split": "eval"})
    found = {who: evaluate(*team, 200, diagnose=True).summary() for who, team in teams(game).items()}
    won = [each["win_rate"] for each in found.values()]
    assert [*found] == ["silent", "any 1", "any 2", "oracle", "all"]
    assert won == sorted(won)
    assert won[1] > won[0] + 0.2 > won[0] > 0.1
    told = {who: each.get("lines_told") for who, each in found.items()}
    assert (told["silent"], told["any 1"], told["all"]) == (0, 3, None)
    assert 3 < told["any 2"] <= 6
