"""What a vector env of simulators promises, played against the very env by hand."""

import numpy as np
import pytest

from magrounding.errors import CallOrderError, ConfigurationError, InvalidAction
from magrounding.seeding import NUM_STREAMS, stream_key
from magrounding.simulators.env_row import episode_key, episode_seed
from magrounding.simulators.vectorize import vectorize
from magrounding.spec import EnvSpec, FixedActions, Text
from magrounding.texts import content_keys
from tests.simulators.games import Guess, Walk


def test_seeds_are_hashes_of_the_rows_seed_and_the_episode():
    with np.errstate(over="ignore"):
        assert episode_key(12345, 7) == int(stream_key(np.uint64(12345), 7, NUM_STREAMS))
    assert episode_seed(2**61, 0) == 2**61
    seeds = {episode_seed(seed, k) for seed in range(50) for k in range(1, 50)}
    assert len(seeds) > 2440
    assert max(seeds) < 2**31


@pytest.mark.parametrize("mask", ["observation", "infos"])
def test_a_row_is_the_env_played_by_hand(mask):
    vec, rng, row = vectorize(lambda: Walk(mask=mask), 3), np.random.default_rng(0), 1
    env = Walk(mask=mask)
    obs, info = vec.reset(seed=40)
    seen, said = env.reset(seed=41)
    episode, deaths, ends, wins, truncations, illegal = 0, 0, 0, 0, 0, 0
    last = {agent: seen[agent] for agent in env.possible_agents}
    for _ in range(400):
        for i, agent in enumerate(env.possible_agents):
            assert obs["place"][row, i] == last[agent]["place"]
            np.testing.assert_array_equal(obs["noise"][row, i], last[agent]["noise"])
            expected = last[agent]["place"] % 2 == 0
            np.testing.assert_array_equal(obs["action_mask"][row, i], [1, 1, expected])
            assert info.alive[row, i] == (agent in env.agents)
        actions = rng.integers(0, 3, (3, 3))
        acting = env.agents
        seen, rewards, over, late, said = env.step(
            {a: int(actions[row, i]) for i, a in enumerate(env.possible_agents) if a in acting}
        )
        last |= seen
        obs, gains, terminated, truncated, info = vec.step(actions)
        for i, agent in enumerate(env.possible_agents):
            assert gains[row, i] == np.float32(rewards.get(agent, 0))
            assert terminated[row, i] == over.get(agent, False)
            assert truncated[row, i] == late.get(agent, False)
            assert info.illegal[row, i] == said.get(agent, {}).get("illegal", False)
            illegal += info.illegal[row, i]
        deaths += bool(terminated[row].any() and env.agents)
        truncations += truncated[row].any()
        assert info.done[row] == (not env.agents)
        assert info.won[row] == any(said[agent].get("won", False) for agent in acting)
        if info.done[row]:
            ends, wins = ends + 1, wins + info.won[row]
            assert info.score[row] == info.won[row]
            at = info.final_rows.tolist().index(row)
            for i, agent in enumerate(env.possible_agents):
                assert info.final_observation["place"][at, i] == last[agent]["place"]
            episode += 1
            seen, said = env.reset(seed=episode_seed(41, episode))
            last = dict(seen)
        assert len(info.final_rows) == info.done.sum()
        assert len(info.final_observation["noise"]) == info.done.sum()
    assert min(deaths, wins, truncations, illegal, ends - wins) > 0


def test_a_gymnasium_env_with_scores_and_success_and_actions_from_ten():
    vec = vectorize(Guess, 5)
    obs, info = vec.reset(seed=3)
    assert (obs["action_mask"] == 1).all()
    numbers = obs["observation"].copy()
    obs, rewards, terminated, _, info = vec.step((numbers + 1) % 4)
    assert not info.done.any()
    assert (info.score == -1).all()
    wrong_only_first = np.where(np.arange(5)[:, None] == 0, numbers + 1, numbers) % 4
    obs, rewards, terminated, _, info = vec.step(wrong_only_first)
    assert info.won.tolist() == info.done.tolist() == [False, True, True, True, True]
    assert info.score.tolist() == [-2, -1, -1, -1, -1]
    assert (info.final_observation["observation"] == numbers[1:]).all()
    assert (rewards == terminated).all()


