"""The learner of QMIX (Rashid et al. 2018): one network for all agents, learnt from the team's reward and the state."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.own_defaults import bfloat16
from magrounding.agents.policy import STATE, Policy
from magrounding.agents.qmix import PLAY_EPSILON, MonotonicMixer, QNetwork, StateEncoder
from magrounding.agents.transfer import upload
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Natural, NonNegative, OneOf, Share
from magrounding.spec import EnvSpec
from magrounding.training.algorithm import falling
from magrounding.training.q_learning import QLearner, QLearningConfig, td_loss
from magrounding.training.trajectory import Trajectory, gae


class EpisodeBatch(NamedTuple):
    """b whole episodes of at most T steps, S real steps in all, time first.

    Attributes:
        seen: [S, …] of each key that was stored.
        action: [S, n] int64.
        reward: [S] float32.
        truncated: [S] bool, the step ended in a time-out that is no loss.
        real: [T, b] bool, where the real steps are: the first ones of each episode.
    """

    seen: dict[str, np.ndarray]
    action: np.ndarray
    reward: np.ndarray
    truncated: np.ndarray
    real: np.ndarray


class EpisodeReplay:
    """The latest steps of B games, and which whole episodes are among them.

    Every game has a ring of its own, and all are written in step, so an episode is a stretch of a ring. It is forgotten
    when its first step is written over.

    Args:
        steps: to keep, of all games together.
        num_envs: B.
        longest: steps of the longest episode.

    Raises:
        ConfigurationError: too few steps to hold a whole episode of every game.
    """

    def __init__(self, steps: int, num_envs: int, longest: int) -> None:
        self._ring = steps // num_envs
        if self._ring <= longest:
            raise ConfigurationError(
                f"a replay of {steps:,} steps leaves {self._ring} for each of {num_envs} games, whose episodes may "
                f"take {longest}: keep more than {longest * num_envs:,} steps, or play fewer games at once"
            )
        self._kept: dict[str, np.ndarray] = {}  # [B, ring, …]
        self._added = 0  # steps of each game
        self._open = np.zeros(num_envs, np.int64)  # steps of the episode in progress
        self._length = np.zeros((num_envs, self._ring), np.int64)  # of the episode that begins at a step, or 0

    @property
    def num_episodes(self) -> int:
        """Whole episodes that can be drawn."""
        return int(np.count_nonzero(self._length))

    def add(
        self,
        seen: dict[str, np.ndarray],
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        truncated: np.ndarray,
    ) -> None:
        """Add one step of all games [B, …]: of each key; whether the episode ended; by a time-out that is no loss."""
        at = self._added % self._ring
        arrays = {f"obs.{name}": array for name, array in seen.items()}
        for name, array in (arrays | {"act": action, "rew": reward, "truncated": truncated}).items():
            if name not in self._kept:
                self._kept[name] = np.zeros((len(array), self._ring, *array.shape[1:]), array.dtype)
            self._kept[name][:, at] = array
        self._added += 1
        self._open += 1
        self._length[:, at] = 0
        self._length[done, (at + 1 - self._open[done]) % self._ring] = self._open[done]
        self._open[done] = 0

    def sample(self, count: int, rng: np.random.Generator) -> EpisodeBatch:
        """Draw some different episodes, all equally likely; fewer than `count` where there are no more."""
        starts = np.flatnonzero(self._length)
        game, first = np.divmod(rng.choice(starts, min(count, len(starts)), replace=False), self._ring)
        length = self._length[game, first]
        step = np.arange(length.max())[:, None]
        real = step < length
        game, at = np.broadcast_to(game, real.shape)[real], ((first + step) % self._ring)[real]
        drawn = {name: array[game, at] for name, array in self._kept.items()}
        action, reward, truncated = (drawn.pop(name) for name in ("act", "rew", "truncated"))
        seen = {name.removeprefix("obs."): array for name, array in drawn.items()}
        return EpisodeBatch(seen, action, reward.astype(np.float32), truncated, real)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that decides what is drawn from now on, as arrays for `restore`: of each ring what is filled."""
        filled = min(self._added, self._ring)
        kept = {f"kept.{name}": array[:, :filled].copy() for name, array in self._kept.items()}
        return {**kept, "added": np.array([self._added]), "open": self._open.copy(), "length": self._length.copy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Put back what `snapshot` took, into a replay of the same options that is still empty."""
        self._added, self._open[:], self._length[:] = int(arrays["added"][0]), arrays["open"], arrays["length"]
        for name, array in arrays.items():
            if name.startswith("kept."):
                whole = np.zeros((len(array), self._ring, *array.shape[2:]), array.dtype)
                whole[:, : array.shape[1]] = array
                self._kept[name.removeprefix("kept.")] = whole

    def drop_open(self) -> None:
        """Leave out episodes that have not ended: the next step of every game is the first of a new one."""
        self._open[:] = 0


DEAD_VALUES = ("zero", "kept")

_DOCUMENT = ("manual", "goal")


@dataclass(frozen=True)
class QmixConfig(QLearningConfig):
    """Options of the learner; the defaults are those of the paper's program, PyMARL (Ding et al. 2023 name no others).

    Batches are of episodes, and a unit of `updates` and `target_every` is an episode (see `QLearningConfig`).

    Differences from the paper: games are played side by side, and what is due is learnt after every `unroll` steps of
    them; the replay counts steps, not episodes; ε falls over more steps, as episodes are long.

    Attributes:
        replay_steps: environment steps to keep; 200,000 are about 5,000 episodes of RTFM.
        alpha, epsilon: of RMSProp.
        trace: λ of the targets, 0 in the paper: they look one step ahead. More (Peng and Williams 1994) carries a
            reward at the end of an episode through all its steps at once, explored ones too.
        final_exploration: to which the share of random actions falls from 1.
        state_maps: channels of the convolutions by which the mixer looks at the state.
        hypernetwork: units of the hidden layer of the networks that give the monotonic mixer its two weights; 0: they
            are linear maps of the state, as in the paper (Rashid et al. 2018) and in our runs before this option.
        dead_values: values of dead agents in Q_tot: "zero", or "kept": those of the one action that is legal for them,
            as in PyMARL, which learns from them as from any others.
        team: what the team's reward is of its agents': their "sum", or, where all get the same, their "mean".
        schedule: "run": exploration falls once in the whole curriculum; "stage": in every stage.
    """

    algorithm: ClassVar[str] = "qmix"
    needs: ClassVar[frozenset[str]] = frozenset({STATE})
    joint: ClassVar[bool] = True

    unroll: Count = 8
    replay_steps: Count = 200_000
    target_every: Count = 200
    learning_rate: NonNegative = 5e-4
    alpha: Share = 0.99
    epsilon: NonNegative = 1e-5
    trace: Share = 0.0
    final_exploration: Share = 0.05
    state_maps: Count = 32
    hypernetwork: Natural = 64
    dead_values: Annotated[str, OneOf(DEAD_VALUES)] = "zero"
    team: Annotated[str, OneOf(("sum", "mean"), "team's reward")] = "sum"
    schedule: Annotated[str, OneOf(("stage", "run"))] = "run"

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> QmixLearner:
        assert isinstance(policy, QNetwork)  # as the agent's entry says
        return QmixLearner(policy, self, spec, num_envs, seed)


class QmixLearner(QLearner[QmixConfig, EpisodeBatch]):
    """Double Q-learning (van Hasselt et al. 2016) of the value of a team, mixed from those of its agents.

    Its trajectory is that of the whole team, side by side (`Rollout.joined`), with the games' states. `policy` is the
    Q-network that all agents share, `seed` that of the mixer's weights and of what is drawn from the replay.

    Attributes:
        networks: everything with weights: "agent" and "mixer", and the copies "target_agent" and "target_mixer".
    """

    replay_buffer: EpisodeReplay

    def __init__(self, policy: QNetwork, config: QmixConfig, spec: EnvSpec, num_envs: int, seed: int = 0) -> None:
        super().__init__(policy, config, seed)
        self.num_agents = spec.num_agents
        self.network = policy
        self._players = [policy.as_agent(i) for i in range(spec.num_agents)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layout, c = spec.state_layout(), config
            mixer = MonotonicMixer(StateEncoder(spec, layout, c.state_maps), self.num_agents, c.hypernetwork)
            self.mixer = mixer.to(self.device)
        self._target_network = copy.deepcopy(policy).requires_grad_(False)
        self._target_mixer = copy.deepcopy(self.mixer).requires_grad_(False)
        self.networks = nn.ModuleDict(
            {
                "agent": policy,
                "mixer": self.mixer,
                "target_agent": self._target_network,
                "target_mixer": self._target_mixer,
            }
        )
        learning = [parameter for parameter in self.networks.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.RMSprop(learning, config.learning_rate, alpha=config.alpha, eps=config.epsilon)
        self.replay_buffer = EpisodeReplay(config.replay_steps, num_envs, spec.max_cycles)

    @property
    def module(self) -> nn.Module:
        return self.networks

    def policy_of(self, agent: int) -> Policy:
        return self._players[agent]

    def exploration(self, steps: int) -> float:
        """ε after so many environment steps of the schedule."""
        return falling(1, self.config.final_exploration, self.config.exploration, steps)

    def explore(self, steps: int) -> None:
        self._set_epsilon(self.exploration(steps))

    def metrics(self, steps: int) -> dict[str, float]:
        return {"exploration": self.exploration(steps)}

    def drop_open_episodes(self) -> None:
        self.replay_buffer.drop_open()

    def draw(self, rng: np.random.Generator) -> EpisodeBatch | None:
        batch = self.config.batch
        return self.replay_buffer.sample(batch, rng) if self.replay_buffer.num_episodes >= batch else None

    def copy_to_target(self) -> None:
        """Hard copy of agent network and mixer to the target networks."""
        self._target_network.load_state_dict(self.network.state_dict())
        self._target_mixer.load_state_dict(self.mixer.state_dict())

    def _set_epsilon(self, epsilon: float) -> None:
        for player in self._players:
            player.epsilon = epsilon

    def store(self, trajectory: Trajectory) -> int:
        """Put T steps into the replay, each as [B, n, …]; return how many episodes ended."""
        self._set_epsilon(PLAY_EPSILON)
        states = trajectory.extras[STATE]
        B = trajectory.num_games // self.num_agents
        each = {name: trajectory.observation[name] for name in self.network.looks_at if name in trajectory.observation}
        truncated = np.zeros((len(trajectory.reward), B), np.bool_)
        times, rows = trajectory.truncations.where
        truncated[times, rows % B] = True
        whole = {"alive": trajectory.alive, "action": trajectory.action, "reward": trajectory.reward, **each}
        team = {name: self._by_game(array) for name, array in whole.items()}
        reward = team["reward"].sum(-1) if self.config.team == "sum" else team["reward"].mean(-1)
        for t, done in enumerate(trajectory.restarts[1:, :B]):
            seen = {name: team[name][t] for name in each} | {"alive": team["alive"][t], "state": states[t]}
            for texts in trajectory.texts.values():
                seen |= {name: ids[texts.index[t, :B]] for name, ids in texts.ids.items()}
            self.replay_buffer.add(seen, team["action"][t], reward[t], done, truncated[t])
        return int(trajectory.restarts[1:, :B].sum())

    def _by_game(self, array: np.ndarray) -> np.ndarray:
        """[T, B, n, …] of [T, n · B, …]."""
        return np.moveaxis(array.reshape(len(array), self.num_agents, -1, *array.shape[2:]), 1, 2)

    def loss(self, episodes: EpisodeBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean squared error of Q_tot over all real steps (Rashid et al. 2018, eq. 6), and the mean of Q_tot.

        The target is r + γ Q̂_tot(s', argmax Q), the latter from the copies, or with `trace` an average of it and of
        those further ahead. The last step of an episode has r alone, but after a time-out that is no loss none at all:
        the value after it is unknown, as states of finished games are gone.
        """
        drawn = self._send(episodes)
        last = drawn.before(F.one_hot(drawn.action, self.network.num_actions).float())
        q = self._values(self.network, drawn, last)  # [S, n, A]
        total = self._mix(self.mixer, q.gather(-1, drawn.action.unsqueeze(-1)), drawn)
        with torch.no_grad():
            best = self._values(self._target_network, drawn, last).gather(-1, q.argmax(-1, keepdim=True))
            following = self._mix(self._target_mixer, best, drawn)
        return td_loss(total, self._targets(following, drawn), drawn.known), {"q_total": total.detach().mean()}

    def _send(self, episodes: EpisodeBatch) -> _Drawn:
        t, b = np.nonzero(episodes.real)
        own = {
            "action": episodes.action,
            "reward": episodes.reward,
            "known": ~episodes.truncated,
            "real": episodes.real,
            "t": t,
            "b": b,
        }
        seen = {("seen", name): array for name, array in episodes.seen.items()}
        sent: dict[Any, Tensor] = upload({**own, **seen}, self.device)
        return _Drawn({name: sent["seen", name] for name in episodes.seen}, **{name: sent[name] for name in own})

    def _targets(self, values: Tensor, drawn: _Drawn) -> Tensor:
        """Targets [S] of Q_tot at all real steps, from the copies' values of those; see `loss`."""
        c, real = self.config, drawn.real
        ahead = torch.cat((real[1:], torch.zeros_like(real[:1])))
        value, paid, learnt = (drawn.in_time(each) for each in (values, drawn.reward, drawn.known))
        following = torch.cat((value[1:], torch.zeros_like(value[:1])))
        returns = gae(paid, c.gamma * ahead, value, following, ahead, learnt, gae_lambda=c.trace)
        return returns.target[drawn.t, drawn.b]

    def _values(self, network: QNetwork, drawn: _Drawn, last: Tensor) -> Tensor:
        """Q [S, n, A] of all agents, each from its own observations, from the first step of every episode on.

        Args:
            network: whose.
            drawn: S steps in all.
            last: [S, n, A] one-hot, the actions before.
        """
        seen, n, b = drawn.seen, self.num_agents, drawn.real.shape[1]
        rows = {name: seen[name].flatten(0, 1) for name in network.looks_at if name in seen}
        who = torch.eye(n, device=self.device).repeat(len(last), 1)
        hidden = network.initial_hidden(b * n)
        with bfloat16(self.device, self.config.bf16):
            # The first b rows are the first steps of all episodes: each has a text of its own.
            text = network.encode("document", {k: seen[k][:b] for k in _DOCUMENT}) if network.reads else {}
            inputs = Inputs(rows, text, drawn.b.repeat_interleave(n))
            q, _ = network.evaluate(inputs, who, last.flatten(0, 1), hidden, drawn.real.repeat_interleave(n, 1))
        return q.view(len(last), n, -1)

    def _mix(self, mixer: nn.Module, q: Tensor, drawn: _Drawn) -> Tensor:
        """Q_tot [S] of values [S, n, 1]; those of dead agents are as `dead_values` has it."""
        q = q.squeeze(-1)
        alive = q if self.config.dead_values == "kept" else torch.where(drawn.seen["alive"], q, 0.0)
        return mixer(alive, drawn.seen["state"])


@dataclass(frozen=True, eq=False)
class _Drawn:
    """An `EpisodeBatch` on the learner's device.

    Attributes:
        known: [S] bool, the step is not truncated.
        t, b: [S] int64, step and episode of each real step.
    """

    seen: dict[str, Tensor]
    action: Tensor
    reward: Tensor
    known: Tensor
    real: Tensor
    t: Tensor
    b: Tensor

    def in_time(self, values: Tensor) -> Tensor:
        """[T, b, …] of values [S, …] of the real steps; 0 elsewhere."""
        grid = values.new_zeros(*self.real.shape, *values.shape[1:])
        grid[self.t, self.b] = values
        return grid

    def before(self, values: Tensor) -> Tensor:
        """Values [S, …] of the step before; 0 at the start of an episode."""
        grid = self.in_time(values)
        return torch.cat((torch.zeros_like(grid[:1]), grid[:-1]))[self.t, self.b]
