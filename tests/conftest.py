import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
    """Networks in tests are small: threads that spin for one another slow them down, on a busy machine tenfold."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
