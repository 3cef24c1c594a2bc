"""Jobs on a Ray cluster: each is a task, which runs its command as a process of the node that Ray places it on.

Ray only places: weights, states and logs go through the run's folder, which all nodes have to see.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any, Self

from magrounding.errors import ConfigurationError, MissingExtra
from magrounding.experiment.jobs.forking import ForkServer
from magrounding.experiment.jobs.job import Job
from magrounding.experiment.jobs.process import JobProcess
from magrounding.signals import GONE_HOSTS
from magrounding.storage import read_text
from magrounding.threads import available_cores

RAY = "ray"
_RETRIES = 5
"""Times that a job begins anew, where it stopped, after its node, its worker or its own process was killed."""
_LOOK_SECONDS = 0.2
_STORE = 100_000_000
"""Bytes of Ray's object store on a machine where we start it: nothing goes through it."""


class JobKilled(Exception):
    """A signal ended a job's process: another attempt goes on where it stopped."""


@dataclass(frozen=True)
class Cluster:
    """Request to a cluster.

    Attributes:
        address: "ray" starts one of this machine; "ray://ADDRESS" is one that this machine belongs to, by the address
            that `ray start` printed, or "auto".
        cpus, gpus: of each job; parts of one are shared with other jobs.
        jobs: how many at a time; 0: as many as there is room for.

    Raises:
        ConfigurationError: another address, or a number that cannot be.
    """

    address: str
    cpus: float = 1.0
    gpus: float = 0.0
    jobs: int = 0

    def __post_init__(self) -> None:
        kind, _, rest = self.address.partition("://")
        if kind != RAY or (rest == "" and self.address != RAY):
            raise ConfigurationError(
                f"--cluster takes ray, of this machine, or ray://ADDRESS, e.g. ray://10.0.0.1:6379: {self.address!r}"
            )
        if not 0 < self.cpus < float("inf") or not 0 <= self.gpus < float("inf"):
            raise ConfigurationError(
                f"a job takes a positive number of cores, and of GPUs 0 or more, got {self.cpus:g} and {self.gpus:g}"
            )

    @property
    def threads(self) -> int:
        """Threads of a job: its whole cores."""
        return max(1, int(self.cpus))


