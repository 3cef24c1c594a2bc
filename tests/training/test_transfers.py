"""What networks and learners send to a device and wait for, counted without one: see `stand_in_device`."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from magrounding.agents.transfer import Transfers, as_floats, counted, download, upload
from magrounding.experiment.config import make_config
from magrounding.experiment.stage import StageSession
from magrounding.training import learner as learners
from tests.full import in_full
from tests.training.stand_in_device import DEVICE, StandIn, prepare

GAMES = 8
AGENTS = {
    # env, agent, agents, preset: waits of a forward pass in acting, in learning; of a reading in acting, in learning
    "relread, imitation": ("ma_rtfm", "relread", 2, "quick", 2, 2, 0, 0),
    "relread, PPO": ("ma_rtfm", "relread", 2, "quick_rl", 2, 2, 0, 0),
    "relread with motion, PPO": ("messenger", "relread", 1, "quick", 4, 10, 0, 0),
    "txt2pi, V-trace": ("ma_rtfm", "txt2pi", 2, "paper", 0, 0, 2, 2),
    "EnDi on txt2pi, V-trace": ("ma_rtfm", "endi_dis", 2, "paper", 0, 0, 2, 2),
    "EnDi on relread, imitation": ("ma_rtfm", "endi_dis_relread", 2, "quick", 2, 2, 0, 0),
    "EMMA, PPO": ("messenger", "emma", 1, "paper", 4, 4, 0, 0),
    "EnDi on EMMA, PPO": ("ma_messenger", "endi_dis_emma", 2, "paper", 18, 20, 0, 0),
    "QMIX": ("ma_rtfm", "qmix", 2, "quick_qmix", 0, 0, 0, 0),
    "QMIX on relread": ("ma_rtfm", "qmix_relread", 2, "quick_qmix", 2, 4, 0, 0),
}
SHORT = ["relread, PPO", "EMMA, PPO", "QMIX"]
"""Agents of `make test`; the others take ten seconds each."""


def small(env, agent, agents, preset):
    settings = make_config(env, agent, agents, preset, ("s1",))
    phase = settings.of_stage("s1")[-1]
    options = {"unroll": getattr(phase.learner, "segment", 0) or 8}
    if phase.learner.algorithm == "qmix":
        options["batch"] = 4
    phase = replace(phase, num_envs=GAMES, learner=replace(phase.learner, **options))
    return replace(settings, env_options={**settings.env_options, "max_cycles": 9}, phases={"s1": (phase,)})


@pytest.mark.parametrize("name", in_full(list(AGENTS), SHORT))
def test_waits_and_transfers(name, monkeypatch):
    """Of the learner: one wait a step of an agent and a gradient step, and few a rollout. Networks have their own."""
    *which, acting, learning, reading, reading_again = AGENTS[name]
    settings = small(*which)
    prepare(monkeypatch)
    taken = []
    step = learners.gradient_step
    monkeypatch.setattr(learners, "gradient_step", lambda *given: taken.append(1) or step(*given))
    with StandIn() as device:
        session = StageSession(settings.resolve().segments[0], 0, DEVICE)
        session.start()
        session.iterate(0)
        taken.clear()
        device.clear()
        own = Transfers()
        with counted(own):
            rollout = session.source.collect(session.phase.learner.beta(0), 0)
        steps = session.phase.learner.unroll * settings.agents
        read = device.waits.total() - steps * (1 + acting)  # texts are read where they are new
        assert 0 <= read <= steps * reading
        assert steps <= device.up[0] <= steps * (2 + 2 * ("motion" in name))  # a step, and texts where they are new
        assert [own.to_device, own.bytes_to_device] == device.up
        assert [own.from_device, own.bytes_from_device] == device.down
        device.clear()
        own = Transfers()
        trajectories = rollout.joined() if settings.share_parameters else rollout.trajectories
        with counted(own):
            for learner, trajectory in zip(session.learners, trajectories, strict=True):
                learner.update(trajectory, 0)
        rounds = len(session.learners)
        assert device.waits.total() <= len(taken) * (1 + learning + reading_again) + rounds * (2 + learning)
        assert device.up[0] <= len(taken) * (1 + 4 * ("motion" in name)) + rounds * 4
        assert [own.to_device, own.bytes_to_device] == device.up
        assert [own.from_device, own.bytes_from_device] == device.down
        session.close()


def test_several_arrays_are_one_copy(monkeypatch):
    prepare(monkeypatch)
    arrays = {
        "flags": np.array([True, False, True]),
        "nothing": np.zeros((0, 4), np.int64),
        "halves": np.arange(5, dtype=np.float16),
        "ids": np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::-1],
        "steps": np.arange(3),
        "values": np.linspace(0, 1, 4, dtype=np.float32).reshape(2, 2),
        "number": np.array(7, np.int8),
    }
    own = Transfers()
    with StandIn() as device, counted(own):
        sent = upload(arrays, DEVICE)
        assert not any(each.is_cpu for each in sent.values())
        assert device.up[0] == 1
        assert not device.waits
        back = download(sent)
        assert device.down[0] == device.waits.total() == 1
        assert as_floats({"a": sent["values"][1, 1], "b": sent["steps"][2]}) == {"a": 1.0, "b": 2.0}
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)
    assert (own.to_device, own.from_device) == (1, 2)
    assert own.bytes_to_device == sum(array.nbytes for array in arrays.values())


def test_on_the_cpu_nothing_is_copied():
    array = np.arange(3)
    tensor = upload({"": array}, "cpu")[""]
    array[0] = 5
    assert tensor[0] == 5
    assert download({"": tensor.bfloat16()})[""].dtype == np.float32
    assert torch.equal(tensor, torch.from_numpy(array))
