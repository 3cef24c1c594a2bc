"""QMIX learns what a sum of values cannot, from targets computed as slowly as can be, and a killed run goes on."""

from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.agents.document_policy import Inputs
from magrounding.agents.qmix import PLAY_EPSILON
from magrounding.errors import ConfigurationError
from magrounding.experiment.checkpoint import pack_session, unpack_session
from magrounding.experiment.config import make_config, parse_config
from magrounding.experiment.stage import StageSession
from magrounding.schema import dump
from magrounding.spec import STATE
from magrounding.teams.evaluate import play
from magrounding.teams.team import Team
from magrounding.training.qmix import QmixConfig, QmixLearner
from magrounding.training.rollout import RolloutWorker
from tests.experiment.tiny_runs import killed_run, learn, phases_of, resume, timeless, tiny_settings, weights_of
from tests.full import in_full
from tests.training.toy_games import ToyGames, players_of
from tests.training.two_step_game import TwoStepGames

SMALL = {"maps": 4, "hidden": 16, "embedding": 8}
FEW = QmixConfig(replay_steps=600, unroll=6, batch=4, updates=0.5, target_every=3, state_maps=4)


class StatefulToyGames(ToyGames):
    """Toy games that tell their state: the grid of the first agent, and where all are."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        parts = (("grid", (1, 1, 1)), ("agents", (self.num_agents, 4)))
        self.spec = replace(self.spec, capabilities=frozenset({STATE}), state_parts=parts)

    def state(self):
        state = np.zeros((self.num_envs, 1 + 4 * self.num_agents), np.int16)
        state[:, 0] = 3 + self.upside_down[:, 0]
        state[:, 1::4] = np.where(self.alive, 0, -1)
        state[:, 4::4] = self.length[:, None] % 6
        return state


def make(vec, config, agent="qmix", seed=0, **options):
    """A learner and who collects games for it."""
    policy = build_policy(agent, vec.spec, {**SMALL, **options}, seed)
    learner = config.make_learner(policy, vec.spec, vec.num_envs, seed)
    return learner, worker_of(vec, learner, config.unroll)


def worker_of(vec, learner, unroll):
    players = players_of(vec, [learner.policy_of(i) for i in range(vec.num_agents)])
    worker = RolloutWorker(vec, players, unroll, needs=learner.config.needs)
    worker.start(seed=0)
    return worker


def iterate(learner, worker, steps=0):
    learner.explore(steps)
    [trajectory] = worker.collect().joined()
    return learner.update(trajectory, steps)


def test_the_two_step_game_takes_more_than_a_sum():
    """Rashid et al. 2018, appendix B: all play at random, QMIX then plays for 8; a sum of values would for 7."""
    config = QmixConfig(
        unroll=4,
        replay_steps=4096,
        batch=64,
        updates=0.25,
        learning_rate=5e-3,
        target_every=64,
        final_exploration=1.0,
        team="mean",
    )
    learner, worker = make(TwoStepGames(), config)
    for _ in range(30):
        iterate(learner, worker)
    vec = TwoStepGames()
    result = play(Team([learner.policy_of(i) for i in range(2)], vec.spec), vec, 16, 0)
    assert (result.returns == 8).all()


def slow_targets(learner, episodes):
    """Targets of every real step, one step of one game after the other, each network as a player asks it."""
    n, b = learner.num_agents, episodes.real.shape[1]
    place = np.full(episodes.real.shape, -1)
    place[episodes.real] = np.arange(len(episodes.reward))

    def values(network):
        """Q of every agent at each real step."""
        q = torch.zeros(len(episodes.reward), n, network.num_actions)
        for k in range(b):
            for i in range(n):
                memory = network.initial_hidden(1)
                last = torch.zeros(1, network.num_actions)
                for row in place[episodes.real[:, k], k]:
                    seen = {name: torch.from_numpy(episodes.seen[name][row : row + 1, i]) for name in network.looks_at}
                    who, now = torch.eye(n)[i : i + 1], torch.ones(1, 1, dtype=torch.bool)
                    inputs = Inputs(seen, {}, torch.zeros(1).long())
                    q[row, i], memory = network.evaluate(inputs, who, last, memory, now)
                    last = torch.eye(network.num_actions)[episodes.action[row, i]][None]
        return q

    alive, state = (torch.from_numpy(episodes.seen[name]) for name in ("alive", "state"))
    with torch.no_grad():
        best = values(learner.network).argmax(-1, keepdim=True)
        q = values(learner.networks["target_agent"]).gather(-1, best).squeeze(-1)
        kept = learner.config.dead_values == "kept"
        worth = learner.networks["target_mixer"](q if kept else q * alive, state)
    targets, trace = torch.from_numpy(episodes.reward.copy()), learner.config.trace
    for k in range(b):
        rows = place[episodes.real[:, k], k]
        for row, after in reversed(list(pairwise(rows))):
            later = worth[after] if episodes.truncated[after] else targets[after]
            targets[row] += learner.config.gamma * ((1 - trace) * worth[after] + trace * later)
    return targets


@pytest.mark.parametrize(
    ("is_loss", "trace", "dead_values"),
    [(True, 0.0, "zero"), (False, 0.0, "kept"), (False, 0.7, "zero"), (True, 0.7, "kept")],
)
def test_the_loss_is_that_of_a_slow_loop(is_loss, trace, dead_values):
    """Deaths, time-outs and episodes of all lengths included; padding adds nothing, as the loop knows of none."""
    torch.manual_seed(0)
    vec = StatefulToyGames(6, 2, max_cycles=5, time_limit_is_loss=is_loss)
    learner, worker = make(vec, replace(FEW, updates=0.0, trace=trace, dead_values=dead_values))
    for _ in range(4):
        iterate(learner, worker)
    with torch.no_grad():  # the copies differ from what learns, or it would not matter who chooses
        for parameter in learner.networks["target_agent"].parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    episodes = learner.replay_buffer.sample(20, np.random.default_rng(0))
    assert episodes.truncated.any() != is_loss
    assert not episodes.seen["alive"].all()
    assert len(set(episodes.real.sum(0))) > 2
    with torch.no_grad():
        loss, _ = learner.loss(episodes)
    action = torch.from_numpy(episodes.action)
    known = ~torch.from_numpy(episodes.truncated)
    error = (total_of(learner, episodes, action) - slow_targets(learner, episodes))[known]
    torch.testing.assert_close(loss, error.square().mean())


@torch.no_grad()
def total_of(learner, episodes, action):
    """Q_tot of what was done."""
    real = episodes.real
    last = np.zeros((*real.shape, learner.num_agents, learner.network.num_actions), np.float32)
    last[real] = np.eye(last.shape[-1])[episodes.action]
    last = np.concatenate((np.zeros_like(last[:1]), last[:-1]))[real]
    values = learner._values(learner.network, learner._send(episodes), torch.from_numpy(last))
    q = values.gather(-1, action.unsqueeze(-1))
    alive, state = (torch.from_numpy(episodes.seen[name]) for name in ("alive", "state"))
    kept = learner.config.dead_values == "kept"
    return learner.mixer(q.squeeze(-1) if kept else q.squeeze(-1) * alive, state)


def test_a_team_that_gets_the_same_gets_it_once():
    learner, worker = make(TwoStepGames(4), replace(FEW, team="sum", updates=0.0))
    other, twin = make(TwoStepGames(4), replace(FEW, team="mean", updates=0.0))
    for _ in range(3):
        iterate(learner, worker)
        iterate(other, twin)
    ours, theirs = (each.replay_buffer.sample(9, np.random.default_rng(0)) for each in (learner, other))
    assert ours.reward.any()
    assert (ours.reward == 2 * theirs.reward).all()


def test_exploration_falls_and_ends_with_the_rollout():
    learner, worker = make(TwoStepGames(), replace(FEW, exploration=100, final_exploration=0.2))
    assert [learner.exploration(steps) for steps in (0, 50, 100, 1000)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    players = [learner.policy_of(i) for i in range(2)]
    learner.explore(50)
    assert [player.epsilon for player in players] == pytest.approx([0.6, 0.6])
    iterate(learner, worker, 50)
    assert [player.epsilon for player in players] == [PLAY_EPSILON, PLAY_EPSILON]


def test_updates_follow_episodes_and_copies_are_hard():
    learner, worker = make(TwoStepGames(5), FEW)
    for _ in range(6):
        before = [p.clone() for p in learner.networks["target_agent"].parameters()]
        copied = learner._copied_at
        told = iterate(learner, worker)
        assert learner.updates == learner.played // 2
        assert ("td_loss" in told) == (learner.replay_buffer.num_episodes >= FEW.batch)
        now = list(learner.networks["target_agent"].parameters())
        due = learner.played - copied >= FEW.target_every
        expected = learner.network.parameters() if due else before
        assert all(torch.equal(p, q) for p, q in zip(now, expected, strict=True))
        assert not any(p.requires_grad for p in now)
    assert learner.played > 30


@pytest.mark.parametrize("agent", ["qmix", "qmix_relread"])
def test_the_learner_sees_what_the_players_saw(agent):
    """Texts, memories, last actions, who is who: with the same weights the replayed values are those of the rollout."""
    vec = mg.make_vec("ma_rtfm", 8, stage="s1", agents=2, max_cycles=6)
    policy = build_policy(agent, vec.spec, SMALL if agent == "qmix" else {"hidden": 16, "top": 16}, 0)
    learner = QmixLearner(policy, replace(FEW, updates=0.0), vec.spec, 8)
    worker = worker_of(vec, learner, 6)
    seen = []
    for _ in range(4):
        [trajectory] = worker.collect().joined()
        seen.append(learner._by_game(trajectory.value.copy()))
        learner.update(trajectory, 0)
    ours = np.concatenate(seen).reshape(-1, 2)  # [steps of all games, n]
    episodes = learner.replay_buffer.sample(1000, np.random.default_rng(0))
    last = np.zeros((*episodes.real.shape, 2, 5), np.float32)
    last[episodes.real] = np.eye(5)[episodes.action]
    last = np.concatenate((np.zeros_like(last[:1]), last[:-1]))[episodes.real]
    with torch.no_grad():
        values = learner._values(policy, learner._send(episodes), torch.from_numpy(last)).amax(-1).numpy()
    assert len(values) > 100
    assert len(np.unique(values.round(4), axis=0)) > 50
    nearest = np.abs(values[:, None] - ours[None]).max(-1).min(1)
    assert nearest.max() < 1e-5


def settings_of(agent="qmix"):
    learner = QmixConfig(
        replay_steps=300, unroll=5, batch=4, updates=0.25, target_every=5, exploration=300, state_maps=4
    )
    options = {"qmix": SMALL, "qmix_relread": {"hidden": 16, "top": 16}}[agent]
    phases = phases_of(240, learner)
    few = {"stages": ("s1", "s2"), "final_sets": ("train",), "stage_sets": ("train",)}
    return tiny_settings(agent=agent, network=options, phases=phases, **few)


@pytest.fixture(scope="module", params=in_full(["qmix", "qmix_relread"], ["qmix"]))
def finished(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / request.param
    learn(settings_of(request.param), folder)
    return folder


@pytest.mark.parametrize("after_saves", [3])
def test_a_run_killed_anywhere_ends_the_same(finished, tmp_path, after_saves):
    saves = count()
    killed_run(settings_of(finished.name), tmp_path / "run", lambda position: next(saves) == after_saves)
    resume(tmp_path / "run")
    for stage in ("s1", "s2"):
        assert torch.equal(weights_of(tmp_path / "run", stage), weights_of(finished, stage))
    assert timeless(tmp_path / "run") == timeless(finished)


def test_games_that_begin_anew_are_not_glued_to_those_before():
    """Worlds without snapshots: no episode in the replay is longer than a game can be, nor paid as two."""

    def session():
        return StageSession(settings_of().resolve().segments[0], 0, torch.device("cpu"))

    first, second = session(), session()
    first.start()
    first.iterate(0)
    state = {name: tensor for name, tensor in pack_session(first).items() if not name.startswith("games/")}
    second.resume(unpack_session(state, second, None), 30)
    buffer = second.learners[0].replay_buffer
    old, ended = buffer.num_episodes, 0
    for _ in range(3):
        ended += len(second.iterate(30)[0].won)
    assert buffer.num_episodes == old + ended
    assert ended >= 6
    episodes = buffer.sample(1000, np.random.default_rng(0))
    assert len(episodes.real) <= 8
    first.close()
    second.close()


def test_presets_differ_in_the_hidden_layer_of_hypernetworks():
    """And a new one has PyMARL's, but for our own presets, whose numbers were made without."""
    config = make_config("ma_rtfm", preset="paper_qmix")
    learner = next(phase.learner for _, phase in config.walk())
    assert (learner.hypernetwork, learner.dead_values) == (64, "kept")
    quick = next(phase.learner for _, phase in make_config("ma_rtfm", preset="quick_qmix").walk())
    assert (quick.hypernetwork, quick.dead_values) == (0, "zero")
    written = dump(config)
    assert parse_config(written) == config


def test_games_too_long_for_the_replay_are_refused_before_anything_is_written(tmp_path):
    """The second stage's are: the first would be learnt to its end before that came to light."""
    settings = settings_of()
    (phase,) = settings.of_stage("s2")
    long = {**settings.phases, "s2": (replace(phase, num_envs=60),)}
    with pytest.raises(ConfigurationError):
        learn(replace(settings, phases=long), tmp_path / "run")
    assert not (tmp_path / "run").exists()
