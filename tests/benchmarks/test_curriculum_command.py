"""The command: what it makes of good input, of bad input, of Ctrl-C and of a kill."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import curriculum
from magrounding.agents.weights import load_weights
from magrounding.cli import train
from magrounding.envs.make import make_vec
from magrounding.experiment.presets import find_preset
from magrounding.storage import read_json, write_json
from tests.experiment.tiny_runs import tiny_settings

ROOT = Path(__file__).parents[2]

# The real command, with a preset that ends within seconds; `SLOWLY` keeps it busy until it is stopped.
COMMAND = """
import os, sys
from dataclasses import replace
from benchmarks import curriculum
from magrounding.experiment import curriculum as experiment
from magrounding.experiment.presets import Promotion, rtfm
from tests.experiment.tiny_runs import TINY, phases_of

budget = {"phases": phases_of({"*": Promotion(steps=1800)}), "evaluate_every": None, "final_sets": ("train",)}
rtfm.DEMO = replace(TINY, **budget)
experiment.write_report = lambda folder: None
if os.environ.get("SLOWLY"):
    import time
    from magrounding.experiment.stage import StageSession
    iterate = StageSession.iterate
    StageSession.iterate = lambda self, steps: (time.sleep(0.02), iterate(self, steps))[1]
sys.exit(curriculum.main())
"""


def command(out, *more, slowly=False):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SLOWLY": "1" if slowly else ""}
    line = [
        sys.executable,
        "-c",
        COMMAND,
        "--env",
        "ma_rtfm",
        "--stages",
        "s1,s2",
        "--out",
        str(out),
        "--device",
        "cpu",
        *more,
    ]
    return subprocess.Popen(line, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def wait_for_progress(folder, beyond=None):
    """Until a checkpoint exists that is not `beyond`."""
    path, deadline = folder / "checkpoint.safetensors", time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes() != beyond:
            time.sleep(0.3)  # into the updates that follow it
            return
        time.sleep(0.05)
    raise TimeoutError("no checkpoint appeared")


def weights_of(folder):
    vocabulary_hash = make_vec("ma_rtfm", 1).spec.vocabulary_hash
    weights, _ = load_weights(folder / "s2", env="ma_rtfm", vocabulary_hash=vocabulary_hash, num_agents=2)
    return weights


@pytest.mark.slow
def test_stopped_and_killed_it_ends_as_if_nothing_had_happened(tmp_path):
    """Ctrl-C, --resume, kill -9, --resume: the final weights are those of an uninterrupted run, bit for bit."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    undisturbed = command(whole)

    process = command(broken, slowly=True)
    wait_for_progress(broken)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert re.fullmatch(r"stopped; the state is saved, go on with: python -m benchmarks.curriculum .*--resume\n", err)
    saved = (broken / "checkpoint.safetensors").read_bytes()

    process = command(broken, "--resume", slowly=True)
    wait_for_progress(broken, beyond=saved)
    process.kill()
    assert finish(process)[0] == -signal.SIGKILL
    assert not (broken / "s2" / "state.json").exists()  # else there was nothing left to do

    assert finish(command(broken, "--resume"))[0] == 0
    assert finish(undisturbed)[0] == 0
    for ours, theirs in zip(weights_of(broken), weights_of(whole), strict=True):
        assert all((ours[name] == theirs[name]).all() for name in theirs)
    assert read_json(broken / "s2" / "state.json")["files"] == read_json(whole / "s2" / "state.json")["files"]


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path):
    """A limit on the size of files makes the operating system refuse the checkpoint, as a full disk does."""
    limited = COMMAND.replace(
        "sys.exit(", "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\nsys.exit("
    )
    line = [sys.executable, "-c", limited, "--env", "ma_rtfm", "--stages", "s1", "--out", str(tmp_path / "run")]
    done = subprocess.run(
        line, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert re.fullmatch(r"error: the disk refused.*: File too large; .*--resume\n", done.stderr)
    assert (tmp_path / "run" / "config.json").exists()
    assert not list(tmp_path.rglob("*.partial"))
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["curriculum", *map(str, arguments)])
    code = curriculum.main()
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--env", "chess"], "unknown env 'chess'; choose from: .*ma_rtfm"),
        (["--env", "ma_rtfm", "--stages", "s1,s9"], "unknown stage of ma_rtfm 's9'; choose from: s1, s2"),
        (["--env", "ma_rtfm", "--agent", "gpt"], "unknown agent 'gpt'; choose from: .*txt2pi"),
        (["--env", "ma_rtfm", "--preset", "huge"], "unknown preset 'huge'; choose from: .*demo"),
        (["--env", "ma_rtfm", "--agents", "0"], "number of agents must be positive, got 0"),
        (["--env", "ma_rtfm", "--agents", "-2"], "number of agents must be positive, got -2"),
        (["--env", "ma_rtfm", "--agents", "40"], "40 agents|larger|fit|cells"),
        (["--env", "rtfm", "--agents", "2"], "played by one agent, got 2"),
        (["--env", "ma_rtfm", "--seeds", "one"], "integers separated by commas, got 'one'"),
        (["--env", "ma_rtfm", "--seeds", "1,1"], "each seed can be named once"),
        (["--env", "ma_rtfm", "--stages", ","], "at least one stage"),
        (["--env", "ma_rtfm", "--device", "tpu"], "unknown device 'tpu'"),
        (["--env", "ma_rtfm", "--team-reward", "1.5"], r"lies in \[0, 1\], got 1.5"),
        (["--env", "ma_rtfm", "--team-reward", "nan"], r"lies in \[0, 1\], got nan"),
        (["--env", "ma_rtfm", "--budget", "0"], "multiple of the preset's, got 0"),
        (["--env", "ma_rtfm", "--budget", "nan"], "multiple of the preset's, got nan"),
        (["--env", "ma_rtfm", "--games", "0"], "an evaluation takes at least one game, got 0"),
        (["--env", "ma_rtfm", "--network", "width=3"], "unknown option for --network 'width'; choose from: .*hidden"),
        (["--env", "ma_rtfm", "--network", "hidden=wide"], "values like hidden=512, got 'hidden=wide'"),
        (
            ["--env", "ma_rtfm", "--learning", "speed=3"],
            "unknown option for --learning 'speed'; choose from: .*rate",
        ),
        (["--env", "ma_rtfm", "--learning", "entropy=much"], "values like entropy=.*, got 'entropy=much'"),
        (["--env", "ma_rtfm", "--learning", "algorithm=ppo"], "unknown option for --learning 'algorithm'"),
        (["--env", "messenger", "--agent", "emma", "--network", "language_model=no/such"], "the folder does not exist"),
        (["--env", "ma_rtfm", "--resume"], "no run in .*: the folder does not exist"),
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, tmp_path, arguments, complaint):
    out = tmp_path / "run"
    code, err = run(monkeypatch, capsys, *arguments, "--out", out)
    assert code == 2
    assert re.fullmatch(rf"error: [^\n]*({complaint})[^\n]*\n", err)
    assert not out.exists()


