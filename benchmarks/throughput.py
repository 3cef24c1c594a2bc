"""How fast the worlds and the learners are, on this machine, now.

    python -m benchmarks.throughput --env ma_rtfm --stage s5 --num-envs 1024 --seconds 5 --json speed.json

Measured: env steps/s of the vector env and of one game through PettingZoo (actions drawn beforehand, uniformly over all
of them; observations and documents written), time and memory to create the env in a fresh process, and learner
samples/s. An env step is one step of one game, whatever the number of its agents; a sample is one agent's step that its
learner has learnt from. Every speed of a world is the median of several windows after a warm-up, with the slowest and
the fastest beside it.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro

import magrounding as mg
from benchmarks.command import run_command
from benchmarks.options import parse_options
from magrounding.errors import ConfigurationError
from magrounding.registry import env_entry
from magrounding.storage import write_json
from magrounding.threads import available_cores

if TYPE_CHECKING:
    from magrounding.training.algorithms import AlgorithmConfig
    from magrounding.training.settings import RunSettings

WINDOWS = 5
SLICES = 4
"""Turns that two settings of a learner take."""
DRAWN_STEPS = 64
"""Rows of actions drawn beforehand and played in turn: enough that games differ, few enough for the cache."""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    env: str = "ma_rtfm"
    """environment id"""
    stage: str | None = None
    """stage or task; the environment's default where it is left out"""
    agents: int | None = None
    """number of agents, where the environment has the choice; its default where it is left out"""
    size: int | None = None
    """height and width of the map; the environment's default where it is left out"""
    num_envs: int = 1024
    """games side by side in the vector env"""
    seconds: float = 5.0
    """time for each measurement, warm-up not counted"""
    threads: int = 0
    """threads of the vector env; 0: all cores"""
    learner: str | None = "txt2pi"
    """agent whose learner to measure; None to leave it out"""
    preset: str = "paper"
    """settings of that learner"""
    bf16: bool = False
    """compute that learner's networks in bfloat16"""
    beside: str | None = None
    """other settings of that learner or its network to measure in turn with it, e.g. chunk=0,bf16=false"""
    json: Path | None = None
    """file to write everything to"""


@dataclass(frozen=True)
class Speed:
    """Something per second, over several windows: the median, the slowest and the fastest."""

    median: float
    slowest: float
    fastest: float

    @classmethod
    def of(cls, rates: list[float]) -> Speed:
        """Sum up the windows' rates."""
        return cls(statistics.median(rates), min(rates), max(rates))

    def __str__(self) -> str:
        return f"{self.median:,.0f} /s  ({self.slowest:,.0f} … {self.fastest:,.0f})"


def measure(play: Callable[[], int], seconds: float) -> Speed:
    """Call `play`, which returns how many steps it made, over and over; one window of warm-up is thrown away."""
    rates = []
    for _ in range(WINDOWS + 1):
        start = time.perf_counter()
        end, steps = start + seconds / WINDOWS, 0
        while (now := time.perf_counter()) < end or not steps:
            steps += play()
        rates.append(steps / (now - start))
    return Speed.of(rates[1:])


def vector_speed(env: str, options: dict[str, Any], num_envs: int, threads: int, seconds: float) -> Speed:
    """Env steps/s of `make_vec`."""
    vec = mg.make_vec(env, num_envs, num_threads=threads, **options)
    shape = (DRAWN_STEPS, num_envs, vec.num_agents)
    actions = np.random.default_rng(0).integers(0, vec.spec.num_actions, shape)
    vec.reset(seed=0)

    def play() -> int:
        for row in actions:
            vec.step(row)
        return DRAWN_STEPS * num_envs

    return measure(play, seconds)


def single_speed(env: str, options: dict[str, Any], seconds: float) -> Speed:
    """Env steps/s of one game through PettingZoo, resets among them as they come."""
    game = mg.make(env, **options)
    choices = np.random.default_rng(0).integers(0, game.spec.num_actions, (DRAWN_STEPS, game.max_num_agents)).tolist()
    actions = [dict(zip(game.possible_agents, row, strict=True)) for row in choices]
    game.reset(seed=0)

    def play() -> int:
        for row in actions:
            game.step({agent: row[agent] for agent in game.agents})
            if not game.agents:
                game.reset()
        return DRAWN_STEPS

    return measure(play, seconds)


