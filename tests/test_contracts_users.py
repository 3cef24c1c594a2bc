"""Two users that the contracts have to serve as they are: choices that change with a score, and an actor elsewhere."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

import magrounding as mg
from magrounding.teams.evaluate import play
from magrounding.teams.scripted import RandomTeam
from magrounding.teams.team import Team
from magrounding.training.ppo import PPOConfig
from tests.many_choices import SPEC, STEPS, ManyChoices, make_actor, make_reader
from tests.remote_actor import receive, send

PPO = PPOConfig(unroll=6, epochs=2, minibatches=1, warm_up=0, learning_rate=0.03, anneal_steps=10**6)


def make_learner(policy):
    return PPO.make_learner(policy, SPEC, num_envs=6, seed=0)


class TestChoicesThatChange:
    def test_each_text_is_encoded_once_for_each_version_of_the_weights(self):
        policy = make_reader()
        worker, learner = make_actor(policy), make_learner(policy)
        trajectory = worker.collect().trajectories[0]
        assert policy.encoded["choices"] <= 7 * 65, "at most what a step shows; most are known from the step before"
        policy.encoded["choices"] = 0
        learner.update(trajectory, 0)
        assert policy.encoded["choices"] == 65 * (PPO.epochs + 1), "a pass each, and one for the last values"

    def test_it_learns_a_score(self):
        policy = make_reader()
        worker, learner = make_actor(policy, num_envs=24, most=9), make_learner(policy)
        for update in range(12):
            losses = learner.update(worker.collect().trajectories[0], 144 * update)
            assert np.isfinite(list(losses.values())).all()
        vec = mg.vectorize(lambda: ManyChoices(9), 50)
        trained = play(Team([policy], SPEC), vec, 50, seed=7)
        random = play(RandomTeam(1, 2475, obey_mask=True), vec, 50, seed=7)
        assert trained.score.mean() > 0.5 > 0.3 > random.score.mean()
        np.testing.assert_allclose(trained.score, trained.returns[:, 0] / STEPS)
        assert not np.array_equal(trained.score, trained.won)


class TestActorElsewhere:
    def test_learning_is_the_same_wherever_the_actor_plays(self):
        near, far = make_reader(), make_reader()
        worker, local, remote = make_actor(near), make_learner(near), make_learner(far)
        command = [sys.executable, "-m", "tests.remote_actor"]
        root = Path(__file__).parents[1]
        with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as actor:
            for update in range(3):
                send(actor.stdin, save(remote.policy.state_dict()))
                remote.update(pickle.loads(receive(actor.stdout)), 36 * update)
                local.update(worker.collect().trajectories[0], 36 * update)
            actor.stdin.close()
            assert actor.wait(60) == 0
        assert same_weights(near, far)
        assert not same_weights(near, make_reader())


def same_weights(one, other):
    return all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))