def test_unknown_flags_and_missing_ones_exit_with_2(monkeypatch, capsys):
    for arguments in ([], ["--env", "ma_rtfm", "--colour", "red"]):
        monkeypatch.setattr(sys, "argv", ["curriculum", *arguments])
        with pytest.raises(SystemExit) as end:
            curriculum.main()
        assert end.value.code == 2


def test_a_folder_that_exists(monkeypatch, capsys, tmp_path):
    (tmp_path / "notes").write_text("mine")
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path)
    assert (code, err) == (
        2,
        f"error: {tmp_path} exists already and is not the folder of a run: name another with --out\n",
    )
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path, "--resume")
    assert code == 2
    assert "config.json is missing" in err
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_file_where_the_folder_should_be(monkeypatch, capsys, tmp_path):
    (tmp_path / "run").write_text("a file")
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path / "run")
    assert code == 2
    assert "exists already" in err


def test_resuming_something_else(monkeypatch, capsys, tmp_path):
    from magrounding.experiment.settings import make_settings

    write_json(tmp_path / "config.json", make_settings("ma_rtfm", "txt2pi", agents=3, seeds=(0, 1)).to_dict())
    for flag, value, complaint in (
        ("--agents", "2", "has agents 3, not 2"),
        ("--seeds", "0", "has seeds 0,1, not 0"),
        ("--stages", "s1", "has stages s1,s2,s3,s4,s5, not s1"),
        ("--preset", "paper", "has preset demo, not paper"),
        ("--agent", "conv", "has agent txt2pi, not conv"),
        ("--network", "head_width=8", "has network head_width=400, not head_width=8"),
        ("--games", "7", "has games 200, not 7"),
        ("--learning", "entropy=0.5", "has learning entropy=0.01, not entropy=0.5"),
        ("--team-reward", "0.25", "has team-reward 0.5, not 0.25: resume it without --team-reward"),
    ):
        code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path, "--resume", flag, value)
        assert code == 2
        assert complaint in err
    code, err = run(monkeypatch, capsys, "--env", "rtfm", "--out", tmp_path, "--resume")
    assert code == 2
    assert "has env ma_rtfm, not rtfm: resume it with --env ma_rtfm, or name" in err
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path)
    assert code == 2
    assert "exists already: add --resume to go on with it" in err
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path, "--resume", "--share-parameters")
    assert code == 2
    assert "has share-parameters False, not True" in err


