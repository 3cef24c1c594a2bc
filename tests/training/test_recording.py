"""Recording: what is recorded is what happened, of all players, and whole games of it only."""

import numpy as np
import pytest

from magrounding import machine
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.errors import ConfigurationError
from magrounding.teams.scripted import RandomTeam
from magrounding.training import recording
from magrounding.training.recording import StopRecording, record
from tests.training.recorded_games import by_oracle, make_vec, source_of
from tests.training.toy_games import ToyGames


@pytest.fixture(scope="module")
def shown():
    return by_oracle()


class Stray(Oracle):
    """Knows what is best and does anything."""

    def act(self, obs=None, memory=None, info=None, greedy=True, rows=None):
        return np.random.default_rng(int(obs["position"].sum())).integers(5, size=self._actions.shape), None


@pytest.mark.parametrize("death", ["team", "individual"])
def test_recorded_games_are_those_that_were_played(death):
    """Replayed from the seed, every state, label, reward and end is the recorded one; learners get the same flags."""
    vec = make_vec(4, death=death, agents=3)
    shown = record(vec, Stray(vec), 9, 3, "somebody who knows better")
    if death == "individual":
        assert not shown.alive.all()
    quota = [3, 2, 2, 2]
    trajectory_of = [source_of(shown, 1, len(shown.game)).collect().trajectories[i] for i in range(3)]
    t, game = 0, 0
    for row, games in enumerate(quota):
        vec = make_vec(1, death=death, agents=3)
        oracle = Oracle(vec)
        obs, info = vec.reset(seed=3 + row)
        for _ in range(games):
            first, done = True, False
            for name in ("manual", "goal"):
                np.testing.assert_array_equal(shown.texts[name][game], obs[name][0])
            while not done:
                alive = info["alive"][0].copy()
                for name, array in shown.observation.items():
                    np.testing.assert_array_equal(array[t], obs[name][0])
                np.testing.assert_array_equal(shown.labels[t], oracle.best_actions()[0] & alive[:, None])
                np.testing.assert_array_equal(shown.alive[t], alive)
                assert shown.game[t] == game
                obs, rewards, terminated, truncated, info = vec.step(shown.actions[t][None])
                done = info["done"][0]
                np.testing.assert_array_equal(shown.rewards[t], np.where(alive, rewards[0], 0))
                goes_on = alive & ~(terminated | truncated)[0] & ~done
                for i, trajectory in enumerate(trajectory_of):
                    assert trajectory.alive[t, 0] == alive[i]
                    assert trajectory.nonterminal[t, 0] == trajectory.discount[t, 0] == goes_on[i]
                    assert trajectory.restarts[t, 0] == first
                first, t = False, t + 1
            assert shown.won[game] == info["won"][0]
            game += 1
    assert (t, game) == (len(shown.game), 9)
    assert shown.steps == t


def test_of_other_players_the_action_is_the_label():
    vec = make_vec(4)
    shown = record(vec, RandomTeam(2, 5), 12, 0, "chance")
    legal = shown.observation["action_mask"] != 0
    one_hot = np.eye(5, dtype=bool)[shown.actions]
    illegal = ~(one_hot & legal).any(-1)
    assert illegal.any()
    np.testing.assert_array_equal(shown.labels[~illegal & shown.alive], one_hot[~illegal & shown.alive])
    np.testing.assert_array_equal(shown.labels[illegal & shown.alive], legal[illegal & shown.alive])
    assert not shown.labels[~shown.alive].any()


class Tired(RandomTeam):
    """Stops after so many steps."""

    def __init__(self, steps):
        super().__init__(2, 5)
        self.left = steps

    def act(self, obs, memory=None, info=None, greedy=False):
        if not self.left:
            raise StopRecording
        self.left -= 1
        return super().act(obs, memory, info, greedy)


def test_who_stops_keeps_the_finished_games():
    whole = record(make_vec(3), Tired(1000), 9, 0, "chance")
    heard = []
    some = record(make_vec(3), Tired(5), 9, 0, "chance", on_progress=heard.append)
    assert 0 < some.header.games == len(some.won) == heard[-1] < 9
    np.testing.assert_array_equal(np.unique(some.game), np.arange(some.header.games))
    for game in range(some.header.games):  # each is one of the whole recording, from its first step to its last
        mine = some.observation["grid"][some.game == game]
        rows = [k for k in range(9) if (whole.texts["manual"][k] == some.texts["manual"][game]).all()]
        assert any(np.array_equal(mine, whole.observation["grid"][whole.game == k]) for k in rows)
    with pytest.raises(ConfigurationError):
        record(make_vec(3), Tired(0), 6, 0, "chance")


