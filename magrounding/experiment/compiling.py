"""Kernels compiled before training begins: its clock sees none compiled."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import numpy as np
from numba.core import event

from magrounding.envs.vector import WorldVectorEnv
from magrounding.experiment.callbacks import Callback, RunState
from magrounding.teams.player import Player, shown_to


class Compilation(Callback):
    """Run every kernel of a compiled world, its teacher and network once.

    Games begin anew afterwards, and the network is a copy: nothing of it remains.
    """

    def on_phase(self, run: RunState) -> None:
        vec, session = run.session.vec, run.session
        if not isinstance(vec, WorldVectorEnv):
            return
        since, policy = time.perf_counter(), copy.deepcopy(session.players[0].policy)
        message = f"compiling {vec.id}, the first time on this machine: it takes a minute"
        with event.install_listener("numba:compile", _First(lambda: run.display.say(message))):
            observation, info = vec.reset(seed=0)
            vec.step(np.zeros((vec.num_envs, vec.num_agents), np.int64))
            if session.teacher is not None:
                session.teacher.label()
            batch = Player(policy, vec.spec, vec.num_envs).batch(
                shown_to(0, observation, vec.spec, info.document), np.ones(vec.num_envs, np.bool_)
            )
            output = policy(batch)
            (output.logits.softmax(-1).sum() + output.value.sum()).backward()
        session.clock.add("starting", since)


class _First(event.Listener):
    """Calls once what it is given, when numba compiles anything: what it finds on disk is no event."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce

    def on_start(self, event: event.Event) -> None:
        self._announce()
        self._announce = lambda: None

    def on_end(self, event: event.Event) -> None:
        pass
