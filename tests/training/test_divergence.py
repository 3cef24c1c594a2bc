"""A run that diverges stops at its first bad step, with one sentence, and keeps nothing that is not finite."""

import math
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import magrounding as mg
from benchmarks import curriculum
from magrounding import registry
from magrounding.agents.weights import save_weights
from magrounding.cli.command import BAD_INPUT, run_command
from magrounding.errors import CheckpointError, Diverged
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment import seed_run
from magrounding.experiment.checkpoint import check_answers, pack_learners
from magrounding.experiment.config import read_config
from magrounding.experiment.presets import rtfm
from magrounding.storage import read_json
from magrounding.teams.scripted import RandomTeam
from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.gradient_step import LARGEST, gradient_step
from magrounding.training.imitation import ImitationConfig
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.learner import Learner
from magrounding.training.ppo import PPOConfig, PPOLearner
from magrounding.training.qmix import QmixConfig
from tests.experiment.tiny_runs import TINY, learn, phases_of, resume, tiny_settings
from tests.extensions.lge.test_drrn_learner import FEW, iterate, make
from tests.training.order_game import OrderGame

SMALL = {"unroll": 5, "bf16": False}
PASSES = {**SMALL, "minibatches": 2, "warm_up": 0, "anneal_steps": 300.0}
MENDED = {"learning_rate": 1e-3, "reward_scale": 1.0, "value_coefficient": 0.1, "loss": "0"}
QMIX = {"unroll": 5, "batch": 2, "exploration": 60.0, "state_maps": 4, "hypernetwork": 4}


@dataclass(frozen=True)
class OwnConfig(AlgorithmConfig):
    """A user's algorithm, which steps by itself."""

    algorithm = "own"
    unroll: int = 5
    loss: str = "nan"

    def make_learner(self, policy, spec, num_envs, seed):
        learner = OwnLearner(policy, self)
        learner.optimizer = torch.optim.SGD(policy.parameters(), 0.01)
        return learner


class OwnLearner(Learner[OwnConfig]):
    """Its loss is what the options say, times a sum of weights."""

    def loss(self):
        return float(self.config.loss) * sum(each.sum() for each in self.policy.parameters())

    def update(self, trajectory, steps):
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()
        return {"objective": 0.0}


WAYS = {
    "ppo": PPOConfig(**PASSES, learning_rate=1e30),
    "imitation of rewards of 1e38": ImitationConfig(**PASSES, reward_scale=1e38),
    "cloning of demonstrations": ImitationConfig(**PASSES, demonstrations=6, learning_rate=1e30),
    "impala of heavy values": ImpalaConfig(**SMALL, value_coefficient=1e38),
    "qmix in bf16": QmixConfig(**QMIX, bf16=True, learning_rate=1e30),
    "own loss that is nan": OwnConfig(),
    "own loss of 1e38": OwnConfig(loss="1e38"),
}
"""Each algorithm, and each sign by which a divergence is noticed."""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(vec.num_agents, 5))  # its games take long
    monkeypatch.setitem(registry.ALGORITHMS._entries, "own", registry.AlgorithmEntry("own", f"{__name__}:OwnConfig"))


def settings_of(config, **changes):
    """A run that saves after every update."""
    phases = phases_of(240, config)
    if config.algorithm == "qmix":
        small = {"agent": "qmix", "network": {}, "share_parameters": True}
        changes = {**small, **changes}
    return tiny_settings(
        stages=("s1",), phases=phases, every=None, **{"log_every": 1, "final_sets": ("train",), **changes}
    )


def mended(settings):
    """The same with options by which nothing here diverges."""

    def change(learner):
        return replace(learner, **{name: value for name, value in MENDED.items() if hasattr(learner, name)})

    return settings.with_learners(change)


def assert_finite(folder: Path):
    """All that is saved below a folder is finite."""
    for path in folder.rglob("*.safetensors"):
        for name, tensor in load_file(path).items():
            assert not tensor.is_floating_point() or tensor.isfinite().all(), (path, name)


@pytest.mark.parametrize("way", WAYS)
def test_it_is_noticed_and_nothing_of_it_is_kept(tmp_path, capsys, way):
    settings, folder = settings_of(WAYS[way]), tmp_path / "run"
    code = run_command(lambda: learn(settings, folder))
    assert (code, capsys.readouterr().err.count("\n")) == (BAD_INPUT, 1)
    assert not list(folder.rglob("agent_*.safetensors"))
    assert_finite(folder)
    code = run_command(lambda: resume(folder))
    assert (code, capsys.readouterr().err.count("\n")) == (BAD_INPUT, 1)
    with pytest.raises(CheckpointError):
        learn(mended(settings), folder, resume=True)
    learn(mended(settings), tmp_path / "again")
    assert read_json(tmp_path / "again" / "s1" / "state.json")["phase_steps"] == 240
    assert_finite(tmp_path / "again")


