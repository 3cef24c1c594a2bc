"""Ctrl-C, kill -9 and two resumes at once: a run ends as if nothing had happened, bit for bit."""

import os

import pytest

from tests.experiment.kill_campaign import Campaign

MOMENTS = int(os.environ.get("MAGROUNDING_KILLS", "2"))
"""The tests strike a short run; more moments (`make test-kills`) strike one of two seeds and two stages."""


@pytest.mark.slow
def test_a_run_that_is_struck_at_random_moments_ends_the_same(tmp_path):
    size = {"stages": "s1", "seeds": "0"} if MOMENTS < 10 else {}
    told = list(Campaign(tmp_path, 2, **size).run(MOMENTS))
    assert told[-1].endswith(f"bit for bit ({MOMENTS} interruptions so far)")
