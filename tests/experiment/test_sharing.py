"""One network for all agents learns from what all of them lived through; else each keeps to itself."""

from dataclasses import fields

import pytest
import torch

import magrounding as mg
from magrounding.agents.policy import LABELS
from magrounding.experiment.checkpoint import pack_learners
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.phase import Promotion
from magrounding.experiment.stage import StageSession
from magrounding.run_folder import METRICS_FILE
from magrounding.training.teacher import Teacher
from tests.experiment.tiny_runs import IMITATION, LEARNER, learn, phases_of, tiny_settings, weights_of
from tests.training.toy_games import ToyExpert, ToyGames, ToyPolicy, collect

B, N = 6, 3


@pytest.fixture(params=[False, True], ids=["feedforward", "recurrent"])
def rollout(request):
    """Three agents in games that time limits cut off, deaths and a teacher included."""
    torch.manual_seed(0)
    vec = ToyGames(B, N, time_limit_is_loss=False, end=0.02, max_cycles=5)
    teacher = Teacher(ToyExpert(vec), noise=0.1, seed=0)
    policies = [ToyPolicy(request.param) for _ in range(N)]
    return collect(vec, policies, skip=1, unroll=12, teacher=teacher, beta=0.5)


def test_a_joined_trajectory_is_the_trajectories_side_by_side(rollout):
    [joined] = rollout.joined()
    nested = {"observation", "texts", "truncations", "record", "extras", "metrics"}
    nested |= {"memory", "last_memory", "carried", "passes"}
    parts = {field.name for field in fields(joined)} - nested - {"segments"}
    for i, trajectory in enumerate(rollout.trajectories):
        mine = slice(i * B, (i + 1) * B)
        for name, text in trajectory.texts["document"].ids.items():
            ours = joined.texts["document"]
            assert (ours.ids[name][ours.index[:, mine]] == text[trajectory.texts["document"].index]).all()
        for name in parts:
            assert (getattr(joined, name)[:, mine] == getattr(trajectory, name)).all()
        for name, array in trajectory.observation.items():
            assert (joined.observation[name][:, mine] == array).all()
        if trajectory.memory is not None:
            assert torch.equal(joined.memory[mine], trajectory.memory)
            assert torch.equal(joined.last_memory[mine], trajectory.last_memory)
        assert (joined.extras[LABELS][:, mine] == trajectory.extras[LABELS]).all()
    assert {"alive", "nonterminal", "discount", "last_action"} <= parts
    assert joined.extras[LABELS].shape == (13, N * B, 4)
    assert (joined.memory is None) == (rollout.trajectories[0].memory is None)


def test_cuts_stay_with_their_games(rollout):
    [joined] = rollout.joined()
    found = {
        (t, b): f for f, (t, b) in enumerate(zip(*(part.tolist() for part in joined.truncations.where), strict=True))
    }
    own = [
        ((t, i * B + b), trajectory.truncations.observation, f)
        for i, trajectory in enumerate(rollout.trajectories)
        for f, (t, b) in enumerate(zip(*(part.tolist() for part in trajectory.truncations.where), strict=True))
    ]
    assert len(own) == len(found) > 10
    for place, final, f in own:
        for name, array in final.items():
            assert (joined.truncations.observation[name][found[place]] == array[f]).all()


def session_of(learner, **changes):
    settings = tiny_settings(agents=3, phases=phases_of(60, learner), **changes)
    session = StageSession(settings.resolve().segments[0], 0, torch.device("cpu"))
    session.start()
    return session


@pytest.mark.parametrize("learner", [LEARNER, IMITATION], ids=["impala", "imitation"])
def test_there_is_one_learner_or_one_for_each_agent(learner):
    for share in (True, False):
        session = session_of(learner, share_parameters=share)
        before = pack_learners(session.learners)
        _, losses = session.iterate(0)
        assert len(losses) == len(session.learners) == session.settings.num_learners == (1 if share else 3)
        assert len({id(player.policy) for player in session.players}) == len(session.learners)
        assert len(session.weights()) == 3
        first, second, _ = session.weights()
        assert all(torch.equal(first[name], second[name]) for name in first) == share
        after = pack_learners(session.learners)
        assert not all(torch.equal(before[name], after[name]) for name in before)
        draws = [player.generator.initial_seed() for player in session.players]
        assert len(set(draws)) == 3  # one network, but each agent draws its own actions
        session.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "shared"
    learn(settings_of(), folder)
    return folder


def settings_of():
    phases = phases_of({"s1": Promotion(steps=60)}, IMITATION, LEARNER)
    few = {"every": None, "final_sets": ("eval",), "log_every": 1}
    return tiny_settings(stages=("s1",), share_parameters=True, phases=phases, **few)


def test_all_agents_of_a_run_have_the_same_weights(shared):
    first, second = weights_of(shared, "s1")
    assert torch.equal(first, second)
    assert "* share_parameters: True\n" in (shared / "report.md").read_text()
    assert mg.load_team(shared).num_agents == 2
    for line in read_metrics(shared / METRICS_FILE):
        if line["kind"] == "train":
            assert "learner_0/entropy" in line
            assert not any(name.startswith("learner_1/") for name in line)
