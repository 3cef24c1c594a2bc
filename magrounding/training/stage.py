"""StageSession: one phase of a stage of one seed at work. What happens around it is the curriculum's business."""

from __future__ import annotations

import copy
import time
from collections import ChainMap
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.player import Player
from magrounding.agents.policy import Policy, freeze
from magrounding.agents.team import Team, build_policy
from magrounding.agents.weights import fit_weights
from magrounding.evaluation.evaluate import TRUE_MANUAL, Evaluation, evaluate
from magrounding.observation import shared_text
from magrounding.registry import make_vec
from magrounding.threads import ParallelMap, ThreadPlan
from magrounding.training.algorithms import make_learner
from magrounding.training.checkpoint import (
    pack_arrays,
    pack_learners,
    pack_players,
    restore_optimizer,
    select,
    unpack_arrays,
    unpack_learners,
    unpack_players,
)
from magrounding.training.clock import Clock
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.demonstrations import find_demonstrations
from magrounding.training.imitation import ImitationConfig
from magrounding.training.learner import Learner
from magrounding.training.qmix import QmixConfig
from magrounding.training.rollout import FinishedGames, RolloutWorker
from magrounding.training.settings import RunSettings
from magrounding.training.teacher import Teacher, make_expert

WEIGHTS, GAMES, ACTIONS, TEACHER = range(4)
"""What a derived seed is for."""


