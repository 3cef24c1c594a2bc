"""A player chooses in the games it is asked about, remembers in those only, and reads what is new."""

import numpy as np
import pytest
import torch

from magrounding.teams.player import Player, Shown, shown_to
from tests.training.text_games import TextGames, TextPolicy, texts_encoded

B = 6


@pytest.fixture
def policy():
    torch.manual_seed(0)
    return TextPolicy()


def steps_of(vec, count):
    """What agent 0 is shown in some steps, and which games have just begun."""
    rng = np.random.default_rng(0)
    observation, info = vec.reset(seed=0)
    restarts = np.ones(vec.num_envs, np.bool_)
    for _ in range(count):
        yield shown_to(0, observation, vec.spec, info.document), restarts
        actions = rng.integers(0, 1, (vec.num_envs, vec.num_agents))
        observation, _, _, _, info = vec.step(actions)
        restarts = info.done


def player_of(policy, vec, seed=0):
    return Player(policy, vec.spec, vec.num_envs, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("greedy", [True, False])
def test_some_games_are_played_as_all_of_them(policy, greedy):
    vec, rows = TextGames(B), np.array([1, 4, 5])
    whole, some = player_of(policy, vec), player_of(policy, vec)
    for shown, restarts in steps_of(vec, 25):
        memory, last = some.memory.clone(), some.last_action.copy()
        full = whole.choose(shown, restarts, greedy=greedy)
        part = some.choose(shown, restarts, rows=rows, greedy=greedy)
        assert part.action.shape == (3,)
        np.testing.assert_allclose(part.logits, full.logits[rows], atol=1e-6)
        np.testing.assert_allclose(part.value, full.value[rows], atol=1e-6)
        assert (part.action == part.logits.argmax(1)).all() or not greedy
        torch.testing.assert_close(some.memory[rows], whole.memory[rows])
        others = np.setdiff1d(np.arange(B), rows)
        assert torch.equal(some.memory[others], memory[others])
        assert (some.last_action[others] == last[others]).all()
        assert (some.last_action[rows] == part.action).all()
        whole.last_action, some.last_action = full.action.copy(), full.action.copy()  # what was done in the games
    assert texts_encoded(some) < texts_encoded(whole)


def test_memory_and_the_last_action_start_afresh_with_a_game(policy):
    vec, begun = TextGames(B, end=0.3), 0
    player, before = player_of(policy, vec), None
    for shown, restarts in steps_of(vec, 20):
        choice = player.choose(shown, restarts, explain=True)
        aux = player.aux["last_action"]
        assert (aux[restarts] == -1).all()
        if before is not None:
            assert (aux[~restarts] == before.action[~restarts]).all()
        fresh = player_of(policy, vec)
        fresh.choose(shown, np.ones(B, np.bool_))
        torch.testing.assert_close(player.memory[restarts], fresh.memory[restarts])
        begun += int(restarts.sum())
        before = choice
    assert B < begun < 20 * B


def test_what_is_read_is_what_is_shown(policy):
    """A player whose texts came and went chooses as one that reads them for the first time."""
    vec = TextGames(B)
    player = player_of(policy, vec)
    for shown, restarts in steps_of(vec, 30):
        memory, last = player.memory.clone(), player.last_action.copy()
        choice = player.choose(shown, restarts)
        fresh = player_of(policy, vec)
        fresh.memory, fresh.last_action = memory, last
        again = fresh.choose(Shown(shown.observation, shown.texts, None), restarts)  # no key, so contents are compared
        np.testing.assert_allclose(choice.logits, again.logits, atol=1e-6)
        np.testing.assert_allclose(choice.value, again.value, atol=1e-6)
