"""Simulation: one game of ScienceWorld's program within a Java process, asked for as little as can be."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from magrounding.simulators.faults import SimulatorError
from magrounding.single.scienceworld.java import Java
from magrounding.single.scienceworld.wire import Reference, Talk, call, create, forget, member

_INTERFACE = "scienceworld.runtime.pythonapi.PythonInterface"
_UNIQUE = "getAllUniqueReferentsLUTObjList"
_FREE = frozenset({"task", "look", "inventory", "objects", "help"})
"""Commands that the program answers before a step begins."""

_VARIATIONS = {"train": "getVariationsTrain", "valid": "getVariationsDev", "test": "getVariationsTest"}


@dataclass(frozen=True)
class Moment:
    """What a step has led to.

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

    Args:
        java: the process.
        fast: ask for the valid actions in parts. The program's own list has every step rename all things of the world,
            which only "teleport to" needs, whose rooms have the same names from the first step of an episode on.

    Attributes:
        java: the process.
        close: called, it lets the game go; so does garbage collection.

    Raises:
        SimulatorError: here and below, where the process was lost.
    """

    def __init__(self, java: Java, fast: bool = True) -> None:
        self.java = java
        self._fast = fast
        self._counted = 0
        self._game: list[Reference] = []
        talk = java.talk()
        self._interface = talk.keep(create(_INTERFACE))
        self._dice = talk.keep(create("java.util.Random"))
        self._naming_dice = talk.keep(create("java.util.Random"))
        self._global_dice = talk.keep(member("scala.util.Random$", "MODULE$"))
        self._counter = talk.keep(member("util.UniqueIdentifier$", "MODULE$"))
        self._definitions = talk.keep(member("scienceworld.input.ActionDefinitions$", "MODULE$"))
        kind = talk.get(call("java.lang.Class", "forName", "scala.util.Random"))
        self._field = talk.keep(call(kind, "getDeclaredField", "self"))
        talk.say(call(self._field, "setAccessible", True))
        thing = talk.get(call("java.lang.Class", "forName", "scienceworld.struct.EnvObject"))
        tags = talk.get(member("scala.reflect.ClassTag$", "MODULE$"))
        self._tag = talk.keep(call(tags, "apply", thing))
        java.ask(talk)
        kept = [
            self._interface,
            self._dice,
            self._naming_dice,
            self._global_dice,
            self._counter,
            self._definitions,
            self._field,
            self._tag,
        ]
        self.close = weakref.finalize(self, _let_go, java, kept, self._game)
        self.close.atexit = False

    def begin(self, task: str, variation: int, simplifications: str, gold: bool = False) -> Moment:
        """Start a game and look around.

        Args:
            task: its name.
            variation: which one.
            simplifications: as the program takes them.
            gold: have the program find a way to 100, which may take ten seconds; see `gold_path`.
        """
        self._counted = 0
        talk = self._turn()
        for reference in self._game:
            talk.say(forget(reference))
        self._game.clear()
        talk.say(call(self._dice, "setSeed", variation))
        talk.ask(call(self._interface, "load", task, variation, simplifications, gold))
        (said,) = self._ask(talk)
        if said:
            raise SimulatorError(f"ScienceWorld does not start {task}, variation {variation}: {said}")
        talk = self._turn()
        self._engine = talk.keep(call(talk.get(call(self._interface, "agentInterface")), "get"))
        self._goals = talk.keep(call(talk.get(call(self._engine, "task")), "goalSequence"))
        self._agent = talk.keep(call(self._engine, "agent"))
        self._parser = talk.keep(call(self._engine, "inputParser"))
        self._world = self._things(talk, talk.get(call(self._engine, "universe")), True)
        self._throw_for_names(talk)
        self._names = talk.keep(call(self._parser, _UNIQUE, self._world, self._room(talk), True, True))
        self._game += (self._engine, self._goals, self._agent, self._parser, self._world, self._names)
        self._ask(talk)
        return self.step("look around")

    def step(self, command: str) -> Moment:
        """Play a command."""
        talk = self._turn()
        if command in _FREE:
            talk.ask(call(self._interface, "step", command))
        else:
            result = talk.get(call(self._engine, "step", command))
            talk.ask(call(result, "_1"))
        for question in (
            call(self._interface, "freeActionLook"),
            call(self._interface, "freeActionInventory"),
            call(self._goals, "score"),
            call(self._goals, "isCompleted"),
            call(self._parser, "isInAmbiguousState"),
        ):
            talk.ask(question)
        if self._fast:
            room = self._room(talk)
            things = self._things(talk, room, False)
            self._throw_for_names(talk)
            names = talk.get(call(self._parser, _UNIQUE, things, room, True, True))
            made = call(self._definitions, "mkPossibleActions", self._agent, things, self._world, names, self._names)
            listed = talk.get(call("scala.Predef", "genericArrayOps", talk.get(made)))
            talk.ask(call(listed, "mkString", "\n"))
            talk.say(forget(things))
        observation, look, inventory, score, over, ambiguous, *text = self._ask(talk)
        actions = self._listed() if ambiguous or not self._fast else sorted(text[0].split("\n"))
        return Moment(observation, look, inventory, tuple(actions), round(100 * score), over)

    def task_text(self) -> str:
        """What is to be done."""
        talk = self.java.talk()
        talk.ask(call(self._interface, "freeActionTaskDesc"))
        return self.java.ask(talk)[0]

    def gold_path(self) -> list[str]:
        """The commands that the program has found; of a game begun with `gold`."""
        return self._joined("getGoldActionSequence")

    def aliases(self) -> dict[str, list[str]]:
        """Every name that the program understands for something here, in lower case → those that valid actions use."""
        talk = self.java.talk()
        room = talk.keep(call(talk.get(call(self._agent, "getContainer")), "get"))
        things = self._things(talk, room, False)
        self._throw_for_names(talk)
        names = talk.get(call(self._parser, _UNIQUE, things, room, True, True))
        talk.ask(call("java.lang.reflect.Array", "getLength", things))
        talk.ask(call(names, "mkString", "\n"))
        count, listed = self.java.ask(talk)
        unique = dict(line.split(" -> ", 1) for line in listed.split("\n"))
        talk = self.java.talk()
        for place in range(count):
            thing = talk.get(call("java.lang.reflect.Array", "get", things, place))
            talk.ask(call(thing, "uuid"))
            talk.ask(call(talk.get(call(thing, "getReferentsWithContainers", room)), "mkString", "\n"))
        for reference in (room, things):
            talk.say(forget(reference))
        answers = self.java.ask(talk)
        found: dict[str, list[str]] = {}
        for number, referents in zip(answers[::2], answers[1::2], strict=True):
            name = unique.get(str(number), "")
            for referent in referents.split("\n") if name else ():
                found.setdefault(referent.lower(), []).append(name)
        return found

    def variations(self) -> dict[str, list[int]]:
        """The official variations of the task that has begun: "train", "valid", "test"."""
        talk = self.java.talk()
        for method in _VARIATIONS.values():
            talk.ask(call(talk.get(call(self._interface, method)), "toString"))
        lists = [list(map(int, text[1:-1].split(","))) for text in self.java.ask(talk)]
        return dict(zip(_VARIATIONS, lists, strict=True))

    def _turn(self) -> Talk:
        """A talk in which the program draws and counts for this game."""
        talk = self.java.talk()
        talk.say(call(self._field, "set", self._global_dice, self._dice))
        talk.say(call(self._counter, "count_$eq", self._counted))
        return talk

    def _throw_for_names(self, talk: Talk) -> None:
        talk.say(call(self._naming_dice, "setSeed", 0))
        talk.say(call(self._field, "set", self._global_dice, self._naming_dice))

    def _ask(self, talk: Talk) -> list:
        talk.ask(call(self._counter, "count"))
        *answers, self._counted = self.java.ask(talk)
        return answers

    def _listed(self) -> list[str]:
        return self._joined("getValidActionObjectCombinations")

    def _joined(self, method: str) -> list[str]:
        """A list of texts that the interface has."""
        talk = self._turn()
        self._throw_for_names(talk)
        talk.ask(call("java.lang.String", "join", "\n", talk.get(call(self._interface, method))))
        text = self._ask(talk)[0]
        return text.split("\n") if text else []

    def _room(self, talk: Talk) -> Reference:
        return talk.get(call(talk.get(call(self._agent, "getContainer")), "get"))

    def _things(self, talk: Talk, place: Reference, hidden: bool) -> Reference:
        """The things in a place, an array, to be kept."""
        found = talk.get(call("scienceworld.input.InputParser", "collectObjects", place, hidden))
        return talk.keep(call(found, "toArray", self._tag))


def _let_go(java: Java, *kept: list[Reference]) -> None:
    for references in kept:
        java.let_go(references)
