"""Tasks and stages as data, and the functions that make their worlds."""

from __future__ import annotations

from dataclasses import dataclass

from magrounding.envs.rtfm.world import RTFMWorld, WorldOptions
from magrounding.errors import choose


@dataclass(frozen=True)
class Task:
    """What is in the game and how it is told.

    Attributes:
        group: many-to-one assignments (3 monsters a team, 2 modifiers an element) instead of one-to-one.
        moving: monsters move and chase ("dyna").
        language: templated language instead of plain statements ("nl").
        distractor_monster, distractor_item: whether they are on the map.
        letters: a rock-paper-scissors split instead of all this.
    """

    group: bool = False
    moving: bool = False
    language: bool = False
    distractor_monster: bool = True
    distractor_item: bool = True
    letters: str = ""


TASKS = {
    "simple_stationary_single_monster": Task(distractor_monster=False),
    "simple_stationary_single_item": Task(distractor_item=False),
    "simple_stationary": Task(),
    "simple": Task(moving=True),
    "simple_nl": Task(moving=True, language=True),
    "stationary": Task(group=True),
    "stationary_nl": Task(group=True, language=True),
    "group": Task(group=True, moving=True),
    "nl": Task(group=True, moving=True, language=True),
}
"""RTFM (SILG's stages 1–4 are simple_stationary, simple, group, nl)."""

STAGES = {
    "s1": Task(distractor_monster=False, distractor_item=False),
    "s2": Task(),
    "s3": Task(moving=True),
    "s4": Task(moving=True, group=True),
    "s5": Task(moving=True, group=True, language=True),
}
"""Multi-agent RTFM (EnDi, appendix A.1)."""

ROCK_PAPER_SCISSORS = {
    name: Task(moving=True, letters=name) for name in ("permutation", "released", "new_edge", "new_node")
}


def make_rtfm(
    num_envs: int,
    *,
    num_threads: int = 1,
    task: str = "simple_stationary",
    size: int = 6,
    split: str = "train",
    max_cycles: int = 1000,
    sight: float | None = None,
    occupants: int = 2,
    put_aside: str = "destroyed",
    chase_range: float | None = 5,
    resample_text: bool = False,
    shuffle_manual: bool = True,
    manual: str = "true",
) -> RTFMWorld:
    """Single-agent RTFM (Zhong et al. 2020). Options are those of `WorldOptions`."""
    options = WorldOptions(
        agents=1,
        size=size,
        split=split,
        max_cycles=max_cycles,
        sight=sight,
        occupants=occupants,
        put_aside=put_aside,
        chase_range=chase_range,
        resample_text=resample_text,
        shuffle_manual=shuffle_manual,
        manual=manual,
    )
    return RTFMWorld(num_envs, TASKS[choose("task", task, TASKS)], options, num_threads)


def make_ma_rtfm(
    num_envs: int,
    *,
    num_threads: int = 1,
    stage: str = "s1",
    agents: int = 2,
    size: int = 8,
    split: str = "train",
    max_cycles: int = 1000,
    sight: float | None = None,
    occupants: int = 2,
    death: str = "team",
    put_aside: str = "destroyed",
    chase_range: float | None = 5,
    resample_text: bool = False,
    shuffle_manual: bool = True,
    manual: str = "true",
) -> RTFMWorld:
    """Multi-agent RTFM (Ding et al. 2023, EnDi). Options are those of `WorldOptions`."""
    options = WorldOptions(
        agents=agents,
        size=size,
        split=split,
        max_cycles=max_cycles,
        sight=sight,
        occupants=occupants,
        death=death,
        put_aside=put_aside,
        chase_range=chase_range,
        resample_text=resample_text,
        shuffle_manual=shuffle_manual,
        manual=manual,
    )
    return RTFMWorld(num_envs, STAGES[choose("stage", stage, STAGES)], options, num_threads)


def make_rock_paper_scissors(
    num_envs: int,
    *,
    num_threads: int = 1,
    task: str = "permutation",
    size: int = 10,
    split: str = "train",
    max_cycles: int = 1000,
    sight: float | None = None,
    occupants: int = 2,
    put_aside: str = "destroyed",
    chase_range: float | None = 5,
    shuffle_manual: bool = True,
    manual: str = "true",
) -> RTFMWorld:
    """Rock-paper-scissors (Zhong et al. 2020, appendix): a dragon, three letters, a cycle of who beats whom."""
    options = WorldOptions(
        agents=1,
        size=size,
        split=split,
        max_cycles=max_cycles,
        sight=sight,
        occupants=occupants,
        put_aside=put_aside,
        chase_range=chase_range,
        shuffle_manual=shuffle_manual,
        manual=manual,
    )
    return RTFMWorld(num_envs, ROCK_PAPER_SCISSORS[choose("task", task, ROCK_PAPER_SCISSORS)], options, num_threads)
