"""A scene as a game in the file format of ALFWorld, `game.tw-pddl`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from magrounding.single.alfworld import kinds, package
from magrounding.single.alfworld.scenes import Scene

GAME_FILE = "game.tw-pddl"
START = "loc_bar_0"
AGENT = "agent1"
UNKNOWN_TASK = "UNKNOWN GOAL"
"""Placeholder of the task in the package's grammar."""


def game_of(scene: Scene) -> dict[str, Any]:
    """Return the content of `game.tw-pddl`: domain, problem, and the grammar with the task filled in.

    MissingExtra where alfworld is not installed, which has domain, grammar and goals.
    """
    package.require()
    domain, grammar = package.rules()
    goal = package.part("gen.goal_library").gdict[scene.task]
    names = {"obj": scene.target, "recep": scene.goal, "toggle": kinds.LAMP, "mrecep": ""}
    sentence = goal["templates"][scene.template].format(**{name: kind.lower() for name, kind in names.items()})
    return {
        "pddl_domain": domain,
        "grammar": grammar.replace(UNKNOWN_TASK, sentence),
        "pddl_problem": problem(scene) + goal["pddl"].format(**names).replace("#", "-"),
        "solvable": True,
    }


def problem(scene: Scene) -> str:
    """Return the scene in PDDL, up to its goal, which closes the definition."""
    receptacles, objects = _identify(scene.receptacles), _identify(tuple(kind for kind, _ in scene.things))
    places = [f"loc_bar_{number}" for number in range(1, len(receptacles) + 1)]
    declared = [
        f"{AGENT} - agent",
        *(f"{place} - location" for place in (START, *places)),
        *(f"{name} - receptacle" for name in receptacles),
        *(f"{name} - object" for name in objects),
        *(f"{kind}Type - rtype" for kind in kinds.RECEPTACLES),
        *(f"{kind}Type - otype" for kind in kinds.OBJECTS),
    ]
    facts = [f"(atLocation {AGENT} {START})"]
    for name, kind, place in zip(receptacles, scene.receptacles, places, strict=True):
        facts += [f"(receptacleType {name} {kind}Type)", f"(receptacleAtLocation {name} {place})"]
        facts += [f"(openable {name})"] * (kind in kinds.OPENABLE)
    for name, (kind, where) in zip(objects, scene.things, strict=True):
        facts += [f"(objectType {name} {kind}Type)", f"(inReceptacle {name} {receptacles[where]})"]
        facts += [f"(objectAtLocation {name} {places[where]})"]
        facts += [f"({property} {name})" for property, holders in _PROPERTIES.items() if kind in holders]
    present = {kind for kind, _ in scene.things}
    facts += [
        f"(canContain {receptacle}Type {kind}Type)"
        for receptacle in sorted(set(scene.receptacles))
        for kind in sorted(present & kinds.HOLDS[receptacle])
    ]
    things, known = ("".join(f"  {line}\n" for line in lines) for lines in (declared, facts))
    objects_and_facts = f" (:objects\n{things} )\n (:init\n{known}  (= (total-cost) 0)\n )"
    return f"(define (problem scene)\n (:domain alfred)\n{objects_and_facts}"


_PROPERTIES = {
    "pickupable": frozenset(kinds.OBJECTS) - {kinds.LAMP},
    "toggleable": frozenset({kinds.LAMP}),
    "isReceptacleObject": kinds.VESSELS,
    "sliceable": kinds.SLICEABLE,
    "heatable": kinds.HEATABLE,
    "coolable": kinds.COOLABLE,
    "cleanable": kinds.CLEANABLE,
}


def _identify(of_kinds: tuple[str, ...]) -> list[str]:
    """Return an id for each thing, of the shape that ALFWorld makes names of: `Apple_bar_2` becomes "apple 2"."""
    counted: Counter[str] = Counter()
    names = []
    for kind in of_kinds:
        counted[kind] += 1
        basin = f"_bar_{kind}" if kind.endswith("Basin") else ""
        # Ids are numbered from the last in alphabetic order to the first, so the number says only which are distinct.
        names.append(f"{kind.removesuffix('Basin')}_bar_{counted[kind]:02d}{basin}")
    return names
