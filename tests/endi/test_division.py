"""Divisions, their regularisers and diagnostics, on boards made by hand."""

import numpy as np
import pytest
import torch

from magrounding.endi.agent import diagnose, modelling_loss
from magrounding.endi.division import Places, cells, dis, distance_to_nearest, divide, draw_noise, num, shown_entities


def board(*entities: tuple[int, int]) -> Places:
    """A 4 × 4 map with some entities."""
    is_entity = torch.zeros(1, 4, 4, dtype=torch.bool)
    for row, column in entities:
        is_entity[0, row, column] = True
    return cells(is_entity, is_entity)


def give(places: Places, *own: tuple[int, int]):
    """The division that takes some entities for oneself."""
    logits = torch.zeros(1, 16, 2)
    logits[..., 1] = 5
    for row, column in own:
        logits[0, 4 * row + column, 0] = 9
    return divide(logits, places)


def test_masks_are_hard_and_their_gradient_is_soft():
    logits = torch.randn(50, 16, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    is_entity = torch.rand(50, 4, 4, generator=torch.Generator().manual_seed(1)) < 0.5
    noise = draw_noise((50, 16), torch.Generator().manual_seed(2))
    division = divide(logits, cells(is_entity, is_entity), noise)
    there = is_entity.flatten(1)
    assert set(division.own[there].tolist()) == set(division.others[there].tolist()) == {0.0, 1.0}
    assert (division.own + division.others)[there].eq(1).all()
    assert division.own[~there].eq(1).all()
    assert division.others[~there].eq(1).all()
    weight = torch.randn(50, 16, generator=torch.Generator().manual_seed(3))
    (got,) = torch.autograd.grad((division.own * weight).sum(), logits, retain_graph=True)
    soft = ((logits[..., 0] - logits[..., 1]) + noise.float()).sigmoid()
    (expected,) = torch.autograd.grad((soft * weight * there).sum(), logits, retain_graph=True)
    torch.testing.assert_close(got, expected)
    (opposite,) = torch.autograd.grad((division.others * weight).sum(), logits)
    torch.testing.assert_close(opposite, -expected)


def test_the_noise_is_that_of_gumbel_softmax():
    """P(self) is the softmax of the logits, whatever is drawn: that is what the Gumbel trick is for."""
    noise = draw_noise((40_000,), torch.Generator().manual_seed(0))
    assert noise.dtype == torch.float16
    assert noise.isfinite().all()
    for difference in (-1.5, 0.0, 2.0):
        assert (noise.float() + difference > 0).float().mean() == pytest.approx(1 / (1 + np.exp(-difference)), abs=0.01)


def test_taken_tells_of_entities_only():
    taken = give(board((0, 0), (1, 2)), (1, 2)).taken(4, 4)
    assert taken.dtype == torch.int8
    assert (taken[0, 0, 0], taken[0, 1, 2]) == (0, 1)
    assert (taken == -1).sum() == 14


def test_of_two_things_in_a_cell_the_one_taken_tells():
    is_thing = torch.ones(1, 2, dtype=torch.bool)
    places = Places(torch.tensor([[1, 1]]), torch.tensor([[2, 2]]), is_thing, is_thing)
    assert divide(torch.tensor([[[1.0, 0], [0, 1]]]), places).taken(4, 4)[0, 1, 2] == 1


def test_num_counts_shares():
    places = board((0, 0), (0, 3), (3, 0), (3, 3))
    assert num(give(places, (0, 0), (3, 3)), 2) == 0
    assert num(give(places, (0, 0), (0, 3), (3, 0), (3, 3)), 2) == 4
    assert num(give(places, (0, 0)), 2) == 2
    assert num(give(places, (0, 0)), 2, squared=True) == 4
    assert num(give(places, (0, 0)), 4) == 0  # one for each


def test_dis_falls_when_an_entity_goes_to_the_nearer_agent():
    places = board((0, 1), (3, 2))
    position, mates = torch.tensor([[0, 0]]), torch.tensor([[[3, 3]]])
    good, bad, selfish = (
        dis(give(places, *own), position, mates, 4, 4) for own in ([(0, 1)], [(3, 2)], [(0, 1), (3, 2)])
    )
    assert good == pytest.approx(0.25 + 0.25)
    assert good < selfish < bad
    tall = dis(give(places, (0, 1)), position, mates, 4, 8)
    assert tall == pytest.approx(0.125 + 0.125)  # each axis is a part of its length


def test_the_nearest_of_the_living_counts():
    places = board((0, 0))
    mates = torch.tensor([[[0, 2], [-1, -1], [3, 3]]])
    distance = distance_to_nearest(places, mates, 4, 4).view(4, 4)
    assert distance[0, 0] == pytest.approx(2 / 8)
    assert distance[3, 2] == pytest.approx(1 / 8)
    assert (distance_to_nearest(places, mates[:, 1:2], 4, 4) == 1).all()
    assert (distance_to_nearest(places, mates[:, :0], 4, 4) == 1).all()
    assert dis(give(places), torch.tensor([[0, 0]]), mates[:, 1:2], 4, 4) == 2  # left to the dead


def test_entities_are_neither_scenery_nor_beside_an_agent():
    ids = torch.arange(8)
    somebody, avatar = ids >= 2, ids == 3
    grid = torch.tensor([[[0, 0, 0, 0], [1, 7, 0, 0], [5, 1, 0, 0], [5, 1, 3, 0], [1, 0, 6, 2]]])[:, None]
    assert shown_entities(grid, somebody, avatar, width=2).tolist() == [[[False, False, True, False, True]]]


def test_nobody_foresees_the_dead():
    logits = torch.tensor([[[4.0, 0], [0, 4]], [[4, 0], [0, 4]]])
    loss, accuracy = modelling_loss(logits, torch.tensor([[0, -1], [-1, -1]]))
    assert loss.tolist() == [pytest.approx(np.log1p(np.exp(-4)), rel=1e-4), 0]
    assert accuracy[0] == 1
    assert accuracy[1].isnan()
    both, half = modelling_loss(logits, torch.tensor([[0, 0], [1, 1]]))
    assert both.tolist() == [pytest.approx(4 + 2 * np.log1p(np.exp(-4)), rel=1e-4)] * 2
    assert half.tolist() == [0.5, 0.5]


def test_diagnostics_of_divisions():
    """Three steps of two agents; the first agent is dead in the last, and in the fourth neither sees anything."""
    one, other = np.full((2, 4, 2, 2), -1, np.int8)
    one[0], other[0] = [[1, 0], [-1, -1]], [[1, 1], [-1, -1]]
    one[1], other[1] = [[1, 1], [1, 0]], [[0, 0], [0, 0]]
    one[2], other[2] = 1, 1
    acted = np.array([[True, True], [True, True], [False, True], [True, True]])
    facts = diagnose([{"marks": one}, {"marks": other}], np.zeros((4, 2), np.int64), acted)
    nan = np.nan
    assert facts.keys() == {"mask_coverage", "mask_conflicts"}
    np.testing.assert_array_equal(facts["mask_coverage"], [[1 / 2, 1], [3 / 4, 0], [nan, 1], [nan, nan]])
    np.testing.assert_array_equal(facts["mask_conflicts"], [[1 / 2, 1 / 2], [0, 0], [nan, 0], [nan, nan]])


def test_diagnostics_of_guesses():
    """Agent 1 guesses all, agent 0 half, agent 2 nothing; then two have died, and only they are guessed right."""
    marks = np.zeros((2, 4, 4), np.int8)
    actions, acted = np.array([[1, 2, 3], [1, 2, 3]]), np.array([[True, True, True], [True, False, False]])
    guesses = ([[2, 0], [2, 3]], [[1, 3], [1, 3]], [[0, 0], [1, 2]])
    aux = [{"marks": marks, "guesses": np.array(each)} for each in guesses]
    accuracy = diagnose(aux, actions, acted)["modelling_accuracy"]
    np.testing.assert_array_equal(accuracy, [[0.5, 1, 0], [np.nan] * 3])
    acted[1] = True, True, False
    np.testing.assert_array_equal(diagnose(aux, actions, acted)["modelling_accuracy"][1], [1, 1, np.nan])
    del aux[0]["guesses"]
    assert "modelling_accuracy" not in diagnose(aux, actions, acted)
