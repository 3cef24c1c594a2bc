"""ScienceWorld."""

from magrounding.single.scienceworld.options import ScienceWorld
from magrounding.single.scienceworld.tasks import SPLITS, TASKS

__all__ = ["SPLITS", "TASKS", "ScienceWorld"]
