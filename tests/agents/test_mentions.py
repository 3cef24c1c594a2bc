"""Mentions: the last one of each pair of words is found, until the episode ends."""

import torch

from magrounding.agents.choiceread import COUNTS, SLOTS, follow, pair_keys

ROLE = 3


def none(games):
    return torch.zeros(games, SLOTS, ROLE + 2)


def test_a_key_is_that_of_a_word_and_the_one_before_it():
    first, second = pair_keys(torch.tensor([[5, 7, 9], [4, 7, 9]]))
    assert first[2] == second[2]
    assert first[1] != second[1]
    assert pair_keys(torch.tensor([[7, 5]]))[0, 1] != first[1], "the order counts"


def test_what_is_found_is_the_last_mention_how_fresh_it_is_and_how_often_there_was_one():
    keys = torch.tensor([[[5, 6]], [[6, 9]], [[7, 7]]])  # T = 3, B = 1, L = 2
    mask = torch.ones_like(keys, dtype=torch.bool)
    said = torch.arange(1.0, 7).view(3, 1, 2, 1).expand(-1, -1, -1, ROLE).clone()
    said[2] = 5.0  # equal keys of a text say the same
    restarts = torch.tensor([[True], [False], [False]])
    mentions = follow(none(1), keys, mask, said, restarts)
    found = mentions.look_up(torch.arange(3), torch.tensor([[5, 6, 7, 100]]).expand(3, -1))
    assert found[:, :, 0].tolist() == [[1, 2, 0, 0], [1, 3, 0, 0], [1, 3, 5, 0]]
    torch.testing.assert_close(found[:, 0, -COUNTS - 1], torch.tensor([1.0, 0.9, 0.81]))
    assert found[:, :, -COUNTS:].sum(2).tolist() == [[1, 1, 0, 0], [1, 2, 0, 0], [1, 2, 1, 0]]
    torch.testing.assert_close(mentions.tables()[2, 0, 6], torch.tensor([3.0, 3.0, 3.0, 0.9, 2.0]))


def test_an_episode_forgets_the_one_before_and_unrolls_go_on():
    keys, said = torch.tensor([[[5]], [[6]]]), torch.tensor([1.0, 2.0]).view(2, 1, 1, 1).expand(-1, -1, -1, ROLE)
    mask, going = torch.ones_like(keys, dtype=torch.bool), torch.zeros(2, 1, dtype=torch.bool)
    whole = follow(none(1), keys, mask, said, going)
    halves = follow(none(1), keys[:1], mask[:1], said[:1], going[:1]).tables()[0]
    torch.testing.assert_close(follow(halves, keys[1:], mask[1:], said[1:], going[1:]).tables(), whole.tables()[1:])
    again = follow(none(1), keys, mask, said, torch.tensor([[True], [True]]))
    assert again.tables()[1, 0, 5].tolist() == [0.0] * (ROLE + 2)
