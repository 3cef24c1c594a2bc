import pytest

from magrounding.experiment import evaluate as evaluation
from magrounding.play.scripted import RandomTeam
from magrounding.threads import ThreadPlan, using


@pytest.fixture(autouse=True)
def one_thread():
    """Small networks on one torch thread: fast, and every sum in a fixed order."""
    with using(ThreadPlan()):
        yield


@pytest.fixture(autouse=True, scope="module")
def weak_oracle():
    """A random team in the place of the reports' ceiling, which is not what these tests are about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(vec.num_agents, vec.spec.num_actions))
        yield
