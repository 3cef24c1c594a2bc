"""The recording command: what it writes, what it refuses in one sentence, and a person at the keyboard."""

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import curriculum
from magrounding.agents.building import build_policy
from magrounding.agents.weights import save_weights
from magrounding.cli import record as command
from magrounding.cli import train
from magrounding.cli.command import CommandLine
from magrounding.envs.make import make_vec
from magrounding.storage import write_json
from magrounding.teams.actor import make_expert
from magrounding.teams.team import Team
from magrounding.training.demonstrations import Demonstrations, digests, find_demonstrations
from magrounding.training.recording import RECORDING_SEED, record
from tests.experiment.tiny_runs import IMITATION, TINY, phases_of, tiny_settings

ROOT = Path(__file__).parents[2]


def run(monkeypatch, out, *arguments, typed=None):
    if typed is not None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return CommandLine("magrounding record", ("--out", str(out), *map(str, arguments))).run(command)


OF_S1 = ("--env", "ma_rtfm", "--stage", "s1")


@pytest.mark.parametrize("place", ["file/demos.npz", "file/deeper/demos.npz"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_played(monkeypatch, capsys, tmp_path, place):
    (tmp_path / "file").write_text("mine")

    def play(*_, **__):
        raise AssertionError("a game is played")

    monkeypatch.setattr("magrounding.cli.record.record", play)
    assert run(monkeypatch, tmp_path / place, *OF_S1) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"error: .*demos.npz cannot be written \(.*\): name another file with --out\n", error)


def test_the_oracle_is_recorded(monkeypatch, capsys, tmp_path):
    out = tmp_path / "demos.npz"
    assert run(monkeypatch, out, *OF_S1, "--agents", 3, "--games", 30, "--seed", 5) == 0
    (line,) = capsys.readouterr().out.splitlines()  # no progress where there is no terminal
    shown = Demonstrations.load(out)
    won = f"{shown.won.mean():.1%}"
    assert re.fullmatch(rf"{out}: games 30, steps {shown.steps}, win rate {won}, [\d.]+ KiB", line)
    header = shown.header
    assert (header.env, header.stage, header.agents, header.games, header.played_by) == (
        "ma_rtfm",
        "s1",
        3,
        30,
        "oracle",
    )
    assert header.options == {"stage": "s1", "split": "train", "agents": 3}
    assert header.seed == RECORDING_SEED + 5 * 2**20
    vec = make_vec("ma_rtfm", 1, stage="s1", agents=3, max_cycles=20)
    assert find_demonstrations(digests([str(out)]), vec)[0] == out

    before = out.read_bytes()
    assert run(monkeypatch, out, *OF_S1) == 2
    assert capsys.readouterr().err == f"error: {out} exists already: name another with --out\n"
    assert out.read_bytes() == before


def test_another_oracle_is_recorded(monkeypatch, tmp_path):
    line = ("--env", "ma_rtfm", "--stage", "s1", "--games", 2, "--player", "oracle:rollout")
    assert run(monkeypatch, tmp_path / "demos.npz", *line, "env.max_cycles=4") == 0
    shown = Demonstrations.load(tmp_path / "demos.npz")
    assert shown.header.played_by == "oracle:rollout"
    vec = make_vec("ma_rtfm", 2, **shown.header.options)
    again = record(vec, make_expert(vec, "rollout"), 2, RECORDING_SEED, "the same")
    np.testing.assert_array_equal(shown.actions, again.actions)


def test_a_trained_team_is_recorded_with_the_options_of_its_run(monkeypatch, capsys, tmp_path):
    settings = tiny_settings(stages=("s1",), env_options={"max_cycles": 8, "occupants": 1})
    write_json(tmp_path / "run" / "config.json", settings.as_dict())
    vec = make_vec("ma_rtfm", 6, stage="s1", agents=2, occupants=1, max_cycles=9, split="train")
    policies = [build_policy("relread", vec.spec, settings.network, seed=i) for i in range(2)]
    origin = {"env": "ma_rtfm", "vocabulary": vec.spec.vocabulary_hash}
    save_weights(tmp_path / "run" / "s1", [policy.state_dict() for policy in policies], origin)
    player = ("--player", f"run:{tmp_path / 'run'}")
    out = tmp_path / "demos.npz"
    assert run(monkeypatch, out, *OF_S1, *player, "--games", 6, "env.max_cycles=9") == 0
    shown = Demonstrations.load(out)
    assert shown.header.played_by == f"relread of {tmp_path / 'run'}"
    again = record(vec, Team(policies, vec.spec), 6, RECORDING_SEED, "the same")
    np.testing.assert_array_equal(shown.actions, again.actions)
    for arguments, complaint in (
        (("--agents", 3), "plays ma_rtfm with 2 agents, not ma_rtfm with 3"),
        (("--stage", "s2"), f"unknown trained stage of {tmp_path / 'run'} 's2'"),
    ):
        assert run(monkeypatch, tmp_path / "no.npz", *OF_S1, *player, *arguments) == 2
        assert complaint in capsys.readouterr().err
    assert not (tmp_path / "no.npz").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        "--env chess",
        "--stage s9",
        "--player nobody",
        "--player run:nowhere",
        "--env rtfm --stage simple --agents 2",
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, tmp_path, arguments):
    out = tmp_path / "demos.npz"
    assert run(monkeypatch, out, *OF_S1, *arguments.split()) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()


