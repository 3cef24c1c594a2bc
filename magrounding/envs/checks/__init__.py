"""Does an environment keep every promise that learners and tools rely on? See `check_parallel_env`."""

from magrounding.envs.checks.conformance import check_parallel_env
from magrounding.envs.checks.episode import ConformanceError

__all__ = ["ConformanceError", "check_parallel_env"]
