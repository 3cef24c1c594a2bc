"""TorchRL 0.11 learns two agents of multi-agent RTFM, stage S1, by PPO with one network for both.

python -m examples.clients.torchrl_ppo
"""

from __future__ import annotations

import argparse
import time

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import PettingZooWrapper
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import magrounding as mg
from magrounding.extensions.clients import for_tensors
from magrounding.extensions.clients.torchrl import BatchedEnv
from magrounding.extensions.clients.word_reader import WordReader

OPTIONS = {"stage": "s1", "agents": 2, "max_cycles": 80}
SEEN, MASK, ACTION = ("agent", "observation"), ("agent", "action_mask"), ("agent", "action")


def make_networks(env: BatchedEnv) -> tuple[ProbabilisticActor, ValueOperator]:
    """A policy and a critic, each with a reader of its own."""
    spec = env.vec.spec
    actor = nn.Sequential(policy := WordReader(spec, env.layout), nn.Linear(policy.width, spec.num_actions))
    critic = nn.Sequential(values := WordReader(spec, env.layout), nn.Linear(values.width, 1))
    policy_module = ProbabilisticActor(
        TensorDictModule(actor, [SEEN], [("agent", "logits")]),
        in_keys={"logits": ("agent", "logits"), "mask": MASK},
        out_keys=[ACTION],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
        log_prob_key=("agent", "log_prob"),
    )
    return policy_module, ValueOperator(critic, [SEEN], [("agent", "state_value")])


def make_loss(actor: ProbabilisticActor, critic: ValueOperator) -> tuple[ClipPPOLoss, GAE]:
    """PPO's loss and its advantages, for rewards and ends of each agent."""
    loss = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.005, normalize_advantage=True)
    keys = {"value": ("agent", "state_value"), "advantage": ("agent", "advantage")}
    keys |= {"value_target": ("agent", "value_target")}
    # A time-out is a loss in this world (`spec.time_limit_is_loss`): nothing comes after it.
    ends = {"reward": ("agent", "reward"), "done": ("agent", "done"), "terminated": ("agent", "done")}
    loss.set_keys(**keys, **ends, action=ACTION, sample_log_prob=("agent", "log_prob"))
    advantages = GAE(gamma=0.99, lmbda=0.95, value_network=critic, deactivate_vmap=True)
    advantages.set_keys(**keys, **ends)
    return loss, advantages


def outcome(played: TensorDictBase) -> tuple[int, float]:
    """Return the number of games that ended in a batch [B, T], and the share of them that was won."""
    ended = played["next", "done"].squeeze(-1)
    return int(ended.sum()), played["next", "agent", "info", "won"][..., 0][ended].mean().item()


def evaluate(policy: ProbabilisticActor | None, games: int = 500, seed: int = 10**6) -> float:
    """The share won of the first games of `games` seeds, actions being drawn; legal ones at random without a policy."""
    env = BatchedEnv(mg.make_vec("ma_rtfm", games, **OPTIONS), seed=seed)
    with set_exploration_type(ExplorationType.RANDOM):
        played = env.rollout(OPTIONS["max_cycles"], policy, break_when_any_done=False)
    first = played["next", "done"].squeeze(-1).long().argmax(1)
    return played["next", "agent", "info", "won"][torch.arange(games), first, 0].mean().item()


def single_game(policy: ProbabilisticActor, seed: int) -> tuple[bool, int]:
    """One game through TorchRL's own wrapper of PettingZoo: won or not, and its steps."""
    env = PettingZooWrapper(for_tensors(mg.make("ma_rtfm", **OPTIONS), flatten=True, dead="padded"), seed=seed)
    with set_exploration_type(ExplorationType.RANDOM):
        played = env.rollout(OPTIONS["max_cycles"], policy)
    return bool(played["next", "agent", "info", "won"][-1].any()), len(played)


def train(minutes: float, games: int = 64, steps: int = 32, epochs: int = 4, seed: int = 0) -> ProbabilisticActor:
    """PPO until the time is over; win rates at the begin, the middle and the end are of games played for that."""
    torch.manual_seed(seed)
    env = BatchedEnv(mg.make_vec("ma_rtfm", games, **OPTIONS), seed=seed)
    actor, critic = make_networks(env)
    loss, advantages = make_loss(actor, critic)
    optimiser = torch.optim.Adam(loss.parameters(), lr=2.5e-3)
    print(f"random play {evaluate(None):6.1%} won, the network as it begins {evaluate(actor):6.1%}")
    collector = Collector(env, actor, frames_per_batch=games * steps, total_frames=-1)
    begin, middle = time.process_time(), False
    for round_, played in enumerate(collector, 1):
        reward = played["next", "agent", "reward"]
        reward[:] = reward.mean(-2, keepdim=True)  # the team's: else it pays to let the other one take the risks
        with torch.no_grad():
            advantages(played)
        flat = played.reshape(-1)
        for _ in range(epochs):
            for rows in torch.randperm(len(flat)).split(256):
                parts = loss(flat[rows])
                optimiser.zero_grad()
                (parts["loss_objective"] + parts["loss_critic"] + parts["loss_entropy"]).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimiser.step()
        spent = (time.process_time() - begin) / 60
        if round_ % 10 == 0:
            ended, won = outcome(played)
            print(f"{spent:5.1f} min {round_ * len(flat):10,} steps, {ended:5} games, {won:6.1%} won")
        if not middle and spent > minutes / 2:
            middle = True
            print(f"in the middle {evaluate(actor):6.1%} won")
        if spent > minutes:
            break
    collector.shutdown()
    print(f"at the end {evaluate(actor):6.1%} won")
    return actor


def main() -> None:
    """Train, then play twenty games through TorchRL's wrapper of PettingZoo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    policy = train(arguments.minutes, seed=arguments.seed)
    games = [single_game(policy, seed) for seed in range(2 * 10**6, 2 * 10**6 + 20)]
    print(f"through PettingZooWrapper {sum(won for won, _ in games)} of {len(games)} won")


if __name__ == "__main__":
    main()
