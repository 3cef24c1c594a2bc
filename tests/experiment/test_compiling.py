"""Kernels are compiled in several processes, where that is of use, and without them all goes on."""

from pathlib import Path

import numba
import pytest
import torch

from magrounding.agents.relread import kernels
from magrounding.envs.rtfm import oracle
from magrounding.experiment import compiling
from magrounding.experiment.compiling import called_later, compiled_beside
from magrounding.experiment.config import make_config
from magrounding.experiment.stage import StageSession
from magrounding.jit import cached_njit

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(compiling, "available_cores", lambda: 2)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A function that numba has never compiled, and keeps."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    @cached_njit()
    def double(number):
        return 2 * number

    return double


def test_nothing_is_started_or_said_for_what_is_compiled_already(kernel, tmp_path):
    said = []
    with compiled_beside([], lambda: said.append("compiling")):
        kernel(1)
    assert said == ["compiling"]
    with compiled_beside([(Path.touch, (tmp_path / "done",))], lambda: said.append("again")):
        kernel(2)
    assert not (tmp_path / "done").exists()
    assert said == ["compiling"]


def test_a_task_that_fails_or_cannot_be_pickled_changes_nothing(kernel, tmp_path, capfd):
    tasks = [(Path.rmdir, (tmp_path / "none",)), (lambda: None, ()), (Path.touch, (tmp_path / "done",))]
    with compiled_beside(tasks, bool):
        assert kernel(1) == 2
    assert (tmp_path / "done").exists()
    assert capfd.readouterr() == ("", "")


def test_what_is_compiled_beside_is_what_a_session_calls():
    def compiled():
        found = [each for module in (kernels, oracle) for each in vars(module).values() if hasattr(each, "signatures")]
        return {each.__name__: list(each.signatures) for each in found}

    (segment,) = make_config("ma_rtfm", preset="demo", stages=("s1",)).resolve().segments
    session = StageSession(segment, 0, torch.device("cpu"))
    for function, arguments in called_later(session):
        function(*arguments)
    before = compiled()
    assert before["_relate_back"]
    assert before["label_stationary"]
    session.start()
    session.iterate(0)
    assert compiled() == before
    session.close()