def test_what_cannot_be_recorded():
    vec = make_vec(2, stage="s5", resample_text=True)
    with pytest.raises(ConfigurationError):
        record(vec, RandomTeam(2, 5), 4, 0, "chance")
    with pytest.raises(ConfigurationError):
        record(make_vec(1), RandomTeam(2, 5), 0, 0, "chance")


class Guesser:
    """Always acts, never jumps."""

    def act(self, obs, memory, info, greedy=True):
        return np.zeros(obs["grid"].shape[:2], np.int64), None


def test_a_time_out_that_is_no_loss_is_worth_what_follows():
    vec = ToyGames(num_envs=3, max_cycles=4, time_limit_is_loss=False, end=0.15)
    shown = record(vec, Guesser(), 12, 0, "nobody")
    last = ~shown.acted.any(1)
    assert 0 < last.sum() < 12  # some games were cut off, some ended
    assert shown.alive[last].all()
    assert (np.bincount(shown.game)[shown.game[last]] == 5).all()
    assert (shown.observation["inventory"][last] == 4).all()  # the length: it is the last observation, not the next
    assert shown.steps == (~last).sum()
    trajectory = source_of(shown, 1, len(shown.game)).collect().trajectories[0]
    before = np.append(last[1:], False)
    ends = np.append(np.diff(shown.game) > 0, True) & ~last
    np.testing.assert_array_equal(trajectory.alive[:, 0], ~last)
    np.testing.assert_array_equal(trajectory.discount[:, 0], ~last & ~ends)
    np.testing.assert_array_equal(trajectory.nonterminal[:, 0], ~last & ~ends & ~before)


class EachItsOwnLimit(ToyGames):
    """Agent 0 has half the time of the other."""

    def step(self, actions):
        observation, rewards, terminated, truncated, info = super().step(actions)
        late = self.alive[:, 0] & (self.length >= self.spec.max_cycles // 2) & ~terminated[:, 0] & ~truncated[:, 0]
        truncated[:, 0] |= late
        self.alive[:, 0] &= ~late
        info.alive = self.alive.copy()
        return observation, rewards, terminated, truncated, info


def test_an_agent_whose_time_is_over_before_the_games_shows_its_last_observation():
    """As in a rollout: what follows the step is worth its value, and no step of the agent goes on from there."""
    vec = EachItsOwnLimit(num_envs=3, max_cycles=6, time_limit_is_loss=False, end=0.0)
    shown = record(vec, Guesser(), 4, 0, "nobody")
    assert (np.bincount(shown.game) == 7).all()  # six steps, and what the other agent saw last
    step = np.arange(len(shown.game)) % 7
    first, other = (source_of(shown, 1, len(shown.game)).collect().trajectories[i] for i in range(2))
    np.testing.assert_array_equal(shown.alive[:, 0], step < 4)
    np.testing.assert_array_equal(shown.acted[:, 0], step < 3)
    np.testing.assert_array_equal(first.alive[:, 0], step < 3)
    np.testing.assert_array_equal(first.discount[:, 0], step < 3)
    np.testing.assert_array_equal(first.nonterminal[:, 0], step < 2)
    np.testing.assert_array_equal(other.alive[:, 0], step < 6)
    np.testing.assert_array_equal(other.discount[:, 0], step < 6)
    np.testing.assert_array_equal(other.nonterminal[:, 0], step < 5)


def test_more_games_than_memory_holds_are_refused_when_their_size_is_known(monkeypatch):
    heard = []
    monkeypatch.setattr(recording, "MEASURED_GAMES", 10)
    monkeypatch.setattr(machine, "machine_memory", lambda: 2**22)
    with pytest.raises(ConfigurationError):
        record(make_vec(4), RandomTeam(2, 5), 1_000, 0, "chance", on_progress=heard.append)
    assert heard[-1] < 14
    assert record(make_vec(4), RandomTeam(2, 5), 12, 0, "chance").header.games == 12
