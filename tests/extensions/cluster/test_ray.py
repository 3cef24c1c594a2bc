"""Jobs on Ray: a real cluster of two nodes, each with one core; `make test-ray` installs Ray and runs these."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from magrounding.errors import ConfigurationError
from magrounding.extensions.cluster.places import RayPlaces
from magrounding.run_folder import RunFolder
from tests.experiment.run_contents import content
from tests.experiment.tiny_runs import learn, phases_of, tiny_settings
from tests.extensions.cluster.ray_nodes import ROOT, below, in_temporary_places, processes, two_nodes

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own, of its processes and its future

SEEDS = (0, 1, 2)
SETTINGS = tiny_settings(stages=("s1",), seeds=SEEDS, phases=phases_of(90), every=30, final_sets=("eval",))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return learn(SETTINGS, folder, threads=1, command="the command")


@pytest.fixture
def cluster():
    with two_nodes() as made:
        yield made


def begin(folder):
    return learn(SETTINGS, folder, threads=1, seeds=(), command="the command")


def learnt(run):
    """Weights and metrics, to the bit; the games of others and the report are the last process's, with its oracle."""
    return {name: value for name, value in content(run.path).items() if name not in ("baselines.json", "report.md")}


def train(run, where, *words):
    """The command, as a process."""
    line = [sys.executable, "-m", "magrounding.cli.main", "train", "--out", str(run), "--resume", "--device", "cpu"]
    return subprocess.Popen(
        [*line, "--cluster", where, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def end(process):
    out, err = process.communicate()
    return process.returncode, out, err


def test_two_nodes_train_the_run_of_one_process(tmp_path, whole, cluster):
    run = begin(tmp_path / "run")
    code, _, err = end(train(run, f"ray://{cluster.address}"))
    assert (code, err) == (0, ""), err
    assert learnt(run) == learnt(whole)


def test_a_node_that_is_removed_in_mid_run_changes_nothing(tmp_path, whole, cluster):
    run = begin(tmp_path / "run")
    process = train(run, f"ray://{cluster.address}")
    wait_until(process, lambda: all(owner(run, seed) and run.seed(seed, 3).checkpoint.exists() for seed in (0, 1)))
    cluster.remove_node(cluster.second, allow_graceful=False)
    code, _, err = end(process)
    assert (code, err) == (0, ""), err
    assert learnt(run) == learnt(whole)


def owner(run, seed):
    return RunFolder(run.seed(seed, 3).path).owner.exists()


def wait_until(process, true):
    while not true():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_a_job_whose_process_is_killed_goes_on(tmp_path, whole, cluster):
    run = begin(tmp_path / "run")
    process = train(run, f"ray://{cluster.address}")
    file = RunFolder(run.seed(1, 3).path).owner
    wait_until(process, lambda: file.exists() and run.seed(1, 3).checkpoint.exists())
    os.kill(int(file.read_text().split('"pid": ')[1].split(",")[0]), signal.SIGKILL)
    code, _, err = end(process)
    assert (code, err) == (0, ""), err
    assert learnt(run) == learnt(whole)


def test_ctrl_c_leaves_no_process_and_no_file_outside_the_run(tmp_path, whole):
    before = in_temporary_places()
    run = begin(tmp_path / "run")
    process = train(run, "ray", "--jobs", "2")
    wait_until(process, lambda: all(run.seed(seed, 3).checkpoint.exists() for seed in (0, 1)))
    started = below(process.pid)
    assert started
    process.send_signal(signal.SIGINT)
    code, _, err = end(process)
    assert code == 128 + signal.SIGINT
    assert err == (
        f"stopped; the state is saved, go on with: magrounding train --out {run} --resume --jobs 2 --cluster ray "
        "--cpus-per-job 1 --gpus-per-job 0 --device cpu\n"
    )
    assert set(started).isdisjoint(processes())
    assert not list(run.path.rglob("owner.json"))
    assert in_temporary_places() <= before
    code, _, err = end(train(run, "ray", "--jobs", "2"))
    assert (code, err) == (0, ""), err
    assert learnt(run) == learnt(whole)


def test_what_a_node_does_not_see_is_refused_before_anything_trains(tmp_path, cluster, monkeypatch):
    """The nodes are of this machine and see all that it does: a token that is changed behind them stands for one."""
    written = Path.write_text

    def elsewhere(path, text, *arguments, **options):
        return written(path, "of another disk" if path.suffix == ".token" else text, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", elsewhere)
    with (
        pytest.raises(ConfigurationError),
        RayPlaces(cluster.address, tmp_path / "run"),
    ):
        pass
    assert not ray.is_initialized()
    assert list(tmp_path.rglob("*")) == [tmp_path / "run"]


def test_no_cluster_is_one_sentence(tmp_path):
    code, _, err = end(train(begin(tmp_path / "run"), "ray://127.0.0.1:1"))
    assert code == 2
    assert err.startswith("error: there is no Ray cluster of this machine at '127.0.0.1:1'")
    assert err.count("\n") == 1
