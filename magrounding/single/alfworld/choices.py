"""Limits on the engine's commands that are offered and on the things that are shown, where they are many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from magrounding.single.alfworld.options import MAX_COMMANDS, MAX_ITEMS

GO = "go to "
Thing = tuple[str, str]
"""Kind and number."""


def choices_of(commands: Sequence[str], visited: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the commands that are offered: all but "look"; where they are too many, those of least use are left out.

    First goes what only examines something, then the way back to places, the last visited first, so that each can be
    come to again; then what else changes nothing, and places not yet visited. What takes, puts, uses or treats
    something is left out only where there are more than MAX_COMMANDS of these alone.

    Args:
        commands: all that can be typed, in alphabetic order.
        visited: places, the last visited at the end.
    """
    offered = [command for command in commands if command != "look"]
    beyond = len(offered) - MAX_COMMANDS
    if beyond <= 0:
        return tuple(offered)
    seen = {f"{GO}{place}": number for number, place in enumerate(visited)}
    spare = sorted(range(len(offered)), key=lambda j: _use(offered[j], j, seen))[:beyond]
    return tuple(command for j, command in enumerate(offered) if j not in spare)


def _use(command: str, place: int, seen: dict[str, int]) -> tuple[int, int]:
    """Return a key: commands of the smallest are left out first.

    Args:
        command: one of them.
        place: in the list.
        seen: commands that go back, and when each was last typed.
    """
    if command.startswith("examine "):
        return 0, place
    if command in seen:
        return 1, -seen[command]
    if command in ("help", "inventory"):
        return 2, -place
    for use, beginning in enumerate(("close ", GO, "open "), 3):
        if command.startswith(beginning):
            return use, -place
    return 6, -place


def things_shown(room: Sequence[Thing], named: Sequence[Thing]) -> tuple[list[Thing], int]:
    """Return the things of the grid in their order, and the number that it has no room for.

    Args:
        room: the receptacles.
        named: what the last answer speaks of, which is shown rather than other receptacles.
    """
    things, now = list(dict.fromkeys([*room, *named])), set(named)
    beyond = max(0, len(things) - MAX_ITEMS)
    spare = set([thing for thing in things if thing not in now][::-1][:beyond])
    return [thing for thing in things if thing not in spare][:MAX_ITEMS], beyond
