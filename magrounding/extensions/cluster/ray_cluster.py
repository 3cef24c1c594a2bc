"""The Ray cluster that this process is connected to: one that runs already, or one of this machine, started for it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from magrounding.errors import ConfigurationError, needed
from magrounding.threads import available_cores

RAY = "ray"
_STORE = 100_000_000
"""Bytes of Ray's object store on a machine where we start it: what goes through it is read at once."""
_DIRECT = 2**20
"""Bytes of an answer that Ray sends back by itself, where we start it: by way of the object store, which is Ray's rule
from a tenth of that on, a call of an actor takes 1 ms of a core more."""
_REACH_SECONDS = 10.0
"""Time for a TCP connection to a cluster's address. Ray itself waits for minutes where nothing listens."""

_lock = threading.Lock()
_users = 0
"""Connections of this process that are not closed: Ray has one for all of them."""
_theirs = False
"""The program had called `ray.init` before: its connection stays."""
_folder: Path | None = None
"""Ray's files, where it was started here."""


class RayConnection:
    """Use of a Ray cluster by this process until `close`; several may be open at a time, of the same cluster.

    Args:
        address: of a cluster that this machine belongs to, as `ray start` printed it, or "auto"; "" starts one of this
            machine, which ends with the last connection. A process that is connected already stays where it is.
        cores: of a cluster that is started, at least.
        feature: what needs Ray, for errors.
        instead: what to do without it, for errors.

    Raises:
        ConfigurationError: no cluster there, or Ray does not start.
        MissingExtra: Ray is not installed.

    Attributes:
        ray: the module.
    """

    def __init__(self, address: str, cores: int, *, feature: str, instead: str) -> None:
        global _users, _theirs
        with _lock:
            self.ray = _import_ray(feature, start=not address)
            if not _users:
                _theirs = self.ray.is_initialized()
                if not _theirs:
                    try:
                        with _same_signals():
                            self._join(address) if address else self._start(cores, instead)
                    except BaseException:
                        self._leave()
                        raise
            _users += 1
        self._open = True

    def nodes(self) -> list[dict[str, Any]]:
        """Return Ray's descriptions of the nodes that live."""
        return [node for node in self.ray.nodes() if node["Alive"]]

    def close(self) -> None:
        """Leave the cluster; one that was started here ends with the last connection. A second call does nothing."""
        global _users
        with _lock:
            if not self._open:
                return
            self._open = False
            _users -= 1
            if not _users and not _theirs:
                self._leave()

    def _join(self, address: str) -> None:
        try:
            _reach(address)
            self.ray.init(address=address, **_QUIET)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            why = f"{error}".partition("\n")[0]
            raise ConfigurationError(f"there is no Ray cluster of this machine at {address!r}: {why}") from None

    def _start(self, cores: int, instead: str) -> None:
        global _folder
        _folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # the path of a socket has 107 bytes at most
        cores = max(available_cores(), cores)  # Ray does not see all limits
        own: dict[str, Any] = {"num_cpus": cores, "object_store_memory": _STORE, "include_dashboard": False}
        try:
            self.ray.init(address="local", _temp_dir=str(_folder), **own, **_QUIET)
        except Exception as error:  # the class itself, where its processes take more than half a minute to start
            why = f"{error}".partition("\n")[0]
            raise ConfigurationError(f"Ray did not start on this machine: {why} {instead}") from None

    def _leave(self) -> None:
        global _folder
        self.ray.shutdown()
        if _folder is not None:
            shutil.rmtree(_folder, ignore_errors=True)
            _folder = None


_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}


def own_variables() -> dict[str, str]:
    """Return the variables of this process that its work on another node needs."""
    return {
        name: value for name, value in os.environ.items() if name == "PYTHONPATH" or name.startswith("MAGROUNDING_")
    }


def _reach(address: str) -> None:
    """Raise OSError where nothing listens at a host and a port; other addresses, such as "auto", are Ray's to find."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()


def _import_ray(feature: str, start: bool) -> Any:
    """Ray, which reads some of its settings as it is imported; MissingExtra where it is not installed.

    Args:
        feature: what needs it.
        start: a cluster of this machine is to be started. Its processes know each other by a password of their own,
            where the user has not chosen one: Ray would leave one in the user's home.
    """
    settings = {
        "RAY_DEDUP_LOGS": "1",
        "RAY_DEDUP_LOGS_SKIP_REGEX": "^",  # else a node prints a paragraph here about each actor that dies
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    if start:
        settings["RAY_worker_niceness"] = "0"  # else jobs get what other programs leave
        settings["RAY_max_direct_call_object_size"] = f"{_DIRECT}"
    if start and RAY not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    with needed(feature, RAY):
        return import_module(RAY)


@contextmanager
def _same_signals() -> Iterator[None]:
    """Undo Ray's handling of SIGTERM while entered."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)
