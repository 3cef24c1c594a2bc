"""`train --jobs`, and the commands that `jobs` prints: the same run as that of one process, to the bit."""

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

import pytest

from magrounding.cli import train
from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.beginning import PARTS
from magrounding.experiment.checkpoint import is_finished
from magrounding.extensions.cluster.cli import jobs as jobs_command
from magrounding.owner import RunOwner
from magrounding.run_folder import RunFolder
from magrounding.storage import write_json
from tests.experiment.run_contents import check
from tests.experiment.tiny_runs import learn, phases_of, resume, tiny_settings
from tests.forked import ROOT
from tests.full import in_the_full_suite

pytestmark = pytest.mark.usefixtures("jobs_of_one_server")
SEEDS = (0, 1)
SETTINGS = tiny_settings(stages=("s1",), seeds=SEEDS, phases=phases_of(90), every=30, final_sets=("eval",))


def begin(folder, settings=SETTINGS, **changes):
    return learn(settings, folder, seeds=(), command="the command", **changes)


def command(*words):
    return CommandLine("magrounding train", tuple(map(str, words))).run(train)


def go_on(folder, *words):
    return command("--out", folder, "--resume", "--device", "cpu", *words)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return learn(SETTINGS, folder, threads=2, command="the command")


@pytest.mark.slow
def test_one_that_is_killed_is_named_and_taken_up_again(tmp_path, whole, capsys):
    run = begin(tmp_path / "run", threads=2)
    kill_when_saved(run, 1)
    assert go_on(run, "--jobs", 2) == 2
    printed = capsys.readouterr()
    assert "seed 1 was ended by SIGKILL" in printed.out
    assert printed.err.startswith("error: seed 1 was ended by SIGKILL: ")
    assert [is_finished(SETTINGS, run.seed(seed, 2)) for seed in SEEDS] == [True, False]
    assert not run.report.exists()
    before = {seed: run.seed(seed, 2).checkpoint.stat().st_mtime_ns for seed in SEEDS}
    assert go_on(run, "--jobs", 2) == 0
    after = {seed: run.seed(seed, 2).checkpoint.stat().st_mtime_ns for seed in SEEDS}
    assert [seed for seed in SEEDS if before[seed] != after[seed]] == [1]
    check(run.path, whole.path)


@pytest.mark.slow
def test_ctrl_c_stops_all_and_the_run_goes_on_in_one_process(tmp_path, whole, capsys):
    run = begin(tmp_path / "run", threads=2)
    when_saved(run, 0, lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert go_on(run, "--jobs", 2) == 128 + signal.SIGINT
    said = capsys.readouterr().err
    assert said == (
        f"stopped; the state is saved, go on with: magrounding train --out {run} --resume --jobs 2 --device cpu\n"
    )
    assert not list(run.path.rglob("owner.json"))
    assert go_on(run) == 0
    check(run.path, whole.path)


def when_saved(run, seed, act):
    """Call with the id of the process that trains a seed, as soon as it has saved anything."""
    own = run.seed(seed, len(SEEDS))

    def watch():
        while not (own.checkpoint.exists() and (owner := RunFolder(own.path).owner).exists()):
            time.sleep(0.005)
        act(int(owner.read_text().split('"pid": ')[1].split(",")[0]))

    threading.Thread(target=watch, daemon=True).start()


def kill_when_saved(run, seed):
    when_saved(run, seed, lambda pid: os.kill(pid, signal.SIGKILL))


def page_block(text):
    """The block of the page that holds a text."""
    page = (ROOT / "docs" / "many_machines.md").read_text(encoding="utf-8")
    (block,) = [each for each in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) if text in each]
    return block


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs a script by bash in a folder, with this checkout's command; its exit code."""
    program = tmp_path / "bin" / "magrounding"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m magrounding.cli.main "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return lambda script: subprocess.run(["bash", "-c", script], cwd=tmp_path, check=False).returncode


@pytest.mark.slow
@in_the_full_suite("five processes, each of which imports all")
def test_the_lines_of_the_page_train_each_seed_and_the_last_writes_the_report(
    tmp_path, whole, shell, monkeypatch, capsys
):
    """An array of Slurm and xargs: each line for itself, in any order; what is finished is so at once."""
    run = begin(tmp_path / "run", threads=2)
    assert CommandLine("magrounding jobs", (str(run), "--threads", "1")).run(jobs_command) == 0
    printed = capsys.readouterr()
    assert [line.split("--only-seeds")[1].split()[0] for line in printed.out.splitlines()] == list("01")
    (tmp_path / "commands.txt").write_text(printed.out)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    assert shell(page_block("SLURM_ARRAY_TASK_ID")) == 0
    assert [is_finished(SETTINGS, run.seed(seed, 2)) for seed in SEEDS] == [False, True]
    assert shell(page_block("xargs")) == 0
    assert [is_finished(SETTINGS, run.seed(seed, 2)) for seed in SEEDS] == [True] * 2
    assert not run.report.exists()
    name, subcommand, *words = shlex.split(printed.err.removeprefix("at last: "))
    assert (name, subcommand) == ("magrounding", "train")
    assert command(*words) == 0  # in this process, whose oracle is that of the other run
    check(run.path, whole.path)


@pytest.mark.parametrize("name", ["run\n", "a\u2028b", "\x1b[2J"])
def test_a_folder_that_no_line_can_name_gets_no_commands(name, tmp_path, capsys):
    begin(tmp_path / name)
    assert CommandLine("magrounding jobs", (str(tmp_path / name),)).run(jobs_command) == 2
    assert capsys.readouterr().out == ""


def test_how_minibatches_are_divided_is_settled_as_a_run_begins(tmp_path):
    run = begin(tmp_path / "run", threads=6)  # two networks that learn
    assert run.config()[PARTS] == 3
    write_json(run.config_file, {**run.config(), PARTS: "three"}, sealed=True)
    with pytest.raises(CheckpointError):
        resume(run.path, seeds=(1,))


def test_a_seed_is_trained_by_one_process_at_a_time(tmp_path):
    run = begin(tmp_path / "run")
    own = RunFolder(run.seed(1, 2).path)
    with RunOwner(own), pytest.raises(CheckpointError):
        resume(run.path, seeds=(1,))
    with RunOwner(run):  # as of a process that trains another seed, or writes the report
        resume(run.path, seeds=(1,))
    assert [is_finished(SETTINGS, run.seed(seed, 2)) for seed in SEEDS] == [False, True]


def test_half_written_files_of_a_seed_in_training_are_left_alone(tmp_path):
    run = begin(tmp_path / "run")
    folders = run.path, run.seed(0, 2).path, run.seed(1, 2).path
    partial = [folder / ".state.json.7.partial" for folder in folders]
    for path in partial:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    resume(run.path, seeds=())
    assert [path.exists() for path in partial] == [False, True, True]
    resume(run.path, seeds=(1,))
    assert [path.exists() for path in partial] == [False, True, False]


def test_other_seeds_and_runs_that_have_not_begun_are_refused(tmp_path, capsys):
    with pytest.raises(ConfigurationError):
        learn(SETTINGS, tmp_path / "run", seeds=(1,))
    begin(tmp_path / "run")
    assert go_on(tmp_path / "run", "--only-seeds", "1,7") == 2
    assert capsys.readouterr().err == "error: unknown seed of the run '7'; choose from: 0, 1\n"
    assert go_on(tmp_path / "run", "--jobs", "-1") == 2
    assert "--jobs of" in capsys.readouterr().err
