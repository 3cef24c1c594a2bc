"""What people see does not say what is to be read: pictures and legends are the same whoever has which role."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.drawing import rgb_array
from magrounding.envs.messenger.arrays import KIND, PRESENT, ROLE, X, Y
from magrounding.envs.render import ansi
from magrounding.envs.rtfm.arrays import WORD_1
from magrounding.extensions.people.web.frames import Sprites, _figure

MESSENGER = [("messenger", "s1", 1), ("messenger", "s2", 1), ("messenger", "s3", 1), ("ma_messenger", "s4", 2)]


@pytest.mark.parametrize(("env", "stage", "agents"), MESSENGER, ids=[f"{env}-{stage}" for env, stage, _ in MESSENGER])
def test_entities_of_messenger_change_roles_and_nobody_sees_it(env, stage, agents):
    options = {"agents": agents} if agents > 1 else {}
    vec = mg.make_vec(env, 1, stage=stage, **options)
    rng = np.random.default_rng(0)
    for seed in range(5):
        vec.reset(seed=seed)
        world = vec.world
        entities, before = world._games.entities[0], world.scene(0)
        seen = entities[agents:, [Y, X, PRESENT, KIND]]
        entities[agents:, [Y, X, PRESENT, KIND]] = rng.permutation(seen)
        assert len(set(entities[agents:, ROLE])) > 1
        after = world.scene(0)
        assert after.figures == before.figures
        assert ansi(after) == ansi(before)
        np.testing.assert_array_equal(rgb_array(after), rgb_array(before))
        sprites = Sprites()
        assert [_figure(each, sprites) for each in after.figures] == [_figure(each, sprites) for each in before.figures]
        legend = [line for line in ansi(before).split("manual:")[0].split("\n") if "(" in line]
        assert len(legend) == len(seen)
        assert not any(role in line for line in legend for role in ("enemy", "goal", "decoy", "(message"))


@pytest.mark.parametrize(("env", "task"), [("rtfm", {"task": "simple"}), ("ma_rtfm", {"stage": "s5"})])
def test_items_of_rtfm_change_places_in_the_world_and_nobody_sees_it(env, task):
    vec = mg.make_vec(env, 1, **task)
    for seed in range(5):
        vec.reset(seed=seed)
        world = vec.world
        entities, before = world._games.entities[0], world.scene(0)
        first = world._rules.agents
        items = first + world._rules.monsters
        entities[first:items], entities[items:] = entities[first:items][::-1].copy(), entities[items:][::-1].copy()
        assert world.scene(0).figures == before.figures
        assert ansi(world.scene(0)) == ansi(before)


@pytest.mark.parametrize("env", ["rtfm", "rock_paper_scissors"])
def test_no_letter_is_always_the_one_that_is_needed(env):
    """Items were listed with those that beat a target first, in rock-paper-scissors each before the one it beats."""
    vec = mg.make_vec(env, 40)
    vec.reset(seed=0)
    items = 1 + vec.world._rules.monsters
    listed = set()
    for row in range(40):
        kept = [vec.spec.words[word] for word in vec.world._games.entities[row, items:, WORD_1].tolist()]
        shown = [each.quality or each.name for each in vec.world.scene(row).figures if each.kind == "item"]
        assert sorted(shown) == sorted(kept)
        listed.add(shown.index(kept[0]))
    assert listed == set(range(len(kept)))
