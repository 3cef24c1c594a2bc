"""Simulation: one game of ScienceWorld's program within a Java process, asked for as little as can be."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from magrounding.simulators.faults import SimulatorError
from magrounding.single.scienceworld.java import Java
from magrounding.single.scienceworld.wire import CallBatch, Reference, call, create, forget, member

_INTERFACE = "scienceworld.runtime.pythonapi.PythonInterface"
_UNIQUE = "getAllUniqueReferentsLUTObjList"
_FREE = frozenset({"task", "look", "inventory", "objects", "help"})
"""Commands that the program answers before a step begins."""


@dataclass(frozen=True)
class Moment:
    """State of a game after a reset or a step.

    Attributes:
        observation: the program's answer to the command.
        look, inventory: what is around, and what is held.
        actions: the commands that are valid now, sorted.
        score: 0 to 100; −100 once the game is failed.
        over: the program takes the task for completed or failed.
    """

    observation: str
    look: str
    inventory: str
    actions: tuple[str, ...]
    score: int
    over: bool


class Simulation:
    """One game at a time; several of these play in one process without disturbing one another.

    The program has one generator of random numbers, Scala's, and one counter of things for all games of a process. Each
    game gets its own: before whatever it asks, the generator within Scala's is replaced and the counter set.

    Where things share their names, the program draws the longer names of its valid actions ("paint in wood cup"). That
    is done with a third generator, seeded anew each time: asking changes nothing of what happens, and the same things
    in the same place have the same names.

    With `fast` the valid actions are asked for in parts. The program's own list has every step rename all things of the
    world, which only "teleport to" needs, whose rooms have the same names from the first step of an episode on.

    `close()` lets the game go; so does garbage collection. All methods raise SimulatorError where `java` was lost.
    """

    def __init__(self, java: Java, fast: bool = True) -> None:
        self.java = java
        self._fast = fast
        self._counted = 0
        self._game: list[Reference] = []
        batch = java.batch()
        self._interface = batch.keep(create(_INTERFACE))
        self._dice = batch.keep(create("java.util.Random"))
        self._naming_dice = batch.keep(create("java.util.Random"))
        self._global_dice = batch.keep(member("scala.util.Random$", "MODULE$"))
        self._counter = batch.keep(member("util.UniqueIdentifier$", "MODULE$"))
        self._definitions = batch.keep(member("scienceworld.input.ActionDefinitions$", "MODULE$"))
        kind = batch.passing(call("java.lang.Class", "forName", "scala.util.Random"))
        self._field = batch.keep(call(kind, "getDeclaredField", "self"))
        batch.run(call(self._field, "setAccessible", True))
        thing = batch.passing(call("java.lang.Class", "forName", "scienceworld.struct.EnvObject"))
        tags = batch.passing(member("scala.reflect.ClassTag$", "MODULE$"))
        self._tag = batch.keep(call(tags, "apply", thing))
        java.ask(batch)
        self.close = weakref.finalize(self, _release_all, java, batch.kept, self._game)
        self.close.atexit = False

    def begin(self, task: str, variation: int, simplifications: str, gold: bool = False) -> Moment:
        """Start a game and look around.

        With `gold` the program finds a way to 100, which may take ten seconds; see `gold_path`.
        """
        self._counted = 0
        batch = self._turn()
        for reference in self._game:
            batch.run(forget(reference))
        self._game.clear()
        batch.run(call(self._dice, "setSeed", variation))
        batch.value(call(self._interface, "load", task, variation, simplifications, gold))
        (refusal,) = self._ask(batch)
        if refusal:
            raise SimulatorError(f"ScienceWorld does not start {task}, variation {variation}: {refusal}")
        batch = self._turn()
        self._engine = batch.keep(call(batch.passing(call(self._interface, "agentInterface")), "get"))
        self._goals = batch.keep(call(batch.passing(call(self._engine, "task")), "goalSequence"))
        self._agent = batch.keep(call(self._engine, "agent"))
        self._parser = batch.keep(call(self._engine, "inputParser"))
        self._world = self._things(batch, batch.passing(call(self._engine, "universe")), True)
        self._throw_for_names(batch)
        self._names = batch.keep(call(self._parser, _UNIQUE, self._world, self._room(batch), True, True))
        self._game += batch.kept
        self._ask(batch)
        return self.step("look around")

    def step(self, command: str) -> Moment:
        batch = self._turn()
        if command in _FREE:
            batch.value(call(self._interface, "step", command))
        else:
            result = batch.passing(call(self._engine, "step", command))
            batch.value(call(result, "_1"))
        for question in (
            call(self._interface, "freeActionLook"),
            call(self._interface, "freeActionInventory"),
            call(self._goals, "score"),
            call(self._goals, "isCompleted"),
            call(self._parser, "isInAmbiguousState"),
        ):
            batch.value(question)
        if self._fast:
            room = self._room(batch)
            things = self._things(batch, room, False)
            self._throw_for_names(batch)
            names = batch.passing(call(self._parser, _UNIQUE, things, room, True, True))
            made = call(self._definitions, "mkPossibleActions", self._agent, things, self._world, names, self._names)
            listed = batch.passing(call("scala.Predef", "genericArrayOps", batch.passing(made)))
            batch.value(call(listed, "mkString", "\n"))
            batch.run(forget(things))
        observation, look, inventory, score, over, ambiguous, *text = self._ask(batch)
        in_whole = ambiguous or not self._fast
        actions = self._joined("getValidActionObjectCombinations") if in_whole else sorted(text[0].split("\n"))
        return Moment(observation, look, inventory, tuple(actions), round(100 * score), over)

    def task_text(self) -> str:
        """Return the text of the task."""
        batch = self.java.batch()
        batch.value(call(self._interface, "freeActionTaskDesc"))
        return self.java.ask(batch)[0]

    def gold_path(self) -> list[str]:
        """Return the commands that the program has found; of a game begun with `gold`."""
        return self._joined("getGoldActionSequence")

    def aliases(self) -> dict[str, list[str]]:
        """Return each name that the program understands here, in lower case → those that valid actions use."""
        batch = self.java.batch()
        room = batch.keep(call(batch.passing(call(self._agent, "getContainer")), "get"))
        things = self._things(batch, room, False)
        self._throw_for_names(batch)
        names = batch.passing(call(self._parser, _UNIQUE, things, room, True, True))
        batch.value(call("java.lang.reflect.Array", "getLength", things))
        batch.value(call(names, "mkString", "\n"))
        count, listed = self.java.ask(batch)
        unique = dict(line.split(" -> ", 1) for line in listed.split("\n"))
        batch = self.java.batch()
        for place in range(count):
            thing = batch.passing(call("java.lang.reflect.Array", "get", things, place))
            batch.value(call(thing, "uuid"))
            batch.value(call(batch.passing(call(thing, "getReferentsWithContainers", room)), "mkString", "\n"))
        for reference in (room, things):
            batch.run(forget(reference))
        answers = self.java.ask(batch)
        found: dict[str, list[str]] = {}
        for number, referents in zip(answers[::2], answers[1::2], strict=True):
            name = unique.get(str(number), "")
            for referent in referents.split("\n") if name else ():
                found.setdefault(referent.lower(), []).append(name)
        return found

    def _turn(self) -> CallBatch:
        """Begin a batch in which the program draws and counts for this game."""
        batch = self.java.batch()
        batch.run(call(self._field, "set", self._global_dice, self._dice))
        batch.run(call(self._counter, "count_$eq", self._counted))
        return batch

    def _throw_for_names(self, batch: CallBatch) -> None:
        batch.run(call(self._naming_dice, "setSeed", 0))
        batch.run(call(self._field, "set", self._global_dice, self._naming_dice))

    def _ask(self, batch: CallBatch) -> list:
        batch.value(call(self._counter, "count"))
        *answers, self._counted = self.java.ask(batch)
        return answers

    def _joined(self, method: str) -> list[str]:
        """Return a list of texts of the interface."""
        batch = self._turn()
        self._throw_for_names(batch)
        batch.value(call("java.lang.String", "join", "\n", batch.passing(call(self._interface, method))))
        text = self._ask(batch)[0]
        return text.split("\n") if text else []

    def _room(self, batch: CallBatch) -> Reference:
        return batch.passing(call(batch.passing(call(self._agent, "getContainer")), "get"))

    def _things(self, batch: CallBatch, place: Reference, hidden: bool) -> Reference:
        """Return the array of the things in a place, to be kept."""
        found = batch.passing(call("scienceworld.input.InputParser", "collectObjects", place, hidden))
        return batch.keep(call(found, "toArray", self._tag))


def _release_all(java: Java, *kept: list[Reference]) -> None:
    for references in kept:
        java.release(references)
