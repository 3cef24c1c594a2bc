"""Errors travel between processes as they are."""

import pickle

import pytest

from magrounding.envs.checks.episode import ConformanceError
from magrounding.errors import ConfigurationError, MagroundingError, MissingExtra, choose
from magrounding.play.web.messages import Refusal
from magrounding.simulators.faults import SimulatorError  # noqa: F401  a kind of error is known once it is imported

MADE = {MissingExtra: ("alfworld", "alfworld"), Refusal: ("lost", "the game is gone"), ConformanceError: ("end", "no")}
"""Of those that do not take one sentence."""


def kinds(base):
    return {base, *(kind for each in base.__subclasses__() for kind in kinds(each))}


@pytest.mark.parametrize("kind", sorted(kinds(MagroundingError), key=lambda kind: kind.__name__))
def test_an_error_can_be_pickled(kind):
    error = kind(*MADE.get(kind, ("one sentence",)))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize(
    ("value", "end"),
    [("nmae 7", "name 8, name 9; did you mean 'name 7'?"), ("zebra", "name 9"), (7, "name 9")],
)
def test_below_a_long_list_of_names_stands_the_one_that_was_meant(value, end):
    with pytest.raises(ConfigurationError) as caught:
        choose("thing", value, [f"name {k}" for k in range(10)])
    assert str(caught.value).endswith(end)
