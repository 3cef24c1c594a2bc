"""Games with hardly a rule and a policy that can be reasoned about: what rollouts and learners are tested with."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.document_policy import DocumentPolicy
from magrounding.agents.policy import PolicyOutput, mask_logits
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Grid, Mask, Text
from magrounding.teams.player import Player
from magrounding.training.rollout import RolloutWorker
from magrounding.vector import Info
from magrounding.vocabulary import Vocabulary

JUMP = 2  # the action that kills whoever takes it

WORDS = Vocabulary(["red", "blue", "upright", "upside-down", "wait"]).words
FIELDS = (
    Grid("grid", (1, 1, 1), 0, 5, scenery_ids=(0,)),
    Field("position", (2,), -1, 0),
    Text("manual", (1, 2), 0, 5, shared=True, lifetime=EPISODE),
    Text("goal", (1,), 0, 5, shared=True, lifetime=EPISODE),
    Field("inventory", (1,), 0, 5),
    Mask("action_mask", (4,)),
)
ACTIONS = FixedActions(("say red", "say blue", "jump", "nothing"))


def info_of(done, returns, final, **changes):
    """What is told beside the observations; but for the changes, nobody has won, died or chosen what is illegal."""
    nothing = np.zeros(len(done), bool)
    return Info(
        **{
            "done": done,
            "won": nothing,
            "score": changes.get("won", nothing).astype(np.float32),
            "length": nothing.astype(np.int32),
            "returns": returns.copy(),
            "alive": np.ones(returns.shape, bool),
            "illegal": np.zeros(returns.shape, bool),
            "document": nothing.astype(np.int64),
            "final_rows": np.flatnonzero(done),
            "final_observation": final,
            **changes,
        }
    )


class ToyGames:
    """B games of n agents. The manual names a colour, the grid says whether it counts; the right guess earns 1.

    Who jumps dies. A game ends at random, when all are dead, or by the time limit.
    """

    id = "toy"

    def __init__(self, num_envs=4, num_agents=2, *, max_cycles=9, time_limit_is_loss=True, end=0.1, seed=0):
        self.num_envs, self.num_agents, self.end = num_envs, num_agents, end
        self.options = {}
        self.spec = EnvSpec(FIELDS, num_agents, ACTIONS, WORDS, max_cycles, time_limit_is_loss)
        self.rng = np.random.default_rng(seed)

    def reset(self, seed=None):
        B, n = self.num_envs, self.num_agents
        self.alive = np.ones((B, n), bool)
        self.length = np.zeros(B, np.int32)
        self.returns = np.zeros((B, n), np.float32)
        self.colour, self.key = np.zeros(B, np.int64), np.zeros(B, np.int64)
        self.upside_down = np.zeros((B, n), np.int64)
        for b in range(B):
            self._begin(b)
        observation, nothing = self._observe(), np.zeros(B, bool)
        final = {name: array[:0] for name, array in observation.items()}
        return observation, self._info(nothing, self.returns, final, self.length)

    def step(self, actions):
        B, n = actions.shape
        rewards = np.where(self.alive & (actions == (self.colour[:, None] ^ self.upside_down)), 1.0, -0.1)
        rewards[~self.alive] = 0
        died = self.alive & (actions == JUMP)
        rewards[died] = -1
        living = self.alive & ~died
        self.length += 1
        ended = (self.rng.random(B) < self.end) | ~living.any(1)
        late = ~ended & (self.length >= self.spec.max_cycles)
        terminated = died | (living & ended[:, None])
        truncated = living & late[:, None]
        self.returns += rewards.astype(np.float32)
        done = ended | late
        self.alive = living
        self.upside_down = self.rng.integers(2, size=(B, n))
        rows = np.flatnonzero(done)
        final = {name: array[rows] for name, array in self._observe().items()}
        won, length, returns = done & (self.returns.sum(1) > 0), self.length.copy(), self.returns.copy()
        for b in rows:
            self._begin(b)
        info = self._info(done, returns, final, length, won=won)
        return self._observe(), rewards.astype(np.float32), terminated, truncated, info

    def close(self):
        pass

    def _info(self, done, returns, final, length, **won):
        copies = {"length": length.copy(), "alive": self.alive.copy(), "document": self.key.copy()}
        return info_of(done, returns, final, **copies, **won)

    def _begin(self, b):
        self.alive[b], self.length[b], self.returns[b] = True, 0, 0
        self.colour[b] = self.rng.integers(2)
        self.key[b] = self.rng.integers(2**40)
        self.upside_down[b] = self.rng.integers(2, size=self.num_agents)

    def _observe(self):
        obs = self.spec.allocate(self.num_envs)
        obs["grid"][:, :, 0, 0, 0] = 3 + self.upside_down
        obs["position"][:] = np.where(self.alive, 0, -1)[..., None]
        obs["manual"][:, 0] = np.stack([1 + self.colour, 1 + self.key % 5], 1)
        obs["goal"][:] = 5
        obs["inventory"][:, :, 0] = self.length[:, None] % 6
        obs["action_mask"][:] = [1, 1, 1, 0]
        return obs


class ToyPolicy(DocumentPolicy):
    """Embeds the manual and what it sees; with `recurrent`, also what it saw before in the episode."""

    def __init__(self, recurrent=False, width=16):
        super().__init__(ToyGames(1).spec)
        self.recurrent, self.rows_read = recurrent, 0
        self.words = nn.Embedding(6, width, padding_idx=0)
        self.mix = nn.Linear(3 * width, width)
        self.carry = nn.Linear(2 * width, width)
        self.policy, self.value = nn.Linear(width, 4), nn.Linear(width, 1)

    def initial_memory(self, num_envs):
        return torch.zeros(num_envs, self.carry.out_features) if self.recurrent else None

    def encode_text(self, manual: Tensor, goal: Tensor):
        self.rows_read += len(manual)
        return {"text": self.words(manual.long()).flatten(1)}

    def respond(self, inputs, memory=None):
        observation, text, document = inputs
        seen = self.words(observation["grid"].long().flatten(1)).squeeze(1)
        hidden = torch.relu(self.mix(torch.cat((text["text"][document], seen), 1)))
        if memory is not None:
            hidden = memory = torch.tanh(self.carry(torch.cat((hidden, memory), 1)))
        logits = mask_logits(self.policy(hidden), observation["action_mask"])
        return PolicyOutput(logits, self.value(hidden).squeeze(1), memory)


class ToyExpert:
    """Knows the right guess of everybody; with `ties` it holds both guesses to be equally good in every other game."""

    def __init__(self, vec, ties=False):
        self.vec, self.ties = vec, ties

    def best_actions(self, rows=None):
        best = np.eye(4, dtype=np.bool_)[self.vec.colour[:, None] ^ self.vec.upside_down]
        if self.ties:
            best[::2, :, :2] = True
        return best


def players_of(vec, policies):
    """A player for each policy, each with draws of its own."""
    return [
        Player(policy, vec.spec, vec.num_envs, torch.Generator().manual_seed(i)) for i, policy in enumerate(policies)
    ]


def collect(vec, policies, unroll=8, skip=0, beta=0.0, **options):
    """The rollout after `skip` others, as a copy that no later one overwrites."""
    worker = RolloutWorker(vec, players_of(vec, policies), unroll, **options)
    worker.start(seed=0)
    for _ in range(skip):
        worker.collect(beta)
    return copy.deepcopy(worker.collect(beta))


def check_reading_is_learnt(config, updates):
    """The right guess depends on the manual and on the grid: neither alone is worth more than chance."""
    torch.manual_seed(0)
    vec = ToyGames(num_envs=32, num_agents=2, end=0.2, seed=1)
    policies = [ToyPolicy(), ToyPolicy()]
    learners = [config.make_learner(policy, vec.spec, vec.num_envs, seed=0) for policy in policies]
    worker = RolloutWorker(vec, players_of(vec, policies), config.unroll)
    worker.start(seed=0)
    hits = []
    for step in range(updates):
        trajectories = worker.collect().trajectories
        for learner, trajectory in zip(learners, trajectories, strict=True):
            learner.update(trajectory, step + 1)
        hits.append([float((trajectory.reward == 1)[trajectory.alive].mean()) for trajectory in trajectories])
    assert np.mean(hits[0]) < 0.45
    assert np.min(np.mean(hits[-10:], axis=0)) > 0.9  # each of the two
