"""StageSession: one stage of one seed at work. What happens around it is the curriculum's business."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.player import Player
from magrounding.agents.team import Team, build_policy
from magrounding.agents.weights import fit_weights
from magrounding.evaluation.evaluate import Evaluation, evaluate
from magrounding.registry import make_vec
from magrounding.threads import ParallelMap, ThreadPlan
from magrounding.training.algorithms import make_learner
from magrounding.training.checkpoint import (
    pack_arrays,
    pack_learners,
    restore_optimizer,
    select,
    unpack_arrays,
    unpack_learners,
)
from magrounding.training.learner import Learner
from magrounding.training.rollout import Clock, FinishedGames, RolloutWorker
from magrounding.training.settings import RunSettings

WEIGHTS, GAMES, ACTIONS = range(3)
"""What a derived seed is for."""


def derive_seed(*path: int) -> int:
    """A 32-bit seed from a run's seed and what it is for."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


class StageSession:
    """Everything that is alive while a stage is trained.

    Args:
        settings: of the run.
        stage: its name.
        seed: the run's seed.
        device: where the networks are.
        plan: threads.
        parallel_map: runs the agents side by side.
        clock: where wall time is booked.
    """

    def __init__(
        self,
        settings: RunSettings,
        stage: str,
        seed: int,
        device: torch.device,
        plan: ThreadPlan,
        parallel_map: ParallelMap = map,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self.stage = stage
        self.clock = clock or Clock()
        self._plan, self._map = plan, parallel_map
        preset = settings.preset
        self.vec = make_vec(settings.env, preset.num_envs, num_threads=plan.world, **settings.stage_options(stage))
        self.vocabulary_hash = self.vec.vocabulary.hash
        position = settings.entry.stages.index(stage)
        self.learners: list[Learner] = []
        self.players: list[Player] = []
        for i in range(settings.agents):
            drawn_from = derive_seed(seed, WEIGHTS, i)
            policy = build_policy(settings.agent, self.vec.spec, settings.policy_options, drawn_from).to(device)
            generator = torch.Generator().manual_seed(derive_seed(seed, ACTIONS, position, i))
            self.learners.append(make_learner(policy, preset.learner))
            self.players.append(Player(policy, preset.num_envs, generator, bf16=preset.learner.bf16))
        self.worker = RolloutWorker(
            self.vec,
            self.players,
            preset.learner.unroll,
            parallel_map,
            self.clock,
            team_reward=preset.team_reward,
        )
        self._games_seed = derive_seed(seed, GAMES, position)
        self.steps_per_update = preset.num_envs * preset.learner.unroll

    def start(self) -> None:
        """Begin the stage's games."""
        self.worker.start(self._games_seed)

    def iterate(self, steps: int) -> tuple[FinishedGames, list[dict[str, float]]]:
        """One rollout and one update of each agent.

        Args:
            steps: environment steps of the rate's schedule so far.

        Returns:
            the games that ended, and each agent's losses.
        """
        rollout = self.worker.collect()
        since = time.perf_counter()

        def update(i: int) -> dict[str, float]:
            return self.learners[i].update(rollout.documents, rollout.columns[i], steps)

        losses = list(self._map(update, range(len(self.learners))))
        self.clock.add("learning", since)
        return rollout.games, losses

    def evaluate(self, evaluation_set: str, games: int, seed: int) -> Evaluation:
        """Play games of an evaluation set with the weights as they are, greedily; nothing of the training changes."""
        since = time.perf_counter()
        team = Team([learner.policy for learner in self.learners], self.vec.spec, self._map)
        options = self.settings.stage_options(self.stage, evaluation_set)
        result = evaluate(team, self.settings.env, options, games, seed, num_threads=self._plan.world)
        self.clock.add("evaluation", since)
        return result

    def state(self) -> dict[str, Tensor]:
        """Everything that decides how the stage goes on, by name."""
        return {**pack_learners(self.learners, self.players), **pack_arrays(self.worker.snapshot(), "games/")}

    def resume(self, tensors: dict[str, Tensor], source: Path) -> None:
        """Go on exactly where `state` was taken."""
        unpack_learners(tensors, self.learners, self.players, source)
        self.worker.resume(unpack_arrays(tensors, "games/"))

    def trained(self) -> dict[str, Tensor]:
        """Copies of weights and optimiser states: what another stage can start from."""
        packed = pack_learners(self.learners, self.players)
        return {name: tensor for name, tensor in packed.items() if name.split("/")[1] in ("weights", "optimizer")}

    def inherit(self, tensors: dict[str, Tensor], source: Path, *, optimizer: bool = True) -> None:
        """Take over what `trained` gave."""
        for i, learner in enumerate(self.learners):
            fit_weights(learner.policy, select(tensors, f"agent_{i}/weights/"), source)
            if optimizer:
                restore_optimizer(learner, select(tensors, f"agent_{i}/optimizer/"))

    def weights(self) -> list[dict[str, Tensor]]:
        """The state dict of each agent."""
        return [learner.policy.state_dict() for learner in self.learners]

    def close(self) -> None:
        self.vec.close()
