"""Two users that the contracts have to serve as they are: choices that change with a score, and an actor elsewhere."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.errors import ConfigurationError
from magrounding.play.evaluate import play
from magrounding.play.scripted import RandomTeam
from magrounding.play.team import Team
from magrounding.training.ppo import PPOConfig
from tests.many_choices import MOST, SPEC, STEPS, ManyChoices, make_actor, make_reader
from tests.remote_actor import receive, send

PPO = PPOConfig(unroll=6, epochs=2, minibatches=1, warm_up=0, learning_rate=0.03, anneal_steps=10**6)


def make_learner(policy):
    return PPO.make_learner(policy, SPEC, num_envs=6, seed=0)


class TestChoicesThatChange:
    def test_a_rollout_keeps_every_distinct_text_once(self):
        policy = make_reader()
        trajectory = make_actor(policy).collect().trajectories[0]
        choices, seen = trajectory.texts["choices"], trajectory.texts["observation"]
        assert choices.index.shape == (7, 6, MOST)
        assert choices.ids["choices"].shape == (65, 3), "4 ** 3 texts, and padding, of 7 × 6 × 2,475 places"
        assert len(np.unique(choices.ids["choices"], axis=0)) == 65
        assert trajectory.truncations.texts["choices"].shape == (6, MOST), "of the games that the time limit cut off"
        assert set(seen.ids) == {"task", "observation"}
        assert "action_mask" in trajectory.observation
        assert "choices" not in trajectory.observation

    def test_what_is_kept_is_what_was_shown(self):
        worker = make_actor(make_reader())
        shown = [worker._observation["choices"][:, 0].copy()]
        step = worker.vec.step

        def watch(actions):
            result = step(actions)
            shown.append(result[0]["choices"][:, 0].copy())
            return result

        worker.vec.step = watch
        text = worker.collect().trajectories[0].texts["choices"]
        np.testing.assert_array_equal(text.ids["choices"][text.index], np.stack(shown))

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

    def test_an_agent_for_fixed_actions_is_refused_in_a_sentence(self):
        with pytest.raises(ConfigurationError):
            make_policy("relread", SPEC)


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
