"""What lies around an agent, and what lies beyond the map."""

import torch

from magrounding.agents.modules import around


def test_the_agent_is_in_the_middle_and_there_is_nothing_beyond_the_map_or_for_the_dead():
    maps = torch.arange(1.0, 41.0).view(1, 2, 4, 5).expand(5, -1, -1, -1)
    position = torch.tensor([[1, 2], [0, 0], [3, 4], [0, 3], [-1, -1]], dtype=torch.int16)
    got = around(maps, position, 3)
    assert torch.equal(got[0], maps[0, :, 0:3, 1:4])
    assert got[:4, 0, 1, 1].tolist() == [8, 1, 20, 4]
    assert got[1, 0].tolist() == [[0, 0, 0], [0, 1, 2], [0, 6, 7]]
    assert got[2, 1].tolist() == [[34, 35, 0], [39, 40, 0], [0, 0, 0]]
    assert not got[3, :, 0].any()
    assert not got[4].any()


def test_the_middle_of_one_cell_and_of_many():
    maps = torch.rand(2, 3, 4, 4)
    position = torch.tensor([[2, 1], [3, 3]])
    assert torch.equal(around(maps, position, 1)[:, :, 0, 0], torch.stack((maps[0, :, 2, 1], maps[1, :, 3, 3])))
    assert around(maps, position, 7).shape == (2, 3, 7, 7)
    assert torch.equal(around(maps, position, 7)[0, :, 1:5, 2:6], maps[0])
