from tests.training.conftest import curves_drawn_once, one_thread, weak_oracle  # noqa: F401  the same for whole runs
