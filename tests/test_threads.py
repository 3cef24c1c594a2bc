"""One place shares the cores, and what it decides reaches every thread that computes."""

import multiprocessing
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import torch

from magrounding.threads import (
    RowThreads,
    ThreadPlan,
    core_limits,
    map_agents,
    map_parts,
    plan_threads,
    using,
)


@pytest.mark.parametrize(
    ("agents", "learners", "envs", "cores", "plan"),
    [
        (1, 1, 64, 2, ThreadPlan(cores=2, agents=1, parts=2, world=1)),
        (2, 2, 20, 2, ThreadPlan(cores=2, agents=2, parts=1, world=1)),
        (3, 1, 20, 2, ThreadPlan(cores=2, agents=3, parts=2, world=1)),  # one network plays for all
        (2, 2, 20, 16, ThreadPlan(cores=16, agents=2, parts=8, world=1)),
        (2, 2, 4096, 2, ThreadPlan(cores=2, agents=2, parts=1, world=2)),
        (3, 3, 64, 1, ThreadPlan()),
    ],
)
def test_shares_of_the_cores(agents, learners, envs, cores, plan):
    assert plan_threads(agents, envs, learners=learners, threads=cores) == plan


@pytest.mark.parametrize("run", [map_agents, map_parts])
def test_torch_computes_with_one_thread_in_every_thread_of_a_plan(run):
    before = torch.get_num_threads()
    torch.set_num_threads(before + 2)
    try:
        with using(ThreadPlan(cores=3, agents=3, parts=3)):
            # A product large enough for OpenMP: what a thread reports after computing is what it computed with.
            seen = run(lambda i: (torch.ones(300, 300).mm(torch.ones(300, 300)), torch.get_num_threads())[1], range(9))
            assert [*seen, torch.get_num_threads()] == [1] * 10
        assert torch.get_num_threads() == before + 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("run", [map_agents, map_parts])
def test_results_come_in_order_and_errors_come_through(run):
    with using(ThreadPlan(cores=3, agents=3, parts=3)):
        assert list(run(lambda i: i * i, range(7))) == [i * i for i in range(7)]
        with pytest.raises(ZeroDivisionError):
            list(run(lambda i: 1 // i, range(3)))


def test_a_forked_process_starts_threads_of_its_own():
    rows = np.zeros(6, np.int64)
    threads = RowThreads(6, 3)
    threads.run(_mark, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python and torch warn of forks beside threads: that is what is shown here
        child = multiprocessing.get_context("fork").Process(target=_step_in_child, args=(threads,))
        child.start()
    child.join(20)
    hung = child.is_alive()
    if hung:
        child.kill()
        child.join()
    assert not hung
    assert child.exitcode == 0
    threads.run(_mark, rows)
    assert rows.tolist() == [2] * 6


def _step_in_child(threads):
    rows = np.zeros(6, np.int64)
    threads.run(_mark, rows)
    os._exit(0 if rows.tolist() == [1] * 6 else 1)


def _mark(first, last, rows):
    rows[first:last] += 1


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupt_while_waiting_is_raised_when_all_is_done_and_leaves_nothing_behind(times):
    threads = RowThreads(4, 2)
    rows = np.zeros(4, np.int64)
    helper = threading.Event()

    def slow(first, last, rows):
        if first == 0:  # the helper's chunk: the caller waits for it
            helper.wait(20)
        rows[first:last] += 1

    def interrupt():
        for _ in range(times):
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)  # a real one, which wakes a wait
        time.sleep(0.1)
        helper.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            threads.run(slow, rows)
    finally:
        signal.signal(signal.SIGINT, before)
    assert rows.tolist() == [1] * 4

    def slower(first, last, rows):
        if first == 0:
            time.sleep(0.2)
        rows[first:last] += 1

    threads.run(slower, rows)  # an answer left over would end this before the helper has
    assert rows.tolist() == [2] * 4


def test_the_first_error_of_any_chunk_is_raised_when_all_are_done():
    threads, rows = RowThreads(4, 2), np.zeros(4, np.int64)

    def fails(first, last, rows):
        if first == 0:
            raise ZeroDivisionError
        rows[first:last] += 1

    with pytest.raises(ZeroDivisionError):
        threads.run(fails, rows)
    assert rows.tolist() == [0, 0, 1, 1]


CONTAINERS = {
    "half a core": ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 1),
    "no quota": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 64),
    "two and a half": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 3),
    "the older kind": (
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/x\n1:memory:/docker/x\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
        2,
    ),
    "damaged": ({"proc/self/cgroup": "?\n"}, 64),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_quota_of_a_container_limits_the_cores(tmp_path, monkeypatch, kind):
    files, cores = CONTAINERS[kind]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert min(core_limits(tmp_path).values()) == cores


@pytest.mark.parametrize(
    ("given", "cores"), [({"ON_NODE": "8"}, 8), ({"ON_NODE": "8", "PER_TASK": "3"}, 3), ({"ON_NODE": "x"}, 64)]
)
def test_slurm_limits_the_cores(tmp_path, monkeypatch, given, cores):
    for name in ("PER_TASK", "ON_NODE"):
        monkeypatch.setenv(f"SLURM_CPUS_{name}", given.get(name, ""))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert min(core_limits(tmp_path).values()) == cores
