"""Searches: what is trained next. Optuna has to find an optimum that was planted."""

import math

import pytest

from magrounding.extensions.cluster.sweep.axis import parse_axes, size_of
from magrounding.extensions.cluster.sweep.jobs import OptunaSearch
from magrounding.extensions.cluster.sweep.record import OPTUNA, Sweep

OVER = ("learner.learning_rate=1e-5..1e-1:log", "network.width=8,16,32,64")


def sweep_of(count, over=OVER):
    return Sweep(over, OPTUNA, count, {})


def planted(values):
    """Evaluations of a point: they rise to a result that is best at a rate of 1e-2 and a width of 32."""
    far = abs(math.log10(float(values["learner.learning_rate"])) + 2) / 2
    result = max(0.0, 0.9 - 0.4 * far - 0.1 * abs(math.log2(int(values["network.width"])) - 5))
    return [result * part for part in (0.4, 0.7, 0.9, 1.0)]


def in_better_half(point):
    """The nearer half of the rates."""
    return float(point.values["learner.learning_rate"]) >= 1e-3


def go_on(sweep, known, until, results=planted):
    """Search until so many points have ended; known: what those before have reached, more is added."""
    search = OptunaSearch(sweep, dict(known))
    for number in search.numbers():
        values = results(sweep.points[number].values)
        seen = next((k for k in range(1, len(values)) if search.gives_up(number, values[:k])), 0)
        sweep.points[number].stopped = seen
        search.ended(number, None if seen else values[-1], values[: seen or None])
        known[number] = (None, values[:seen]) if seen else (values[-1], values)
        if len(known) == until:
            break


def test_optuna_finds_the_better_half_of_a_planted_optimum():
    pytest.importorskip("optuna")
    sweep, known = sweep_of(40), {}
    go_on(sweep, known, 40)
    late = sweep.points[20:]
    assert sum(map(in_better_half, late)) >= 15
    best = max((value, number) for number, (value, _) in known.items() if value is not None)
    assert best[0] > 0.75
    assert sweep.points[best[1]].values["network.width"] == "32"
    given_up = [number for number, (value, _) in known.items() if value is None]
    assert given_up, "some fall behind the median"
    assert all(planted(sweep.points[number].values)[-1] < best[0] for number in given_up)


@pytest.mark.parametrize("over", [("a=1,2,3,4",), ("a=1,2,3", "b=1..3"), OVER])
def test_a_search_that_was_killed_goes_on_with_the_same_points_and_trains_none_twice(over):
    pytest.importorskip("optuna")

    def searched(pieces):
        sweep, known = sweep_of(15, over), {}
        for until in pieces:
            go_on(sweep, known, until, lambda values: [float(len(values)), sum(map(float, values.values()))])
            next(OptunaSearch(sweep, dict(known)).numbers(), None)  # one more has begun as it is killed
        return [tuple(point.values.values()) for point in sweep.points]

    whole = searched([15])
    assert len(set(whole)) == len(whole) == min(15, size_of(parse_axes(over)))
    assert searched([3, 4, 9, 15]) == whole
