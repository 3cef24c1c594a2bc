"""Teams that come with the package: they load, they win as often as their papers say, and they read."""

import pytest

import magrounding as mg
from magrounding.experiment.config import read_config
from magrounding.pretrained import ABOUT_FILE, find_run, pretrained_names
from magrounding.storage import read_json
from magrounding.teams.evaluate import OTHER_GAME, REASSIGNED, TRUE_MANUAL, evaluate
from tests.full import in_full, in_the_full_suite

GAMES = in_full(200, 60)
LONG = {"ma_rtfm-s6-2agents"}
"""Teams whose games take ten seconds and more."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=in_the_full_suite("ten core seconds") if name in LONG else ())
        for name in pretrained_names()
    ],
)
def test_it_wins_as_often_as_it_says(name):
    folder = find_run(f"pretrained:{name}")
    settings, about = read_config(folder), read_json(folder / ABOUT_FILE)
    team = mg.load_team(f"pretrained:{name}")
    held_out = settings.entry.evaluation.reading_set
    options = settings.resolve().stages[settings.stages[-1]].sets[held_out].options
    won = evaluate(team, settings.env, options, GAMES, seed=3 * 2**40).won.mean()
    said = about["win_rates"][f"{held_out}, greedy"]
    assert abs(won - said) < 4 * (said * (1 - said) * (1 / GAMES + 1 / about["games"])) ** 0.5 + 0.01


RTFM = {"agents": 2, "split": "eval", "max_cycles": 80}
HELD_OUT = {"stage": "s2", "split": "test"}
"""Every entity has a role that it never had in training, told in sentences of other templates."""


@pytest.mark.parametrize(
    ("name", "env", "options", "wrong", "bar"),
    [
        ("ma_rtfm-s1-2agents", "ma_rtfm", {"stage": "s1", **RTFM}, (REASSIGNED, OTHER_GAME), 0.15),
        ("ma_rtfm-s2-2agents", "ma_rtfm", {"stage": "s2", **RTFM}, (REASSIGNED, OTHER_GAME), 0.15),
        ("messenger-s2", "messenger", HELD_OUT, (REASSIGNED,), 0.05),
    ],
)
def test_they_read(name, env, options, wrong, bar):
    """Who wins with the true manual loses with a wrong one: of the same words, or of another game."""
    team = mg.load_team(f"pretrained:{name}")
    won, *misled = (
        evaluate(team, env, options, in_full(500, 300), seed=3 * 2**40, manual=manual).won.mean()
        for manual in (TRUE_MANUAL, *wrong)
    )
    assert won > 0.9
    assert max(misled) < bar
