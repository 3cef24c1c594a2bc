"""Gold paths: the simulator's own solutions of tasks, for experts; kept on disk, as finding one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import product
from pathlib import Path

import msgspec

from magrounding.errors import ConfigurationError
from magrounding.single.scienceworld.java import Java
from magrounding.single.scienceworld.simulation import Moment, Simulation
from magrounding.storage import read_bytes, user_cache, write_json

_SYNONYMS = {"examine": "look at", "drop": "put down"}
_JOINTS = (" to ", " into ", " on ", " in ", " with ")
_PASSES = ("look around", "wait1")
"""Commands that take a step and do nothing, tried in turn until a path scores 100: plants grow differently in each."""

WON = 100
"""The score of a task that is done."""

_RENDERING = 4
"""Version of the commands of a path; a greater one makes paths that were kept earlier invalid."""


@dataclass(frozen=True)
class Gold:
    """Solution of a variation of a task.

    Attributes:
        commands: the gold path in the words of the valid actions, each of which is valid in its turn.
        score: score after the last command.
        program: the gold path in the simulator's words.
        text: description of the task.
        meant: of each command, True if it does what the gold path does, False if it only replaces a command without
            effect.
    """

    commands: tuple[str, ...]
    score: int
    program: tuple[str, ...]
    text: str
    meant: tuple[bool, ...]


def find_gold(java: Java, task: str, variation: int, simplifications: str) -> Gold:
    """Return the solution of a variation.

    It is kept under `user_cache()`, in a folder for each version of the simulator. It is found in a game of its own, so
    games in progress do not change.

    The simulator names things in its gold paths as it parses them ("examine substance in metal pot"), not as it lists
    them among the valid actions ("look at water"), and does things that have no effect (opening an open door), which
    are not listed at all. The former are translated to the words of the list; the latter, which still take a step, are
    replaced by looking around or, where that does not score 100, by waiting.

    Raises:
        SimulatorError: the process was lost.
        ConfigurationError: the user's cache cannot be written to.
    """
    known = _read(gold_file(task, variation, simplifications))
    return known or play_gold(java, task, variation, simplifications)[0]


def play_gold(java: Java, task: str, variation: int, simplifications: str) -> tuple[Gold, list[Moment]]:
    """Return the solution of a variation, and the moment before each command; see `find_gold`."""
    path = gold_file(task, variation, simplifications)
    known, moments = _read(path), list[Moment]()
    simulation = Simulation(java)
    try:
        if known is not None:
            moments.append(simulation.begin(task, variation, simplifications))
            moments += [simulation.step(command) for command in known.commands]
            return known, moments[:-1]
        simulation.begin(task, variation, simplifications, gold=True)
        program = tuple(simulation.gold_path())
        text = simulation.task_text()
        found = [_follow(simulation, program, _PASSES[0], task, variation, simplifications)]
        if found[0][0].score < WON:
            found += [_follow(simulation, program, each, task, variation, simplifications) for each in _PASSES[1:]]
    finally:
        simulation.close()
    gold, moments = max(found, key=lambda each: each[0].score)
    gold = replace(gold, text=text)
    try:
        write_json(path, asdict(gold))
    except OSError as error:
        raise ConfigurationError(
            f"gold paths are kept in {path.parent}, which cannot be written to ({error.strerror}): "
            "set HOME to a folder that can"
        ) from error
    return gold, moments


def gold_file(task: str, variation: int, simplifications: str) -> Path:
    """Return the file that keeps the gold path of a variation."""
    kind = simplifications.replace(",", "+") or "none"
    release = f"{version('scienceworld')}-{_RENDERING}"
    return user_cache() / "scienceworld" / release / kind / task / f"{variation}.json"


def _follow(
    simulation: Simulation, program: tuple[str, ...], filler: str, task: str, variation: int, simplifications: str
) -> tuple[Gold, list[Moment]]:
    """Play the valid commands that do what a gold path does, and `filler` where there is none; see `play_gold`."""
    moment = simulation.begin(task, variation, simplifications)
    commands, meant, moments = list[str](), list[bool](), list[Moment]()
    for command in program:
        if command not in moment.actions:
            listed = {action.lower(): action for action in moment.actions}  # the program ignores case
            variants = (each.lower() for each in _variants(command.lower(), simulation.aliases()))
            command = listed.get(command.lower()) or next((listed[each] for each in variants if each in listed), "")
        meant.append(bool(command))
        command = command or filler
        if command not in moment.actions:  # the program asks which of several things is meant, and lists numbers
            command = moment.actions[0]
        commands.append(command)
        moments.append(moment)
        moment = simulation.step(command)
        if moment.over or moment.score < 0:
            break
    return Gold(tuple(commands), moment.score, program, "", tuple(meant)), moments


def _variants(command: str, aliases: dict[str, list[str]]) -> Iterator[str]:
    """Yield a command with the names that valid actions use in place of its own."""
    words = command.split(" ")
    for count in (1, 2):  # words of the verb
        verb, rest = " ".join(words[:count]), " ".join(words[count:])
        verb = _SYNONYMS.get(verb, verb)
        yield from (f"{verb} {name}" for name in aliases.get(rest, ()))
        for joint in _JOINTS:
            parts = rest.split(joint)
            for k in range(1, len(parts)):
                first, second = joint.join(parts[:k]), joint.join(parts[k:])
                for one, other in product(aliases.get(first, ()), aliases.get(second, ())):
                    yield from (f"{verb} {one}{between}{other}" for between in _JOINTS)


def _read(path: Path) -> Gold | None:
    """Read a gold path; None where the file is missing or damaged, so that it is found again."""
    try:
        return msgspec.json.decode(read_bytes(path), type=Gold)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None
