"""Team: the trained agents of a run, ready for a vector env or a single PettingZoo env."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from magrounding.agents.building import build_policy
from magrounding.agents.policy import Policy
from magrounding.agents.weights import STATE_FILE, fit_weights, load_weights
from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.play.player import Player, Shown, shown_to
from magrounding.pretrained import find_run
from magrounding.registry import env_entry
from magrounding.spec import EnvSpec
from magrounding.storage import read_json
from magrounding.threads import ParallelMap

CONFIG_FILE = "config.json"
TeamMemory = list[Player]
"""What a team remembers between steps: one Player for each agent, changed in place by `act`."""


class Team:
    """n policies that play together, each seeing its own observation only.

    Args:
        policies: one for each agent, in agent order; on one device.
        spec: what they observe (a grid of another size is fine).
        parallel_map: how to run the agents at once (see `magrounding.threads`); one after the other by default.

    Attributes:
        policies, spec, num_agents: as given.
        heeds: what any of its networks heeds, see `Policy.heeds`.
    """

    accepts_rows = True

    def __init__(self, policies: Sequence[Policy], spec: EnvSpec, parallel_map: ParallelMap = map) -> None:
        self.policies = list(policies)
        self.spec = spec
        self.num_agents = len(self.policies)
        self.heeds = frozenset[str]().union(*(policy.heeds for policy in self.policies))
        self._map = parallel_map

    def initial_memory(self, num_envs: int, seed: int = 0) -> TeamMemory:
        """Memory for B games that are about to start; `seed` decides every action that will be drawn."""
        generators = [torch.Generator().manual_seed(self.num_agents * seed + i) for i in range(self.num_agents)]
        return [Player(each, self.spec, num_envs, draws) for each, draws in zip(self.policies, generators, strict=True)]

    def act(
        self,
        obs: Mapping[str, Any],
        memory: TeamMemory,
        info: Mapping[str, Any] | None = None,
        greedy: bool = True,
        *,
        rows: np.ndarray | None = None,
        explain: bool = False,
    ) -> tuple[Any, TeamMemory]:
        """Choose everybody's next action.

        Args:
            obs: a vector env's observation (arrays [B, n, …], shared ones [B, …]), or a single env's dict of dicts
                (memory for one game).
            memory: of `initial_memory`, then of the call before.
            info: the env's `info` or infos; None in the first step of a single env, where games have just begun.
            greedy: take the most likely action instead of drawing one.
            rows: [R] games of a vector env to play; the others get action 0.
            explain: let networks also compute the costly entries of `told`.

        Returns:
            actions [B, n] int64 for a vector env, {agent: int} for the agents a single env shows; and the memory.
        """
        if isinstance(next(iter(obs.values()), None), Mapping):
            return self._act_single(obs, memory, info, greedy, explain), memory
        num_envs = memory[0].num_envs
        restarts = np.zeros(num_envs, np.bool_) if info is None else info["done"]
        document = None if info is None else info["document"]

        def choose_for(i: int) -> np.ndarray:
            shown = shown_to(i, obs, self.spec, document)
            choice = memory[i].choose(shown, restarts, rows=rows, greedy=greedy, explain=explain)
            return choice.action

        actions = np.zeros((num_envs, self.num_agents), np.int64)
        for i, action in enumerate(self._map(choose_for, range(self.num_agents))):
            actions[slice(None) if rows is None else rows, i] = action
        return actions, memory

    def told(self, memory: TeamMemory) -> list[dict[str, np.ndarray]]:
        """What each agent's network reported of the last `act`, [R, …] by name, of the games that were played."""
        return [player.told for player in memory]

    def marks(self, memory: TeamMemory) -> np.ndarray | None:
        """[R, n, H, W] int8, the cells that each agent claims (1) and leaves to others (0), −1 where nothing is.

        None for a team that claims nothing.
        """
        told = [each["marks"] for each in self.told(memory) if "marks" in each]
        return np.stack(told, 1) if told and len(told) == len(memory) else None

    def diagnose(
        self, memory: TeamMemory, actions: np.ndarray, alive: np.ndarray, rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Counts of a step, from what the networks reported of it (`Policy.diagnostics`).

        Args:
            memory: of the `act` before, with `explain`.
            actions: [B, n], what it chose.
            alive: [B, n] bool, whose actions count.
            rows: [R] the games it played.

        Returns:
            name → [R, n], nan where nothing is to be counted; nothing where networks differ in what they count.
        """
        counted = {policy.diagnostics for policy in self.policies}
        diagnose: Any = counted.pop() if len(counted) == 1 else None
        return {} if diagnose is None else diagnose(self.told(memory), actions[rows], alive[rows])

    def _act_single(
        self,
        obs: Mapping[str, Mapping[str, np.ndarray]],
        memory: TeamMemory,
        info: Mapping[str, Any] | None,
        greedy: bool,
        explain: bool,
    ) -> dict[str, int]:
        actions = {}
        restarts, fields = np.array([info is None]), self.spec.fields
        for agent, seen in obs.items():
            key = None if info is None else info.get(agent, {}).get("document")
            own = {each.name: seen[each.name][None] for each in fields}
            texts = {text.name: own.pop(text.name) for text in self.spec.texts}
            shown = Shown(own, texts, None if key is None else np.array([key], np.int64))
            player = memory[int(agent.rsplit("_", 1)[1])]
            actions[agent] = int(player.choose(shown, restarts, greedy=greedy, explain=explain).action[0])
        return actions


def mixed_team(teams: Sequence[Team]) -> Team:
    """A team of agents that were not trained together: agent i is agent i of `teams[i]`.

    `mixed_team([one, other, other])` is the first agent of one team with the second and third of another.

    Raises:
        ConfigurationError: not one team for each agent, or teams that observe different things.
    """
    if not teams or any(team.num_agents != len(teams) for team in teams):
        sizes = ", ".join(str(team.num_agents) for team in teams)
        raise ConfigurationError(f"a mixed team takes one team for each agent: {len(teams)} came, of {sizes} agents")
    if not all(team.spec.reads_alike(teams[0].spec) for team in teams):
        raise ConfigurationError("these teams cannot be mixed: they read other words, or observe other things")
    return Team([team.policies[i] for i, team in enumerate(teams)], teams[0].spec)


def load_team(
    source: str | Path, seed: int | None = None, stage: str | None = None, device: str | torch.device = "cpu"
) -> Team:
    """Load the agents of a run folder, or those that come with the package.

    Args:
        source: the run folder, or "pretrained:<name>" (see `magrounding.pretrained`).
        seed: which of the run's seeds; the first by default.
        stage: whose weights; those of the last finished stage by default. "<stage>/imitate": as they were before the
            stage went on without a teacher.
        device: where the networks go.

    Raises:
        CheckpointError: no run there, nothing trained yet, or files that are damaged or foreign.
        ConfigurationError: a seed or stage that the run does not have, or an unknown pretrained team.
    """
    root = find_run(source)
    config = read_json(root / CONFIG_FILE)
    try:
        seeds, stages = [str(k) for k in config["seeds"]], list(config["stages"])
        env, agent, num_agents = env_entry(config["env"]), config["agent"], int(config["agents"])
        env_options, policy_options = dict(config["env_options"]), dict(config["policy_options"])
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{root / CONFIG_FILE} is damaged: {error} is missing or of the wrong kind") from None
    folder = seed_folder(root, choose("seed of this run", seeds[0] if seed is None else str(seed), seeds), len(seeds))
    trained = [name for name in stages if (folder / name / STATE_FILE).exists()]
    halfway = [path.parent.relative_to(folder).as_posix() for path in folder.glob(f"*/*/{STATE_FILE}")]
    if not trained and not halfway:
        raise CheckpointError(f"{root} holds no trained stage yet; let its run go on with --resume")
    stage = choose("trained stage of this run", stage or (trained or halfway)[-1], [*trained, *sorted(halfway)])
    spec = env.describe(**{**env_options, **env.with_stage(stage.split("/")[0])})
    weights, _ = load_weights(folder / stage, env=env.id, vocabulary_hash=spec.vocabulary_hash, num_agents=num_agents)
    policies = []
    for state in weights:
        policy = build_policy(agent, spec, policy_options, seed=0)
        fit_weights(policy, state, folder / stage)
        policies.append(policy.to(device).eval())
    return Team(policies, spec)


def seed_folder(root: Path, seed: int | str, num_seeds: int) -> Path:
    """Where one seed of a run lives: the run folder itself, or `seed_<k>/` where there are several."""
    return root if num_seeds == 1 else root / f"seed_{seed}"
