"""ALFWorld's scenes, words and expert, without the package: splits, what is shipped, and what is read of a goal."""

import pytest

from magrounding.single.alfworld import SPLITS, TASKS, kinds
from magrounding.single.alfworld.expert import Expert, Task, read_task
from magrounding.single.alfworld.games import SHIPPED, problem, shipped_scenes
from magrounding.single.alfworld.scenes import LOOK
from tools.alfworld.drawing import ROOM_NUMBERS, furniture, targets
from tools.alfworld.generate import COUNTS, main
from tools.alfworld.rooms import ROOMS

ALL = [(split, scene) for split in SPLITS for scene in shipped_scenes(split)]


def test_the_shipped_scenes_are_those_of_the_command(tmp_path):
    assert main(["--pack", str(tmp_path / "scenes.json.gz")]) == 0
    assert (tmp_path / "scenes.json.gz").read_bytes() == SHIPPED.read_bytes()
    assert {split: len(shipped_scenes(split)) for split in SPLITS} == COUNTS


def test_splits_share_no_room():
    rooms = {split: {scene.room for scene in shipped_scenes(split)} for split in SPLITS}
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not rooms[one] & rooms[other]
        assert not set(ROOM_NUMBERS[one]) & set(ROOM_NUMBERS[other])
    for split, scene in ALL:
        assert int(scene.room.split("-")[1]) in ROOM_NUMBERS[split]
        assert scene.receptacles == furniture(scene.room)


@pytest.mark.parametrize("task", TASKS)
def test_splits_share_no_object_of_a_task(task):
    drawn = {split: {s.target for s in shipped_scenes(split) if s.task == task} for split in SPLITS}
    assert all(drawn.values())
    for split in SPLITS:
        assert drawn[split] <= set(targets(task, split))
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not set(targets(task, one)) & set(targets(task, other))


def test_every_task_and_room_occurs_in_every_split():
    for split in SPLITS:
        assert {scene.task for scene in shipped_scenes(split)} == set(TASKS)
        assert {scene.room.split("-")[0] for scene in shipped_scenes(split)} == set(ROOMS)


def test_things_lie_where_they_may_and_the_task_is_neither_done_nor_impossible():
    for _, scene in ALL:
        of_target = [place for kind, place in scene.things if kind == scene.target]
        assert len(of_target) >= (2 if scene.task == "pick_two_obj_and_place" else 1)
        assert all(kind in kinds.HOLDS[scene.receptacles[place]] for kind, place in scene.things)
        assert (kinds.LAMP in dict(scene.things)) or scene.task != LOOK
        if scene.goal:
            assert scene.goal in scene.receptacles
            assert scene.target in kinds.HOLDS[scene.goal]
            assert all(scene.receptacles[place] != scene.goal for place in of_target)


def test_a_problem_declares_what_it_speaks_of():
    scene = shipped_scenes("train")[0]
    text = problem(scene)
    declared = {line.split(" - ")[0].strip() for line in text.split("(:init")[0].splitlines() if " - " in line}
    spoken = {word for line in text.split("(:init")[1].splitlines() for word in line.strip(" ()").split()[1:]}
    assert {word for word in spoken if word[0].isalpha() and word != "total-cost)"} <= declared
    assert text.count("(inReceptacle ") == len(scene.things)


@pytest.mark.parametrize(
    ("goal", "task"),
    [
        ("put a mug in desk.", Task(TASKS[0], "mug", "desk")),
        ("put some mug on desk.", Task(TASKS[0], "mug", "desk")),
        ("look at cd under the desklamp.", Task(TASKS[1], "cd", "desklamp")),
        ("examine the cd with the desklamp.", Task(TASKS[1], "cd", "desklamp")),
        ("put a clean pan in fridge.", Task(TASKS[2], "pan", "fridge")),
        ("clean some pan and put it in fridge.", Task(TASKS[2], "pan", "fridge")),
        ("put a hot egg in fridge.", Task(TASKS[3], "egg", "fridge")),
        ("heat some egg and put it in fridge.", Task(TASKS[3], "egg", "fridge")),
        ("put a cool egg in microwave.", Task(TASKS[4], "egg", "microwave")),
        ("cool some egg and put it in microwave.", Task(TASKS[4], "egg", "microwave")),
        ("put two cd in safe.", Task(TASKS[5], "cd", "safe")),
        ("find two cd and put them in safe.", Task(TASKS[5], "cd", "safe")),
        ("Move the chair to the left of the window", None),
    ],
)
def test_goals_are_read(goal, task):
    assert read_task(goal) == task


def test_every_place_not_yet_looked_into_is_as_good_as_another():
    start = tuple(f"go to {place}" for place in ("desk 1", "drawer 1", "shelf 1", "shelf 2"))
    expert = Expert(Task(TASKS[0], "mug", "desk"), start)
    assert set(expert.best_commands()) == set(start)
    away = tuple(command for command in start if command != "go to drawer 1")
    expert.follow("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed.", (*away, "open drawer 1"))
    assert expert.best_commands() == ("open drawer 1",)
    expert.follow("open drawer 1", "You open the drawer 1. In it, you see nothing.", (*away, "close drawer 1"))
    assert set(expert.best_commands()) == set(away)
    here = ("go to desk 1", "go to drawer 1", "go to shelf 2", "take mug 2 from shelf 1")
    expert.follow("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a mug 2.", here)
    assert expert.best_commands() == ("take mug 2 from shelf 1",)
