import gc
import os
import tempfile

import pytest
import torch

from magrounding import threads

os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="magrounding-tests-")  # a developer's own teams are not tested


LONGEST = (
    "test_conformance.py",
    "test_phases.py",
    "test_installed.py",
    "test_train_jobs.py",
    "test_curriculum.py",
    "test_zero_shot.py",
    "test_divergence.py",
    "test_blocks.py",
    "test_learning.py",
    "test_amendment.py",
    "test_tables.py",
    "test_hub.py",
    "test_ways.py",
    "test_sweep.py",
    "test_equality.py",
    "test_segmenting.py",
    "test_faults.py",
    "test_damage.py",
    "test_endings.py",
    "test_learning_from_demonstrations.py",
    "test_babyai_expert.py",
    "test_qmix.py",
    "test_pretrained.py",
    "test_signals.py",
    "test_matches.py",
    "test_text_view.py",
    "test_nethack.py",
    "test_reasoning.py",
    "test_segments.py",
    "test_workers.py",
    "test_drrn.py",
)
"""The longest files go first: where several processes share the files, none ends a minute after the rest."""


def pytest_collection_modifyitems(items):
    """Order the files; the others stay in the order in which they were found."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


def pytest_collection_finish():
    """Look for garbage less often: every pass would go over all that was imported, a tenth of the time of the tests."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


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
