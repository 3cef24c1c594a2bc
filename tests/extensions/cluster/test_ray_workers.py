"""Workers on Ray: a real cluster of two nodes; `make test-ray` installs Ray and runs these."""

import logging
import os
import platform
import signal
import subprocess
import sys

import numpy as np
import pytest

from magrounding.errors import ConfigurationError, MissingExtra
from magrounding.simulators.faults import SimulatorError
from magrounding.simulators.vectorize import vectorize
from tests.experiment.struck_run import train_while_struck
from tests.extensions.cluster.ray_nodes import ROOT, below, in_temporary_places, processes, two_nodes
from tests.simulators.games import NODE, Guess, Placed, Walk
from tests.simulators.test_workers import assert_equal, copied, played_alike

PATIENCE = 10.0
"""Seconds without an answer: as long as a healthy worker may take on a busy machine."""


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    with two_nodes(env_vars={NODE: "second"}) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", made.address)
        yield made


on_ray = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own, of its processes and its future


class TestOnTwoNodes:
    pytestmark = on_ray

    @pytest.mark.parametrize(("num_envs", "workers"), [(1, 1), (5, 2), (4, 3)])
    def test_the_same_episodes_as_here(self, cluster, num_envs, workers):
        with vectorize(Walk, num_envs, f"ray:{workers}") as vec, vectorize(Walk, num_envs, workers) as local:
            for _ in played_alike(vec, local):
                pass
            rows = [0] if num_envs == 1 else [0, num_envs - 1]
            for asked in (None, rows):
                np.testing.assert_array_equal(vec.best_actions(asked), local.best_actions(asked))
            np.testing.assert_array_equal(vec.state(), local.state())
            assert_equal(vec.reset(rows=rows)[0], local.reset(rows=rows)[0])
            held = np.arange(num_envs) == 0
            for each in (vec, local):
                each.hold(held)
            actions = np.ones((num_envs, 3), int)
            assert_equal(copied(vec.step(actions)), copied(local.step(actions)))

    def test_both_nodes_have_some(self, cluster):
        with vectorize(Placed, 4, "ray:2") as vec:
            vec.reset(seed=0)
            scores = vec.step(np.zeros((4, 1), int))[4].score
        assert sorted(scores.tolist()) == [0, 0, 1, 1]

    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "frozen"])
    def test_five_times_only_the_games_of_the_worker_are_lost(self, cluster, how, caplog):
        rng = np.random.default_rng(3)
        mine, others = [0, 1, 3], [2, 4]
        with (
            vectorize(Walk, 5, "ray:2", timeout=PATIENCE) as vec,
            caplog.at_level(logging.WARNING, "magrounding.simulators"),
        ):
            alone = vectorize(Walk, 5)
            vec.reset(seed=9)
            alone.reset(seed=9)
            for time in range(5):
                os.kill(vec.pids[0], how)
                for step in range(4):
                    actions = rng.integers(0, 2, (5, 3))
                    result, expected = vec.step(actions), copied(alone.step(actions))
                    assert result[4].fault.tolist() == [step == 0 and row in mine for row in range(5)]
                    found = copied(result)
                    for key, array in found.items():
                        if not key.startswith("final"):
                            np.testing.assert_array_equal(array[others], expected[key][others], key)
                    if step == 0:
                        assert found["done"][mine].all()
                        assert not found["won"][mine].any()
                assert len(vec.faults) == time + 1
        reason = "its actor gave no answer: " if how == signal.SIGKILL else f"no answer for {PATIENCE:g} s"
        for fault, record in zip(vec.faults, caplog.records, strict=True):
            assert (fault.worker, fault.rows) == (0, (0, 1, 3))
            assert fault.reason.startswith(reason)
            assert "\n" not in fault.reason
            assert fault.reason in record.getMessage()

    def test_training_goes_on_and_every_event_is_in_the_log(self, cluster, tmp_path, monkeypatch):
        pytest.importorskip("minigrid", reason="the extra `babyai` is absent: minigrid")
        times, run = 10, tmp_path / "run"
        struck, lines = train_while_struck(monkeypatch, run, workers="ray:2", times=times, more=2, patience=PATIENCE)
        faults = [line for line in lines if line["kind"] == "fault"]
        assert len(faults) == times == len(struck)
        assert {tuple(line["rows"]) for line in faults} == {(0, 1, 4, 5), (2, 3, 6, 7)}
        assert sum(line["reason"].startswith("its actor") for line in faults) == times // 2
        assert sum(line["kind"] == "train" for line in lines) == times + 2

    def test_what_a_node_lacks_is_one_sentence(self, cluster, tmp_path):
        def package():
            if NODE in os.environ:
                raise MissingExtra("NetHack", "nethack")
            return Guess()

        def folder():
            if NODE in os.environ:
                list(tmp_path.joinpath("games").iterdir())
            return Guess()

        for make_env, lacks in (
            (package, "NetHack needs an optional package: pip install 'magrounding[nethack]'"),
            (folder, f"[Errno 2] No such file or directory: '{tmp_path / 'games'}'"),
        ):
            with pytest.raises(ConfigurationError) as caught:
                vectorize(make_env, 2, "ray:2")
            assert str(caught.value) == f"node {platform.node()} cannot make the games: {lacks}"

    def test_an_actor_that_dies_at_its_start_is_no_hang(self, cluster):
        with pytest.raises(SimulatorError):
            vectorize(lambda: os._exit(4), 1, "ray:1")

    def test_more_workers_than_there_is_room_for(self, cluster):
        with pytest.raises(ConfigurationError):
            vectorize(Walk, 5, "ray:5")


PROGRAM = """
import os, signal, sys
import numpy as np
from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import Trouble
with vectorize(Trouble, 4, "ray:2") as vec:
    vec.reset(seed=0)
    os.kill(vec.pids[1], signal.SIGKILL)
    vec.step(np.zeros((4, 1), int))
    os.kill(vec.pids[0], signal.SIGSTOP)
    print("plays", flush=True)
    while True:
        vec.step(np.zeros((4, 1), int))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ctrl_c_leaves_no_process_and_no_file():
    """Of a cluster that was started for the workers, one of which was killed, and one is frozen."""
    pytest.importorskip("ray")
    before = in_temporary_places()
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**environment, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout.readline() == "plays\n"
    started = below(process.pid)
    assert len(started) > 2
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate()
    assert "worker 1 is replaced, games [1, 3] are lost: its actor gave no answer: " in err
    assert "KeyboardInterrupt" in err
    assert out == ""  # Ray says nothing itself
    assert set(started).isdisjoint(processes())
    assert in_temporary_places() <= before


def test_without_ray_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra):
        vectorize(Walk, 2, "ray:2")


@pytest.mark.parametrize("workers", ["ray:", "ray:0", "ray:257", "ray:1.5", "dask:2"])
def test_other_words_are_refused(workers):
    with pytest.raises(ConfigurationError):
        vectorize(Walk, 2, workers)


def test_no_cluster_at_the_address_is_one_sentence(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:1")
    with pytest.raises(ConfigurationError):
        vectorize(Walk, 2, "ray:2")
