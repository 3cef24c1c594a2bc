"""Limits of what a client may send, hold and start; the rest is refused with a code. And of what is logged of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

LONGEST_PACE = 3600.0
Pace = Annotated[float, Meta(ge=0, le=LONGEST_PACE)]
"""Seconds that people have for a move; 0: all the time."""
_KINDS = 256
"""Kinds of log records that are distinguished."""


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
        connections, sockets, games: at once: of TCP, websockets among them, games.
        address_people: people who may play from one address at once; it has as many games, and new participants of a
            study, twice as many websockets, and eight times as many connections.
        connections_per_second: of one address, beyond its share.
        new_games_per_second, new_games_burst: of one address, entering a study and going on included.
        participants_per_second: of one address, beyond `address_people`.
        steps, agents, size: of one game: its time limit, its agents, cells along one side of its map.
        backlog: messages that wait for a client who does not read them, before it is let go.
        hold_seconds: time for which an agent is kept for a person who is away.
        idle_seconds: for which a game without a client is kept.
        head_seconds, upload_seconds, request_seconds, quiet_seconds: in which a new connection has sent its first
            request's head, an upload has come, a request is answered, and the next one is there.
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
    connections: int = 1024
    sockets: int = 512
    games: int = 200
    address_people: int = 50
    connections_per_second: float = 20.0
    new_games_per_second: float = 0.5
    new_games_burst: int = 60
    participants_per_second: float = 1 / 60
    steps: int = 500
    agents: int = 8
    size: int = 24
    backlog: int = 256
    hold_seconds: float = 60.0
    idle_seconds: float = 600.0
    head_seconds: float = 10.0
    upload_seconds: float = 30.0
    request_seconds: float = 300.0
    quiet_seconds: float = 60.0
    heartbeat: float = 30.0
    patience: float = 120.0

    @property
    def address_sockets(self) -> int:
        return 2 * self.address_people

    @property
    def address_connections(self) -> int:
        """A browser opens six while it loads a page."""
        return 8 * self.address_people


class Bucket:
    """Token bucket: `burst` at once, `rate` a second."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst, self._tokens, self._then = rate, burst, float(burst), time.monotonic()

    def take(self) -> bool:
        """Take a token; return False where there is none."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._then) * self._rate)
        self._then = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def give_back(self) -> None:
        """Put back a token that was taken in vain."""
        self._tokens = min(self._burst, self._tokens + 1)


class OncePerKind(logging.Filter):
    """Log filter: one record of each kind passes in so many seconds, and says how many others there were.

    A kind is a logger, a level, the first line of a message before its values are put in, and the class of the error:
    however often clients do what is logged, the log stays small.
    """

    def __init__(self, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds, self._clock = seconds, clock
        self._kinds: dict[tuple[Any, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[0] if record.exc_info else None
        kind = record.name, record.levelno, str(record.msg).partition("\n")[0][:200], error
        if kind not in self._kinds and len(self._kinds) >= _KINDS:
            kind = ("other",)
        now, (since, others) = self._clock(), self._kinds.get(kind, (float("-inf"), 0))
        if now - since < self._seconds:
            self._kinds[kind] = since, others + 1
            return False
        self._kinds[kind] = now, 0
        if others:
            record.msg, record.args = f"{record.getMessage()} (and {others} more like this)", ()
        return True
