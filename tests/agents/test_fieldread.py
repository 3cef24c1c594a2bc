"""fieldread takes any fields and actions, learns with all of its parameters, and plays no masked action."""

import numpy as np
import pytest

from magrounding.agents.building import make_policy
from magrounding.experiment.presets.general import fitting_agent
from magrounding.spec import EPISODE, Directions, EnvSpec, Field, FixedActions, Grid, Mask, Text, TextChoices
from magrounding.teams.player import Player, shown_to

WORDS = ("<pad>", *"abcdefghi")
MASK = Mask("action_mask", (3,))
NUMBERS = Field("numbers", (4,), -np.inf, np.inf, "float32")
MANUAL = Text("manual", (2, 4), 0, 9, shared=True, lifetime=EPISODE)
FIELDS = {
    "numbers": (NUMBERS, MASK),
    "no mask": (NUMBERS,),
    "a mask alone": (MASK,),
    "a scalar": (Field("at", (), 0, 9, "int64"), MASK),
    "nothing": (Field("nobody", (0, 3), 0, 9), MASK),
    "pixels": (Field("pixels", (8, 8, 3), 0, 255, "uint8"), MASK),
    "names of modules": (Field("keys", (2,), 0, 1), Field("a.b", (1,), -3, 3), Field("forward", (1,), 0, 1), MASK),
    "a map": (Grid("map", (4, 5, 1), 0, 9), MASK),
    "two maps": (Grid("near", (3, 3, 2), 0, 9), Grid("far", (9, 9, 1), 0, 9), MASK),
    "a place": (Grid("grid", (4, 5, 1), 0, 9), Field("position", (2,), -1, 9), MASK),
    "texts of all ranks": (Text("a", (5,), 0, 9), Text("b", (2, 5), 0, 9), Text("c", (2, 3, 4), 0, 9), MASK),
    "all": (Grid("map", (4, 5, 1), 0, 9), MANUAL, NUMBERS, MASK),
}
ACTIONS = {
    "fixed": ((), FixedActions(("left", "middle", "right"))),
    "texts": ((Text("choices", (3, 4), 0, 9),), TextChoices(3, 4)),
    "ways": ((Grid("view", (4, 6, 1), 0, 9), Field("columns", (3,), -1, 5)), Directions(2, stop=True)),
}


def make_spec(fields, actions="fixed", agents=1):
    more, kind = ACTIONS[actions]
    return EnvSpec((*more, *FIELDS[fields]), agents, kind, WORDS, 5)


def seen_in(spec, games, seed=0):
    rng, seen = np.random.default_rng(seed), spec.allocate(games)
    for field in spec.fields:
        low, high = (field.low, field.high) if np.isfinite(field.high) else (-5, 5)
        seen[field.name][...] = rng.integers(int(low), int(high) + 1, seen[field.name].shape)
    if "action_mask" in spec:
        seen["action_mask"][...] = [0, 1, 1]
    return seen


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("fields", FIELDS)
def test_it_plays_whatever_a_world_shows_and_nothing_masked(fields, actions):
    spec = make_spec(fields, actions, agents=2)
    player = Player(make_policy("fieldread", spec), spec, 6)
    shown = shown_to(1, seen_in(spec, 6), spec, None)
    chosen = player.choose(shown, np.ones(6, np.bool_))
    assert chosen.logits.shape == (6, 3)
    assert np.isfinite(chosen.value).all()
    if "action_mask" in spec:
        assert (chosen.action > 0).all()


def test_numbers_that_are_none_do_no_harm():
    spec = make_spec("numbers")
    seen = seen_in(spec, 2)
    seen["numbers"][...] = [np.nan, np.inf, -np.inf, 1e30]
    player = Player(make_policy("fieldread", spec), spec, 2)
    assert np.isfinite(player.choose(shown_to(0, seen, spec, None), np.ones(2, np.bool_)).value).all()


@pytest.mark.parametrize(("fields", "actions"), [("all", "fixed"), ("a mask alone", "texts"), ("a place", "ways")])
def test_the_agent_that_fits_looks_at_everything(fields, actions):
    assert fitting_agent(make_spec(fields, actions).with_mask()) == "fieldread"