def derive_seed(*path: int) -> int:
    """A 32-bit seed from a run's seed and what it is for."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


class StageSession:
    """Everything that is alive while a phase is trained.

    Args:
        settings: of the run.
        stage: name of the stage.
        phase: which of the stage's phases, counted from 0.
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
        phase: int,
        seed: int,
        device: torch.device,
        plan: ThreadPlan,
        parallel_map: ParallelMap = map,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self.stage = stage
        self.phase = settings.preset.of_stage(stage)[phase]
        self.clock = clock or Clock()
        self._plan, self._map = plan, parallel_map
        num_envs, config = self.phase.num_envs, self.phase.learner
        games = {**settings.stage_options(stage), **self.phase.games}
        self.vec = make_vec(settings.env, num_envs, num_threads=plan.world, **games)
        self.vocabulary_hash = self.vec.vocabulary.hash
        place = (settings.entry.stages.index(stage), phase)
        self.learners: list[Learner] = []
        for i in range(settings.num_learners):
            drawn_from = derive_seed(seed, WEIGHTS, i)
            policy = build_policy(settings.agent, self.vec.spec, settings.policy_options, drawn_from).to(device)
            freeze(policy, settings.frozen(self.phase))
            self.learners.append(make_learner(policy, config, self.vec, drawn_from))
        self.players = [
            Player(
                self._policy(i),
                num_envs,
                torch.Generator().manual_seed(derive_seed(seed, ACTIONS, *place, i)),
                bf16=config.bf16,
            )
            for i in range(settings.agents)
        ]
        self._teacher = None
        self.worker: RolloutWorker | DemonstrationSource
        shared = settings.preset.team_reward
        if isinstance(config, ImitationConfig) and settings.demonstrations:
            _, shown = find_demonstrations(settings.demonstrations, self.vec)
            self.worker = DemonstrationSource(shown, self.players, num_envs, config.unroll, self.clock, shared)
        else:
            if isinstance(config, ImitationConfig):
                self._teacher = Teacher(make_expert(self.vec), config.teacher_noise, derive_seed(seed, TEACHER, *place))
            self.worker = RolloutWorker(
                self.vec,
                self.players,
                config.unroll,
                parallel_map,
                self.clock,
                team_reward=shared,
                teacher=self._teacher,
                with_state=isinstance(config, QmixConfig),
            )
        self._games_seed = derive_seed(seed, GAMES, *place)
        self.steps_per_update = num_envs * config.unroll

    def start(self) -> None:
        """Begin the phase's games."""
        self._compile()
        self.worker.start(self._games_seed)

    def iterate(self, steps: int) -> tuple[FinishedGames, list[dict[str, float]]]:
        """One rollout and one update of each learner.

        Args:
            steps: environment steps of the rate's schedule so far.

        Returns:
            the games that ended, and each learner's losses, with what the log is to tell of its play.
        """
        config = self.phase.learner
        share = config.teacher_share(steps) if isinstance(config, ImitationConfig) else 0.0
        for learner in self.learners:
            learner.explore(steps)
        rollout = self.worker.collect(share, steps)
        since = time.perf_counter()
        documents, columns = rollout.documents, rollout.columns
        if self.settings.share_parameters:
            documents, columns = rollout.joined()

        def update(i: int) -> dict[str, float]:
            return {**self.learners[i].update(documents, columns[i], steps), **columns[i].facts}

        losses = list(self._map(update, range(len(self.learners))))
        self.clock.add("learning", since)
        return rollout.games, losses

    def evaluate(
        self, evaluation_set: str, games: int, seed: int, greedy: bool = True, manual: str = TRUE_MANUAL
    ) -> Evaluation:
        """Play games of an evaluation set with the weights as they are; nothing of the training changes.

        Args:
            evaluation_set: its name.
            games: how many.
            seed: of the first.
            greedy, manual: see `magrounding.evaluation.evaluate`.
        """
        since = time.perf_counter()
        team = Team([player.policy for player in self.players], self.vec.spec, self._map)
        options = self.settings.stage_options(self.stage, evaluation_set)
        result = evaluate(
            team, self.settings.env, options, games, seed, greedy=greedy, manual=manual, num_threads=self._plan.world
        )
        self.clock.add("evaluation", since)
        return result

    def state(self) -> dict[str, Tensor]:
        """Everything that decides how the phase goes on, by name."""
        games = pack_arrays(self.worker.snapshot(), "games/")
        beside = [pack_arrays(learner.snapshot(), f"beside_{i}/") for i, learner in enumerate(self.learners)]
        return {**pack_learners(self.learners), **pack_players(self.players), **games, **ChainMap(*beside)}

    def resume(self, tensors: dict[str, Tensor], source: Path) -> None:
        """Go on exactly where `state` was taken."""
        self._compile()
        unpack_learners(tensors, self.learners, source)
        for i, learner in enumerate(self.learners):
            learner.restore(unpack_arrays(tensors, f"beside_{i}/"))
        unpack_players(tensors, self.players)
        self.worker.resume(unpack_arrays(tensors, "games/"))

    def trained(self) -> dict[str, Tensor]:
        """Copies of weights and optimiser states: what another phase can start from."""
        return pack_learners(self.learners)

    def inherit(self, tensors: dict[str, Tensor], source: Path, *, optimizer: bool = True) -> None:
        """Take over what `trained` gave."""
        for i, learner in enumerate(self.learners):
            fit_weights(learner.module, select(tensors, f"learner_{i}/weights/"), source)
            if optimizer:
                restore_optimizer(learner, select(tensors, f"learner_{i}/optimizer/"))

    def weights(self) -> list[dict[str, Tensor]]:
        """The state dict of each agent."""
        return [player.policy.state_dict() for player in self.players]

    def close(self) -> None:
        self.vec.close()

    def _policy(self, agent: int) -> Policy:
        """The network that plays for an agent."""
        return self.learners[0 if self.settings.share_parameters else agent].policy_of(agent)

    def _compile(self) -> None:
        """Run every kernel of simulator, teacher and network once, so that no clock of training sees it compiled.

        Games begin anew afterwards, and the network is a copy: nothing of it remains.
        """
        since = time.perf_counter()
        seen = self.vec.reset(seed=self._games_seed)
        if self._teacher is not None:
            self._teacher.label()
        policy = copy.deepcopy(self.players[0].policy)
        device = next(policy.parameters()).device
        own = [field.name for field in self.vec.spec.fields if not field.shared]
        shown = {name: torch.from_numpy(seen[name][:, 0].copy()).to(device) for name in own}
        text = policy.encode_text(*(torch.from_numpy(array).to(device) for array in shared_text(seen).values()))
        memory = policy.initial_memory(self.vec.num_envs)
        output = policy(
            shown,
            text,
            torch.arange(self.vec.num_envs, device=device),
            None if memory is None else memory.to(device),
        )
        (output.logits.softmax(-1).sum() + output.value.sum()).backward()
        self.vec.step(np.zeros((self.vec.num_envs, self.vec.num_agents), np.int64))
        self.clock.add("starting", since)
