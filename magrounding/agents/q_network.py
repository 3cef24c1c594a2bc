"""QNetwork: a network that tells what actions are worth; all agents of a team share it, each knowing who it is."""

from __future__ import annotations

import copy
from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.policy import Policy, PolicyOutput, TextEncoding, mask_logits
from magrounding.observation import ObservationSpec

PLAY_EPSILON = 0.05
"""How often a drawn action is any action, when nobody trains: the exploration that training ends with."""


class QNetwork(Policy):
    """Action values, and the ε-greedy policy they make.

    `logits` are the log-probabilities of that policy: the most likely action is the one of the highest value, and
    sampled play is ε-greedy with `epsilon`.

    Args:
        spec: what the agents observe.

    Attributes:
        reads: the keys of an observation that it looks at.
        reads_text: whether it reads.
        epsilon: probability that a drawn action is any legal one. A learner raises it while it collects games.
        who: [n] float32, one-hot, which agent it plays for; part of the weights, so that loaded ones know it.
    """

    reads: tuple[str, ...]
    reads_text: bool = False

    def __init__(self, spec: ObservationSpec) -> None:
        super().__init__()
        self.num_actions, self.epsilon = spec.num_actions, PLAY_EPSILON
        self.who: Tensor
        self.register_buffer("who", torch.zeros(spec.num_agents))

    def as_agent(self, i: int) -> QNetwork:
        """A network with the very same parameters (not copies) that plays for agent i."""
        shared: dict[int, object] = {id(parameter): parameter for parameter in self.parameters()}
        own = copy.deepcopy(self, shared)
        own.who.zero_()[i] = 1
        return own

    @abstractmethod
    def evaluate(
        self,
        observation: dict[str, Tensor],
        text: TextEncoding,
        document: Tensor,
        who: Tensor,
        last_action: Tensor,
        hidden: Tensor,
        real: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Values of all actions in N lives of at most T steps, all of them at once.

        Args:
            observation: [R, …] of each key in `reads`, of the R real steps, time first.
            text: encoding of U documents.
            document: [R] int64, which of them is read.
            who: [R, n] one-hot, which agent it is.
            last_action: [R, A] one-hot, what it did in the step before; zeros at the start of an episode.
            hidden: [N, D] of `initial_hidden`, or what the call before returned.
            real: [T, N] bool, where the real steps are; a life that is over has no more of them.

        Returns:
            Q [R, A] float32, masked actions at the dtype's minimum; and hidden [N, D] after T steps.
        """

    def initial_hidden(self, num_games: int) -> Tensor:
        """[N, D] at the start of an episode; D = 0 for a network that remembers nothing."""
        return self.who.new_zeros(num_games, 0)

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """[N, D + A]: the hidden state and the last action; None for a network that remembers nothing."""
        hidden = self.initial_hidden(num_envs)
        return F.pad(hidden, (0, self.num_actions)) if hidden.shape[1] else None

    def remember(self, memory: Tensor, action: Tensor) -> Tensor:
        last = F.one_hot(action, self.num_actions).to(memory.dtype)
        return torch.cat((memory[:, : -self.num_actions], last), 1)

    def forward(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, memory: Tensor | None = None
    ) -> PolicyOutput:
        """One step; see `Policy.forward`. `value` is that of the best action."""
        mask = observation["action_mask"]
        n = len(mask)
        before = mask.new_zeros(n, self.num_actions, dtype=torch.float32) if memory is None else memory
        hidden, last = before[:, : -self.num_actions], before[:, -self.num_actions :]
        now = torch.ones(1, n, dtype=torch.bool, device=mask.device)
        q, hidden = self.evaluate(observation, text, document, self.who.expand(n, -1), last, hidden, now)
        logits = epsilon_greedy(q, mask, self.epsilon)
        return PolicyOutput(logits, q.amax(-1), None if memory is None else torch.cat((hidden, last), 1))


def epsilon_greedy(q: Tensor, action_mask: Tensor, epsilon: float) -> Tensor:
    """Log-probabilities [N, A] of taking the best action, or with probability epsilon any legal one.

    Args:
        q: [N, A].
        action_mask: [N, A], 1 for legal actions.
        epsilon: in [0, 1].
    """
    legal = action_mask.to(q.dtype)
    best = F.one_hot(mask_logits(q, action_mask).argmax(-1), q.shape[-1])
    chance = (1 - epsilon) * best + epsilon * legal / legal.sum(-1, keepdim=True).clamp(min=1)
    return mask_logits(chance.clamp(min=torch.finfo(q.dtype).tiny).log(), action_mask)
