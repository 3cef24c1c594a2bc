"""Learning from what was played: a small network imitates a file of demonstrations."""

import numpy as np
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.cli import record
from magrounding.cli.command import CommandLine
from magrounding.play.demonstrations import Demonstrations
from magrounding.play.player import Player
from magrounding.play.team import Team
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.imitation import ImitationConfig, ImitationLearner
from tests.experiment.tiny_runs import NETWORK


def agreement(file, seed, updates):
    """After so many updates on a file: the part of the moves of the game of a seed that the networks would make."""
    shown = Demonstrations.load(file)
    vec = mg.make_vec(shown.header.env, 1, **shown.header.options)
    policies = [build_policy("txt2pi", vec.spec, NETWORK, seed=i) for i in range(vec.num_agents)]
    config = ImitationConfig(unroll=4, minibatches=1, learning_rate=0.01, warm_up=1, anneal_steps=1e9)
    learners = [ImitationLearner(policy, config) for policy in policies]
    source = DemonstrationSource(shown, [Player(policy, vec.spec, 2) for policy in policies], 2, 4)
    source.start(0)
    for update in range(updates):
        rollout = source.collect(steps=8 * update)
        for learner, trajectory in zip(learners, rollout.trajectories, strict=True):
            learner.update(trajectory, 8 * update)
    team, hits = Team([policy.eval() for policy in policies], vec.spec), []
    obs, info = vec.reset(seed=seed)
    memory = team.initial_memory(1)
    with torch.no_grad():
        for actions in shown.actions:
            hits.append(team.act(obs, memory, info)[0][0] == actions)
            obs, _, _, _, info = vec.step(actions[None])
    return float(np.mean(hits))


def learn_from(file, seed):
    """Make demonstrations of a file with one saved game, and imitate them until the networks know most of its moves."""
    shown = file.with_suffix(".npz")
    asked = "--env", "ma_rtfm", "--player", f"saved:{file}", "--out", str(shown)
    assert CommandLine("magrounding record", asked).run(record) == 0
    before, after = (agreement(shown, seed, updates) for updates in (0, 30))
    assert after > before + 0.4  # of five moves, by chance, every fifth is right
