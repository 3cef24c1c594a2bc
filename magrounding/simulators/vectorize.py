"""`vectorize`: any PettingZoo or Gymnasium env as a VectorEnv."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any

from magrounding.errors import ConfigurationError, check_bool
from magrounding.plain import plain
from magrounding.simulators.process import ProcessVectorEnv, others
from magrounding.simulators.serial import SerialVectorEnv
from magrounding.simulators.worker import Recipe
from magrounding.spec import EnvSpec
from magrounding.vector import check_count

TIMEOUT = 60.0
MAX_ENVS, MAX_WORKERS = 2**16, 256
"""Each row is an env of its own, each worker a process: more than any machine is helped by."""


def vectorize(
    make_env: Callable[[], Any],
    num_envs: int,
    workers: int | str = 0,
    *,
    id: str = "",
    options: Mapping[str, Any] = MappingProxyType({}),
    spec: EnvSpec | None = None,
    timeout: float = TIMEOUT,
    copy: bool = False,
) -> SerialVectorEnv | ProcessVectorEnv:
    """Play many copies of any PettingZoo parallel env, or single-agent Gymnasium env, as a `VectorEnv`.

    Row b's first episode is reset with seed + b, its k-th with a hash of seed + b and k: arrays do not depend on the
    number of workers. `infos` of an env may have `won` (or `is_success`, `success`), `score`, `illegal`, `document` and
    `action_mask`; see `env_row` and, for observations, `spaces.spec_of`. Whatever an env shows that does not fit its
    spaces is refused in the step that it comes with: a ConfigurationError, nothing of it written.

    Args:
        make_env: makes one env; a lambda is fine, as it is pickled by value.
        num_envs: B.
        workers: 0 plays in this process; others are processes that share the rows evenly, are replaced when they die
            or hang, and end with this one; no more than B are started. "ray:K" are K actors of Ray, on the cluster that
            the variable RAY_ADDRESS names, or without it on one of this machine, which is started for them.
        id, options: how the envs were made, so that others can make them again.
        spec: what they show and take, where the env does not say and its spaces say too little.
        timeout: seconds without an answer after which a worker hangs; one that starts has a minute more.
        copy: return fresh arrays instead of buffers that the next step overwrites.

    Returns:
        A vector env with the capabilities "expert" and "state" where the env has `best_actions` and `state`.

    Raises:
        ConfigurationError: an env, a space or a number that does not fit; what make_env raises is raised as it is.
        SimulatorError: a worker that does not start.
    """
    num_envs, workers = check_count("num_envs", num_envs, 1, MAX_ENVS), check_workers(workers, timeout)
    copy = plain(copy)
    check_bool("copy", copy)
    if not callable(make_env) or not isinstance(id, str) or not isinstance(options, Mapping):
        raise ConfigurationError(
            f"vectorize takes a function that makes an env, got {make_env!r}; id and options are a string and a dict, "
            f"got {id!r} and {options!r}"
        )
    if spec is not None and not isinstance(spec, EnvSpec):
        raise ConfigurationError(f"spec must be an EnvSpec or None, got {spec!r}")
    recipe, options = Recipe(make_env, num_envs, spec), plain(dict(options))
    if not workers:
        return SerialVectorEnv(recipe, id, options, copy)
    return ProcessVectorEnv(recipe, workers, id, options, copy, timeout)


def check_workers(workers: int | str, timeout: float = TIMEOUT) -> int | str:
    """Return the number of worker processes, or "ray:K".

    Raises:
        ConfigurationError: it, or their time-out, is neither.
        MissingExtra: Ray is not installed.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0:
        raise ConfigurationError(f"timeout must be a number of seconds above 0, got {timeout!r}")
    if not isinstance(workers, str):
        return check_count("workers", workers, 0, MAX_WORKERS)
    count, kind = others(workers)
    if not 1 <= count <= MAX_WORKERS:
        raise ConfigurationError(
            f"workers are a number of processes, or ray:K for K up to {MAX_WORKERS} actors of Ray, got {workers!r}"
        )
    kind.check(workers)  # before anything is written; a batch that is made would say it later
    return workers
