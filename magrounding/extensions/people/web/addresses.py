"""Addresses: where a request comes from, behind proxies too, and what each address may take of the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from magrounding.errors import ConfigurationError
from magrounding.extensions.people.web.limits import Bucket, Limits

_REMEMBERED = 4096
"""Addresses that are remembered; past them those that asked longest ago are forgotten."""
_PREFIX = 64
"""Bits of an IPv6 address that tell visitors apart: the rest each of them may choose."""

_AT_ONCE = 2
"""Games of one address that are made at the same time."""

LOG = logging.getLogger(__name__)


class Proxies:
    """Proxies whose `X-Forwarded-For` is believed.

    Args:
        texts: addresses and networks, such as "127.0.0.1" and "10.0.0.0/8"; ConfigurationError for anything else.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        for text in texts:
            try:
                self._networks.append(ip_network(text))
            except ValueError:
                raise ConfigurationError(
                    f"--trusted-proxy takes addresses and networks, such as 127.0.0.1 or 10.0.0.0/8, got {text!r}"
                ) from None

    def trusts(self, address: str) -> bool:
        found = _parsed(address)
        return found is not None and any(found in network for network in self._networks)

    def visitor(self, peer: str, forwarded: Sequence[str]) -> str:
        """Return the address to which a request counts.

        Args:
            peer: the other end of the connection.
            forwarded: the request's X-Forwarded-For headers. Each proxy has appended the one that it was asked by, so
                they are read from the end, up to the first that is no trusted proxy: what stands before, anybody may
                have written.
        """
        if not self.trusts(peer):
            if forwarded:
                LOG.warning(
                    "a proxy that is not named asks for others: they share the limits of one address, unless "
                    "--trusted-proxy names it (here: %s)",
                    peer,
                )
            return _counted(peer)
        for hop in reversed([part.strip() for line in forwarded for part in line.split(",")]):
            if _parsed(hop) is None:
                break
            peer = hop
            if not self.trusts(hop):
                break
        return _counted(peer)


class Quota:
    """The share of one address that is left.

    Attributes:
        address: to which it belongs.
        connections, requests, heavy, new_games, participants: see `Limits`.
        sockets: websockets that it has open.
        making: held while one of its games is made. Each is made in a thread, and many threads at once would hold up
            the games of all others.
    """

    def __init__(self, address: str, limits: Limits) -> None:
        self.address, self.sockets = address, 0
        self.connections = Bucket(limits.connections_per_second, limits.address_connections)
        self.requests = Bucket(limits.requests_per_second, limits.request_burst)
        self.heavy = Bucket(limits.heavy_per_second, limits.heavy_burst)
        self.new_games = Bucket(limits.new_games_per_second, limits.new_games_burst)
        self.making = asyncio.Semaphore(_AT_ONCE)
        self.participants = Bucket(limits.participants_per_second, limits.address_people)


def quotas(limits: Limits) -> Callable[[str], Quota]:
    """Return the function address → its quota, of all addresses that were seen lately."""
    return lru_cache(_REMEMBERED)(lambda address: Quota(address, limits))


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text, which may have a port, as some proxies write it; None where there is none."""
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    host = host.partition(":")[0] if host.count(":") == 1 else host
    try:
        found = ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _counted(text: str) -> str:
    """Return the name under which an address is counted: of IPv6 its network."""
    found = _parsed(text)
    if isinstance(found, IPv6Address):
        return str(ip_network((int(found) >> 128 - _PREFIX << 128 - _PREFIX, _PREFIX)))
    return text if found is None else str(found)
