"""Kernels are compiled before training begins."""

from types import SimpleNamespace
from typing import Any

import numba
import pytest
import torch

from magrounding.agents.relread import kernels
from magrounding.envs.rtfm import oracle
from magrounding.experiment.compiling import Compilation
from magrounding.experiment.config import make_config
from magrounding.experiment.stage import StageSession


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_training_calls_nothing_that_was_not_compiled_before():
    def compiled():
        found = [each for module in (kernels, oracle) for each in vars(module).values() if hasattr(each, "signatures")]
        return {each.__name__: list(each.signatures) for each in found}

    (segment,) = make_config("ma_rtfm", preset="demo", stages=("s1",)).resolve().segments
    session, said = StageSession(segment, 0, torch.device("cpu")), []
    run: Any = SimpleNamespace(session=session, display=SimpleNamespace(say=said.append))
    Compilation().on_phase(run)
    before = compiled()
    assert before["_relate_back"]
    assert before["label_stationary"]
    assert len(said) <= 1
    session.start()
    session.iterate(0)
    assert compiled() == before
    session.close()
