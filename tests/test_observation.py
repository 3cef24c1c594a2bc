"""ObservationSpec, and what worlds declare with it."""

import numpy as np
import pytest
from gymnasium import spaces

import magrounding as mg
from magrounding.observation import ObservationField, ObservationSpec

SPEC = ObservationSpec(
    fields=(
        ObservationField("grid", (4, 6, 2), 0, 9),
        ObservationField("position", (2,), -1, 5),
        ObservationField("manual", (3, 5), 0, 9, shared=True),
        ObservationField("action_mask", (5,), 0, 1, "int8"),
    ),
    num_agents=3,
    num_actions=5,
    height=4,
    width=6,
    vocabulary_size=10,
    scenery_ids=(0, 1),
    avatar_ids=(2,),
)


def test_fields_are_found_by_name():
    assert SPEC["manual"].shared
    assert "position" in SPEC
    assert "teammates" not in SPEC
    with pytest.raises(KeyError):
        SPEC["teammates"]


def test_buffers_carry_the_agents_where_keys_are_not_shared():
    buffers = SPEC.allocate(7)
    assert {key: array.shape for key, array in buffers.items()} == {
        "grid": (7, 3, 4, 6, 2),
        "position": (7, 3, 2),
        "manual": (7, 3, 5),
        "action_mask": (7, 3, 5),
    }
    assert buffers["action_mask"].dtype == np.int8
    assert buffers["grid"].dtype == np.int16


def test_the_space_is_that_of_one_agent_with_distance():
    space = SPEC.space()
    assert set(space.spaces) == {"grid", "position", "manual", "action_mask", "distance"}
    assert space["grid"] == spaces.Box(0, 9, (4, 6, 2), np.int16)
    assert space["distance"].shape == (4, 6, 2)


@pytest.mark.parametrize("position", [(0, 0), (3, 5), (2, 1)])
def test_distance_points_from_the_agent_to_each_cell(position):
    distance = SPEC.distance(np.array(position))
    assert distance.dtype == np.float32
    for row in range(4):
        for column in range(6):
            expected = ((column - position[1]) / 6, (row - position[0]) / 4)
            assert distance[row, column].tolist() == pytest.approx(expected)
    assert SPEC.space()["distance"].contains(distance)


def test_distance_of_the_dead_is_zero():
    assert not SPEC.distance(np.array([-1, -1])).any()


@pytest.mark.parametrize("occupants", [1, 2])
@pytest.mark.parametrize("agents", [1, 3])
def test_the_worlds_declaration(agents, occupants):
    vec = mg.make_vec("ma_rtfm", 2, stage="s2", agents=agents, size=9, occupants=occupants)
    spec, words = vec.spec, vec.vocabulary
    names = ["grid", "position", "manual", "goal", "inventory", "action_mask"] + ["teammates"] * (agents > 1)
    assert [field.name for field in spec.fields] == names
    assert [field.name for field in spec.fields if field.shared] == ["manual", "goal"]
    assert spec["grid"].shape == (9, 9, 2 * occupants)
    assert spec["inventory"].shape == (2,)
    if agents > 1:
        assert spec["teammates"].shape == (agents - 1, 4)
    assert spec["action_mask"].dtype == "int8"
    assert [words.words[i] for i in spec.scenery_ids] == ["<pad>", "empty", "wall", "fog"]
    assert [words.words[i] for i in spec.avatar_ids] == ["me", "ally"]
    assert spec.vocabulary_size == len(words)
    observation = vec.reset(seed=0)
    assert {key: array.shape for key, array in observation.items()} == {
        field.name: (2, *(() if field.shared else (agents,)), *field.shape) for field in spec.fields
    }
