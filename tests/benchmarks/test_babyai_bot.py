"""How often minigrid's bot gives up off its own path."""

import pytest

pytest.importorskip("minigrid")

from benchmarks.babyai_bot import measure


def test_states_without_advice_are_counted():
    lost, states, without = measure("GoToRedBallGrey", 60)
    assert 0 < lost < 60
    assert lost <= without < states
    assert measure("GoToObj", 3)[::2] == (0, 0)
