"""The command: what it makes of good input, of bad input, and of folders that hold something."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import curriculum
from magrounding.cli import train
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import make_config
from magrounding.experiment.presets import find_preset
from magrounding.owner import RunOwner
from magrounding.run_folder import RunFolder
from magrounding.storage import write_json
from tests.experiment.tiny_runs import IMITATION, LEARNER, phases_of, tiny_settings

ROOT = Path(__file__).parents[2]

# The real command, with a preset that ends within seconds, on a disk that refuses large files.
COMMAND = """
import resource, sys
from dataclasses import replace
from benchmarks import curriculum
from magrounding.experiment import curriculum as experiment
from magrounding.experiment.presets import rtfm
from tests.experiment.tiny_runs import TINY, phases_of

evaluation = replace(TINY.evaluation, every=None, final_sets=("train",))
rtfm.DEMO = replace(TINY, preset="demo", phases=phases_of(1800), evaluation=evaluation)
experiment.write_report = lambda *_: None
resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
sys.exit(curriculum.main())
"""


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path):
    """A limit on the size of files makes the operating system refuse the checkpoint, as a full disk does."""
    line = [sys.executable, "-c", COMMAND, "--env", "ma_rtfm", "--stages", "s1", "--out", str(tmp_path / "run")]
    done = subprocess.run(
        line, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 2
    saved = tmp_path / "run" / "checkpoint.safetensors"
    assert re.fullmatch(rf"error: {re.escape(str(saved))}: File too large; .*--resume\n", done.stderr)
    assert (tmp_path / "run" / "config.json").exists()
    assert not list(tmp_path.rglob("*.partial"))
    assert not saved.exists()


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["curriculum", *map(str, arguments)])
    code = curriculum.main()
    return code, capsys.readouterr().err


def catch_runs(monkeypatch):
    """The settings of every run that the command would begin or go on with."""
    found = []

    def run_curriculum(settings, folder, **_):
        found.append(settings)
        return RunFolder(folder)

    monkeypatch.setattr(train, "run_curriculum", run_curriculum)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        "--env chess",
        "--env ma_rtfm --stages s1,s9",
        "--env ma_rtfm --agents 0",
        "--env ma_rtfm --seeds 1,1",
        "--env ma_rtfm team_reward=nan",
        "--env ma_rtfm --budget 0",
        "--env ma_rtfm env.sight=far",
        "--env ma_rtfm env.size",
        "--env messenger --preset quick --stages s1,s2 learner.cost_to_go=3",
        "--env messenger --agent emma network.language_model=no/such",
        "--env ma_rtfm --resume",
        "",
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, tmp_path, arguments):
    out = tmp_path / "run"
    code, err = run(monkeypatch, capsys, "--out", out, *arguments.split())
    assert code == 2
    assert re.fullmatch(r"error: [^\n]*\n", err)
    assert not out.exists()


def test_a_folder_that_exists(monkeypatch, capsys, tmp_path):
    (tmp_path / "notes").write_text("mine")
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path)
    assert (code, err) == (
        2,
        f"error: {tmp_path} exists already and holds no run: name another with --out\n",
    )
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path, "--resume")
    assert code == 2
    assert "config.json is missing" in err
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_second_start_in_a_folder(monkeypatch, capsys, tmp_path):
    """Of a run that is alive, and of one whose process has died."""
    settings = tiny_settings()
    write_json(tmp_path / "config.json", settings.as_dict(), sealed=True)
    running = (
        rf"error: the run in {re.escape(str(tmp_path))} is running \(process {os.getpid()} on \S+, since 20[^)]+\)"
    )
    with RunOwner(RunFolder(tmp_path)):
        for more in ([], ["--resume"]):
            code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path, *more)
            assert code == 2
            assert re.fullmatch(rf"{running}[^\n]*\n", err)
            assert "--resume" not in err
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path)
    assert code == 2
    assert err.endswith("exists already: add --resume to go on with it, or name another with --out\n")
    assert {path.name for path in tmp_path.iterdir()} == {"config.json"}


def test_stopped_before_there_was_anything_to_save(monkeypatch, capsys, tmp_path):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "run_curriculum", stop)
    stopped = 130, "stopped before the run began\n"
    assert run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path / "run") == stopped
    write_json(tmp_path / "run" / "config.json", tiny_settings().as_dict())
    code, err = run(monkeypatch, capsys, "--env", "ma_rtfm", "--out", tmp_path / "run")
    assert code == 130
    assert re.fullmatch(r"stopped; the state is saved, go on with: python -m benchmarks.curriculum .*--resume\n", err)


CONTRADICTIONS = [
    ("--agents", "2", "3"),
    ("--stages", "s1", "s1,s2,s3,s4,s5"),
    ("--budget", "0.5", "0.25"),
    ("network.head_width", "8", "400"),
    ("evaluation.every", "77", "25000"),
    ("learner.weights.contrast", "0.5", "0"),
    ("team_reward", "0.25", "0.5"),
    ("env.chase_range", "7", None),
    ("phases.s5.0.num_envs", "7", "64"),
    ("demonstrations", "games.npz", None),
    ("share_parameters", "true", "false"),
]


@pytest.mark.parametrize(("option", "other", "same"), CONTRADICTIONS, ids=[case[0] for case in CONTRADICTIONS])
def test_resuming_something_else(monkeypatch, capsys, tmp_path, option, other, same):
    """Refused where it contradicts what the folder has; the same again is no contradiction."""
    settings = make_config("ma_rtfm", "txt2pi", agents=3, seeds=(0, 1)).with_budget(0.25)
    write_json(tmp_path / "config.json", settings.as_dict())
    resumed = catch_runs(monkeypatch)
    line = ("--env", "ma_rtfm", "--out", tmp_path, "--resume")

    def words(value):
        return [option, value] if option.startswith("--") else [f"{option}={value}"]

    code, err = run(monkeypatch, capsys, *line, *words(other))
    assert code == 2
    assert option.removeprefix("--") in err
    assert not resumed
    if same is not None:
        assert run(monkeypatch, capsys, *line[2:], *words(same)) == (0, ""), "the folder names the environment"
        assert resumed == [settings]


def test_phases_that_differ_in_what_a_resumed_run_is_asked_for(monkeypatch, capsys, tmp_path):
    """The option was not typed when the run began: it would have been the same in every phase."""
    phases = phases_of(60, replace(IMITATION, learning_rate=0.5), LEARNER)
    write_json(tmp_path / "config.json", tiny_settings(phases=phases).as_dict())
    line = ("--env", "ma_rtfm", "--out", tmp_path, "--resume", "learner.learning_rate=0.5")
    code, err = run(monkeypatch, capsys, *line)
    assert code == 2
    assert "learner.learning_rate 0.01, not 0.5" in err


def test_what_is_trained_is_said_with_the_path_for_the_other(monkeypatch, capsys, tmp_path):
    catch_runs(monkeypatch)
    for agents, other in (("3", "share_parameters=false"), ("2", "share_parameters=true")):
        monkeypatch.setattr(sys, "argv", ["curriculum", "--env", "ma_rtfm", "--agents", agents, "--out", str(tmp_path)])
        curriculum.main()
        said = capsys.readouterr().out
        assert f"{agents} × relread" in said
        assert other in said


def test_defaults_are_those_of_the_readme(monkeypatch):
    arguments = train.Arguments(env="ma_rtfm", agents=3)
    settings = train.requested(arguments)
    demo = find_preset("demo", "ma_rtfm")
    assert (settings.agent, settings.agents, settings.phases) == (demo.agent, 3, demo.phases)
    assert settings.stages == ("s1", "s2", "s3", "s4", "s5")
    assert settings.seeds == (0,)
    assert settings.share_parameters
    assert not train.requested(replace(arguments, agents=2)).share_parameters
    assert not train.requested(replace(arguments, agent="endi_dis_relread")).share_parameters
    assert not settings.demonstrations
    assert train.default_folder(arguments) == Path(f"runs/ma_rtfm-{demo.agent}-3-demo")


def test_options_of_networks_are_settings():
    given = train.Arguments(env="messenger", preset="quick_rl", paths=("network.similarity=32",))
    settings = train.requested(given)
    assert settings.network == {"similarity": 32, "meaning": 8}
    assert settings.make_network().config.similarity == 32
    other = train.requested(replace(given, preset="paper", agent="relread"))
    assert other.network == {"similarity": 32}
    assert not any(phase.frozen for _, phase in other.walk())  # what EMMA freezes is no part of relread


def test_options_of_learners_are_settings_of_every_phase_that_has_them():
    typed = ("learner.entropy=0.03", "learner.teacher_steps=7", "learner.unroll=4")
    given = train.Arguments(env="ma_rtfm", preset="quick", paths=typed)
    for _, phase in train.requested(given).walk():
        told = vars(phase.learner)
        assert (told.get("entropy", 0.03), told.get("teacher_steps", 7), told["unroll"]) == (0.03, 7, 4)
        assert ("teacher_steps" in told) == (phase.name == "imitate")


def test_regret_is_refused_only_where_no_stage_has_an_expert_that_judges():
    """Monsters stand still in S1, where moves cost nothing but time: the preset's own regret is no reason to refuse."""

    def weights(stages, *paths):
        settings = train.requested(train.Arguments(env="ma_rtfm", preset="quick", stages=stages, paths=paths))
        return {settings.of_stage(stage)[0].learner.cost_to_go for stage in ("s1", "s3")}

    assert weights("s1,s3", "learner.cost_to_go=2") == {2}
    assert weights("s1") == weights("s1", "learner.entropy=0.03") == {3}
    assert weights("s1", "learner.cost_to_go=0") == {0}
    with pytest.raises(ConfigurationError):
        weights("s1", "learner.cost_to_go=2")
    with pytest.raises(ConfigurationError):
        weights("s3", "learner.cost_to_go=2", "learner.demonstrations=5")


def test_a_budget_is_a_part_of_the_presets():
    whole = find_preset("quick", "ma_rtfm")
    preset = train.requested(train.Arguments(env="ma_rtfm", preset="quick", budget=0.5))
    for stage in ("s1", "s3"):
        for half, full in zip(preset.of_stage(stage), whole.of_stage(stage), strict=True):
            assert half.until.steps == full.until.steps / 2
            assert half.learner.anneal_steps == full.learner.anneal_steps / 2
            assert half.learner.teacher_steps == full.learner.teacher_steps / 2
    assert preset.evaluation.every == whole.evaluation.every / 2
    assert preset.about.endswith("Here with 0.5 times its budget.")
