import os
import tempfile

import pytest
import torch

from magrounding import threads

os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="magrounding-tests-")  # a developer's own teams are not tested


def pytest_collection_modifyitems(items):
    """The longest file goes first: where several processes share the files, none ends a minute after the rest."""
    items.sort(key=lambda item: item.path.name != "test_third_party.py")


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
    """Networks in tests are small: threads that spin for one another slow them down, on a busy machine tenfold."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="session")
def cores_of_this_process():
    """Runs share the cores with the other processes of pytest-xdist, or torch's threads spin for one another there."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    cores = max(1, threads.available_cores() // processes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "available_cores", lambda: cores)
        yield
