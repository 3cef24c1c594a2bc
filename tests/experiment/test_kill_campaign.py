"""Ctrl-C, kill -9 and two resumes at once: a run ends as if nothing had happened, bit for bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.full import in_full

ROOT = Path(__file__).parents[2]
MOMENTS = int(os.environ.get("MAGROUNDING_KILLS", in_full(2, 0)))
"""`make test-full` strikes a short run; more moments (`make test-kills`) strike one of two seeds and two stages."""


@pytest.mark.slow
@pytest.mark.timeout(300 + 120 * MOMENTS)
@pytest.mark.skipif(not MOMENTS, reason="a third of a core minute: `make test-kills`, or `make test-full`")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked")
def test_a_run_that_is_struck_at_random_moments_ends_the_same():
    size = ["--stages", "s1", "--seeds", "0"] if MOMENTS < 10 else []
    line = [sys.executable, "-m", "tests.experiment.kill_campaign", "--moments", str(MOMENTS), *size]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"bit for bit ({MOMENTS} interruptions so far)\n")
    print(done.stdout)
