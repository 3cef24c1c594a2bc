"""A run that diverged goes on from its last checkpoint with other options of its learners, and its files say so."""

import math
import re
import shutil
import sys
from dataclasses import replace

import pytest

from benchmarks import curriculum
from magrounding.errors import CheckpointError, Diverged
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.amendment import AMENDMENTS, DIVERGED, amendments
from magrounding.experiment.config import read_config
from magrounding.experiment.seed_run import SeedRun
from magrounding.play.scripted import RandomTeam
from magrounding.storage import read_json
from magrounding.training.drrn import DrrnLearnerConfig
from magrounding.training.ppo import PPOConfig, PPOLearner
from magrounding.training.qmix import QmixConfig
from tests.experiment.tiny_runs import Killed, killed_run, learn, phases_of, timeless, tiny_settings

HIGH, LOW = 0.02, 0.001
PATH = "phases.*.0.learner.learning_rate"


def settings_of(rate, **changes):
    config = PPOConfig(unroll=5, bf16=False, minibatches=2, warm_up=0, anneal_steps=300.0, learning_rate=rate)
    phases = phases_of(240, config)
    return tiny_settings(stages=("s1",), phases=phases, every=None, final_sets=("train",), log_every=1, **changes)


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """The oracle's games take longer than all else."""
    monkeypatch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(vec.num_agents, 5))


@pytest.fixture(scope="module")
def unstable():
    """After 120 steps, everything above some rate diverges."""
    update = PPOLearner.update

    def poisoned(self, trajectory, steps):
        bad = steps >= 120 and self.config.learning_rate > LOW
        return update(self, replace(trajectory, reward=trajectory.reward * math.nan) if bad else trajectory, steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PPOLearner, "update", poisoned)
        yield


@pytest.fixture(scope="module")
def left(tmp_path_factory, unstable):
    """A run that saves after every update, and diverged after 120 steps."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with pytest.raises(Diverged):
        learn(settings_of(HIGH), folder, command="as typed")
    return folder


@pytest.fixture
def diverged(tmp_path, left):
    """A copy of it."""
    return shutil.copytree(left, tmp_path / "run")


def resume(folder, settings, command=""):
    learn(settings, folder, resume=True, command=command)


def command(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["curriculum", *map(str, arguments)])
    code = curriculum.main()
    return code, capsys.readouterr().err


def test_the_command_that_the_error_names_goes_on_to_the_end(tmp_path, monkeypatch, capsys, unstable):
    """From a checkpoint, of a run that another process killed, to the report."""
    folder = tmp_path / "run"
    killed_run(settings_of(HIGH), folder, lambda position: position["steps"] == 90)
    code, error = command(monkeypatch, capsys, "--out", folder, "--resume", "--device", "cpu", "--quiet")
    assert (code, error.count("\n")) == (2, 1)
    found = re.search(r"go on with, e.g.: .*curriculum (--out \S+ --resume .*learner.learning_rate=0.002)\n", error)
    code, again = command(monkeypatch, capsys, *found[1].split())  # a tenth, and still too much
    assert code == 2
    assert re.search(r"learning_rate \(0.002 now\).*--resume --device cpu learner.learning_rate=0.0002", again)
    code, error = command(monkeypatch, capsys, *again.split("curriculum ")[1].split())
    assert (code, error) == (0, "")
    config = read_json(folder / "config.json")
    assert config["phases"]["*"][0]["learner"]["learning_rate"] == 0.0002
    assert [each["changed"] for each in config[AMENDMENTS]] == [{PATH: [0.02, 0.002]}, {PATH: [0.002, 0.0002]}]
    assert [each["begins"] for each in config[AMENDMENTS]] == [{"0": 120}, {"0": 120}]
    assert len(config[DIVERGED]) == 2


def test_it_is_written_down_with_what_was_before(diverged):
    resume(diverged, settings_of(LOW), "typed later")
    config = read_json(diverged / "config.json")
    assert config["command"] == "as typed; typed later"
    (told,) = config[DIVERGED]
    assert re.match("seed 0: s1, phase reinforce, diverged after 120 environment steps", told)
    (amendment,) = amendments(config)
    assert amendment.before == settings_of(HIGH).digest
    assert read_config(diverged).digest == settings_of(LOW).digest
    report = (diverged / "report.md").read_text()
    assert f"* amended: `{PATH} 0.001 instead of 0.02, after 120 steps of seed 0`\n" in report
    assert "* diverged: `seed 0: s1, phase reinforce, diverged after 120" in report
    assert "as typed; typed later" in report


def test_it_goes_on_from_the_last_checkpoint(tmp_path, diverged):
    """What was learnt before stays; what comes is as of a run that had the options of now from there on."""
    resume(diverged, settings_of(LOW))
    killed_run(settings_of(HIGH), tmp_path / "other", lambda position: position["steps"] == 120)
    lines = [[line for line in timeless(path) if line["kind"] == "train"] for path in (diverged, tmp_path / "other")]
    assert lines[0][:4] == lines[1]  # of four updates
    assert [line["learner_0/learning_rate"] < LOW for line in lines[0]] == [False] * 4 + [True] * 4


def test_only_a_run_that_diverged_takes_them(tmp_path):
    folder = tmp_path / "run"
    killed_run(settings_of(HIGH), folder, lambda position: position["steps"] == 90)
    with pytest.raises(CheckpointError):
        resume(folder, settings_of(LOW))


def test_only_options_of_learners_that_no_checkpoint_depends_on(monkeypatch, capsys, diverged):
    before = (diverged / "config.json").read_bytes()
    for option in (
        ("learner.unroll=10",),
        ("phases.*.0.num_envs=12",),
        ("team_reward=0.5",),
        ("learner.learning_rate=0.001", "learner.segment=5"),
        ("learner.learning_rate=-1",),
    ):
        assert command(monkeypatch, capsys, "--out", diverged, "--resume", *option)[0] == 2
    assert (diverged / "config.json").read_bytes() == before
    assert {"hypernetwork", "state_maps", "replay_steps"} < {*QmixConfig.kept}
    assert {"unroll", "target_every"} < {*DrrnLearnerConfig.kept}


def test_a_kill_right_after_the_amendment_was_written(monkeypatch, diverged):
    """The checkpoint is still of the settings before, which the amendment knows."""

    def killed(self):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(SeedRun, "run", killed)
        with pytest.raises(Killed):
            resume(diverged, settings_of(LOW))
    resume(diverged, read_config(diverged))
    assert read_json(diverged / "s1" / "state.json")["phase_steps"] == 240
    assert len(amendments(read_json(diverged / "config.json"))) == 1
