"""`BatchedEnv`: a whole vector env as one TorchRL env, thousands of rows a step.

One env goes through TorchRL's own wrapper: `PettingZooWrapper(for_tensors(env))`. This is for worlds that simulate
batches: it has the same keys as that wrapper with `flatten=True` and `dead="padded"`, before them the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError, needed
from magrounding.extensions.clients.tensors import flat_batch, flat_observation, numbers_of
from magrounding.simulators.spaces import MASK
from magrounding.vector import Observation, VectorEnv

with needed("an env of TorchRL", "clients"):
    import torch
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
    from torchrl.envs import EnvBase

GROUP = "agent"
"""The group that TorchRL makes of agent_0, agent_1, …"""
_FLAGS = ("done", "terminated", "truncated")


class BatchedEnv(EnvBase):
    """B envs of n agents as a TorchRL env of batch size [B].

    Keys: ("agent", "observation") [B, n, D] float32, laid out as `layout` says; ("agent", "action_mask") [B, n, A]
    bool; ("agent", "action") [B, n]; ("agent", "reward") [B, n, 1]; ("agent", "info", …) [B, n]: `won`, `illegal` and,
    where the world has one, `score`; `done`, `terminated`, `truncated` [B, 1], and of each agent [B, n, 1]. An agent
    that is out observes zeros, has only action 0, and is done when its episode is.

    The next episode begins in the step that ends one; its observation is kept until TorchRL asks for the reset. A
    single row whose episode has not ended cannot be reset.

    Args:
        vec: the envs, as `magrounding.make_vec` makes them; this one takes them over. Their EnvSpec is `vec.spec`.
        seed: of the next reset: row b plays seed + b.
        device: where tensors go.

    Attributes:
        layout: field → (slice, shape) of an observation.
        group_map: {"agent": names of the agents}.
    """

    def __init__(self, vec: VectorEnv, seed: int | None = None, device: Any = "cpu") -> None:
        super().__init__(device=torch.device(device), batch_size=torch.Size([vec.num_envs]))
        self.vec = vec
        self.group_map = {GROUP: [f"agent_{i}" for i in range(vec.num_agents)]}
        self.layout, box = flat_observation(vec.spec)
        self._seed = seed
        self._numbers = numbers_of(vec.spec)
        rows, agents = torch.Size([vec.num_envs]), torch.Size([vec.num_envs, vec.num_agents])
        one = torch.Size([1])
        low, high = (torch.as_tensor(end).expand(*agents, -1).clone() for end in (box.low, box.high))
        flag = {name: Categorical(2, rows + one, dtype=torch.bool) for name in _FLAGS}
        flags = {name: Categorical(2, agents + one, dtype=torch.bool) for name in flag}
        shown = {
            "observation": Bounded(low, high, dtype=torch.float32),
            "action_mask": Binary(vec.spec.num_actions, torch.Size((*agents, vec.spec.num_actions)), dtype=torch.bool),
            "info": Composite({name: Unbounded(agents) for name in self._numbers}, shape=agents),
        }

        def grouped(parts: dict[str, Any], **whole: Any) -> Composite:
            return Composite({GROUP: Composite(parts, shape=agents), **whole}, shape=rows).to(self.device)

        self.observation_spec = grouped(shown)
        self.action_spec = grouped({"action": Categorical(vec.spec.num_actions, agents)})
        self.reward_spec = grouped({"reward": Unbounded(agents + one)})
        self.done_spec = grouped(flags, **flag)
        self._shown: dict[str, np.ndarray] = {}  # observations of rows that go on, or have begun anew
        self._alive = np.ones(agents, bool)
        self._ended = np.zeros(rows, bool)  # rows whose new episode TorchRL has not asked for yet

    def _reset(self, tensordict: TensorDictBase | None = None, **_: Any) -> TensorDictBase:
        asked = None if tensordict is None else tensordict.get("_reset", None)
        rows = np.ones_like(self._ended) if asked is None else asked.reshape(-1).cpu().numpy()
        if asked is None or not self._ended[rows].all():
            if not rows.all():
                raise ConfigurationError("a game that has not ended cannot be reset alone: reset all, or let it end")
            observation, info = self.vec.reset(self._seed)
            self._seed, self._alive = None, info.alive.copy()
            self._shown = self._show(observation, self._alive)
        self._ended[rows] = False
        nothing = np.zeros_like(self._alive)
        return self._tensors(self._shown, dict.fromkeys(self._numbers, nothing), dict.fromkeys(_FLAGS, nothing))

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        acted = self._alive
        observation, rewards, _, truncated, info = self.vec.step(np.asarray(tensordict[GROUP, "action"].cpu()))
        self._alive, self._ended = info.alive.copy(), info.done.copy()
        self._shown = last = self._show(observation, self._alive)
        if len(info.final_rows):
            final = self._show(info.final_observation, acted[info.final_rows])
            last = {name: array.copy() for name, array in self._shown.items()}
            for name, array in final.items():
                last[name][info.final_rows] = array
        done = info.done[:, None]
        over = np.broadcast_to(done, acted.shape)
        numbers = {"won": over & info.won[:, None], "illegal": info.illegal, "score": done * info.score[:, None]}
        flags = {"done": over, "terminated": over & ~truncated, "truncated": over & truncated}
        tensors = self._tensors(last, {name: numbers[name] for name in self._numbers}, flags)
        tensors[GROUP, "reward"] = self._tensor(rewards, torch.float32).unsqueeze(-1)
        return tensors

    def _show(self, observation: Observation, alive: np.ndarray) -> dict[str, np.ndarray]:
        seen, mask = flat_batch(self.vec.spec, self.layout, observation, alive)
        return {"observation": seen, MASK: mask}

    def _tensors(self, shown: dict[str, Any], numbers: dict[str, Any], flags: dict[str, Any]) -> TensorDict:
        agents = self._alive.shape
        ends = {name: self._tensor(flag).unsqueeze(-1) for name, flag in flags.items()}
        info = TensorDict({name: self._tensor(number, torch.float32) for name, number in numbers.items()}, agents)
        group = {name: self._tensor(array) for name, array in shown.items()} | ends | {"info": info}
        whole = {name: flag.any(1) for name, flag in ends.items()}
        return TensorDict({GROUP: TensorDict(group, agents), **whole}, self.batch_size, device=self.device)

    def _tensor(self, array: np.ndarray, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.tensor(array, dtype=dtype, device=self.device)  # a copy: the next step overwrites the array

    def _set_seed(self, seed: int | None) -> None:
        self._seed = seed

    def close(self, *, raise_if_closed: bool = True) -> None:
        super().close(raise_if_closed=raise_if_closed)
        self.vec.close()
