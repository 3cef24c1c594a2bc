"""Team: the trained agents of a run, ready for a vector env or a single PettingZoo env."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from magrounding.agents.player import Player
from magrounding.agents.policy import Others, Policy
from magrounding.agents.weights import STATE_FILE, fit_weights, load_weights
from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.observation import SHARED_TEXT, ObservationSpec, shared_text
from magrounding.pretrained import find_run
from magrounding.registry import agent_entry, env_entry, load
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
        keys: what each agent observes by itself.
    """

    accepts_rows = True

    def __init__(self, policies: Sequence[Policy], spec: ObservationSpec, parallel_map: ParallelMap = map) -> None:
        self.policies = list(policies)
        self.spec = spec
        self.num_agents = len(self.policies)
        self.keys = tuple(field.name for field in spec.fields if field.name not in SHARED_TEXT)
        self._map = parallel_map

    def initial_memory(self, num_envs: int, seed: int = 0) -> TeamMemory:
        """Memory for B games that are about to start; `seed` decides every action that will be drawn."""
        generators = [torch.Generator().manual_seed(self.num_agents * seed + i) for i in range(self.num_agents)]
        return [Player(policy, num_envs, draws) for policy, draws in zip(self.policies, generators, strict=True)]

    def act(
        self,
        obs: Mapping[str, Any],
        memory: TeamMemory,
        info: Mapping[str, Any] | None = None,
        greedy: bool = True,
        *,
        rows: np.ndarray | None = None,
    ) -> tuple[Any, TeamMemory]:
        """Choose everybody's next action.

        Args:
            obs: a vector env's observation (arrays [B, n, …], shared ones [B, …]), or a single env's dict of dicts
                (memory for one game).
            memory: of `initial_memory`, then of the call before.
            info: the env's `info` or infos; None where there is none, as in the first step of a single env: every text
                is read afresh.
            greedy: take the most likely action instead of drawing one.
            rows: [R] games of a vector env to play; the others get action 0.

        Returns:
            actions [B, n] int64 for a vector env, {agent: int} for the agents a single env shows; and the memory.
        """
        if isinstance(next(iter(obs.values()), None), Mapping):
            return self._act_single(obs, memory, info, greedy), memory
        done = None if info is None else info.get("done")
        if done is not None:
            for player in memory:
                player.restart(done)
        keys = None if info is None else info.get("document")

        def choose_for(i: int) -> np.ndarray:
            column = {name: obs[name][:, i] for name in self.keys}
            return memory[i].choose(column, texts["manual"], texts["goal"], keys, rows=rows, greedy=greedy).action

        texts = shared_text(obs)
        actions = np.zeros((len(texts["manual"]), self.num_agents), np.int64)
        for i, action in enumerate(self._map(choose_for, range(self.num_agents))):
            actions[slice(None) if rows is None else rows, i] = action
        return actions, memory

    def taken(self, memory: TeamMemory) -> np.ndarray | None:
        """How the agents divided the entities in the last `act`; None for a team that divides nothing.

        Returns:
            [B, n, H, W] int8: 1 an entity that the agent takes, 0 one that it leaves to others, −1 no entity.
        """
        shares = [player.taken for player in memory if player.taken is not None]
        return np.stack(shares, 1) if len(shares) == len(memory) else None

    def foresight(
        self, memory: TeamMemory, actions: np.ndarray, alive: np.ndarray, rows: np.ndarray
    ) -> np.ndarray | None:
        """How often each agent was right about what the others would do, in the last `act` of a vector env.

        Args:
            memory: of that `act`.
            actions: [B, n], what it chose.
            alive: [B, n] bool, whose actions count.
            rows: [R] the games it played.

        Returns:
            [R, n] shares of the others, nan where none of them acted and for networks that foresee nothing; None where
            no network does.
        """
        known, shares = False, np.full((len(rows), self.num_agents), np.nan)
        for i, player in enumerate(memory):
            did = (torch.from_numpy(np.delete(array[rows], i, axis=1)) for array in (actions, alive))
            right = player.foresight(Others(*did))
            if right is not None:
                known, shares[:, i] = True, right
        return shares if known else None

    def _act_single(
        self,
        obs: Mapping[str, Mapping[str, np.ndarray]],
        memory: TeamMemory,
        info: Mapping[str, Any] | None,
        greedy: bool,
    ) -> dict[str, int]:
        actions = {}
        for agent, seen in obs.items():
            player = memory[int(agent.rsplit("_", 1)[1])]
            if info is None:
                player.restart(np.ones(1, np.bool_))
            key = None if info is None else info.get(agent, {}).get("document")
            column = {name: seen[name][None] for name in self.keys}
            keys = None if key is None else np.array([key], np.int64)
            texts = shared_text({name: seen[name][None] for name in SHARED_TEXT if name in seen})
            choice = player.choose(column, texts["manual"], texts["goal"], keys, greedy=greedy)
            actions[agent] = int(choice.action[0])
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


def build_policy(agent: str, spec: ObservationSpec, options: Mapping[str, Any], seed: int) -> Policy:
    """A fresh network of an agent id, its weights drawn from `seed`; torch's own random state is left as it was."""
    entry = agent_entry(agent)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load(entry.policy)(spec, **{**entry.options, **options})


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
    options: dict[str, Any] = {**env_options, env.stage_option: stage.split("/")[0]}
    world = env.make_world(1, **options)
    weights, _ = load_weights(folder / stage, env=env.id, vocabulary_hash=world.vocabulary.hash, num_agents=num_agents)
    policies = []
    for state in weights:
        policy = build_policy(agent, world.spec, policy_options, seed=0)
        fit_weights(policy, state, folder / stage)
        policies.append(policy.to(device).eval())
    return Team(policies, world.spec)


def seed_folder(root: Path, seed: int | str, num_seeds: int) -> Path:
    """Where one seed of a run lives: the run folder itself, or `seed_<k>/` where there are several."""
    return root if num_seeds == 1 else root / f"seed_{seed}"
