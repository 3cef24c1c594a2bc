"""Expert: a scripted player that knows the texts of the game and nothing more."""

from __future__ import annotations

import re
from dataclasses import dataclass

from magrounding.single.alfworld.scenes import CLEAN, COOL, HEAT, LOOK, PLACE, TWO

_PATTERNS = tuple(
    (task, re.compile(pattern))
    for task, pattern in (
        (TWO, r"(?:put|find) two (?P<target>\w+) (?:and put them )?in (?P<goal>\w+)"),
        (CLEAN, r"(?:put a clean|clean some) (?P<target>\w+) (?:and put it )?in (?P<goal>\w+)"),
        (HEAT, r"(?:put a hot|heat some) (?P<target>\w+) (?:and put it )?in (?P<goal>\w+)"),
        (COOL, r"(?:put a cool|cool some) (?P<target>\w+) (?:and put it )?in (?P<goal>\w+)"),
        (LOOK, r"(?:look at|examine the) (?P<target>\w+) (?:under|with) the (?P<goal>\w+)"),
        (PLACE, r"put (?:a|some) (?P<target>\w+) (?:in|on) (?P<goal>\w+)"),
    )
)
_TREATMENTS = {
    CLEAN: ("clean", ("sinkbasin", "bathtubbasin")),
    HEAT: ("heat", ("microwave",)),
    COOL: ("cool", ("fridge",)),
}
_SEEN = re.compile(r"you see (.*?)\.")
_THING = re.compile(r"(\w+ \d+)")


@dataclass(frozen=True)
class Task:
    """The task that a goal states: one of TASKS, kinds of an object and of a receptacle, or lamp, to bring it to."""

    kind: str
    target: str
    goal: str


def read_task(goal: str) -> Task | None:
    """Return the task that a sentence of ALFRED's states; None for any other sentence."""
    for kind, pattern in _PATTERNS:
        if found := pattern.fullmatch(goal.strip().rstrip(".").lower()):
            return Task(kind, found["target"], found["goal"])
    return None


class Expert:
    """A scripted player: looks for the object, place by place, treats it, and brings it where it belongs.

    It remembers what it has been shown: where it stands, what it holds, what lies where. It goes on from wherever
    another player has led the game to. `commands` are those that can be typed at first.
    """

    def __init__(self, task: Task, commands: tuple[str, ...]) -> None:
        self._task = task
        self._commands = commands
        self._places = [command.removeprefix("go to ") for command in commands if command.startswith("go to ")]
        self._here = ""
        self._held = ""
        self._taken_from: dict[str, str] = {}
        self._contents: dict[str, list[str]] = {}
        self._treated: set[tuple[str, str]] = set()

    def follow(self, command: str, feedback: str, commands: tuple[str, ...]) -> None:
        """Take in a command that was played, its answer, and the commands that can be typed now."""
        self._commands = commands
        if "othing happens" in feedback:
            return
        words = command.split(" ")
        if command.startswith("go to "):
            self._here = command.removeprefix("go to ")
        elif words[0] == "take":
            self._held = " ".join(words[1:3])
            self._taken_from[self._held] = self._here
            if self._held in self._contents.get(self._here, ()):
                self._contents[self._here].remove(self._held)
        elif words[0] in ("move", "put"):
            self._contents.setdefault(self._here, []).append(self._held)
            self._held = ""
        elif words[0] in ("clean", "heat", "cool"):
            # What is heated is cool no more, and the other way round.
            self._treated -= {(self._held, "heat"), (self._held, "cool")} if words[0] != "clean" else set()
            self._treated.add((self._held, words[0]))
        seen = _SEEN.search(feedback)
        if seen and (words[0] in ("go", "open") or command == f"examine {self._here}"):
            self._contents[self._here] = _THING.findall(seen[1])

    def best_commands(self) -> tuple[str, ...]:
        """Return the commands of which any is as good as the others; empty where it knows no way."""
        wishes = self._carry() if self._held else self._search()
        return tuple(wish for wish in wishes if wish in self._commands)

    def _carry(self) -> list[str]:
        task, held = self._task, self._held
        if _kind(held) != task.target:
            return self._put_away()
        if task.kind in _TREATMENTS:
            verb, kinds = _TREATMENTS[task.kind]
            if (held, verb) not in self._treated:
                place = next((place for kind in kinds for place in self._places if _kind(place) == kind), "")
                return self._at(place, f"{verb} {held} with {place}")
        if task.kind == LOOK:
            lamp, place = self._find(task.goal)
            return self._at(place, f"use {lamp}") if lamp else self._explore()
        return self._deliver(self._chosen_goal())

    def _search(self) -> list[str]:
        target, place = self._find(self._task.target)
        return self._at(place, f"take {target} from {place}") if target else self._explore()

    def _find(self, kind: str) -> tuple[str, str]:
        """Return the nearest known thing of a kind and its place; empty where there is none to be taken."""
        finished = self._chosen_goal() if self._task.kind == TWO else ""  # the first of two stays there
        for place in self._from_here():
            for thing in self._contents.get(place, ()) if place != finished else ():
                if _kind(thing) == kind:
                    return thing, place
        return "", ""

    def _chosen_goal(self) -> str:
        """Return the place to put things: one alone, even where there are several of the kind."""
        task = self._task
        goals = [place for place in self._places if _kind(place) == task.goal]
        begun = [place for place in goals if task.target in map(_kind, self._contents.get(place, ()))]
        return next(iter([*begun, *goals]), "")

    def _deliver(self, place: str) -> list[str]:
        for word in ("move {} to {}", "put {} in/on {}"):
            if word.format(self._held, place) in self._commands:
                return [word.format(self._held, place)]
        return self._at(place, "")

    def _put_away(self) -> list[str]:
        """Put down what is of no use: here where it can be, or else where it was."""
        for command in self._commands:
            if command.startswith((f"move {self._held} ", f"put {self._held} ")):
                return [command]
        return self._at(self._taken_from.get(self._held, ""), "")

    def _explore(self) -> list[str]:
        """Open what is closed here; or else go to any place that has not been looked into."""
        if self._here and self._here not in self._contents and f"open {self._here}" in self._commands:
            return [f"open {self._here}"]
        looked_into = {self._here, *self._contents}
        return [f"go to {place}" for place in self._places if place not in looked_into]

    def _at(self, place: str, command: str) -> list[str]:
        """Return the command; before it, going to its place and opening that."""
        if place != self._here:
            return [f"go to {place}"]
        return [command if command in self._commands else f"open {place}"]

    def _from_here(self) -> list[str]:
        """Return all places in the order of the list, beginning with the current one."""
        start = self._places.index(self._here) if self._here in self._places else 0
        return self._places[start:] + self._places[:start]


def _kind(thing: str) -> str:
    return thing.rsplit(" ", 1)[0]
