"""Kernels compiled in processes of their own, beside what this process compiles: a first run starts in half the time.

Numba compiles one kernel at a time in a process. The others leave what they compile in numba's cache on disk, where
this process finds it. Nothing depends on them: what they could not compile is compiled here, when it is called.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numba.core import event

from magrounding.agents.policy import Policy
from magrounding.envs.make import make_vec
from magrounding.envs.vector import WorldVectorEnv
from magrounding.experiment.callbacks import Callback, RunState
from magrounding.experiment.stage import StageSession
from magrounding.spec import EnvSpec
from magrounding.teams.actor import make_expert
from magrounding.teams.player import Player, shown_to
from magrounding.threads import available_cores
from magrounding.vector import Observation

Task = tuple[Callable[..., None], tuple[Any, ...]]
"""A function that calls kernels, and its arguments: all can be pickled."""

_PROGRAM = """
import gc, pickle, sys
gc.disable()
sys.path[:] = pickle.load(sys.stdin.buffer)
function, arguments = pickle.load(sys.stdin.buffer)
function(*arguments)
"""


class Compilation(Callback):
    """Run every kernel of a compiled world, its teacher and network once: the clock of training sees none compiled.

    Games begin anew afterwards, and the network is a copy: nothing of it remains.
    """

    def on_phase(self, run: RunState) -> None:
        vec, session = run.session.vec, run.session
        if not isinstance(vec, WorldVectorEnv):
            return
        since = time.perf_counter()
        message = f"compiling {vec.id}, the first time on this machine: about 20 s on two idle cores"
        with compiled_beside(called_later(session), lambda: run.display.say(message)):
            observation, info = vec.reset(seed=0)
            vec.step(np.zeros((vec.num_envs, vec.num_agents), np.int64))
        if session.teacher is not None:
            session.teacher.label()
        call_network(copy.deepcopy(session.players[0].policy), vec.spec, observation, info.document)
        session.clock.add("starting", since)


def called_later(session: StageSession) -> list[Task]:
    """Tasks that call the kernels of network and teacher, without those of the world."""
    vec, policy, teaching = session.vec, session.players[0].policy, session.phase.learner.teaching
    tasks: list[Task] = []
    if next(policy.parameters()).device.type == "cpu":
        blank = vec.spec.allocate(vec.num_envs), np.zeros(vec.num_envs, np.int64)
        tasks.append((call_network, (policy, vec.spec, *blank)))
    if session.teacher is not None and teaching is not None:
        tasks.append((call_expert, (vec.id, vec.options, teaching.oracle)))
    return tasks


class _Processes(event.Listener):
    """Processes, one a task, started as soon as numba compiles anything here: what it finds on disk is no event."""

    def __init__(self, tasks: list[Task], announce: Callable[[], None]) -> None:
        self._tasks, self._announce = tasks, announce
        self._began = False
        self.running: list[subprocess.Popen[bytes]] = []

    def on_start(self, event: event.Event) -> None:
        gc.disable()  # a tenth of the time to compile would go into looking for garbage
        if not self._began:
            self._began = True
            self._announce()
        data: Any = event.data
        kept = data["dispatcher"].stats.cache_path is not None
        tasks, self._tasks = self._tasks, []
        if kept and available_cores() > 1:
            self.running += [process for task in tasks if (process := _start(task)) is not None]

    def on_end(self, event: event.Event) -> None:
        pass


@contextmanager
def compiled_beside(tasks: list[Task], announce: Callable[[], None]) -> Iterator[None]:
    """Compile what `tasks` call beside anything that numba compiles within; at the end all of it is on disk.

    Args:
        tasks: what calls other kernels.
        announce: called once, when numba begins.
    """
    processes, collects = _Processes(tasks, announce), gc.isenabled()
    try:
        with event.install_listener("numba:compile", processes):
            yield
        for process in processes.running:
            process.wait()
    finally:
        if collects:
            gc.enable()
        for process in processes.running:
            process.kill()
            process.wait()


def call_network(policy: Policy, spec: EnvSpec, observation: Observation, document: np.ndarray) -> None:
    """Call a network and its gradient once, on a batch of games; its gradients change."""
    num_envs = len(document)
    player = Player(policy, spec, num_envs)
    output = policy(player.batch(shown_to(0, observation, spec, document), np.ones(num_envs, np.bool_)))
    (output.logits.softmax(-1).sum() + output.value.sum()).backward()


def call_expert(env: str, options: dict[str, Any], oracle: str) -> None:
    """Let an expert think about none of an environment's games."""
    expert = make_expert(make_vec(env, 1, **options), oracle)
    expert.best_actions(np.zeros(0, np.int64))


def _start(task: Task) -> subprocess.Popen[bytes] | None:
    """A process, silent, that calls the task with one thread; None where there can be none."""
    try:
        packed = pickle.dumps(sys.path) + pickle.dumps(task)
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, OMP_NUM_THREADS="1"),
        )
    except Exception:  # no process is to be had, or a network of a person's own cannot be pickled
        return None
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it ended early
        process.stdin.write(packed)
        process.stdin.close()
    return process
