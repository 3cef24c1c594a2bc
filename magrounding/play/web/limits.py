"""Limits of what a client may send, hold and start; the rest is refused with a code."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

LONGEST_PACE = 3600.0
Pace = Annotated[float, Meta(ge=0, le=LONGEST_PACE)]
"""Seconds that people have for a move; 0: all the time."""


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes:
        message_bytes: of a message that is read.
        frame_bytes: of a message at all; a longer one closes the connection (websocket code 1009).
        upload_bytes: of a saved game.
        messages_per_second, burst: of one connection.
        requests_per_second, request_burst: of one address, pictures of figures included.
        heavy_per_second, heavy_burst: of them, those that play games again.
        strikes: refusals in a row after which a connection is closed.
        connections, games: at once.
        new_games_per_second, new_games_burst: of one connection.
        steps, agents, size: of one game: its time limit, its agents, cells along one side of its map.
        backlog: messages that wait for a client who does not read them, before it is let go.
        hold_seconds: time for which an agent is kept for a person who is away.
        idle_seconds: for which a game without a client is kept.
        heartbeat: seconds after which a silent connection is asked whether it is still there.
        patience: seconds after which a game whose simulator or agents do not answer is given up.
    """

    message_bytes: int = 4096
    frame_bytes: int = 2**16
    upload_bytes: int = 2**20
    messages_per_second: float = 20.0
    burst: int = 40
    requests_per_second: float = 50.0
    request_burst: int = 400
    heavy_per_second: float = 5.0
    heavy_burst: int = 60
    strikes: int = 200
    connections: int = 512
    games: int = 200
    new_games_per_second: float = 0.5
    new_games_burst: int = 10
    steps: int = 500
    agents: int = 8
    size: int = 24
    backlog: int = 256
    hold_seconds: float = 60.0
    idle_seconds: float = 600.0
    heartbeat: float = 30.0
    patience: float = 120.0


class Bucket:
    """Token bucket: `burst` at once, `rate` a second of the clock."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._then = float(burst), clock()

    def take(self) -> bool:
        """Take a token; return False where there is none."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._then) * self._rate)
        self._then = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    @property
    def full(self) -> bool:
        """True when no token was taken lately."""
        return self._tokens + (self._clock() - self._then) * self._rate >= self._burst
