"""What a rollout records is what happened, agent by agent."""

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.teams.player import Player
from magrounding.threads import ThreadPlan, using
from magrounding.training.rollout import RolloutWorker
from tests.tiny_rooms import TinyRooms
from tests.training.text_games import texts_encoded
from tests.training.toy_games import ToyGames, ToyPolicy, players_of

T = 12


class Diary:
    """A vector env that writes down everything it says, next to the one under test."""

    def __init__(self, vec):
        self.vec, self.pages = vec, []

    def __getattr__(self, name):
        return getattr(self.vec, name)

    def reset(self, seed=None):
        obs, info = self.vec.reset(seed=seed)
        self._write(obs, None, info)
        return obs, info

    def step(self, actions):
        out = self.vec.step(actions)
        self._write(out[0], (actions.copy(), *(x.copy() for x in out[1:4])), out[4])
        return out

    def _write(self, obs, outcome, info):
        noted = {name: array.copy() for name, array in info.items() if isinstance(array, np.ndarray)}
        final = {name: array.copy() for name, array in info.final_observation.items()}
        self.pages.append(({name: array.copy() for name, array in obs.items()}, outcome, noted, final))


def worker_of(vec, policies=None, unroll=T):
    policies = policies or [ToyPolicy() for _ in range(vec.num_agents)]
    worker = RolloutWorker(vec, players_of(vec, policies), unroll)
    worker.start(seed=3)
    return worker


@pytest.fixture
def torch_seed():
    torch.manual_seed(0)


@pytest.mark.usefixtures("torch_seed")
@pytest.mark.parametrize("is_loss", [True, False])
def test_trajectories_hold_what_each_agent_lived_through(is_loss):
    vec = Diary(ToyGames(num_envs=6, num_agents=3, time_limit_is_loss=is_loss))
    worker = worker_of(vec)
    deaths = time_outs = 0
    for k in range(4):
        rollout = worker.collect()
        pages = vec.pages[k * T : (k + 1) * T + 1]
        for i, trajectory in enumerate(rollout.trajectories):
            cuts = set(zip(*(part.tolist() for part in trajectory.truncations.where), strict=True))
            for t in range(T + 1):
                obs, _, info, _ = pages[t]
                for name, array in trajectory.observation.items():
                    assert (array[t] == obs[name][:, i]).all()
                if t == T:
                    break
                actions, rewards, terminated, truncated = pages[t + 1][1]
                alive = info["alive"][:, i]
                assert (trajectory.alive[t] == alive).all()
                assert (trajectory.action[t] == actions[:, i]).all()
                assert (trajectory.reward[t][alive] == rewards[alive, i]).all()
                over, late = terminated[:, i], truncated[:, i]
                assert (trajectory.nonterminal[t] == (alive & ~over & ~late)).all()
                worth = alive & ~over & ~(late & is_loss)
                assert (trajectory.discount[t] == worth).all()
                assert {b for s, b in cuts if s == t} == (set() if is_loss else set(np.flatnonzero(late).tolist()))
                deaths += int((over & ~pages[t + 1][2]["done"]).sum())
                time_outs += int(late.sum())
    assert deaths > 5  # else nothing was shown about the dead
    assert time_outs > 5


@pytest.mark.usefixtures("torch_seed")
def test_a_cut_off_episode_keeps_its_true_last_observation():
    vec = Diary(ToyGames(num_envs=6, num_agents=2, time_limit_is_loss=False, end=0.0, max_cycles=4))
    worker = worker_of(vec)
    found = 0
    for k in range(3):
        rollout = worker.collect()
        for i, trajectory in enumerate(rollout.trajectories):
            for f, (t, b) in enumerate(zip(*trajectory.truncations.where, strict=True)):
                _, _, info, final = vec.pages[k * T + t + 1]
                row = info["final_rows"].tolist().index(b)
                for name, array in trajectory.truncations.observation.items():
                    assert (array[f] == final[name][row, i]).all()
                found += 1
    assert found > 5


class Faulty(ToyGames):
    """Whatever ends one of the first three games is a fault."""

    def step(self, actions):
        *parts, info = super().step(actions)
        info.fault = info.done & (np.arange(self.num_envs) < 3)
        return *parts, info


@pytest.mark.usefixtures("torch_seed")
def test_a_fault_is_no_loss_where_a_time_out_is_one():
    """It says nothing of the state that it ended in: the value goes on from the last observation."""
    rollout = worker_of(Faulty(num_envs=6, max_cycles=4, end=0.0)).collect()
    for trajectory in rollout.trajectories:
        over = trajectory.alive & ~trajectory.nonterminal
        late = over & (trajectory.observation["inventory"][:-1, :, 0] == 3)  # the fourth step
        lost = late & (np.arange(6) < 3)
        assert lost.any()
        np.testing.assert_array_equal(trajectory.discount[late], lost[late])
        assert set(zip(*trajectory.truncations.where, strict=True)) == set(zip(*lost.nonzero(), strict=True))
        assert (trajectory.truncations.observation["inventory"] == 4).all()


@pytest.mark.usefixtures("torch_seed")
def test_games_that_a_fault_ended_are_not_counted():
    vec = Diary(Faulty(num_envs=6))
    worker = worker_of(vec)
    games = [worker.collect().episodes for _ in range(3)]
    ended = [page[2] for page in vec.pages[1:]]
    expected = np.concatenate([info["return"][3:][info["done"][3:]] for info in ended])
    assert sum(int(info["done"][:3].sum()) for info in ended) > 5
    np.testing.assert_array_equal(np.concatenate([g.returns for g in games]), expected)


def test_threads_do_not_change_a_rollout():
    def collect(plan):
        torch.manual_seed(0)
        worker = worker_of(ToyGames(num_envs=4, num_agents=3))
        with using(plan):
            return [trajectory.action.copy() for _ in range(3) for trajectory in worker.collect().trajectories]

    one_by_one, at_once = collect(ThreadPlan()), collect(ThreadPlan(cores=3, agents=3))
    assert all((x == y).all() for x, y in zip(one_by_one, at_once, strict=True))


def test_workers_change_nothing_of_a_rollout():
    """Simulators work by halves then: random numbers are drawn for all games at once, and each text is read once."""

    def rollout(workers):
        with mg.vectorize(TinyRooms, 8, workers) as vec:
            torch.manual_seed(0)
            policy = make_policy("choiceread", vec.spec, embedding=8, states=16, role=6, hidden=12)
            policy.draw_record = lambda shape, generator: {"noise": torch.rand(shape, generator=generator)}
            player = Player(policy, vec.spec, 8, torch.Generator().manual_seed(1))
            worker = RolloutWorker(vec, [player], T)
            worker.start(seed=0)
            (trajectory,) = worker.collect().trajectories
            return trajectory, texts_encoded(player)

    (serial, read), (halves, read_by_halves) = rollout(0), rollout(2)
    np.testing.assert_array_equal(halves.record["noise"], serial.record["noise"])
    np.testing.assert_array_equal(halves.action, serial.action)
    np.testing.assert_allclose(halves.logits, serial.logits, rtol=0, atol=1e-5)
    assert read_by_halves == read