def creation_cost(env: str, options: dict[str, Any]) -> dict[str, float]:
    """Seconds and megabytes that one game takes until its first observation; for a process of its own."""
    before = _peak_memory()
    start = time.perf_counter()
    game = mg.make(env, **options)
    created = time.perf_counter()
    game.reset(seed=0)
    ready = time.perf_counter()
    return {
        "create_seconds": created - start,
        "first_reset_seconds": ready - created,
        "megabytes": (_peak_memory() - before) / 2**20,
    }


def learner_speed(options: Options) -> list[dict[str, Any]]:
    """Samples/s of a curriculum's whole training loop, and where its time goes.

    Where other settings of the learner are asked for `beside`, both are measured in turn, in slices: what else the
    machine does then slows both. A slice ends with the first round (an unroll of every game, an update of every agent)
    after its time; there are at least two rounds, and a short warm-up before all.

    Returns:
        For the preset's settings and for those beside it: samples and seconds, `samples_per_second`, and the shares of
        `world`, `acting`, `teaching` and `learning`.
    """
    import torch

    from magrounding.threads import plan_threads, using
    from magrounding.training.clock import TRAINING
    from magrounding.training.stage import StageSession

    settings = _learner_settings(options)
    preset = settings.preset
    phase = preset.of_stage(settings.stages[0])[-1]
    plan = plan_threads(settings.agents, phase.num_envs)

    def session(**changes: Any) -> StageSession:
        made = StageSession(
            _changed(settings, changes), settings.stages[0], 0, 0, torch.device("cpu"), plan, parallel_map
        )
        made.start()
        return made

    own = {"bf16": options.bf16}
    variants = [own] if options.beside is None else [own, {**own, **_changes(options)}]
    with using(plan) as parallel_map:
        measured = []
        for changes in variants:
            session(**{**changes, "unroll": 4}).iterate(0)
            measured.append(session(**changes))
        slices = 1 if len(variants) == 1 else SLICES
        rounds, spent = [0] * len(variants), [0.0] * len(variants)
        for _ in range(slices):
            for k, each in enumerate(measured):
                start, done = time.perf_counter(), 0
                while done * slices < 2 or time.perf_counter() - start < options.seconds / slices:
                    each.iterate(0)
                    done += 1
                rounds[k] += done
                spent[k] += time.perf_counter() - start
    results = []
    for k, each in enumerate(measured):
        samples = rounds[k] * each.steps_per_update * settings.agents
        results.append(
            {
                "agent": settings.agent,
                "preset": preset.name,
                "parameters": sum(parameter.numel() for parameter in each.learners[0].policy.parameters()),
                "phase": phase.name,
                "num_envs": phase.num_envs,
                "unroll": each.phase.learner.unroll,
                "settings": variants[k],
                "threads": asdict(plan),
                "samples": samples,
                "seconds": spent[k],
                "samples_per_second": samples / spent[k],
                "shares": {what: each.clock.spent.get(what, 0.0) / spent[k] for what in TRAINING},
            }
        )
    return results


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": available_cores(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "magrounding": mg.__version__,
        **{name: version(name) for name in ("numpy", "numba", "torch")},
    }


def check(options: Options) -> None:
    """Tell what cannot work before anything is measured.

    Raises:
        ConfigurationError: an unknown environment, stage, agent or preset, or a number that makes no sense.
    """
    if options.seconds <= 0:
        raise ConfigurationError(f"--seconds must be positive, got {options.seconds}")
    if options.threads < 0:
        raise ConfigurationError(f"--threads must be 0 (all cores) or more, got {options.threads}")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise ConfigurationError(f"--json {options.json}: its folder does not exist; make it first")
    env_entry(options.env).make_world(options.num_envs, **_env_options(options))
    if options.learner is not None:
        settings = _learner_settings(options)
        if options.beside is not None:
            _changed(settings, _changes(options)).make_network()


