import pytest
import torch

from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.reports import run as report
from magrounding.teams.scripted import RandomTeam
from magrounding.threads import ThreadPlan, using
from tests.training.toy_games import ToyPolicy


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


DRAWN = []


@pytest.fixture(autouse=True, scope="module")
def curves_drawn_once():
    """The curves of the first run in the place of those of all others: figures have tests of their own."""
    draw = report.plot_curves

    def plot_curves(results):
        if not DRAWN:
            DRAWN.append(draw(results))
        return DRAWN[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "plot_curves", plot_curves)
        yield


@pytest.fixture
def policy():
    torch.manual_seed(0)
    return ToyPolicy()
