"""NetHack's tasks: SILG's three prompts with what counts as success, and those of the NetHack Learning Environment."""

from __future__ import annotations

PROMPTS = {"gold": "get more gold", "scout": "explore the map", "score": "get high score"}
"""SILG's tasks and the sentences that state them (Zhong et al. 2021, app. D)."""

THRESHOLDS = {
    "first": {"gold": 5.28, "scout": 90.4, "score": 10.83},
    "new": {"gold": 5.00, "scout": 315.5, "score": 56.75},
}
"""Gain with which an episode is won: the mean of people's games, in two versions of SILG's program."""

SILG = "silg"
SILG_TASKS = (SILG, *(f"{SILG}_{prompt}" for prompt in PROMPTS))
"""All three prompts, one drawn for each episode; or one of them alone."""

GOALS = {
    "score": "raise the score",
    "gold": "pick up gold",
    "scout": "see new places",
    "eat": "eat when there is food",
    "staircase": "find a staircase down",
    "staircase_pet": "find a staircase down and bring the pet along",
    "oracle": "find the oracle",
}
"""Tasks of the NetHack Learning Environment, and how they are worded here."""

REACHED = ("staircase", "staircase_pet", "oracle")
"""Those that are won or not; of the others the sum of rewards counts."""

TASKS = (*SILG_TASKS, *GOALS)

SILG_LIMIT, NLE_LIMIT = 80, 5000
"""Steps of an episode: of SILG's program (its paper has 50), and of the NetHack Learning Environment."""

SEEDS = 1_000_000
"""Seeds of each split: NetHack's are 0 … 999,999 in training, the next million in validation, then those of tests."""

SPLITS = ("train", "valid", "test")

_WAYS = ("north", "east", "south", "west", "north east", "south east", "south west", "north west")

ACTIONS = ("more", *_WAYS, *(f"far {way}" for way in _WAYS), "up", "down", "wait", "kick", "eat", "search")
"""The 23 actions, in the order of the NetHack Learning Environment."""


def prompts_of(task: str) -> tuple[str, ...]:
    """Return the prompts that a task of SILG draws from."""
    return tuple(PROMPTS) if task == SILG else (task.removeprefix(f"{SILG}_"),)
