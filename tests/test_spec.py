"""EnvSpec, and what worlds declare with it."""

from dataclasses import replace

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.spec import (
    EPISODE,
    EnvSpec,
    Field,
    FixedActions,
    Grid,
    Mask,
    Text,
)

SPEC = EnvSpec(
    fields=(
        Grid("grid", (4, 6, 2), 0, 9, scenery_ids=(0, 1), avatar_ids=(2,)),
        Field("position", (2,), -1, 5),
        Text("manual", (3, 5), 0, 9, shared=True, lifetime=EPISODE),
        Text("message", (4,), 0, 9, shared=True),
        Mask("action_mask", (5,)),
    ),
    num_agents=3,
    actions=FixedActions(("stay", "up", "down", "left", "right")),
    words=("<pad>", *"abcdefghi"),
    max_cycles=30,
    state_parts=(("grid", (4, 6)), ("agents", (3, 2))),
)


def resized(name, shape):
    return tuple(replace(field, shape=shape) if field.name == name else field for field in SPEC.fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "scores"},
        {"capabilities": frozenset({"sate"})},
        {"fields": (*SPEC.fields, Field("manual", (2,), 0, 1))},
    ],
)
def test_a_spec_refuses_what_no_world_can_be(changes):
    with pytest.raises(ConfigurationError):
        replace(SPEC, **changes)


def test_buffers_carry_the_agents_where_keys_are_not_shared():
    buffers = SPEC.allocate(7)
    assert {key: array.shape for key, array in buffers.items()} == {
        "grid": (7, 3, 4, 6, 2),
        "position": (7, 3, 2),
        "manual": (7, 3, 5),
        "message": (7, 4),
        "action_mask": (7, 3, 5),
    }
    assert buffers["action_mask"].dtype == np.int8
    assert buffers["grid"].dtype == np.int16
    assert not any(array.any() for array in buffers.values())


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (replace(SPEC, max_cycles=9), True),
        (replace(SPEC, fields=(replace(SPEC.grid, shape=(8, 8, 2)), *SPEC.fields[1:])), True),
        (replace(SPEC, fields=(replace(SPEC.grid, shape=(4, 6, 4)), *SPEC.fields[1:])), False),
        (replace(SPEC, fields=resized("manual", (1, 90))), True),
        (replace(SPEC, fields=resized("manual", (90,))), False),
        (replace(SPEC, num_agents=2), False),
        (replace(SPEC, words=("<pad>", *"abcdefghj")), False),
        (replace(SPEC, actions=FixedActions(tuple("abcde"))), False),
        (replace(SPEC, fields=SPEC.fields[:-1]), False),
        (replace(SPEC, tokenizer="bytes"), False),
    ],
)
def test_worlds_that_differ_in_the_sizes_of_map_and_texts_alone_read_alike(other, alike):
    assert SPEC.reads_alike(other) is alike


@pytest.mark.parametrize("occupants", [1, 2])
@pytest.mark.parametrize("agents", [1, 3])
def test_the_worlds_declaration(agents, occupants):
    vec = mg.make_vec("ma_rtfm", 2, stage="s2", agents=agents, size=9, occupants=occupants)
    spec, words = vec.spec, vec.spec.vocabulary
    names = ["grid", "position", "manual", "goal", "inventory", "action_mask"] + ["teammates"] * (agents > 1)
    assert [field.name for field in spec.fields] == names
    assert [field.name for field in spec.fields if field.shared] == ["manual", "goal"]
    assert spec["grid"].shape == (9, 9, 2 * occupants)
    assert spec["inventory"].shape == (2,)
    if agents > 1:
        assert spec["teammates"].shape == (agents - 1, 4)
    assert spec["action_mask"].dtype == "int8"
    assert [words.words[i] for i in spec.grid.scenery_ids] == ["<pad>", "empty", "wall", "fog"]
    assert [words.words[i] for i in spec.grid.avatar_ids] == ["me", "ally"]
    assert spec.vocabulary_size == len(words)
    observation, _ = vec.reset(seed=0)
    assert {key: array.shape for key, array in observation.items()} == {
        field.name: (2, *(() if field.shared else (agents,)), *field.shape) for field in spec.fields
    }
