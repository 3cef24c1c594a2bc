"""Seats of a game: held for a while by a token for people whose connection was lost; the others watch."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from magrounding.play.web.messages import Refusal

WATCHING = -1
"""Seat of those who watch."""


class Visitor(Protocol):
    """A connection, as a room sees it."""

    def send(self, message: str, /) -> None:
        """Send a text, sooner or later; this never waits."""
        ...


@dataclass
class Holder:
    """Holder of a seat.

    Attributes:
        token: by which it is had again after a loss of connection.
        visitor: None while away.
        since: when that began.
    """

    token: str
    visitor: Visitor | None
    since: float = 0.0


class Taken(NamedTuple):
    """Result of taking a seat.

    Attributes:
        agent, token: of the seat; None for watching.
        unseated: visitor that lost its last seat to another page of the same person, and watches now.
    """

    agent: int | None
    token: str | None
    unseated: Visitor | None


class Seats:
    """The seats of one game.

    Args:
        people: agents that people play.
        hold_seconds: for which a seat is kept for who has gone.
    """

    def __init__(self, people: Sequence[int], hold_seconds: float) -> None:
        self._people, self._hold_seconds = tuple(people), hold_seconds
        self._holders: dict[int, Holder] = {}
        self._watchers: dict[Visitor, None] = {}

    @property
    def visitors(self) -> list[Visitor]:
        """All that are connected, each once."""
        there = [holder.visitor for holder in self._holders.values() if holder.visitor is not None]
        return list(dict.fromkeys([*there, *self._watchers]))

    @property
    def present(self) -> list[int]:
        """Agents whose people are connected."""
        return [agent for agent, holder in self._holders.items() if holder.visitor is not None]

    @property
    def watching(self) -> int:
        """Number of those who watch."""
        return len(self._watchers)

    @property
    def taken(self) -> bool:
        """Whether each seat has been taken before."""
        return len(self._holders) == len(self._people)

    def of(self, visitor: Visitor) -> list[int]:
        """Return the agents of a visitor, in order."""
        return sorted(agent for agent, holder in self._holders.items() if holder.visitor is visitor)

    def take(self, visitor: Visitor, seat: int | None, token: str | None) -> Taken:
        """Take a seat, or have one's own again by its token; WATCHING is for watching, None is the first free one.

        Raises:
            Refusal: "seat_taken", or "wrong_value" for a seat that is none of a person's.
        """
        agent = self._find(seat, token)
        if agent is None:
            self._watchers[visitor] = None
            return Taken(None, None, None)
        self._watchers.pop(visitor, None)
        holder, unseated = self._holders.get(agent), None
        if holder is None or not _same(holder.token, token):
            holder = self._holders[agent] = Holder(secrets.token_urlsafe(18), visitor)
        elif holder.visitor is not visitor and holder.visitor is not None:
            former, holder.visitor = holder.visitor, None
            if not self.of(former):
                self._watchers[former], unseated = None, former
        holder.visitor = visitor
        return Taken(agent, holder.token, unseated)

    def leave(self, visitor: Visitor, *, for_good: bool) -> list[int]:
        """Let a visitor go; for good, its seats are free at once, else kept for a while. Return its agents."""
        self._watchers.pop(visitor, None)
        left = self.of(visitor)
        for agent in left:
            holder = self._holders[agent]
            holder.visitor, holder.since = None, -self._hold_seconds if for_good else time.monotonic()
        return left

    def clear(self) -> None:
        """No client is connected any more."""
        self._holders, self._watchers = {}, {}

    def _find(self, seat: int | None, token: str | None) -> int | None:
        """Return the agent of a seat, None for watching; Refusal where the seat is taken."""
        for agent, holder in self._holders.items():
            # Without naming the seat, a token gets only an empty one: another page of the same browser may have it.
            if _same(holder.token, token) and (seat == agent or (seat is None and holder.visitor is None)):
                return agent
        if seat == WATCHING:
            return None
        if seat is not None:
            if seat not in self._people:
                raise Refusal("wrong_value", f"seats for people are {list(self._people)}")
            if not self._is_free(seat):
                raise Refusal("seat_taken")
            return seat
        return next(filter(self._is_free, self._people), None)

    def _is_free(self, agent: int) -> bool:
        holder = self._holders.get(agent)
        kept = time.monotonic() - self._hold_seconds
        return holder is None or (holder.visitor is None and holder.since <= kept)


def _same(token: str, other: str | None) -> bool:
    return other is not None and hmac.compare_digest(token.encode(), other.encode("utf-8", "surrogatepass"))