def moves(shown):
    """What was done, as a person would type it."""
    return "".join("".join("sudlr"[action] for action in step) + "\n" for step in shown.actions)


def test_a_person_plays_through_a_pipe(tmp_path):
    """What the oracle did, typed in: the same games, one label a move; the unfinished game at the end is left out."""
    vec = make_vec("ma_rtfm", 1, stage="s1", agents=2, split="train", max_cycles=80)
    expert = make_expert(vec)
    shown = record(vec, expert, 3, RECORDING_SEED, "oracle")
    typed = moves(shown)
    mistakes = "\nu\nzz\nuuu\n"
    out = tmp_path / "mine.npz"
    line = [sys.executable, "-m", "magrounding.cli.main", "record", *OF_S1, "--player", "keyboard", "--out", str(out)]
    done = subprocess.run(line, input=mistakes + typed + "s s\n", cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    mine = Demonstrations.load(out)
    assert mine.header.played_by == "a person"
    assert mine.header.games == 3
    for name in ("actions", "game", "won", "rewards"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(shown, name))
    for name in ("manual", "goal"):
        np.testing.assert_array_equal(mine.texts[name], shown.texts[name])
    np.testing.assert_array_equal(mine.labels, np.eye(5, dtype=bool)[shown.actions])
    assert f"GOAL\n{vec.world.text(0)['goal']}\n" in done.stdout
    assert done.stdout.count("AGENT 0\n\nMANUAL\n") == len(shown.game) + 2
    assert done.stdout.count("expected 2 letters") == 4  # none, one, two of no action, three
    assert done.stdout.count("The game is won.") == shown.won.sum() == 3


def test_q_stops_and_nothing_finished_is_nothing_written(monkeypatch, capsys, tmp_path):
    out = tmp_path / "mine.npz"
    assert run(monkeypatch, out, *OF_S1, "--player", "keyboard", typed="ss\nQ\nss\n") == 2
    assert not out.exists()
    timed_out = "ss\nss\nss\nq\n"
    assert run(monkeypatch, out, *OF_S1, "--player", "keyboard", "env.max_cycles=2", typed=timed_out) == 0
    shown = Demonstrations.load(out)
    assert (shown.steps, shown.header.games, shown.won.tolist()) == (2, 1, [False])


def test_the_curriculum_takes_files_of_each_stage(monkeypatch, capsys, tmp_path):

    phases = phases_of(60, IMITATION)
    monkeypatch.setattr("magrounding.experiment.presets.rtfm.DEMO", replace(TINY, preset="demo", phases=phases))
    files = []
    for stage in ("s1", "s2"):
        files.append(str(tmp_path / f"{stage}.npz"))
        assert run(monkeypatch, files[-1], "--env", "ma_rtfm", "--stage", stage, "--games", 4) == 0
    typed = (f"demonstrations={','.join(files)}",)
    asked = train.requested(train.Arguments(env="ma_rtfm", stages="s1,s2", paths=typed))
    assert asked.demonstrations == digests(files)

    def learn(*arguments):
        monkeypatch.setattr(sys, "argv", ["curriculum", "--env", "ma_rtfm", "--out", str(tmp_path / "run"), *arguments])
        code = curriculum.main()
        return code, capsys.readouterr().err

    for more, complaint in (
        (("--stages", "s1,s2,s3", f"demonstrations={','.join(files)}"), "no demonstrations show s3 .*--stages s1,s2\n"),
        (("--stages", "s1", f"demonstrations={files[0]},{tmp_path}/none.npz"), "none.npz cannot be read"),
        (("--stages", "s1", "--agents", "3", f"demonstrations={files[0]}"), "with agents 2, the run has 3"),
    ):
        code, err = learn(*more)
        assert code == 2
        assert re.search(complaint, err)
        assert err.count("\n") == 1
        assert not (tmp_path / "run").exists()