def test_a_foreign_or_damaged_checkpoint(monkeypatch, capsys, tmp_path):
    import torch

    from magrounding.experiment.checkpoint import save_checkpoint

    write_json(tmp_path / "config.json", tiny_settings().to_dict())
    path = tmp_path / "checkpoint.safetensors"
    arguments = ("--env", "ma_rtfm", "--out", tmp_path, "--resume")
    vocabulary = make_vec("ma_rtfm", 1).spec.vocabulary_hash
    for origin, complaint in (
        ({"env": "rtfm", "vocabulary": vocabulary, "agents": 2}, "trained on 'rtfm', not on 'ma_rtfm'"),
        ({"env": "ma_rtfm", "vocabulary": "other", "agents": 2}, "another vocabulary"),
        ({"env": "ma_rtfm", "vocabulary": vocabulary, "agents": 5}, "holds 5 agents, not 2"),
    ):
        save_checkpoint(path, origin, {"x": torch.zeros(3)})
        code, err = run(monkeypatch, capsys, *arguments)
        assert code == 2
        assert complaint in err
    path.write_bytes(path.read_bytes()[:-2])
    code, err = run(monkeypatch, capsys, *arguments)
    assert code == 2
    assert re.fullmatch(r"error: .*checkpoint.safetensors is truncated or damaged [^\n]*\n", err)


def test_defaults_are_those_of_the_readme(monkeypatch):
    arguments = train.Arguments(env="ma_rtfm", agents=3)
    settings = train.requested(arguments)
    demo = find_preset("demo", "ma_rtfm")
    assert (settings.agent, settings.agents, settings.preset) == (demo.agent, 3, demo)
    assert settings.stages == ("s1", "s2", "s3", "s4", "s5")
    assert settings.seeds == (0,)
    assert not settings.share_parameters
    assert not settings.demonstrations
    assert train.run_folder(arguments) == Path(f"runs/ma_rtfm-{demo.agent}-3-demo")


def test_bf16_is_a_setting_of_the_learner():
    settings = train.requested(train.Arguments(env="rtfm", bf16=True, preset="paper"))
    assert all(phase.learner.bf16 for _, phase in settings.phases())
    assert settings.max_envs == 24


def test_options_of_networks_are_settings():
    given = train.Arguments(env="messenger", preset="quick_rl", network="kinship=32")
    settings = train.requested(given)
    assert settings.policy_options == {"kinship": 32, "meaning": 8}
    assert settings.make_network().config.kinship == 32
    other = train.requested(replace(given, preset="paper", agent="relread"))
    assert other.policy_options == {"kinship": 32}
    assert not any(other.frozen(phase) for _, phase in other.phases())  # what EMMA freezes is no part of relread


def test_options_of_learners_are_settings_of_every_phase_that_has_them():
    given = train.Arguments(env="ma_rtfm", preset="quick", learning="entropy=0.03,teacher_steps=7,unroll=4")
    for _, phase in train.requested(given).phases():
        told = vars(phase.learner)
        assert (told.get("entropy", 0.03), told.get("teacher_steps", 7), told["unroll"]) == (0.03, 7, 4)
        assert ("teacher_steps" in told) == (phase.name == "imitate")


def test_a_budget_is_a_part_of_the_presets():
    whole = find_preset("quick", "ma_rtfm")
    preset = train.requested(train.Arguments(env="ma_rtfm", preset="quick", budget=0.5)).preset
    for stage in ("s1", "s3"):
        for half, full in zip(preset.of_stage(stage), whole.of_stage(stage), strict=True):
            assert half.until.steps == full.until.steps / 2
            assert half.learner.anneal_steps == full.learner.anneal_steps / 2
    assert preset.of_stage("s1")[0].learner.teacher_steps == 30_000
    assert preset.evaluate_every == whole.evaluate_every / 2
    assert preset.about.endswith("Here with 0.5 times its budget.")


def test_without_a_preset_it_is_the_smallest_that_there_is():
    assert train.requested(train.Arguments(env="messenger")).preset.name == "quick"


def test_sharing_and_the_teams_reward_are_settings():
    demo = find_preset("demo", "ma_rtfm")
    settings = train.requested(train.Arguments(env="ma_rtfm", agents=3, share_parameters=True))
    assert settings.share_parameters
    assert settings.num_learners == 1
    assert settings.preset == demo
    for part in (0.0, 1.0):
        settings = train.requested(train.Arguments(env="ma_rtfm", team_reward=part))
        assert settings.preset == replace(demo, team_reward=part)
        assert settings.num_learners == settings.agents


def test_a_resumed_run_knows_how_it_shares(monkeypatch, tmp_path):
    """What is not named again is the run's own; what is named and equal is no contradiction."""
    write_json(tmp_path / "config.json", tiny_settings(share_parameters=True, team_reward=0.25).to_dict())
    resumed = []
    monkeypatch.setattr(train, "run_curriculum", lambda settings, *_, **__: resumed.append(settings))
    for more in ([], ["--share-parameters", "--team-reward", "0.25"]):
        line = ["curriculum", "--env", "ma_rtfm", "--out", str(tmp_path), "--resume", *more]
        monkeypatch.setattr(sys, "argv", line)
        assert curriculum.main() == 0
    assert resumed == [tiny_settings(share_parameters=True, team_reward=0.25)] * 2
