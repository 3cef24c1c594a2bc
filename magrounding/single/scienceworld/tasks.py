"""The tasks of ScienceWorld, and which of their variations are official for what."""

from __future__ import annotations

_VARIATIONS = {
    "boil": 0,
    "change-the-state-of-matter-of": 0,
    "freeze": 0,
    "melt": 0,
    "measure-melting-point-known-substance": 0,
    "measure-melting-point-unknown-substance": 0,
    "use-thermometer": 0,
    "power-component": 0,
    "power-component-renewable-vs-nonrenewable-energy": 0,
    "test-conductivity": 0,
    "test-conductivity-of-unknown-substances": 0,
    "find-animal": 0,
    "find-living-thing": 0,
    "find-non-living-thing": 0,
    "find-plant": 0,
    "grow-fruit": 0,
    "grow-plant": 0,
    "chemistry-mix": 0,
    "chemistry-mix-paint-secondary-color": 0,
    "chemistry-mix-paint-tertiary-color": 0,
    "lifespan-longest-lived": 0,
    "lifespan-longest-lived-then-shortest-lived": 0,
    "lifespan-shortest-lived": 0,
    "identify-life-stages-2": 0,
    "identify-life-stages-1": 0,
    "inclined-plane-determine-angle": 0,
    "inclined-plane-friction-named-surfaces": 0,
    "inclined-plane-friction-unnamed-surfaces": 0,
    "mendelian-genetics-known-plant": 0,
    "mendelian-genetics-unknown-plant": 0,
}
"""Task → how many variations it has."""

TASKS = tuple(_VARIATIONS)
"""By the simulator's own names, in the order T0 to T29 of the tables of Golchha et al. 2024."""

SPLITS = ("train", "valid", "test")


def task_name(task: str) -> str:
    """The simulator's name of a task that may be given as "T0" to "T29"; anything else is returned as it is."""
    number = task[1:] if isinstance(task, str) and task[:1] == "T" else ""
    return TASKS[int(number)] if number.isdecimal() and int(number) < len(TASKS) else task


def variations(task: str) -> dict[str, range]:
    """Split → its official variations: the first half, the next quarter, and the rest."""
    count = _VARIATIONS[task]
    half, most = count // 2, count // 2 + count // 4
    return dict(zip(SPLITS, (range(half), range(half, most), range(most, count)), strict=True))