def run(options: Options) -> dict[str, Any]:
    """Measure everything, printing each number as it comes, and return what the JSON file holds; see `check`."""
    check(options)
    env_options = _env_options(options)
    threads = options.threads or available_cores()
    results: dict[str, Any] = {
        "env": options.env,
        "options": env_options,
        "num_envs": options.num_envs,
        "threads": threads,
        "machine": machine(),
    }
    named = ", ".join(f"{name}={value}" for name, value in env_options.items())
    print(f"{options.env} ({named}), {results['machine']['cores']} cores, load {results['machine']['load_average']}")

    with get_context("spawn").Pool(1) as pool:  # a fresh process: nothing is loaded, no memory has been used yet
        results["creation"] = cost = pool.apply(creation_cost, (options.env, env_options))
    print(
        f"create one game        {cost['create_seconds']:.3f} s, first reset {cost['first_reset_seconds']:.3f} s, "
        f"{cost['megabytes']:.0f} MB"
    )
    speed = vector_speed(options.env, env_options, options.num_envs, threads, options.seconds)
    results["vector_env_steps_per_second"] = asdict(speed)
    print(f"vector env             {speed}  env steps, {options.num_envs} games, {threads} threads", flush=True)
    speed = single_speed(options.env, env_options, options.seconds)
    results["single_env_steps_per_second"] = asdict(speed)
    print(f"one game (PettingZoo)  {speed}  env steps", flush=True)
    if options.learner is not None:
        results["learner"] = learners = learner_speed(options)
        for learner in learners:
            shares = ", ".join(f"{what} {share:.0%}" for what, share in learner["shares"].items())
            chosen = ", ".join(f"{name}={value}" for name, value in learner["settings"].items())
            rate = f"{learner['samples_per_second']:,.0f} /s"
            print(f"learner                {rate}  {options.learner} samples ({chosen}): {shares}")
        if len(learners) == 2:
            ratio = learners[0]["samples_per_second"] / learners[1]["samples_per_second"]
            results["learner_ratio"] = ratio
            print(f"ratio                  {ratio:.2f}")
    if options.json is not None:
        write_json(options.json, results)
    return results


def main() -> int:
    """Run the command and return its exit code."""
    options = tyro.cli(Options, prog="python -m benchmarks.throughput", description=__doc__)
    return run_command(lambda: run(options))


def _env_options(options: Options) -> dict[str, Any]:
    """The options that were given or left at their defaults, under the names that the environment has for them."""
    entry = env_entry(options.env)
    given = {entry.stage_option: options.stage, "agents": options.agents, "size": options.size}
    default = {name: entry.options.get(name) for name in given}
    chosen = {name: default[name] if value is None else value for name, value in given.items()}
    return {name: value for name, value in chosen.items() if value is not None}


def _learner_settings(options: Options) -> RunSettings:
    from magrounding.training.settings import make_settings

    stage = _env_options(options)[env_entry(options.env).stage_option]
    settings = make_settings(options.env, options.learner or "", options.agents, options.preset, (stage,))
    if options.size is None:
        return settings
    preset = replace(settings.preset, env_options={**settings.preset.env_options, "size": options.size})
    return replace(settings, preset=preset)


def _learner_options(settings: RunSettings) -> AlgorithmConfig:
    return settings.preset.of_stage(settings.stages[0])[-1].learner


def _changed(settings: RunSettings, changes: Mapping[str, Any]) -> RunSettings:
    """One phase of the settings, with options of its learner changed, and of the network those that no learner has."""
    stage = settings.stages[0]
    phase, names = settings.preset.of_stage(stage)[-1], [field.name for field in fields(_learner_options(settings))]
    learner = replace(phase.learner, **{name: value for name, value in changes.items() if name in names})
    changed = settings.with_network({name: value for name, value in changes.items() if name not in names})
    return replace(changed, preset=replace(changed.preset, phases={stage: (replace(phase, learner=learner),)}))


def _changes(options: Options) -> dict[str, Any]:
    """Options of a learner or its network from `beside`.

    Raises:
        ConfigurationError: what neither has, or a value of another kind than the option's own.
    """
    settings = _learner_settings(options)
    known = vars(settings.make_network().config) | vars(_learner_options(settings))
    known.pop("algorithm", None)
    changes = parse_options(options.beside or "", known, "--beside")
    for name in ("unroll", "epochs", "minibatches"):
        if not changes.get(name, 1):
            raise ConfigurationError(f"--beside takes values like {name}={known[name]}, got {name}=0")
    return changes


def _peak_memory() -> int:
    """Bytes this process has had in memory at most."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent process had used when this one was forked
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


if __name__ == "__main__":
    sys.exit(main())
