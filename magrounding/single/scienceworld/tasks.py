"""The tasks of ScienceWorld, and which of their variations are official for what."""

from __future__ import annotations

_VARIATIONS = {
    "boil": 30,
    "change-the-state-of-matter-of": 30,
    "freeze": 30,
    "melt": 30,
    "measure-melting-point-known-substance": 436,
    "measure-melting-point-unknown-substance": 300,
    "use-thermometer": 540,
    "power-component": 20,
    "power-component-renewable-vs-nonrenewable-energy": 20,
    "test-conductivity": 900,
    "test-conductivity-of-unknown-substances": 600,
    "find-animal": 300,
    "find-living-thing": 300,
    "find-non-living-thing": 300,
    "find-plant": 300,
    "grow-fruit": 126,
    "grow-plant": 126,
    "chemistry-mix": 32,
    "chemistry-mix-paint-secondary-color": 36,
    "chemistry-mix-paint-tertiary-color": 36,
    "lifespan-longest-lived": 125,
    "lifespan-longest-lived-then-shortest-lived": 125,
    "lifespan-shortest-lived": 125,
    "identify-life-stages-2": 10,
    "identify-life-stages-1": 14,
    "inclined-plane-determine-angle": 168,
    "inclined-plane-friction-named-surfaces": 1386,
    "inclined-plane-friction-unnamed-surfaces": 162,
    "mendelian-genetics-known-plant": 120,
    "mendelian-genetics-unknown-plant": 480,
}
"""Task → how many variations it has."""

TASKS = tuple(_VARIATIONS)
"""Tasks by the simulator's own names, in the order T0 to T29 of the tables of Golchha et al. 2024."""

SPLITS = ("train", "valid", "test")


def task_name(task: str) -> str:
    """Return the simulator's name of a task that may be given as "T0" to "T29"; anything else is returned as it is."""
    number = task[1:] if isinstance(task, str) and task[:1] == "T" else ""
    return TASKS[int(number)] if number.isdecimal() and len(number) < 4 and int(number) < len(TASKS) else task


def variations(task: str) -> dict[str, range]:
    """Return split → its official variations: the first two quarters, the third, and the rest."""
    count = _VARIATIONS[task]
    quarter = count // 4
    parts = range(2 * quarter), range(2 * quarter, 3 * quarter), range(3 * quarter, count)
    return dict(zip(SPLITS, parts, strict=True))
