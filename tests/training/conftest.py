import pytest

from magrounding.threads import ThreadPlan, using


@pytest.fixture(autouse=True)
def one_thread():
    """Small networks on one torch thread: fast, and every sum in a fixed order."""
    with using(ThreadPlan(torch=1, agents=1, world=1)):
        yield
