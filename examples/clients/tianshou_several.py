"""tianshou's PPO learns to read: `python -m examples.clients.tianshou_several --agents 3`.

Each agent of multi-agent RTFM, stage S1, learns by itself, through tianshou's multi-agent manager. In tianshou's own
loop for PettingZoo agents take turns: reward and end of a step reach only who moved last, and "the next observation" is
another agent's. `Seats` has a row for each agent of each game instead. Evaluated on split "eval".
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import numpy as np
import torch
from tianshou.algorithm.modelfree.ppo import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOnPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.trainer import OnPolicyTrainerParams
from torch import nn

import magrounding as mg
from magrounding.agents.document_policy import Inputs
from magrounding.agents.relread.network import Relread
from magrounding.vector import Observation

GAMES, UNROLL = 64, 16


class Seats:
    """A batch of games as tianshou's vector env, and what its manager asks an env: a row for each agent of each game.

    Args:
        agents: in a game.
        split: of assignments.
        seed: of the first game; the others count on.
        games: that are played at once.
    """

    is_async = False

    def __init__(self, agents: int, split: str, seed: int, games: int = GAMES) -> None:
        self.games = mg.make_vec("ma_rtfm", games, stage="s1", agents=agents, split=split, max_cycles=80)
        self.seed = seed
        self.agents = [f"agent_{i}" for i in range(agents)]
        self.agent_idx = {agent: i for i, agent in enumerate(self.agents)}
        self.action_space = mg.make("ma_rtfm").action_space("agent_0")

    def __len__(self) -> int:
        return self.games.num_envs * len(self.agents)

    def reset(self, env_id: np.ndarray | None = None) -> tuple[Any, ...]:
        """Begin all games, or show some rows: the next game begins in the step that ends one."""
        if env_id is None:
            self.shown, env_id = self.rows(self.games.reset(self.seed)[0]), np.arange(len(self))
        return self.shown[env_id], np.array([{} for _ in env_id])

    def step(self, actions: np.ndarray, ids: Any = None) -> tuple[Any, ...]:
        """Play. An agent is paid half its own reward, half the team's mean; a game that lasts too long is lost."""
        observation, rewards, _, _, self.info = self.games.step(actions.reshape(-1, len(self.agents)))
        self.shown = self.rows(observation)
        seen, ended = Batch(self.shown, copy=True), np.repeat(self.info.done, len(self.agents))
        if ended.any():
            seen[ended] = self.rows(self.info.final_observation)
        paid = np.repeat((rewards + rewards.mean(1, keepdims=True)) / 2, len(self.agents), axis=0)
        return seen, paid, ended, np.zeros_like(ended), np.array([{} for _ in ended])

    def rows(self, observation: Observation) -> Batch:
        """What each agent of some games sees."""
        seen: dict[str, np.ndarray] = {}
        for field in self.games.spec.fields:
            array = observation[field.name]
            each = np.repeat(array, len(self.agents), axis=0) if field.shared else array
            seen[field.name] = each.reshape(-1, *field.shape).copy()
        mask = seen.pop("action_mask") != 0
        return Batch(agent_id=np.resize(self.agents, len(mask)), obs=seen, mask=mask)


class Actor(nn.Module):
    """Our relational reader as tianshou's actor: logits of actions."""

    def __init__(self, network: Relread) -> None:
        super().__init__()
        self.network = network
        self.asked: Any = None

    def read(self, obs: Any) -> Any:
        """Logits and values of observations; tianshou asks for both, one after the other."""
        if obs is not self.asked:
            seen = {name: torch.as_tensor(part) for name, part in {**obs.obs, "action_mask": obs.mask}.items()}
            manual, goal = seen.pop("manual"), seen.pop("goal")
            rows = torch.arange(len(goal))
            _, which = torch.cat((manual.flatten(1), goal), 1).unique(dim=0, return_inverse=True)
            first = rows.new_empty(int(which.max()) + 1).scatter(0, which, rows)  # of the rows with the same texts
            text = self.network.encode_text(manual[first], goal[first])
            self.asked, self.found = obs, self.network.respond(Inputs(seen, text, which))
        return self.found

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> Any:
        return self.read(obs).logits, state


class Critic(nn.Module):
    """The value of the same network."""

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.actor = actor

    def forward(self, obs: Any) -> torch.Tensor:
        return self.actor.read(obs).value


def learner(agents: int) -> MultiAgentOnPolicyAlgorithm:
    """PPO for each agent, not yet trained."""
    seats: Any = Seats(agents, "train", 0, games=1)
    algorithms = []
    for _ in seats.agents:
        actor: Any = Actor(Relread(seats.games.spec, Relread.defaults))
        ppo = PPO(
            policy=DiscreteActorPolicy(actor=actor, action_space=seats.action_space),
            critic=Critic(actor),
            optim=AdamOptimizerFactory(lr=7e-4),
            advantage_normalization=True,
            gamma=0.98,
            ent_coef=0.01,
            max_grad_norm=1.0,
            max_batchsize=1024,
        )
        algorithms.append(ppo)
    return MultiAgentOnPolicyAlgorithm(algorithms=algorithms, env=seats)


def win_rate(learnt: MultiAgentOnPolicyAlgorithm | None, agents: int, games: int = 512) -> float:
    """Share of held-out games that are won by sampled actions; without a learner by random legal ones."""
    seats, rng = Seats(agents, "eval", 10**9, games), np.random.default_rng(0)
    seats.reset()
    won, playing = 0, np.ones(games, bool)
    while playing.any():
        actions = (seats.shown.mask * rng.random(seats.shown.mask.shape)).argmax(1)
        if learnt is not None:
            with torch.no_grad():
                actions = learnt.policy(Batch(obs=seats.shown, info={})).act
        seats.step(np.asarray(actions))
        won += int((seats.info.won & playing).sum())
        playing &= ~seats.info.done
    return won / games


def train(learnt: MultiAgentOnPolicyAlgorithm, agents: int, steps: int, seed: int) -> None:
    """Play and learn for this many steps of the env."""
    seats: Any = Seats(agents, "train", seed * 1_000_000)
    learnt.run_training(
        OnPolicyTrainerParams(
            training_collector=Collector(learnt, seats, VectorReplayBuffer(len(seats) * UNROLL, len(seats))),
            max_epochs=1,
            epoch_num_steps=steps * agents,
            collection_step_num_env_steps=len(seats) * UNROLL,
            batch_size=256,
            update_step_num_repetitions=3,
            verbose=False,
            show_progress=False,
        )
    )


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--steps", type=int, default=160_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    logging.disable()  # tianshou warns in every round that rewards are of several agents
    torch.set_num_threads(1)
    torch.manual_seed(asked.seed)
    np.random.seed(asked.seed)  # noqa: NPY002  tianshou draws minibatches from it
    learnt, start = learner(asked.agents), time.process_time()
    train(learnt, asked.agents, asked.steps, asked.seed)
    minutes = (time.process_time() - start) / 60
    found = f"{win_rate(learnt, asked.agents):.3f}, random {win_rate(None, asked.agents):.3f}"
    print(f"seed {asked.seed}, {asked.steps:,} steps, {minutes:.1f} core minutes; wins of 512 games: {found}")


if __name__ == "__main__":
    main()
