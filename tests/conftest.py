import gc
import os
import tempfile

import pytest
import torch

from magrounding import threads
from magrounding.experiment.jobs import process
from magrounding.experiment.jobs.forking import ForkServer
from tests.forked import ROOT, Forked

gc.disable()  # until all is collected: modules of tests are no garbage
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="magrounding-tests-")  # a developer's own teams are not tested

# Networks in tests are small: threads that spin for one another slow them down, on a busy machine tenfold.
torch.set_num_threads(1)
# And runs share the cores with the other processes of pytest-xdist.
CORES = max(1, threads.available_cores() // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
threads.available_cores = lambda: CORES


LONGEST = (
    "test_conformance.py",
    "test_jit.py",
    "test_phases.py",
    "test_endings.py",
    "test_installed.py",
    "test_train_jobs.py",
    "test_curriculum.py",
    "test_zero_shot.py",
    "test_divergence.py",
    "test_blocks.py",
    "test_learning.py",
    "test_tables.py",
    "test_hub.py",
    "test_sweep.py",
    "test_equality.py",
    "test_segmenting.py",
    "test_faults.py",
    "test_damage.py",
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
"""The longest files go first: where several processes share the files, none ends a minute after the rest.

The second and the fourth need no kernels: a process that begins with them finds those of the worlds compiled.
"""


def pytest_collection_modifyitems(items):
    """Order the files; the others stay in the order in which they were found."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


def pytest_collection_finish():
    """Look for garbage less often: every pass would go over all that was imported, a tenth of the time of the tests."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    gc.enable()


@pytest.fixture(scope="session")
def forked():
    """Runs commands in processes of their own, with one thread."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    with Forked(environment=environment) as forked:
        yield forked


class KeptServer(ForkServer):
    """Outlives a command: what jobs import is imported once for all tests of a process."""

    def __exit__(self, *_):
        pass


@pytest.fixture(scope="session")
def kept_server():
    server = KeptServer({"PYTHONPATH": str(ROOT)})
    yield server
    ForkServer.__exit__(server)


@pytest.fixture
def jobs_of_one_server(kept_server, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(process, "ForkServer", lambda: kept_server)
