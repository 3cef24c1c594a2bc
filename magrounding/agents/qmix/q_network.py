"""QNetwork: a network of action values that all agents of a team share, with the agent's id as input."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.document_policy import Inputs
from magrounding.agents.policy import Batch, Policy, PolicyOutput, TextEncoding, mask_logits
from magrounding.spec import EnvSpec

PLAY_EPSILON = 0.05
"""Probability of a random action outside training: the final one of PyMARL's training, as QMIX's is by default."""


class QNetwork(Policy):
    """Action values, and the ε-greedy policy they make.

    `logits` are the log-probabilities of that policy: the most likely action is the one of the highest value, and
    sampled play is ε-greedy with `epsilon`.

    Attributes:
        looks_at: the fields of an observation that `evaluate` needs, of those that exist.
        epsilon: probability that a drawn action is any legal one. A learner raises it while it collects episodes.
        who: [n] float32, one-hot, the agent it plays for; part of the weights, so that loaded ones know it.
    """

    looks_at: ClassVar[tuple[str, ...]]

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__(spec)
        self.num_actions, self.epsilon = spec.num_actions, PLAY_EPSILON
        self.who: Tensor
        self.register_buffer("who", torch.zeros(spec.num_agents))

    def as_agent(self, i: int) -> QNetwork:
        """Return a network with the very same parameters (not copies) that plays for agent i."""
        shared: dict[int, object] = {id(parameter): parameter for parameter in self.parameters()}
        own = copy.deepcopy(self, shared)
        own.who.zero_()[i] = 1
        return own

    @abstractmethod
    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U distinct documents, see `DocumentPolicy.encode_text`."""

    @abstractmethod
    def evaluate(
        self, inputs: Inputs, who: Tensor, last_action: Tensor, hidden: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return values Q [R, A] float32 of all actions in N lives of at most T steps, and hidden [N, D] after them.

        Args:
            inputs: the R real steps, time first, with the fields in `looks_at`.
            who: [R, n] one-hot, the agent's id.
            last_action: [R, A] one-hot, the action before; zeros at the start of an episode.
            hidden: [N, D] of `initial_hidden`, or returned by the call before.
            real: [T, N] bool, where the real steps are; a life that is over has no more of them.
        """

    def initial_hidden(self, num_games: int) -> Tensor:
        """Return [N, D] at the start of an episode; D = 0 for a network without memory."""
        return self.who.new_zeros(num_games, 0)

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """Return the hidden state [N, D]; None for a network without memory."""
        hidden = self.initial_hidden(num_envs)
        return hidden if hidden.shape[1] else None

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        return self.encode_text(ids["manual"], ids["goal"])

    def forward(self, batch: Batch) -> PolicyOutput:
        """Act on T steps, one after another; `value` is that of the best action."""
        n, read = batch.restarts.shape[1], batch.texts.get("document")
        text = {} if read is None else read.encoding
        last = F.one_hot(batch.last_action.clamp(min=0), self.num_actions).to(torch.float32)
        last = last * (batch.last_action >= 0).unsqueeze(-1)
        now = torch.ones_like(batch.restarts[:1])
        fresh = self.initial_hidden(n)
        hidden, values, memories = fresh if batch.memory is None else batch.memory, [], []
        for t, restart in enumerate(batch.restarts):
            hidden = torch.where(restart.unsqueeze(1), fresh, hidden)
            seen = {name: batch.observation[name][t] for name in self.looks_at if name in batch.observation}
            document = torch.zeros_like(restart, dtype=torch.int64) if read is None else read.index[t]
            q, hidden = self.evaluate(Inputs(seen, text, document), self.who.expand(n, -1), last[t], hidden, now)
            values.append(q)
            memories.append(hidden.to(fresh.dtype))
        q = torch.stack(values)
        logits = epsilon_greedy(q, batch.observation["action_mask"], self.epsilon)
        return PolicyOutput(logits, q.amax(-1), torch.stack(memories) if fresh.shape[1] else None)


def epsilon_greedy(q: Tensor, action_mask: Tensor, epsilon: float) -> Tensor:
    """Return log-probabilities […, A] of the best action of q […, A], or with probability epsilon of any legal one."""
    legal = action_mask.to(q.dtype)
    best = F.one_hot(mask_logits(q, action_mask).argmax(-1), q.shape[-1])
    chance = (1 - epsilon) * best + epsilon * legal / legal.sum(-1, keepdim=True).clamp(min=1)
    return mask_logits(chance.clamp(min=torch.finfo(q.dtype).tiny).log(), action_mask)
