"""Scenes: rooms of our own with a task. `tools.alfworld` draws them."""

from __future__ import annotations

from dataclasses import dataclass

from magrounding.brief import brief
from magrounding.single.alfworld import kinds

PLACE, LOOK, CLEAN, HEAT, COOL, TWO = TASKS = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six types of tasks, by ALFRED's names."""

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Scene:
    """One room, what lies in it, and a task.

    Attributes:
        task: one of TASKS.
        target: kind of the object that the task is about.
        goal: kind of the receptacle that it has to be put into; "" for LOOK.
        room: kind and number of the room.
        template: index of the task's sentence among ALFRED's two, 0 or 1.
        receptacles: kind of each.
        things: kind and place (index of a receptacle) of each object.
    """

    __repr__ = brief

    task: str
    target: str
    goal: str
    room: str
    template: int
    receptacles: tuple[str, ...]
    things: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """ALFRED's name of the folder of such games: task, object, movable receptacle, goal, room."""
        return f"{self.task}-{self.target}-None-{self.goal or kinds.LAMP}-{self.room}"
