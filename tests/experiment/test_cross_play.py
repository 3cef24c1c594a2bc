"""Mixed teams: who is paired with whom, in which places, and what is said of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from magrounding.errors import ConfigurationError
from magrounding.experiment.cross_play import cross_play, seed_pairs
from magrounding.experiment.zero_shot import EvaluatedRun, open_runs
from magrounding.teams.evaluate import REPORT_SEED, evaluate
from magrounding.teams.team import mixed_team
from tests.experiment.tiny_runs import tiny_run, tiny_settings


def contender(name, *seeds, agents=2):
    teams = dict.fromkeys(seeds)
    return EvaluatedRun(name, Path(name), tiny_settings(agents=agents), "s1", teams, {})  # pyright: ignore


def test_seeds_are_paired_so_that_pairs_are_independent():
    one, other, alone = contender("a", 0, 1, 2), contender("b", 4, 5, 6), contender("c", 9)
    assert seed_pairs(one, other) == [(0, 4), (1, 5), (2, 6)]
    assert seed_pairs(one, alone) == [(0, 9), (1, 9), (2, 9)]
    assert seed_pairs(alone, one) == [(9, 0), (9, 1), (9, 2)]
    assert seed_pairs(one, one) == [(0, 1), (1, 2), (2, 0)]


def test_who_cannot_be_paired():
    alone, solo = contender("a", 0), contender("b", 0, 1, agents=1)
    with pytest.raises(ConfigurationError):
        seed_pairs(alone, alone)
    with pytest.raises(ConfigurationError):
        seed_pairs(solo, solo)


def test_the_score_is_of_every_placement(tmp_path):
    run = tiny_run(tmp_path / "run", "s1", env_options={"max_cycles": 40})
    (one,) = open_runs({"a": run})
    (found,) = cross_play(one, replace(one, name="b"), [(0, 1)], ["eval"], 200, ["sampled"])
    assert (found["members"], found["run"], found["seed"]) == (("a", "b"), "a with b", "0 with 1")
    options = one.settings.resolve().stages["s1"].sets["eval"].options
    won = [
        evaluate(mixed_team(teams), "ma_rtfm", options, 200, REPORT_SEED, greedy=False).won.mean()
        for teams in ([one.teams[0], one.teams[1]], [one.teams[1], one.teams[0]])
    ]
    assert [found["win_rate_agent_0"], found["win_rate_agent_1"]] == won
    assert won[0] != won[1]
    assert found["win_rate"] == pytest.approx(sum(won) / 2)
    assert found["games"] == 200