def test_the_last_checkpoint_goes_on_once_the_cause_is_gone(tmp_path, monkeypatch):
    """One bad rollout, as of a fault: what was saved before goes on, and ends as a run without it."""
    settings, update = settings_of(ImpalaConfig(**SMALL)), ImpalaLearner.update

    def poisoned(self, trajectory, steps):
        bad = replace(trajectory, reward=trajectory.reward * math.nan) if steps == 120 else trajectory
        return update(self, bad, steps)

    learn(settings, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(ImpalaLearner, "update", poisoned)
        with pytest.raises(Diverged):
            learn(settings, tmp_path / "run")
    learn(settings, tmp_path / "run", resume=True)
    one, other = (load_file(tmp_path / name / "s1" / "agent_0.safetensors") for name in ("whole", "run"))
    assert all(torch.equal(one[name], other[name]) for name in other)


@pytest.mark.parametrize(("stages", "begins"), [("s1,s3", "initial={out}"), ("s3", "")])
def test_the_command_that_the_error_names_begins_again(tmp_path, monkeypatch, capsys, stages, begins):
    """With a tenth of the rate, from the weights after the last finished stage if there is one."""
    update, out = PPOLearner.update, tmp_path / "run"
    phases = {**phases_of(60, PPOConfig(**PASSES)), "s3": phases_of(60, PPOConfig(**PASSES, learning_rate=0.02))["*"]}

    def poisoned(self, trajectory, steps):
        bad = self.config.learning_rate > 0.01
        return update(self, replace(trajectory, reward=trajectory.reward * math.nan) if bad else trajectory, steps)

    def command(words):
        monkeypatch.setattr(sys, "argv", ["curriculum", *words])
        return curriculum.main(), capsys.readouterr().err

    monkeypatch.setattr(PPOLearner, "update", poisoned)
    evaluation = replace(TINY.evaluation, every=None, final_sets=("train",))
    monkeypatch.setattr(rtfm, "DEMO", replace(TINY, phases=phases, evaluation=evaluation, preset="demo"))
    words = ["--env", "ma_rtfm", "--agents", "2", "--stages", stages, "--device", "cpu", "--quiet", "--out", str(out)]
    code, error = command([*words, "learner.entropy=0.02"])
    assert (code, error.count("\n")) == (BAD_INPUT, 1)
    again = shlex.split(error.partition("begin again with, e.g.: ")[2])
    assert " ".join(again).count(f"--out {out}-again --stages s3 --env") == 1
    paths = shlex.split(f"learner.entropy=0.02 learner.learning_rate=0.002 {begins.format(out=out)}")
    assert again[-len(paths) :] == paths
    assert command(again[again.index("--out") :]) == (0, "")
    assert {phase.learner.learning_rate for _, phase in read_config(tmp_path / "run-again").walk()} == {0.002}


@pytest.mark.parametrize("rate", [1e30, 1e12])
def test_values_of_texts_diverge_too(rate):
    """Huber's loss grows in a straight line: after a step at a rate of 1e12 it is 1e25, and finite for ever."""
    learner, worker = make(mg.vectorize(OrderGame, 8), replace(FEW, learning_rate=rate))
    before = torch.get_rng_state()
    check_answers(worker.players[0], worker.collect().trajectories[0])
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(Diverged):
        any(iterate(learner, worker, 8 * update) is None for update in range(20))
    assert learner.updates == 1  # the one that was too large: what comes of it is noticed before the next
    assert all(tensor.isfinite().all() for tensor in pack_learners([learner]).values())


def test_the_step_itself_is_refused():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight], 0.1)
    for loss in (
        weight.sum() / 0,
        (2 * LARGEST - weight * 1e-9).mean(),  # too large a loss of a small gradient
        (weight - 1).sum() * LARGEST,  # a loss of 0 whose gradient's norm is infinite
        (weight - 1).sqrt().sum(),
        weight.sum() * math.nan,
    ):
        optimizer.zero_grad()
        loss.backward()
        with pytest.raises(Diverged):
            gradient_step(optimizer, loss)
    assert weight.tolist() == [1, 1, 1]
    assert not optimizer.state
    optimizer.zero_grad()
    loss = weight.sum()
    loss.backward()
    assert gradient_step(optimizer, loss, 1.0).item() == pytest.approx(math.sqrt(3))
    assert weight.grad.norm().item() == pytest.approx(1, rel=1e-4)
    assert weight.tolist() == pytest.approx([0.9] * 3)


def test_a_checkpoint_of_before_that_is_not_finite_ends_in_a_sentence(tmp_path, monkeypatch):
    """Earlier versions saved such."""
    settings, save = settings_of(PPOConfig(**PASSES)), seed_run.save_checkpoint

    def spoil(path, record, tensors):
        save(path, record, {k: v * math.nan if "/weights/" in k else v for k, v in tensors.items()})
        raise KeyboardInterrupt

    monkeypatch.setattr(seed_run, "save_checkpoint", spoil)
    with pytest.raises(KeyboardInterrupt):
        learn(settings, tmp_path / "run")
    with pytest.raises(Diverged):
        learn(settings, tmp_path / "run", resume=True)


def test_weights_that_are_not_finite_are_never_written(tmp_path):
    with pytest.raises(Diverged):
        save_weights(tmp_path / "a", [{"w": torch.ones(2)}, {"w": torch.tensor([1.0, math.nan])}], {})
    assert not list(tmp_path.rglob("*"))
