"""GymnasiumVectorEnv: many envs of one agent each as a `gymnasium.vector.VectorEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVec
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from magrounding.envs.drawing import rgb_array
from magrounding.envs.game_env import FRAMES_PER_SECOND
from magrounding.envs.make import make_vec
from magrounding.envs.parallel import distances, map_sides, observation_space
from magrounding.envs.vector import WorldVectorEnv
from magrounding.errors import CallOrderError, ConfigurationError, check_choice
from magrounding.simulators.process import ProcessVectorEnv
from magrounding.simulators.serial import SerialVectorEnv
from magrounding.spec import SCENE, SCORES, SNAPSHOT
from magrounding.vector import DeepCopied, Info, Observation, StepResult, check_actions, check_flags
from magrounding.vocabulary import Vocabulary

GameVec = WorldVectorEnv | SerialVectorEnv | ProcessVectorEnv


class GymnasiumVectorEnv(DeepCopied, GymnasiumVec[Observation, np.ndarray, np.ndarray]):
    """A vector env of ours with one agent, as Gymnasium's.

    It shows what as many single envs behind `gymnasium.vector.SyncVectorEnv` show, `distance` included, and plays the
    same episodes: row b those of the single env with seed + b (a simulator's later episodes have seeds of their own).
    Every array is the caller's own. `infos` has `action_mask` [B, A] and `document` [B]; `illegal` where an action was
    masked; and `won`, with `score` where a world has one, of episodes that ended in this step: each with its mask
    `_key` [B] bool. Texts are left out, as ids are faster: `vocabulary` decodes them.

    Args:
        vec: the vector env; this one takes it over.
        autoreset_mode: AutoresetMode.NEXT_STEP, Gymnasium's default: an episode that ends shows its end, and the step
            after only starts the next; its action is ignored and its reward is 0. AutoresetMode.SAME_STEP: it starts in
            the same step, and `infos` has `final_obs` [B] object and `final_info`, with `won`, `score` and `illegal`
            of the last step.
        render_mode: None or "rgb_array", for worlds that draw themselves.

    Raises:
        ConfigurationError: several agents, an unknown mode, or one that this env cannot have.
    """

    def __init__(
        self, vec: GameVec, autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP, render_mode: str | None = None
    ) -> None:
        self.vec = vec
        if vec.num_agents != 1:
            raise ConfigurationError(
                f"a Gymnasium vector env has one agent a game, these have {vec.num_agents}; use magrounding.make_vec"
            )
        self._is_world = isinstance(vec, WorldVectorEnv)
        if autoreset_mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise ConfigurationError(f"autoreset_mode must be NEXT_STEP or SAME_STEP, got {autoreset_mode!r}")
        if autoreset_mode is AutoresetMode.NEXT_STEP and self._is_world and SNAPSHOT not in vec.spec.capabilities:
            raise ConfigurationError("this world has no snapshot: ask for autoreset_mode=AutoresetMode.SAME_STEP")
        if render_mode is not None:
            offered = ("rgb_array",) if self._is_world and SCENE in vec.spec.capabilities else ()
            check_choice("render_mode of a vector env", render_mode, offered)
        self.num_envs, self.render_mode = vec.num_envs, render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": FRAMES_PER_SECOND}
        self.metadata["autoreset_mode"] = autoreset_mode
        self._sides = map_sides(vec.spec) if self._is_world else None
        self.single_observation_space = space = observation_space(vec.spec) if self._is_world else vec.spec.space()
        self.single_action_space = spaces.Discrete(vec.spec.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._next_step = autoreset_mode is AutoresetMode.NEXT_STEP
        self._started = False
        self._ended = np.zeros(self.num_envs, np.bool_)
        parts = space.spaces.items()
        self._ends = {name: np.zeros((self.num_envs, *(part.shape or ())), part.dtype) for name, part in parts}
        self._document = np.zeros(self.num_envs, np.int64)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.vec.spec.vocabulary

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start afresh: row b plays seed + b. Without a seed every row goes on to its next episode.

        Args:
            seed: an integer in [0, 2**62).
            options: `reset_mask` [B] bool, the rows that are started, by default all; the others stay as they are, and
                `infos` says nothing of them. All else is ignored.

        Raises:
            ConfigurationError: a seed or a mask that is none.
            CallOrderError: after `close`; for some of the rows, before a reset of all.
        """
        mask = self._check_mask(options)
        # Without a seed, what has ended already stands at the beginning of its next episode.
        held = ~mask | self._ended if seed is None else ~mask
        seen, info = self._start(seed, held)
        # Gymnasium wants its own generator seeded; the env, which has checked the seed, does not use it.
        super().reset(seed=None if seed is None else int(seed))
        self._ended &= ~mask
        self._started = True
        observation = self._shown(seen)
        for name, array in self._ends.items():  # of episodes that have ended, whose rows are not started yet
            observation[name][self._ended] = array[self._ended]
        return observation, self._common(observation, info, mask)

    def step(self, actions: ArrayLike) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play actions [B] integers in [0, A).

        Raises:
            InvalidAction: an action outside the space, or a wrong shape.
            CallOrderError: before `reset`, or after `close`.
        """
        chosen = check_actions(actions, (self.num_envs,), self.vec.spec.num_actions)[:, None]
        held = self._ended
        seen, reward, terminated, truncated, info = self._play(chosen, held)
        done, illegal = info.done & ~held, info.illegal[:, 0] & ~held
        observation = self._shown(seen)
        last = self._shown({name: array[~held[info.final_rows]] for name, array in info.final_observation.items()})
        ending = {"won": info.won & done, "_won": done.copy()}
        if SCORES in self.vec.spec.capabilities:
            ending |= {"score": np.where(done, info.score, 0).astype(np.float32), "_score": done.copy()}
        if not self._next_step and (illegal & done).any():  # of the last step of what has ended
            ending |= {"illegal": illegal & done, "_illegal": illegal & done}
            illegal &= ~done
        if self._next_step:
            self._ended = done.copy()
            for name, array in last.items():
                self._ends[name][done] = observation[name][done] = array
        infos = self._common(observation, info)
        if illegal.any():
            infos |= {"illegal": illegal, "_illegal": illegal.copy()}
        if done.any() and self._next_step:
            infos |= ending
        elif done.any():
            final = np.full(self.num_envs, None, object)
            for i, row in enumerate(np.flatnonzero(done)):
                final[row] = {name: array[i] for name, array in last.items()}
            infos |= {"final_obs": final, "_final_obs": done.copy(), "final_info": ending, "_final_info": done.copy()}
        paid = np.where(held, np.float32(0), reward[:, 0])
        return observation, paid, terminated[:, 0] & ~held, truncated[:, 0] & ~held, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a picture [height, width, 3] uint8 of each row; None without a render mode."""
        if self.render_mode is None or not isinstance(self.vec, WorldVectorEnv):
            return None
        return tuple(rgb_array(self.vec.world.scene(row)) for row in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        if "vec" in vars(self):  # Gymnasium closes a copy, too, that could not be made
            self.vec.close()

    def _check_mask(self, options: dict[str, Any] | None) -> np.ndarray:
        """Return the rows that a reset is for, [B] bool."""
        if not isinstance(options, Mapping) or "reset_mask" not in options:
            return np.ones(self.num_envs, np.bool_)
        mask = check_flags("options['reset_mask']", options["reset_mask"], self.num_envs)
        if not mask.any():
            raise ConfigurationError("options['reset_mask'] is true for the games to be started, and it is for none")
        if not self._started and not mask.all():
            raise CallOrderError("call reset() of all games before a reset of some of them")
        return mask.copy()

    def _start(self, seed: int | None, held: np.ndarray) -> tuple[Observation, Info]:
        """Reset all rows but those held [B] bool, which stay as they are."""
        vec = self.vec
        if not isinstance(vec, WorldVectorEnv):
            return vec.reset(seed, np.flatnonzero(~held)) if held.any() else vec.reset(seed)
        before = vec.snapshot() if held.any() else None
        seen, info = vec.reset(seed)
        return (seen, info) if before is None else self._put_back(vec, before, held)

    def _play(self, actions: np.ndarray, held: np.ndarray) -> StepResult:
        """Step all rows but those held [B] bool, whose observations and document stay as they were."""
        vec = self.vec
        if not isinstance(vec, WorldVectorEnv):
            vec.hold(held)
            return vec.step(actions)
        before = vec.snapshot() if held.any() else None
        seen, reward, terminated, truncated, info = vec.step(actions)
        if before is not None:
            seen, back = self._put_back(vec, before, held)
            info.document = back.document
        return seen, reward, terminated, truncated, info

    def _put_back(
        self, vec: WorldVectorEnv, before: dict[str, np.ndarray], held: np.ndarray
    ) -> tuple[Observation, Info]:
        after = vec.snapshot()
        for name, array in after.items():
            array[held] = before[name][held]
        return vec.restore(after)

    def _shown(self, seen: Observation) -> Observation:
        """Return copies [R, …] without the axis of agents, in the order of the space."""
        shown = {}
        for name in self.single_observation_space.spaces:  # pyright: ignore[reportAttributeAccessIssue]  a Dict
            if name == "distance" and self._sides is not None:
                rows, columns = seen["position"][:, 0].T
                shown[name] = distances(rows, columns, *self._sides)
            else:
                shown[name] = (seen[name] if self.vec.spec[name].shared else seen[name][:, 0]).copy()
        return shown

    def _common(self, observation: Observation, info: Info, rows: np.ndarray | None = None) -> dict[str, Any]:
        """Return the infos of every row, or of those in `rows` [B] bool; zeros for the others."""
        rows = np.ones(self.num_envs, np.bool_) if rows is None else rows
        document, over, known = info.document.copy(), self._ended, rows
        if self.vec.spec.shared_texts:  # the vector env has replaced that of rows that show their end
            document[over] = self._document[over]
        else:  # texts that change in every step: the key of the last is gone
            known = rows & ~over
        self._document = document
        infos = {"document": np.where(known, document, 0), "_document": known}
        if "action_mask" in observation:
            mask = np.where(rows[:, None], observation["action_mask"], np.int8(0))
            infos |= {"action_mask": mask, "_action_mask": rows.copy()}
        return infos


def make_gymnasium_vec(
    env: str,
    num_envs: int,
    render_mode: str | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **options: Any,
) -> GymnasiumVectorEnv:
    """Make a vector env, for `gymnasium.make_vec("magrounding/<env>-v0", num_envs=B, …)`.

    A mode of Gymnasium may be its value: "NextStep", "SameStep". The options are those of the environment, and
    num_threads, workers and timeout of `magrounding.make_vec`.
    """
    if isinstance(autoreset_mode, str):
        check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
    return GymnasiumVectorEnv(make_vec(env, num_envs, **options), AutoresetMode(autoreset_mode), render_mode)  # pyright: ignore[reportArgumentType]  what it makes
