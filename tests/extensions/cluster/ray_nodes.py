"""A real Ray cluster of two nodes on this machine, for tests; Ray has to be installed."""

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@contextmanager
def two_nodes(**second):
    """Start two nodes of one core each; the second, to which the arguments are given, may be removed.

    Ray gives each half a minute to start, which may be too little on a machine that is busy.
    """
    from ray.cluster_utils import Cluster  # absent where Ray is

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as place:
        patch.setenv("RAY_AUTH_MODE", "disabled")  # else a password is left in the home
        patch.setenv("RAY_worker_niceness", "0")  # on a busy machine jobs would wait for other programs
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("RAY_TMPDIR", place)  # of all that belongs to it; the argument temp_dir is not heeded everywhere
        made = Cluster()
        try:
            made.add_node(num_cpus=1, include_dashboard=False)
            made.second = made.add_node(num_cpus=1, **second)
            made.wait_for_nodes(timeout=300)
            yield made
        finally:
            made.shutdown()


def processes():
    """Process → the one that started it, of those that have not ended."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], check=True, capture_output=True, text=True).stdout
    lines = map(str.split, table.splitlines())
    return {int(pid): int(parent) for pid, parent, state in lines if not state.startswith("Z")}


def below(pid):
    """All that a process has started, and they."""
    found, parents = [pid], processes()
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def in_temporary_places():
    """Files that Ray has left outside of a run's folder."""
    folders = Path("/tmp"), Path.home(), Path.home() / ".ray", Path("/dev/shm")
    return {path for folder in folders if folder.exists() for path in folder.iterdir() if "ray" in path.name}