def test_reset_without_a_seed_goes_on():
    vec = vectorize(Walk, 3)
    first = vec.reset(seed=5)[0]["noise"].copy()
    second = vec.reset()[0]["noise"].copy()
    for b in range(3):
        np.testing.assert_array_equal(first[b, 0], Walk().reset(5 + b)[0]["walker_0"]["noise"])
        np.testing.assert_array_equal(second[b, 0], Walk().reset(episode_seed(5 + b, 1))[0]["walker_0"]["noise"])
    assert (vectorize(Walk, 3).reset()[0]["noise"] != vectorize(Walk, 3).reset()[0]["noise"]).any()


class Reading(Guess):
    """Has a rule to read."""

    spec = EnvSpec(
        (Text("manual", (3,), 0, 9, shared=True, lifetime="episode"),), 1, FixedActions(tuple("abcd")), (), max_cycles=0
    )
    says_document = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.manual = np.array([self.number, 1, 2], np.int16)
        return {"manual": self.manual}, {"document": 77} if self.says_document else {}

    def step(self, action):
        return {"manual": self.manual}, *super().step(action)[1:]


def test_documents_are_keys_of_what_is_read():
    vec = vectorize(Reading, 20)
    obs, info = vec.reset(seed=0)
    assert obs["manual"].shape == (20, 3)
    np.testing.assert_array_equal(info.document, content_keys({"manual": obs["manual"]}))
    assert 1 < len(set(info.document.tolist())) < 20


def test_documents_of_the_env_come_first_and_without_texts_all_differ():
    class Says(Reading):
        says_document = True

    assert set(vectorize(Says, 3).reset(seed=0)[1].document.tolist()) == {77}
    vec = vectorize(Guess, 30)
    keys = [*vec.reset(seed=0)[1].document.tolist(), *vec.reset()[1].document.tolist()]
    assert len(set(keys)) == 60
    assert min(keys) >= 0


@pytest.mark.parametrize("workers", [0, 2])
def test_an_expert_labels_the_rows_that_are_asked_for(workers):
    with vectorize(Walk, 3, workers) as vec:
        vec.reset(seed=0)
        vec.best_actions()
        obs = vec.step(np.ones((3, 3), int))[0]
        assert (obs["place"] == 1).all()
        labels = vec.best_actions(rows=[1])
        assert labels.shape == (3, 3, 3)
        assert (labels.argmax(2) == [[2] * 3, [1] * 3, [2] * 3]).all()
        assert (labels.sum(2) == 1).all()
        np.testing.assert_array_equal(vec.state()[:, :3], np.ones((3, 3)))
        assert vec.state().dtype == np.int16


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_simulator_lacks_is_said_in_one_sentence(workers):
    with vectorize(Guess, 2, workers) as vec:
        with pytest.raises(CallOrderError):
            vec.step([[0], [0]])
        vec.reset(seed=0)
        with pytest.raises(ConfigurationError):
            vec.best_actions()
        with pytest.raises(ConfigurationError):
            vec.state()
        with pytest.raises(InvalidAction):
            vec.step([[4], [0]])
        with pytest.raises(InvalidAction):
            vec.step([[1]])
        with pytest.raises(ConfigurationError):
            vec.reset(seed=-1)
        vec.step([[1], [0]])
    with pytest.raises(CallOrderError):
        vec.step([[0], [0]])


def test_agents_that_vanish_are_terminated_and_both_flags_are_an_end():
    class Vanishing(Walk):
        def step(self, actions):
            observations, rewards, over, late, infos = super().step(actions)
            if "walker_0" in actions:
                over["walker_0"] = False
                over["walker_1"] = late["walker_1"] = True
                self.agents = ["walker_2"]
            return observations, rewards, over, late, infos

    vec = vectorize(Vanishing, 1)
    vec.reset(seed=0)
    _, _, terminated, truncated, info = vec.step(np.zeros((1, 3), int))
    assert terminated.tolist() == [[True, True, False]]
    assert not truncated.any()
    assert info.alive.tolist() == [[False, False, True]]
    _, _, terminated, _, _ = vec.step(np.zeros((1, 3), int))
    assert not terminated.any()
