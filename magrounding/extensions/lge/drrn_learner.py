"""The learner of DRRN: Q-learning of texts to choose from (He et al. 2016; Golchha et al. 2024 for ScienceWorld)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.own_defaults import bfloat16
from magrounding.agents.policy import Policy
from magrounding.errors import ConfigurationError
from magrounding.extensions.lge.choice_replay import ChoiceReplay, Transitions
from magrounding.extensions.lge.drrn.choice_values import ChoiceValues
from magrounding.schema import Count, NonNegative, OneOf, Positive, Share
from magrounding.spec import CHOICES
from magrounding.training.algorithm import end_of_fall, falling
from magrounding.training.q_learning import QLearner, QLearningConfig, td_loss
from magrounding.training.trajectory import Trajectory

if TYPE_CHECKING:
    from magrounding.spec import EnvSpec

PRIORITIES = ("positive", "off_as_code")


@dataclass(frozen=True)
class DrrnLearnerConfig(QLearningConfig):
    """Options of the learner; the defaults are the paper's.

    Batches are of transitions, and a unit of `updates` and `target_every` is a step of all games (see
    `QLearningConfig`). A step after the end of a game is none: the game begins anew at once, and nothing is stored.

    Attributes:
        replay_transitions: to keep.
        priority_fraction: part of the replay, and of every batch, that is for transitions with a positive reward.
        priority: "positive", or "off_as_code": as in the published program that half never receives any, so that the
            replay and the batches are the other half.
        delta: the error beyond which the loss is linear.
        temperature: that Q is divided by before actions are drawn from its softmax.
        final_temperature: what it has become after `exploration` environment steps; sampled play has it too. None: 1,
            or `temperature` where that is less.
        reward_scale: rewards are learnt so many times as large.
        schedule: "run": temperature falls once in the whole curriculum; "stage": in every stage.
    """

    algorithm: ClassVar[str] = "drrn"

    unroll: Count = 1
    batch: Count = 64
    learning_rate: NonNegative = 1e-4
    clip_gradient: NonNegative = 5.0
    gamma: Share = 0.9
    replay_transitions: Count = 100_000
    priority_fraction: Share = 0.5
    priority: Annotated[str, OneOf(PRIORITIES)] = "positive"
    delta: Positive = 1.0
    temperature: Positive = 1.0
    final_temperature: Positive | None = None
    reward_scale: Positive = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        drawn, kept = self.batch, self.replay_transitions
        if self.priority == "off_as_code":
            drawn, kept = (number - round(self.priority_fraction * number) for number in (drawn, kept))
        if not 0 < drawn <= kept:  # nothing would ever be learnt
            raise ConfigurationError(
                f"algorithm drrn draws {drawn} transitions of the {kept:,} that it keeps: set batch to less, "
                "replay_transitions to more, or priority_fraction to less than 1"
            )

    @property
    def last_temperature(self) -> float:
        """The temperature once it has fallen."""
        return end_of_fall(self.temperature, self.final_temperature, usual=1.0)

    def temperature_at(self, steps: int) -> float:
        """The temperature after so many environment steps."""
        return falling(self.temperature, self.last_temperature, self.exploration, steps)

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> DrrnLearner:
        assert isinstance(policy, ChoiceValues)  # as the agent's entry says
        return DrrnLearner(policy, self, spec, seed)


class TargetTexts:
    """The parts of one reader's texts in a target network's hidden layer, each read once for each of its versions.

    Call `forget` when the network's weights change, or when texts change their places.
    """

    def __init__(self, network: ChoiceValues, reader: str, device: torch.device) -> None:
        self._network, self._reader, self._device = network, reader, device
        self._parts = torch.zeros(0)
        self._known = np.zeros(0, np.bool_)

    def forget(self) -> None:
        """Drop all that was read."""
        self._known[:] = False

    @torch.no_grad()
    def parts(self, places: np.ndarray, texts: Mapping[str, np.ndarray]) -> Tensor:
        """The parts that texts add to the hidden layer, [U, hidden].

        Args:
            places: [U] int64, where each is in the pool; all different.
            texts: [U, …] ids of each field.
        """
        size = int(places.max(initial=-1)) + 1
        if size > len(self._known):  # by a quarter more, so that a growing pool is not copied each time
            self._known = np.append(self._known, np.zeros(size + size // 4 - len(self._known), np.bool_))
        new = np.flatnonzero(~self._known[places])
        if len(new):
            ids = {field: torch.from_numpy(array[new]).to(self._device) for field, array in texts.items()}
            read = self._network.encode(self._reader, ids)["part"]
            if len(self._parts) < len(self._known):
                grown = read.new_zeros(len(self._known), read.shape[1])
                grown[: len(self._parts)] = self._parts.to(grown).view(-1, read.shape[1])
                self._parts = grown
            self._parts[torch.from_numpy(places[new]).to(self._device)] = read
            self._known[places[new]] = True
        return self._parts[torch.from_numpy(places).to(self._device)]


class DrrnLearner(QLearner[DrrnLearnerConfig, Transitions]):
    """One-step Q-learning with a replay. The best of what follows is sought among all valid actions, always.

    Attributes:
        network: the policy.
        target: its copy, which gives the value after a step, or the network itself.
    """

    def __init__(self, policy: ChoiceValues, config: DrrnLearnerConfig, spec: EnvSpec, seed: int) -> None:
        super().__init__(policy, config, seed)
        self.network = self.target = policy
        self._known: dict[str, TargetTexts] = {}
        if config.target_every:
            self.target = copy.deepcopy(policy).requires_grad_(False)
            self._known = {name: TargetTexts(self.target, name, self.device) for name in policy.reads}
        learning = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(learning, config.learning_rate, fused=True)
        texts = {
            name: {field: np.zeros((0, *_row(spec, field, name)), spec[field].dtype) for field in fields}
            for name, fields in policy.reads.items()
        }
        self.replay_buffer = ChoiceReplay(
            config.replay_transitions, config.priority_fraction, config.priority == "off_as_code", texts
        )
        self._sweeps = self.replay_buffer.sweeps
        self._finish()

    @property
    def module(self) -> nn.Module:
        if self.target is self.network:
            return self.network
        return nn.ModuleDict({"agent": self.network, "target": self.target})

    def explore(self, steps: int) -> None:
        self.network.temperature.fill_(self.config.temperature_at(steps))
        self.network.shown = self.network.encoded = self.target.encoded = 0

    def metrics(self, steps: int) -> dict[str, float]:
        """Temperature; and of acting and learning, the texts that were referred to and those that were encoded."""
        network = self.network
        encoded = network.encoded + (0 if self.target is network else self.target.encoded)
        return {
            "temperature": self.config.temperature_at(steps),
            "texts_shown": float(network.shown),
            "texts_encoded": float(encoded),
            "replay_positive": self.replay_buffer.positive / max(1, len(self.replay_buffer)),
        }

    def store(self, trajectory: Trajectory) -> int:
        self._finish()
        self.replay_buffer.add(trajectory)
        return len(trajectory.action)

    def draw(self, rng: np.random.Generator) -> Transitions | None:
        return self.replay_buffer.sample(self.config.batch, rng)

    def copy_to_target(self) -> None:
        self.target.load_state_dict(self.network.state_dict())
        self._forget()

    def loss(self, transitions: Transitions) -> tuple[Tensor, dict[str, Tensor]]:
        """Huber's error of Q(s, a) from r + γ max Q(s', ·), its mean over the batch, and the mean of Q(s, a)."""
        with bfloat16(self.device, self.config.bf16):
            states = self._states(transitions)
            network = self.network
            state = sum(
                (network.part(name, states[name][self.tensor(index)]) for name, index in transitions.state.items()),
                states[CHOICES].new_zeros(()),
            )
            chosen = network.part(CHOICES, states[CHOICES][self.tensor(transitions.action)])
            each = torch.arange(len(chosen), device=self.device)
            q = network.values(state.expand_as(chosen), chosen, each, each)
            following = self._following(states, transitions)
        reward = self.config.reward_scale * self.tensor(transitions.reward)
        known = torch.ones_like(reward, dtype=torch.bool)
        self.network.shown += transitions.shown
        target = reward + self.config.gamma * following
        return td_loss(q, target, known, self.config.delta), {"q": q.detach().mean()}

    @torch.no_grad()
    def _following(self, states: dict[str, Tensor], transitions: Transitions) -> Tensor:
        """[b] max Q of what follows over all valid actions; 0 where nothing does."""
        target, owner = self.target, self.tensor(transitions.owner)
        if self._known:
            if self._sweeps != self.replay_buffer.sweeps:
                self._forget()
            parts = {
                name: self._known[name].parts(transitions.places[name], texts)
                for name, texts in transitions.texts.items()
            }
        else:
            parts = {name: target.part(name, each) for name, each in states.items()}
        state = parts[CHOICES].new_zeros(len(transitions.follows), parts[CHOICES].shape[1])
        for name, index in transitions.following.items():
            state = state + parts[name][self.tensor(index)]
        values = target.values(state, parts[CHOICES], owner, self.tensor(transitions.offered))
        best = values.new_zeros(len(state)).scatter_reduce(0, owner, values, "amax", include_self=False)
        return values.new_zeros(len(transitions.action)).index_copy(0, self.tensor(transitions.follows), best)

    def _states(self, transitions: Transitions) -> dict[str, Tensor]:
        """Reader → [U, width] of the distinct texts of a batch, each read once.

        Where a target network values what follows, the network reads what was seen and done before; other rows are 0.
        """
        states = {}
        for name, texts in transitions.texts.items():
            if not self._known:
                states[name] = self.network.read(name, {field: self.tensor(ids) for field, ids in texts.items()})
                continue
            some = np.unique(transitions.action if name == CHOICES else transitions.state[name])
            read = self.network.read(name, {field: self.tensor(ids[some]) for field, ids in texts.items()})
            count = len(next(iter(texts.values())))
            states[name] = read.new_zeros(count, read.shape[1]).index_copy(0, self.tensor(some), read)
        return states

    def _forget(self) -> None:
        self._sweeps = self.replay_buffer.sweeps
        for texts in self._known.values():
            texts.forget()

    def _finish(self) -> None:
        """Outside of a rollout, play is as it will be at the end."""
        self.network.temperature.fill_(self.config.last_temperature)


def _row(spec: EnvSpec, field: str, name: str) -> tuple[int, ...]:
    """The shape of one text of a field; a choice is a text of its own."""
    shape = spec[field].shape
    return shape[1:] if name == CHOICES else shape
