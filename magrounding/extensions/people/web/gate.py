"""Gate: connections of TCP, so many in all and for each address, and none that says nothing for long."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from magrounding.errors import ConfigurationError
from magrounding.extensions.people.web.addresses import Proxies, quotas
from magrounding.extensions.people.web.limits import Limits

NAME = "magrounding"
"""The header `Server`, which names no versions."""
_LONGEST_LINE, _HEADERS = 4096, 64
_BACKLOG = 64
_CLOSING_SECONDS = 5.0
"""Seconds in which a connection that was closed may take what is still to be sent."""

LOG = logging.getLogger(__name__)


class HttpConnection(web.RequestHandler):
    """A connection of a gate, which may refuse it."""

    wire: asyncio.Transport

    def __init__(self, gate: Gate, manager: Any) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # it would hold the codes of games
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
            max_headers=_HEADERS,
        )
        self._gate, self.address, self.deadline = gate, "", math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.wire = transport
        if self._gate.admit(self, str((transport.get_extra_info("peername") or [""])[0])):
            super().connection_made(transport)
        else:
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._gate.forget(self)
        super().connection_lost(exc)

    def allow(self, seconds: float) -> None:
        """Let the connection live for so long, until the next call; for ever, it is not closed to make room either."""
        self.deadline = asyncio.get_running_loop().time() + seconds
        self._gate.heard(self)

    def log_exception(self, *args: Any, exc_info: Any = None, **more: Any) -> None:
        if isinstance(exc_info, HttpProcessingError):  # of what is no request, which aiohttp logs with its own stack
            LOG.warning("a client sends what is no request (%s): it is refused", type(exc_info).__name__)
        else:
            super().log_exception(*args, exc_info=exc_info, **more)

    def handle_error(self, request: Any, status: int = 500, exc: Any = None, message: str | None = None) -> Any:
        response = super().handle_error(request, status, exc, message)
        response.headers["Server"] = NAME
        return response


class Gate:
    """Connections to a server; where it is full, or an address has its share, the oldest one gives way.

    Args:
        most: connections in all.
        limits: of one address, and of time.
        proxies: their connections are those of many, and have no share.
    """

    def __init__(self, most: int, limits: Limits, proxies: Proxies) -> None:
        self._most, self._limits, self._proxies, self._quota = most, limits, proxies, quotas(limits)
        # Each a key, in the order in which something was last heard of them.
        self._all: dict[HttpConnection, None] = {}

    @property
    def count(self) -> int:
        return len(self._all)

    def admit(self, connection: HttpConnection, peer: str) -> bool:
        """Make room for a connection; return False where none can be made, or the peer makes too many."""
        connection.address = address = self._proxies.visitor(peer, ())
        if not self._proxies.trusts(peer):
            if not self._quota(address).connections.take():
                LOG.warning("an address makes connections faster than it may: they are refused")
                return False
            own = [each for each in self._all if each.address == address]
            if len(own) >= self._limits.address_connections and not self._make_room(own):
                return False
        if len(self._all) >= self._most and not self._make_room(self._all):
            return False
        self._all[connection] = None
        connection.allow(self._limits.head_seconds)
        return True

    def heard(self, connection: HttpConnection) -> None:
        if connection in self._all:
            del self._all[connection]
            self._all[connection] = None

    def forget(self, connection: HttpConnection) -> None:
        self._all.pop(connection, None)

    def close_late(self) -> None:
        """Close connections whose time is over, and those that were closed and do not take what is sent to them."""
        now = asyncio.get_running_loop().time()
        for connection in list(self._all):
            if connection.deadline <= now:
                self._abort(connection)
            elif connection.wire.is_closing():
                connection.deadline = min(connection.deadline, now + _CLOSING_SECONDS)

    def _make_room(self, connections: Iterable[HttpConnection]) -> bool:
        LOG.warning("there are as many connections as may be: the oldest that wait for nothing are closed")
        oldest = next((each for each in connections if each.deadline < math.inf), None)
        if oldest is not None:
            self._abort(oldest)
        return oldest is not None

    def _abort(self, connection: HttpConnection) -> None:
        self.forget(connection)
        connection.wire.abort()


@asynccontextmanager
async def listening(
    app: web.Application, limits: Limits, proxies: Proxies, host: str, port: int
) -> AsyncIterator[tuple[Gate, int]]:
    """Listen at an address while entered; yield the gate, and the port.

    ConfigurationError where nothing can listen there.
    """
    runner = web.AppRunner(app, shutdown_timeout=2.0)
    await runner.setup()
    try:
        gate = Gate(most_connections(limits), limits, proxies)
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(lambda: HttpConnection(gate, runner.server), host, port, backlog=_BACKLOG)
        except OSError as error:
            raise ConfigurationError(
                f"nothing can listen at {host}, port {port} ({error.strerror}): name another --port"
            ) from None
        closing = loop.create_task(_close_late(gate))
        try:
            yield gate, server.sockets[0].getsockname()[1]
        finally:
            closing.cancel()
            server.close()
    finally:
        await runner.cleanup()


async def _close_late(gate: Gate) -> None:
    while True:
        await asyncio.sleep(1.0)
        gate.close_late()


def most_connections(limits: Limits) -> int:
    """Return how many connections the system allows, up to the limit: one that is a file too many stops the server."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        enough = 2 * limits.connections
        if soft != resource.RLIM_INFINITY and soft < enough:
            soft = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft != resource.RLIM_INFINITY:
            return min(limits.connections, soft // 2)  # games and files need others
    return limits.connections
