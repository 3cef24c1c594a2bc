"""Errors travel between processes as they are."""

import pickle

import pytest

from magrounding.cli.main import COMMANDS
from magrounding.envs.checks import ConformanceError
from magrounding.errors import ConfigurationError, MagroundingError, MissingExtra, check_choice
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
    ("kind", "value", "known", "meant"),
    [
        ("preset", "quik", ("paper", "quick", "demo"), "quick"),
        ("split", "evl", ("train", "eval"), "eval"),
        ("env", "RTFM", ("messenger", "rtfm"), "rtfm"),
        ("stage", "S5", ("s1", "s5"), None),  # two letters: everything is like everything
        ("command", "tarin", COMMANDS, "train"),
        ("command", "agents", COMMANDS, None),  # and not segments
        ("thing", "zebra", (), None),
        ("thing", None, ("none",), None),
    ],
)
def test_what_was_meant_is_said_where_a_name_is_like_it_and_nothing_where_none_is(kind, value, known, meant):
    with pytest.raises(ConfigurationError) as caught:
        check_choice(kind, value, known)
    _, asked, suggestion = str(caught.value).partition("did you mean ")
    assert (bool(asked), suggestion) == ((True, f"{meant!r}?") if meant else (False, ""))