class RayPlaces:
    """Runner of jobs as tasks of a Ray cluster, while entered.

    Args:
        cluster: which, and what each job takes.
        shared: a folder that all nodes have to see, at the same path.

    Raises:
        ConfigurationError: no cluster there, none of its nodes has room for a job, or one does not see the folder.
        MissingExtra: Ray is not installed.
    """

    def __init__(self, cluster: Cluster, shared: Path) -> None:
        self._cluster, self._shared = cluster, shared.absolute()
        self._refs: dict[Future[int], Any] = {}
        self._own: Path | None = None  # Ray's files, where it is started here
        self._asked = False

    @property
    def count(self) -> int:
        """Number of jobs that there is room for."""
        if self._cluster.jobs:
            return self._cluster.jobs
        return max(1, sum(self._room(node["Resources"]) for node in self._nodes()))

    def submit(self, job: Job) -> Future[int]:
        """Start a job, on whatever node has room; the future holds its exit code, or the error that Ray gave up by."""
        ref = self._run.remote(job, _environment(), Path.cwd())
        future = ref.future()
        self._refs[future] = ref
        return future

    def stop(self, only: Future[int] | None = None) -> None:
        """Ask all jobs, or `only` one, to save their states and end; asked again, they end at once."""
        for future, ref in self._refs.items():
            if not future.done() and only in (None, future):
                with suppress(Exception):  # it may have ended meanwhile
                    self._ray.cancel(ref, force=self._asked)
        self._asked = self._asked or only is None

    def __enter__(self) -> Self:
        address = self._cluster.address.partition("://")[2]
        self._ray = _import_ray(start=not address)
        try:
            with _same_signals():
                self._connect(address)
            resources = {"num_cpus": self._cluster.cpus, "num_gpus": self._cluster.gpus}
            retries = {"max_retries": _RETRIES, "retry_exceptions": [JobKilled]}
            self._run = self._ray.remote(**resources, **retries)(run_on_node)
            self._check_nodes()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def _connect(self, address: str) -> None:
        """Join the cluster at an address, or start one of this machine where there is none."""
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        if address:
            try:
                self._ray.init(address=address, **quiet)
            except (ConnectionError, ValueError, RuntimeError) as error:
                why = f"{error}".partition("\n")[0]
                raise ConfigurationError(f"there is no Ray cluster of this machine at {address!r}: {why}") from None
            return
        self._own = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # the path of a socket has 107 bytes at most
        cores = max(available_cores(), ceil(self._cluster.jobs * self._cluster.cpus))  # Ray does not see all limits
        own: dict[str, Any] = {"num_cpus": cores, "object_store_memory": _STORE, "include_dashboard": False}
        try:
            self._ray.init(address="local", _temp_dir=str(self._own), **own, **quiet)
        except Exception as error:  # the class itself, where its processes take more than half a minute to start
            why = f"{error}".partition("\n")[0]
            raise ConfigurationError(
                f"Ray did not start on this machine: {why} Leave out --cluster; --jobs needs no Ray"
            ) from None

    def _nodes(self) -> list[dict[str, Any]]:
        """The nodes that have room for a job."""
        return [node for node in self._ray.nodes() if node["Alive"] and self._room(node["Resources"])]

    def _room(self, resources: Mapping[str, float]) -> int:
        """Jobs that fit on an empty node."""
        room = resources.get("CPU", 0.0) / self._cluster.cpus
        return int(min(room, resources.get("GPU", 0.0) / self._cluster.gpus) if self._cluster.gpus else room)

    def _check_nodes(self) -> None:
        """Have every node read a file of the shared folder."""
        nodes = self._nodes()
        if not nodes:
            size = f"{self._cluster.cpus:g} cores and {self._cluster.gpus:g} GPUs"
            raise ConfigurationError(f"no node of the cluster has {size}: ask for less with --cpus-per-job")
        self._shared.mkdir(parents=True, exist_ok=True)
        token, content = self._shared / f".{secrets.token_hex(8)}.token", secrets.token_hex(8)
        token.write_text(content)
        strategies = import_module("ray.util.scheduling_strategies")
        try:
            read = self._ray.remote(num_cpus=0, max_retries=0)(read_if_there)
            asked = {}
            for node in nodes:
                where = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                asked[node["NodeManagerHostname"], node["NodeID"]] = read.options(scheduling_strategy=where).remote(
                    token
                )
            for (host, _), answer in asked.items():
                try:
                    seen = self._ray.get(answer)
                except self._ray.exceptions.RayError as error:
                    why = f"{error}".strip().splitlines()[-1]
                    raise ConfigurationError(
                        f"node {host} cannot run jobs; it needs this version of magrounding: {why}"
                    ) from None
                if seen != content:
                    raise ConfigurationError(
                        f"node {host} does not see {self._shared}: name a folder with --out that all nodes share"
                    )
        finally:
            token.unlink(missing_ok=True)


def read_if_there(path: Path) -> str | None:
    """The content of a file as this node sees it; None where it does not."""
    try:
        return read_text(path)
    except OSError:
        return None


def run_on_node(job: Job, environment: Mapping[str, str], cwd: Path) -> int:
    """Run a job's command here and return its exit code; JobKilled where a signal ended it.

    An earlier attempt may have been on a node that is gone, or end at this moment: the command takes over from it.
    """
    nodes = import_module(RAY).nodes()
    here = {node["NodeManagerHostname"] for node in nodes if node["Alive"]}
    gone = sorted({node["NodeManagerHostname"] for node in nodes} - here)
    with ForkServer({**environment, GONE_HOSTS: ",".join(gone)}, cwd if cwd.is_dir() else None) as server:
        process = JobProcess(job, server)
        try:
            code = process.wait(_LOOK_SECONDS)
        except KeyboardInterrupt:  # the task is cancelled
            process.stop()
            process.wait()
            raise
    if code < 0:
        raise JobKilled(f"{job.name} was ended by {signal.Signals(-code).name}")
    return code


def _environment() -> dict[str, str]:
    """Variables of this process that a command needs on another node."""
    return {
        name: value for name, value in os.environ.items() if name == "PYTHONPATH" or name.startswith("MAGROUNDING_")
    }


def _import_ray(start: bool) -> Any:
    """Ray, which reads some of its settings as it is imported; MissingExtra where it is not installed.

    Args:
        start: a cluster of this machine is to be started. Its processes know each other by a password of their own,
            where the user has not chosen one: Ray would leave one in the user's home.
    """
    quiet = {"RAY_DEDUP_LOGS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    settings = {**quiet, "RAY_USAGE_STATS_ENABLED": "0"}
    if start:
        settings["RAY_worker_niceness"] = "0"  # else jobs get what other programs leave
    if start and RAY not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        return import_module(RAY)
    except ModuleNotFoundError:
        raise MissingExtra("--cluster ray", RAY) from None


@contextmanager
def _same_signals() -> Iterator[None]:
    """Undo Ray's handling of SIGTERM while entered."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)
