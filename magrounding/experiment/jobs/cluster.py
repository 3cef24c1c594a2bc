"""Jobs on a Ray cluster: each is a task, which runs its command as a process of the node that Ray places it on.

Ray only places: weights, states and logs go through the run's folder, which all nodes have to see.
"""

from __future__ import annotations

import secrets
import signal
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any, Self

from magrounding.errors import ConfigurationError
from magrounding.experiment.jobs.forking import ForkServer
from magrounding.experiment.jobs.job import Job
from magrounding.experiment.jobs.process import JobProcess
from magrounding.ray_cluster import RAY, RayConnection, own_variables
from magrounding.signals import TAKES_OVER
from magrounding.storage import read_text

_RETRIES = 5
"""Times that a job begins anew, where it stopped, after its node, its worker or its own process was killed."""
_LOOK_SECONDS = 0.2


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
    def own_address(self) -> str:
        """Address as Ray takes it; "" of a cluster that is started here."""
        return self.address.partition("://")[2]

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
        self._asked = False

    @property
    def count(self) -> int:
        """Number of jobs that there is room for."""
        if self._cluster.jobs:
            return self._cluster.jobs
        return max(1, sum(self._room(node["Resources"]) for node in self._nodes()))

    def submit(self, job: Job) -> Future[int]:
        """Start a job, on whatever node has room; the future holds its exit code, or the error that Ray gave up by."""
        ref = self._run.remote(job, own_variables(), Path.cwd())
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
        cluster = self._cluster
        cores = ceil(cluster.jobs * cluster.cpus)
        instead = "Leave out --cluster; --jobs needs no Ray"
        self._connection = RayConnection(cluster.own_address, cores, feature="--cluster ray", instead=instead)
        self._ray = self._connection.ray
        try:
            resources = {"num_cpus": cluster.cpus, "num_gpus": cluster.gpus}
            retries = {"max_retries": _RETRIES, "retry_exceptions": [JobKilled]}
            self._run = self._ray.remote(**resources, **retries)(run_on_node)
            self._check_nodes()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _nodes(self) -> list[dict[str, Any]]:
        """The nodes that have room for a job."""
        return [node for node in self._connection.nodes() if self._room(node["Resources"])]

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

    An earlier attempt may end at this moment: the command takes over from it.
    """
    with ForkServer({**environment, TAKES_OVER: "1"}, cwd if cwd.is_dir() else None) as server:
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
