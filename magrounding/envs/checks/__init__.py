"""Checks that an environment keeps every promise that learners and tools rely on, see `check_parallel_env`."""

from magrounding.envs.checks.conformance import check_parallel_env
from magrounding.envs.checks.episode import ConformanceError

__all__ = ["ConformanceError", "check_parallel_env"]
