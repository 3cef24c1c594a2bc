"""Jobs on a Ray cluster: each is a task, which runs its command as a process of the node that Ray places it on.

Ray only places: weights, states and logs go through the run's folder, which all nodes have to see.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from math import ceil
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Self

from magrounding.errors import ConfigurationError
from magrounding.experiment.jobs.forking import ForkServer
from magrounding.experiment.jobs.job import Job
from magrounding.experiment.jobs.process import JobProcess
from magrounding.extensions.cluster.ray_cluster import RayConnection, own_variables
from magrounding.signals import TAKES_OVER
from magrounding.storage import read_bytes

_RETRIES = 5
"""Times that a job begins anew, where it stopped, after its node, its worker or its own process was killed."""
_LOOK_SECONDS = 0.2


class JobKilled(Exception):
    """A signal ended a job's process: another attempt goes on where it stopped."""


class RayPlaces:
    """Runner of jobs as tasks of a Ray cluster, while entered.

    Args:
        address: of one that this machine belongs to, as `ray start` printed it, or "auto"; "": one of this machine is
            started.
        shared: a folder that all nodes have to see, at the same path.
        cpus, gpus: of each job; parts of one are shared with other jobs.
        jobs: how many at a time; 0: as many as there is room for.

    Raises:
        ConfigurationError: no cluster there, none of its nodes has room for a job, or one does not see the folder.
        MissingExtra: Ray is not installed.
    """

    def __init__(self, address: str, shared: Path, cpus: float = 1.0, gpus: float = 0.0, jobs: int = 0) -> None:
        self._address, self._shared, self._jobs = address, shared.absolute(), jobs
        self._takes = {"CPU": cpus, "GPU": gpus} if gpus else {"CPU": cpus}
        self._refs: dict[Future[int], Any] = {}
        self._asked = False

    @property
    def count(self) -> int:
        """Number of jobs that there is room for."""
        return self._jobs or max(1, sum(map(self._room, self._connection.nodes())))

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
        cores = ceil(self._jobs * self._takes["CPU"])
        instead = "Leave out --cluster; --jobs needs no Ray"
        self._connection = RayConnection(self._address, cores, feature="--cluster ray", instead=instead)
        self._ray = self._connection.ray
        try:
            remote = self._ray.remote(
                num_cpus=self._takes["CPU"],
                num_gpus=self._takes.get("GPU", 0),
                max_retries=_RETRIES,
                retry_exceptions=[JobKilled],
            )
            self._run = remote(run_on_node)
            self._check_nodes()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _room(self, node: Mapping[str, Any]) -> int:
        """Jobs that fit on a node while it is empty."""
        return int(min(node["Resources"].get(name, 0.0) / each for name, each in self._takes.items()))

    def _check_nodes(self) -> None:
        """Have every node that has room for a job read a file of the shared folder."""
        nodes = list(filter(self._room, self._connection.nodes()))
        if not nodes:
            raise ConfigurationError(f"no node of the cluster has {self._takes}: ask for less with --cpus-per-job")
        self._shared.mkdir(parents=True, exist_ok=True)
        strategy = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        read = self._ray.remote(num_cpus=0, max_retries=0)(read_bytes)
        with NamedTemporaryFile(dir=self._shared, prefix=".") as file:
            path = Path(file.name)
            asked = [read.options(scheduling_strategy=strategy(n["NodeID"], soft=False)).remote(path) for n in nodes]
            for node, answer in zip(nodes, asked, strict=True):
                try:
                    self._ray.get(answer)
                except (self._ray.exceptions.RayError, OSError) as error:
                    why = f"{error}".strip().splitlines()[-1]
                    raise ConfigurationError(
                        f"node {node['NodeManagerHostname']} does not see {self._shared}, or has not this version of "
                        f"magrounding: name a folder with --out that all nodes share ({why})"
                    ) from None


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
