"""Papers' results stand beside games of their kind alone."""

from dataclasses import replace

import pytest

from magrounding.experiment.presets import find_preset
from magrounding.experiment.results import published_tables


@pytest.mark.parametrize(
    ("env", "agent", "options", "sets"),
    [
        ("touchdown", "panoread", {"manual_stop": False}, {"test"}),
        ("touchdown", "panoread", {"manual_stop": True}, set()),
        ("rtfm", "relread", {"size": 8}, {"eval_10x10"}),
    ],
)
def test_a_paper_is_not_beside_other_games(env, agent, options, sets):
    settings = replace(find_preset("quick", env, agent), env=env, agent=agent, env_options=options)
    assert {name for _, name in published_tables(settings.resolve())[0]} == sets
