"""Games in which texts change: a message for each agent in every step, and texts to choose from."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from magrounding.agents.policy import Accepts, Policy, PolicyOutput, mask_logits
from magrounding.spec import CHOICES, EPISODE, STATE, EnvSpec, Field, Mask, Text, TextChoices
from tests.training.toy_games import info_of

LENGTH, OFFERED = 5, 3


def spec_of(num_agents=2, *, max_cycles=4, time_limit_is_loss=False):
    """The fields, for one agent."""
    return EnvSpec(
        (
            Field("noise", (1,), 0, 99),
            Text("goal", (2,), 0, 9, shared=True, lifetime=EPISODE),
            Text("message", (LENGTH,), 0, 9),
            Text(CHOICES, (OFFERED, LENGTH), 0, 9),
            Mask("action_mask", (OFFERED,)),
        ),
        num_agents,
        TextChoices(OFFERED, LENGTH),
        (),
        max_cycles,
        time_limit_is_loss,
        capabilities=frozenset({STATE}),
        state_parts=(("clock", (1,)),),
    )


class TextGames:
    """B games of n agents, each with a message and choices of its own, of any length; a reward is a coin.

    A game ends at random or by the time limit.
    """

    id = "text"

    def __init__(self, num_envs=4, num_agents=2, *, end=0.1, seed=0, **limits):
        self.num_envs, self.num_agents, self.end, self.options = num_envs, num_agents, end, {}
        self.spec = spec_of(num_agents, **limits)
        self.rng = np.random.default_rng(seed)

    def reset(self, seed=None):
        B = self.num_envs
        self.length, self.returns = np.zeros(B, np.int32), np.zeros((B, self.num_agents), np.float32)
        self.goal, self.key = np.zeros((B, 2), np.int16), np.zeros(B, np.int64)
        for b in range(B):
            self._begin(b)
        observation, nothing = self._observe(), np.zeros(B, bool)
        final = {name: array[:0] for name, array in observation.items()}
        return observation, self._info(nothing, self.length, self.returns, final)

    def step(self, actions):
        shape = actions.shape
        rewards = self.rng.integers(2, size=shape).astype(np.float32)
        self.length += 1
        self.returns += rewards
        ended = self.rng.random(self.num_envs) < self.end
        late = ~ended & (self.length >= self.spec.max_cycles)
        done = ended | late
        shown = self._observe()
        final = {name: array[done] for name, array in shown.items()}
        info = done, self.length.copy(), self.returns.copy(), final
        for b in np.flatnonzero(done):
            self._begin(b)
        flags = (np.repeat(each[:, None], shape[1], 1) for each in (ended, late))
        return self._observe(), rewards, *flags, self._info(*info)

    def state(self):
        return self.length[:, None].astype(np.int16)

    def close(self):
        pass

    def _begin(self, b):
        self.length[b], self.returns[b] = 0, 0
        self.goal[b] = self.rng.integers(1, 10, 2)
        self.key[b] = 10 * int(self.goal[b, 0]) + int(self.goal[b, 1])

    def _sentences(self, *shape):
        """[*shape, LENGTH] words, of some of which the last are missing; often the same."""
        words = self.rng.integers(1, 4, (*shape, LENGTH))
        return np.where(np.arange(LENGTH) < self.rng.integers(1, LENGTH + 1, (*shape, 1)), words, 0)

    def _observe(self):
        each = self.num_envs, self.num_agents
        obs = self.spec.allocate(self.num_envs)
        obs["noise"][:] = self.rng.integers(100, size=(*each, 1))
        obs["goal"][:] = self.goal
        obs["message"][:] = self._sentences(*each)
        offered = np.arange(OFFERED) < self.rng.integers(1, OFFERED + 1, (*each, 1))
        obs["choices"][:] = self._sentences(*each, OFFERED) * offered[..., None]
        obs["action_mask"][:] = offered
        return obs

    def _info(self, done, length, returns, final):
        return info_of(done, returns, final, length=length.copy(), document=self.key.copy())


class TextPolicy(Policy):
    """Listens, remembers and picks the choice that fits best: what it reads, did and heard all count.

    Encodings are cut to the longest text that is encoded along, as those of large readers are.
    """

    accepts = Accepts(actions=(TextChoices,), grid=False, fields=("message", CHOICES))
    reads = {"goal": ("goal",), "message": ("message",), CHOICES: (CHOICES,)}  # noqa: RUF012

    def __init__(self, needs=frozenset(), width=6):
        super().__init__(spec_of())
        self.needs, self.width, self.encoded = needs, width, []
        self.words = nn.Embedding(10, width, padding_idx=0)
        self.done = nn.Embedding(OFFERED + 1, width)
        self.carry, self.value = nn.Linear(4 * width, width), nn.Linear(width, 1)

    def initial_memory(self, num_envs):
        return torch.zeros(num_envs, self.width)

    def encode(self, name, ids):
        (tokens,) = ids.values()
        self.encoded.append((name, tokens.numpy().copy()))
        longest = max(1, int((tokens != 0).sum(1).max())) if len(tokens) else 1
        tokens = tokens[:, :longest].long()
        return {"states": self.words(tokens), "spoken": tokens != 0}

    def forward(self, batch):
        goal, message, choices = (self._read(batch.texts[name]) for name in self.reads)
        heard = torch.cat((goal, message, self.done(batch.last_action + 1)), -1)
        memory, memories = batch.memory, []
        for t, restart in enumerate(batch.restarts):
            memory = torch.where(restart[:, None], 0.0, memory)
            memory = torch.tanh(self.carry(torch.cat((heard[t], memory), -1)))
            memories.append(memory)
        hidden = torch.stack(memories)
        logits = mask_logits((choices * hidden.unsqueeze(2)).sum(-1), batch.observation["action_mask"])
        return PolicyOutput(
            logits,
            self.value(hidden).squeeze(-1),
            hidden,
            aux={"last_action": lambda: batch.last_action, "memory": lambda: hidden},
        )

    def _read(self, reading):
        """Means over the words of texts."""
        states, spoken = (reading.encoding[name][reading.index] for name in ("states", "spoken"))
        return (states * spoken.unsqueeze(-1)).sum(-2) / spoken.sum(-1, keepdim=True).clamp(min=1)


def texts_encoded(player):
    """Texts that a player has encoded so far."""
    return sum(texts.encoded for texts in player._texts.values())
