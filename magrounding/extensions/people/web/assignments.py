"""Assignments of agents to people: kept for a while, by a token, when a connection is lost. Others watch."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from magrounding.extensions.people.web.messages import require

WATCHING = -1
"""Value in place of an agent for those who only watch."""


class Visitor(Protocol):
    """A connection, as a room sees it; `send` never waits."""

    def send(self, message: str, /) -> None: ...


@dataclass
class Holder:
    """Person who plays an agent.

    Attributes:
        token: gives the agent back after a loss of connection.
        visitor: the connection; None while away.
        since: time at which the person left.
    """

    token: str
    visitor: Visitor | None
    since: float = 0.0


class Assignments:
    """Agents and `watchers` of one game; an agent of `people` is kept `hold_seconds` for a person who has gone."""

    def __init__(self, people: Sequence[int], hold_seconds: float) -> None:
        self._people, self._hold_seconds = tuple(people), hold_seconds
        self._holders: dict[int, Holder] = {}
        self.watchers: dict[Visitor, None] = {}

    @property
    def visitors(self) -> list[Visitor]:
        """All that are connected, each once."""
        there = [holder.visitor for holder in self._holders.values() if holder.visitor is not None]
        return list(dict.fromkeys([*there, *self.watchers]))

    @property
    def present(self) -> list[int]:
        """Agents whose people are connected."""
        return [agent for agent, holder in self._holders.items() if holder.visitor is not None]

    @property
    def complete(self) -> bool:
        """True once a person has taken each agent that people play, even if some have left since."""
        return len(self._holders) == len(self._people)

    def of(self, visitor: Visitor) -> list[int]:
        return sorted(agent for agent, holder in self._holders.items() if holder.visitor is visitor)

    def assign(
        self, visitor: Visitor, agent: int | None, token: str | None
    ) -> tuple[int | None, str | None, Visitor | None]:
        """Assign an agent (None: the first free one; or WATCHING), or give it back by the token of an earlier time.

        Returns the agent and its token, both None for watching, and the visitor that lost its last agent to another
        page of the same person, and watches now.

        Refusal "agent_taken", or "wrong_value" for an agent that no person plays.
        """
        agent = self._find(agent, token)
        if agent is None:
            self.watchers[visitor] = None
            return None, None, None
        self.watchers.pop(visitor, None)
        holder, displaced = self._holders.get(agent), None
        if holder is None or not _same(holder.token, token):
            holder = self._holders[agent] = Holder(secrets.token_urlsafe(18), visitor)
        elif holder.visitor is not visitor and holder.visitor is not None:
            former, holder.visitor = holder.visitor, None
            if not self.of(former):
                self.watchers[former], displaced = None, former
        holder.visitor = visitor
        return agent, holder.token, displaced

    def leave(self, visitor: Visitor, *, for_good: bool) -> list[int]:
        """Remove a visitor and return its agents: free at once if it left for good, else kept for a while."""
        self.watchers.pop(visitor, None)
        left = self.of(visitor)
        for agent in left:
            holder = self._holders[agent]
            holder.visitor, holder.since = None, -self._hold_seconds if for_good else time.monotonic()
        return left

    def clear(self) -> None:
        self._holders, self.watchers = {}, {}

    def _find(self, requested: int | None, token: str | None) -> int | None:
        """Return the agent to assign, None for watching; Refusal where it is taken, or no person plays it."""
        for agent, holder in self._holders.items():
            # Without naming the agent, a token gets only a free one: another page of the same browser may play it.
            if _same(holder.token, token) and (requested == agent or (requested is None and holder.visitor is None)):
                return agent
        if requested == WATCHING:
            return None
        if requested is not None:
            require(requested in self._people, "wrong_value", f"people play the agents {list(self._people)}")
            require(self._is_free(requested), "agent_taken")
            return requested
        return next(filter(self._is_free, self._people), None)

    def _is_free(self, agent: int) -> bool:
        holder = self._holders.get(agent)
        kept = time.monotonic() - self._hold_seconds
        return holder is None or (holder.visitor is None and holder.since <= kept)


def _same(token: str, other: str | None) -> bool:
    return other is not None and hmac.compare_digest(token.encode(), other.encode())
