"""AgileRL 2.58 learns two agents of multi-agent RTFM, stage S1, by its IPPO.

It plays without action masks, which AgileRL's IPPO knows nothing of when it learns; a masked action does nothing. Each
agent has its own networks: IPPO 2.58 mixes up the steps of agents who share one. It needs an environment of its own,
with the extra `agilerl`: docs/clients.md says why.

python -m examples.clients.agilerl_ippo
"""

from __future__ import annotations

import argparse
from time import process_time
from typing import Any

import numpy as np
import torch
from agilerl.algorithms import IPPO
from agilerl.modules.dummy import DummyEvolvable
from agilerl.networks import StochasticActor, ValueNetwork

import magrounding as mg
from magrounding.extensions.clients.agilerl import BatchedVecEnv
from magrounding.extensions.clients.word_reader import WordReader

OPTIONS = {"stage": "s1", "agents": 2, "max_cycles": 80}
GAMES, STEPS = 64, 32
NAMES = FIRST, _ = "first_0", "second_0"
FIELDS = ("states", "actions", "log_probs", "rewards", "dones", "values")


class Encoder(WordReader):
    """A reader that gives its width by the name that AgileRL asks for."""

    @property
    def num_outputs(self) -> int:
        return self.width


def make_agent(env: BatchedVecEnv) -> IPPO:
    """IPPO whose actors and critics each have a reader."""
    seen, chosen = env.single_observation_space(FIRST), env.single_action_space(FIRST)

    def reader() -> DummyEvolvable:
        return DummyEvolvable("cpu", module_fn=Encoder, module_kwargs={"spec": env.vec.spec, "shown": env.layout})

    return IPPO(
        [seen] * env.num_agents,
        [chosen] * env.num_agents,
        agent_ids=env.agents,
        batch_size=512,
        lr=2.5e-3,
        learn_step=GAMES * STEPS,
        ent_coef=0.005,
        update_epochs=4,
        actor_networks=[StochasticActor(seen, chosen, encoder=reader()) for _ in env.agents],
        critic_networks=[ValueNetwork(seen, encoder=reader()) for _ in env.agents],
    )


def collect(agent: IPPO, env: BatchedVecEnv, seen: dict[str, Any], done: dict[str, Any]) -> tuple[Any, ...]:
    """Play STEPS of every game; return what IPPO learns from, the last observations and ends, games ended and won."""
    kept: dict[str, dict[str, list]] = {name: {each: [] for each in env.agents} for name in FIELDS}
    ended, won = 0, 0.0
    for _ in range(STEPS):
        actions, log_probs, _, values = agent.get_action(seen)
        after, rewards, terminated, truncated, infos = env.step(actions)
        rewards = dict.fromkeys(
            env.agents, sum(rewards.values()) / env.num_agents
        )  # else it pays to leave risks to others
        for name, part in zip(FIELDS, (seen, actions, log_probs, rewards, done, values), strict=True):
            for each in env.agents:
                kept[name][each].append(part[each])
        done = {each: np.logical_or(terminated[each], truncated[each]).astype(float) for each in env.agents}
        ended, won = ended + int(done[FIRST].sum()), won + float(infos[FIRST]["won"].sum())
        seen = after
    return tuple(kept[name] for name in FIELDS), seen, done, ended, won


def evaluate(agent: IPPO | None, games: int = 500, seed: int = 10**6) -> float:
    """The share won of the first games of `games` seeds, actions being drawn; without an agent, any at random."""
    env, rng = BatchedVecEnv(mg.make_vec("ma_rtfm", games, **OPTIONS), NAMES), np.random.default_rng(seed)
    seen, _ = env.reset(seed=seed)
    playing, won = np.ones(games, bool), 0.0
    while playing.any():
        actions = (
            {each: rng.integers(5, size=games) for each in env.agents} if agent is None else agent.get_action(seen)[0]
        )
        seen, _, terminated, truncated, infos = env.step(actions)
        won += float(infos[FIRST]["won"][playing].sum())
        playing &= ~(terminated[FIRST] | truncated[FIRST])
    return won / games


def main() -> None:
    """Train until the time is over, and play at the begin, in the middle and at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    np.random.seed(arguments.seed)  # noqa: NPY002 (AgileRL shuffles minibatches with it)
    env = BatchedVecEnv(mg.make_vec("ma_rtfm", GAMES, **OPTIONS), NAMES)
    agent = make_agent(env)
    print(f"random play {evaluate(None):6.1%} won, the network as it begins {evaluate(agent):6.1%}", flush=True)
    seen, _ = env.reset(seed=arguments.seed)
    done = {each: np.zeros(GAMES) for each in env.agents}
    begin, round_, middle, spent = process_time(), 0, False, 0.0
    while spent < arguments.minutes:
        experience, seen, done, ended, won = collect(agent, env, seen, done)
        agent.learn((*experience, seen, done))
        round_, spent = round_ + 1, (process_time() - begin) / 60
        if round_ % 10 == 0:
            print(
                f"{spent:5.1f} min {round_ * GAMES * STEPS:10,} steps, {ended:5} games, {won / ended:6.1%} won",
                flush=True,
            )
        if not middle and spent > arguments.minutes / 2:
            middle = True
            print(f"in the middle {evaluate(agent):6.1%} won", flush=True)
    print(f"at the end {evaluate(agent):6.1%} won", flush=True)


if __name__ == "__main__":
    main()
