"""`GroundedTask`: any registered environment as a task of BenchMARL, simulated as a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from magrounding.envs.make import make_vec
from magrounding.errors import needed
from magrounding.extensions.clients.torchrl import GROUP, BatchedEnv

with needed("a task of BenchMARL", "clients"):
    from benchmarl.environments.common import TaskClass

if TYPE_CHECKING:
    from tensordict import TensorDictBase
    from torchrl.data import Composite
    from torchrl.envs import EnvBase


class GroundedTask(TaskClass):
    """A task for `benchmarl.experiment.Experiment`: `GroundedTask("ma_rtfm", {"stage": "s1", "agents": 2})`.

    All agents are one group, "agent"; actions that do nothing are masked; observations are flat, and `layout` says what
    lies where. BenchMARL logs the share of episodes won as `win_rate`.

    Args:
        name: environment id.
        config: options of the environment.
    """

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        """Return a function that makes a batch of `num_envs` as one env."""
        return partial(_make, self.name, dict(self.config), num_envs, seed, device)

    def supports_continuous_actions(self) -> bool:
        return False

    def supports_discrete_actions(self) -> bool:
        return True

    def max_steps(self, env: EnvBase) -> int:
        return env.vec.spec.max_cycles

    def has_render(self, env: EnvBase) -> bool:
        return False

    def group_map(self, env: EnvBase) -> dict[str, list[str]]:
        return env.group_map

    def observation_spec(self, env: EnvBase) -> Composite:
        return _part(env, "observation")

    def info_spec(self, env: EnvBase) -> Composite:
        return _part(env, "info")

    def action_mask_spec(self, env: EnvBase) -> Composite:
        return _part(env, "action_mask")

    def state_spec(self, env: EnvBase) -> None:
        return None

    def action_spec(self, env: EnvBase) -> Composite:
        return env.full_action_spec_unbatched

    @staticmethod
    def env_name() -> str:
        return "magrounding"

    @staticmethod
    def log_info(batch: TensorDictBase) -> dict[str, float]:
        """Return the share of the batch's episodes that was won; nothing where none ended."""
        won = batch["next", GROUP, "info", "won"][..., 0][batch["next", "done"].squeeze(-1)]
        return {"win_rate": won.mean().item()} if len(won) else {}


def _make(id: str, options: dict[str, Any], num_envs: int, seed: int | None, device: Any) -> BatchedEnv:
    return BatchedEnv(make_vec(id, num_envs, **options), seed, device)


def _part(env: EnvBase, name: str) -> Composite:
    """Return the spec of one entry of the group, for one env."""
    spec = env.full_observation_spec_unbatched.clone()
    for other in set(spec[GROUP].keys()) - {name}:
        del spec[GROUP, other]
    return spec
