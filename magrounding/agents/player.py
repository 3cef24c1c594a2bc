"""Player: one policy in B games: text cache, memory, choice of actions. Teams and rollouts play through it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Others, Policy, PolicyOutput, TextEncoding
from magrounding.agents.text_cache import TextCache


class Choice(NamedTuple):
    """action [R] int64, logits [R, A] float32 and value [R] float32, of the rows asked for."""

    action: np.ndarray
    logits: np.ndarray
    value: np.ndarray


class Player:
    """One policy playing B games.

    Args:
        policy: its network; it stays where it is (CPU or GPU).
        num_envs: B.
        generator: CPU random numbers of the sampled actions; None plays with torch's own.
        bf16: compute in bfloat16 where autocast does.

    Attributes:
        memory: [B, …] of a policy that remembers.
        taken: [B, H, W] int8, how a policy that divides entities divided them last, see `endi.division.Division.taken`.
    """

    def __init__(
        self, policy: Policy, num_envs: int, generator: torch.Generator | None = None, *, bf16: bool = False
    ) -> None:
        self.policy = policy
        self.num_envs = num_envs
        self.generator = generator
        self.bf16 = bf16
        self.texts = TextCache(policy, num_envs)
        self.device = next(policy.parameters()).device
        self.memory: Tensor | None = None
        self.taken: np.ndarray | None = None
        self._last: tuple[dict[str, Tensor], TextEncoding, Tensor, PolicyOutput] | None = None
        self.restart(np.ones(num_envs, np.bool_))

    def restart(self, rows: np.ndarray) -> None:
        """Clear the memory of the games whose flag in rows [B] bool is set."""
        fresh = self.policy.initial_memory(self.num_envs)
        if fresh is None or not rows.any():
            return
        fresh = fresh.to(self.device)
        if self.memory is None:
            self.memory = fresh
        else:
            index = torch.from_numpy(np.flatnonzero(rows)).to(self.device)
            self.memory = self.memory.index_copy(0, index, fresh[index])

    @torch.no_grad()
    def choose(
        self,
        observation: dict[str, np.ndarray],
        manual: np.ndarray,
        goal: np.ndarray,
        keys: np.ndarray | None,
        *,
        rows: np.ndarray | None = None,
        greedy: bool = False,
    ) -> Choice:
        """Choose the next action of each game.

        Args:
            observation: this agent's keys, [B, …], and in training the noise of `Policy.draw_noise`.
            manual, goal: [B, S, L] and [B, G] ids on show.
            keys: [B] int64 keys of the texts, or None when unknown.
            rows: [R] the games to play; all by default.
            greedy: take the most likely action instead of drawing one.
        """
        some = np.arange(self.num_envs) if rows is None else rows
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            text = self.texts.read(manual, goal, keys, some)
            columns = {
                name: self._tensor(array if rows is None else array[rows]) for name, array in observation.items()
            }
            index = torch.from_numpy(some).to(self.device)
            memory = None if self.memory is None else self.memory[index]
            output = self.policy(columns, text, index, memory)
        if self.policy.models_others:
            self._last = columns, text, index, output
        if output.division is not None:
            self._keep(output.division.taken(*observation["grid"].shape[1:3]).cpu().numpy(), some)
        logits = output.logits.float().cpu()
        if greedy:
            action = logits.argmax(-1)
        else:
            action = torch.multinomial(logits.softmax(-1), 1, generator=self.generator).squeeze(-1)
        if output.memory is not None:
            after = self.policy.remember(output.memory, action.to(self.device))
            self.memory = after if rows is None else self.memory.index_copy(0, index, after)  # type: ignore[union-attr]
        return Choice(action.numpy(), logits.numpy(), output.value.float().cpu().numpy())

    @torch.no_grad()
    def foresight(self, others: Others) -> np.ndarray | None:
        """How often the policy was right about what others did after the last `choose`; call it before the next.

        Args:
            others: of the R rows that were asked for.

        Returns:
            [R] shares of the others, nan where none of them acted; None for a policy that foresees nothing.
        """
        if self._last is None:
            return None
        others = Others(*(tensor.to(self.device) for tensor in others))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            told = self.policy.auxiliary(*self._last, others)
        return None if told is None else told.facts["modelling_accuracy"].float().cpu().numpy()

    def _keep(self, taken: np.ndarray, rows: np.ndarray) -> None:
        """Note how the entities were divided, [R, H, W], in some games."""
        if self.taken is None or self.taken.shape[1:] != taken.shape[1:]:
            self.taken = np.full((self.num_envs, *taken.shape[1:]), -1, np.int8)
        self.taken[rows] = taken

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
