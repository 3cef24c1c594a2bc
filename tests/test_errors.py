"""Errors travel between processes as they are."""

import pickle

import pytest

from magrounding.envs.checks import ConformanceError
from magrounding.errors import MagroundingError, MissingExtra
from magrounding.extensions.people.web.messages import Refusal
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
