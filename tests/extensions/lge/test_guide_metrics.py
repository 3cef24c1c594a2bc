"""A Guide's metrics on examples that are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.tables.guide import frequent_actions, set_metrics
from magrounding.extensions.lge.guide.metrics import (
    guide_metrics,
    steps_of,
)
from magrounding.single.scienceworld.trajectories import Trajectory


def trajectory(commands, valid, task="boil", meant=None, text="boil water"):
    return Trajectory(task, "valid", 0, text, tuple(commands), tuple(meant or [True] * len(commands)), 100, valid)


def test_steps_show_what_is_valid_then():
    """ "b" is valid in steps 0 and 2; the trajectory pauses in step 1, and its last command is not listed."""
    path = trajectory("aab", {"a": (0, 3), "b": (0, 1, 2, 3), "c": (1, 3)}, meant=[True, False, True])
    first, second, third = steps_of(path)
    assert (first.valid.tolist(), first.relevant.tolist(), first.gold) == ([0, 1], [True, True], 0)
    assert (second.valid.tolist(), second.relevant.tolist(), second.gold) == ([0, 2], [True, False], None)
    assert (third.valid.tolist(), third.relevant.tolist(), third.gold) == ([0, 1, 2], [True, True, False], 1)
    (only,) = steps_of(trajectory("z", {"a": (0, 1)}))
    assert only.gold is None
    assert not only.relevant.any()


def test_metrics_of_a_guide():
    """Scores c 3, a 2, b 1. Step 0: a of {a, b, c}; step 1: b of the same; a and b are relevant in both."""
    known = {"a": 2.0, "b": 1.0, "c": 3.0}
    path = trajectory("ab", {"a": (0, 2), "b": (0, 2), "c": (0, 2)})
    found = guide_metrics(lambda text, actions: np.array([known[each] for each in actions]), [path], ks=(2, 1))
    assert found.steps == 2
    assert found.rsr == {2: pytest.approx(0.5), 1: 0.0}
    assert found.map == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found.gar == (pytest.approx(2.5), pytest.approx(0.5))
    assert found.gar_percent == (pytest.approx(100 * 2.5 / 3), pytest.approx(100 * 0.5 / 3))
    assert found.garr == (pytest.approx((1 / 2 + 1 / 3) / 2), pytest.approx((1 / 2 - 1 / 3) / 2))
    assert found.by_task == {"boil": pytest.approx(0.5)}


def test_frequency_baselines():
    """Of boil: a 3 times, b twice, c once; of melt: c 3 times. A pause counts for nothing."""
    paths = [
        trajectory("aab", {}),
        trajectory("abc", {}),
        trajectory("cccd", {}, task="melt", meant=[True, True, True, False]),
    ]
    by_task, overall = frequent_actions(paths, 2)
    assert by_task == {"boil": {"a", "b"}, "melt": {"c"}}
    assert overall == {"a", "c"}, "4 times c, 3 times a, twice b"


def test_metrics_of_a_set_count_it_whole():
    """Relevant a and b; the set {a, c} has one of them, however many actions a Guide would select."""
    path = trajectory("ab", {"a": (0, 2), "b": (0, 2), "c": (0, 2), "d": (0, 2)})
    found = set_metrics(lambda task: frozenset("ac"), [path])
    assert found.rsr == {50: 0.5}
    assert found.map == pytest.approx((1 / 1.5 + 2 / 3.5) / 2)
    assert found.gar is None
