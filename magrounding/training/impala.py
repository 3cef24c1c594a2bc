"""An independent V-trace learner (IMPALA, Espeholt et al. 2018), one for each agent, and its options.

The loss sums over time and averages over the batch, as the programs behind the papers do. A learner is handed its own
column of a
rollout: other agents' observations, actions and rewards never reach it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.training.returns import following_values, vtrace
from magrounding.training.rollout import Column, Documents


@dataclass(frozen=True)
class ImpalaConfig:
    """Options of the learner; the defaults are those of RTFM and EnDi (agents' sections "Training", appendix B).

    Attributes:
        unroll: T, steps between two updates.
        learning_rate: at the start of a schedule.
        anneal_steps: environment steps over which the rate falls linearly to 0.
        schedule: "stage": the rate starts anew with every stage; "run": one schedule for the whole curriculum.
        decay: of RMSProp's running mean of squares.
        epsilon: of RMSProp, added after the root.
        momentum: of RMSProp.
        gamma: discount of a step.
        entropy: weight of the entropy bonus.
        baseline: weight of half the squared error of the value.
        clip_rho: bound on V-trace's importance weights.
        clip_c: bound on the weights that pass later errors back.
        clip_reward: rewards are clipped to ± this.
        clip_gradient: norm of an update's gradient.
        chunk: games a backward pass; 0 takes all at once, fewer need less memory for the same gradient.
        bf16: compute networks in bfloat16 (losses and weights stay float32).
    """

    unroll: int = 80
    learning_rate: float = 0.005
    anneal_steps: float = 1e8
    schedule: str = "stage"
    decay: float = 0.99
    epsilon: float = 0.01
    momentum: float = 0.0
    gamma: float = 0.99
    entropy: float = 0.005
    baseline: float = 0.5
    clip_rho: float = 1.0
    clip_c: float = 1.0
    clip_reward: float = 1.0
    clip_gradient: float = 40.0
    chunk: int = 0
    bf16: bool = False


class Losses(NamedTuple):
    """Sums over time, means over the batch, of one agent's update."""

    policy: Tensor
    baseline: Tensor
    entropy: Tensor


class Learner:
    """One agent's network, optimiser and schedule.

    Args:
        policy: the network, on its device.
        config: options.
    """

    def __init__(self, policy: Policy, config: ImpalaConfig) -> None:
        self.policy = policy
        self.config = config
        self.device = next(policy.parameters()).device
        self.optimizer = torch.optim.RMSprop(
            policy.parameters(),
            lr=config.learning_rate,
            alpha=config.decay,
            eps=config.epsilon,
            momentum=config.momentum,
        )

    def rate(self, steps: int) -> float:
        """Learning rate after so many environment steps of the schedule."""
        return self.config.learning_rate * max(0.0, 1.0 - steps / self.config.anneal_steps)

    def update(self, documents: Documents, column: Column, steps: int) -> dict[str, float]:
        """Take one gradient step on one agent's column.

        Args:
            documents: the rollout's texts.
            column: this agent's experience.
            steps: environment steps of the schedule before this rollout.

        Returns:
            losses, gradient norm, mean entropy of a step in nats and the rate, for the log.
        """
        rate = self.rate(steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        batch = column.action.shape[1]
        totals = torch.zeros(3)
        for start in range(0, batch, self.config.chunk or batch):
            games = slice(start, min(batch, start + (self.config.chunk or batch)))
            losses = self._losses(documents, column, games)
            c = self.config
            total = losses.policy + c.baseline * losses.baseline - c.entropy * losses.entropy
            (total / batch).backward()
            totals += torch.stack([part.detach() for part in losses]).cpu() / batch
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.clip_gradient)
        self.optimizer.step()
        policy, baseline, entropy = totals.tolist()
        return {
            "policy_loss": policy,
            "baseline_loss": baseline,
            "entropy": entropy * batch / max(1, int(column.alive.sum())),
            "gradient_norm": float(norm),
            "learning_rate": rate,
        }

    def _losses(self, documents: Documents, column: Column, games: slice) -> Losses:
        """Loss terms summed over time and over some games."""
        logits, values, final_values = self._unroll(documents, column, games)
        value, bootstrap = values[:-1], values[-1].detach()
        next_value = following_values(value.detach(), bootstrap)
        times, rows = _cuts(column, games)
        if len(times):
            next_value[torch.from_numpy(times), torch.from_numpy(rows)] = final_values.detach()

        log_pi = logits[:-1].log_softmax(-1)  # [T, b, A]
        action = self._tensor(column.action[:, games])[..., None]
        behaviour = self._tensor(column.logits[:, games]).log_softmax(-1)
        log_pi_action = log_pi.gather(-1, action).squeeze(-1)
        log_mu_action = behaviour.gather(-1, action).squeeze(-1)
        alive = self._tensor(column.alive[:, games])
        returns = vtrace(
            (log_pi_action - log_mu_action).detach(),
            self._tensor(column.reward[:, games]).clamp(-self.config.clip_reward, self.config.clip_reward),
            self._tensor(column.worth[:, games]) * self.config.gamma,
            value.detach(),
            next_value,
            self._tensor(column.continues[:, games]),
            alive,
            clip_rho=self.config.clip_rho,
            clip_c=self.config.clip_c,
        )
        # A masked action has probability 0 and a hugely negative logarithm: their product is 0, and so is its gradient.
        entropy = -(log_pi.exp() * log_pi).sum(-1)
        return Losses(
            policy=torch.where(alive, -log_pi_action * returns.advantage, 0.0).sum(),
            baseline=0.5 * torch.where(alive, returns.target - value, 0.0).square().sum(),
            entropy=torch.where(alive, entropy, 0.0).sum(),
        )

    def _unroll(self, documents: Documents, column: Column, games: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [T+1, b, A] and values [T+1, b] float32, and the values [F] of final observations."""
        index = documents.index[:, games]
        used, local = np.unique(index, return_inverse=True)  # the texts of these games only
        local = local.reshape(index.shape)
        observation = {name: array[:, games] for name, array in column.observation.items()}
        times, _ = _cuts(column, games)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.bf16):
            text = self.policy.encode_text(self._tensor(documents.manual[used]), self._tensor(documents.goal[used]))
            if column.memory is None:
                flat = {name: self._tensor(array.reshape(-1, *array.shape[2:])) for name, array in observation.items()}
                output = self.policy(flat, text, self._tensor(local.reshape(-1)), None)
                logits, values = output.logits, output.value
                memories = None
            else:
                logits, values, memories = self._recur(observation, text, local, column, games)
            final_values = values[:0]
            if len(times):
                mine = _in_slice(column.cut[1], games)
                last = {name: self._tensor(array[mine]) for name, array in column.final.items()}
                rows = column.cut[1][mine] - games.start
                # A recurrent policy looks back from the final observation with the memory of the step it followed.
                memory = None if memories is None else memories[torch.from_numpy(times), torch.from_numpy(rows)]
                with torch.no_grad():
                    final_values = self.policy(last, text, self._tensor(local[times, rows]), memory).value
        shape = index.shape
        return logits.float().view(*shape, -1), values.float().view(shape), final_values.float()

    def _recur(
        self,
        observation: dict[str, np.ndarray],
        text: dict[str, Tensor],
        local: np.ndarray,
        column: Column,
        games: slice,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `_unroll` for a recurrent policy, step by step; also the memories [T+1, b, …] after each."""
        before, fresh = column.memory, self.policy.initial_memory(local.shape[1])
        if before is None or fresh is None:
            raise TypeError("only a recurrent policy is unrolled step by step")
        memory, fresh = before[games], fresh.to(self.device)
        logits, values, memories = [], [], []
        for t in range(len(local)):
            restart = self._tensor(column.restarts[t, games]).view(-1, *([1] * (memory.dim() - 1)))
            memory = torch.where(restart, fresh, memory)
            seen = {name: self._tensor(array[t]) for name, array in observation.items()}
            output = self.policy(seen, text, self._tensor(local[t]), memory)
            memory = memory if output.memory is None else output.memory
            logits.append(output.logits)
            values.append(output.value)
            memories.append(memory)
        return torch.stack(logits), torch.stack(values), torch.stack(memories).detach()

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def _in_slice(rows: np.ndarray, games: slice) -> np.ndarray:
    return (rows >= games.start) & (rows < games.stop)


def _cuts(column: Column, games: slice) -> tuple[np.ndarray, np.ndarray]:
    """(t, b) of the time-outs to bootstrap from, b counted from the first of these games."""
    times, rows = column.cut
    mine = _in_slice(rows, games)
    return times[mine], rows[mine] - games.start
