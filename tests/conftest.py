import pytest
import torch


def pytest_collection_modifyitems(items):
    """What learns for minutes goes first: where several processes share the files, none ends long after the rest."""
    items.sort(key=lambda item: item.path.name != "test_learning.py")


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
    """Networks in tests are small: threads that spin for one another slow them down, on a busy machine tenfold."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
