from tests.training.conftest import one_thread, weak_oracle  # noqa: F401  the same for whole runs
