"""Speed of environments and learners here: `magrounding bench --env ma_rtfm --stage s5 --json speed.json`."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import magrounding as mg
from magrounding.cli.command import CommandLine
from magrounding.cli.game_arguments import DeviceArguments, EnvArguments
from magrounding.cli.options import (
    ENV,
    Asked,
    Paths,
    assign_paths,
    assignments,
    choose_workers,
    parse_env_options,
)
from magrounding.envs.make import Game
from magrounding.schema import Count, Natural, Positive, has, parsed
from magrounding.storage import check_place, write_json
from magrounding.threads import available_cores

if TYPE_CHECKING:
    from magrounding.experiment.config import RunConfig

WINDOWS = 5
DRAWN_STEPS = 64
"""Rows of actions drawn beforehand and played in turn: enough that games differ, few enough for the cache."""
SLICES = 4
"""Turns that two settings of a learner take."""
_BETWEEN_OPTIONS = re.compile(r",(?=\s*[\w.]+=)")
"""A comma between two options; others belong to a value, such as a list."""


@dataclass(frozen=True, kw_only=True)
class Arguments(DeviceArguments, EnvArguments):
    """Measure the speed of an environment and of a learner on this machine.

    Measured: env steps/s of the vector env and of one game through PettingZoo (actions drawn beforehand, uniformly over
    all of them; observations and documents written), time and memory to create the env in a fresh process, and learner
    samples/s. An env step is one step of one game, whatever the number of its agents; a sample is one agent's step that
    its learner has learnt from. Every speed of a world is the median of several windows after a warm-up, with the
    slowest and the fastest beside it. Beside the learner's stand the copies to and from its device, a sample; of a
    network on the CPU, those that there would be.
    """

    env: str = "ma_rtfm"
    """Environment id, e.g. ma_rtfm."""
    num_envs: Count = 1024
    """Games side by side in the vector env."""
    seconds: Positive = 5.0
    """Time for each measurement, warm-up not counted."""
    threads: Natural = 0
    """Threads of the vector env. (default: all cores)"""
    learner: str | None = "txt2pi"
    """Agent whose learner to measure; None to leave it out."""
    preset: str = "paper"
    """Settings of that learner."""
    beside: str | None = None
    """Other settings of that learner or its network to measure in turn with it, e.g. chunk=0,bf16=false. (default:
    none)"""
    beside_workers: int | str | None = None
    """Other workers of the vector env to measure in turn with --workers, e.g. ray:2. (default: none)"""
    paths: Paths = ()
    """Options of the environment, that learner and its network, after all flags, e.g. env.max_cycles=80
    learner.bf16=true network.width=64."""
    json: Path | None = None
    """File to write everything to. (default: none)"""


def run(options: Arguments, line: CommandLine) -> dict[str, Any]:
    """Measure everything, printing each number as it comes, and return what the JSON file holds."""
    from magrounding.experiment.beginning import check_run
    from magrounding.experiment.stage import resolve_device

    if options.json is not None:
        check_place(options.json)
    games = _games(options)
    games.spec.require_memory(options.num_envs)
    asked = [options.workers] if options.beside_workers is None else [options.workers, options.beside_workers]
    workers, *others = ways = [choose_workers(each, games) for each in asked]
    resolve_device(options.device)
    if options.learner is not None:
        settings = _learner_settings(options, games)
        for changes in _variants(options, settings):
            check_run(assign_paths(settings, changes))
    threads = options.threads or available_cores()
    results: dict[str, Any] = {
        "env": options.env,
        "options": games.options,
        "num_envs": options.num_envs,
        "threads": threads,
        **({"workers": workers} if workers else {}),
        "machine": machine(),
    }
    named = ", ".join(f"{name}={value}" for name, value in games.options.items())
    print(f"{options.env} ({named}), {results['machine']['cores']} cores, load {results['machine']['load_average']}")

    with get_context("spawn").Pool(1) as pool:  # a fresh process: nothing is loaded, no memory has been used yet
        results["creation"] = cost = pool.apply(creation_cost, (games.id, games.options))
    print(
        f"create one game        {cost['create_seconds']:.3f} s, first reset {cost['first_reset_seconds']:.3f} s, "
        f"{cost['megabytes']:.0f} MB"
    )
    rates = vector_rates(games, options.num_envs, threads, ways, options.seconds)
    for way, name, found in zip(ways, ("", "_beside"), zip(*rates, strict=True), strict=False):
        speed = Speed.of(found)
        results[f"vector_env{name}_steps_per_second"] = asdict(speed)
        shared = f"workers={way}" if way else f"{threads} threads"
        print(f"vector env             {speed}  env steps, {options.num_envs} games, {shared}", flush=True)
    for other in others:
        ratio = Speed.of([beside / own for own, beside in rates])
        results |= {"beside_workers": other, "vector_env_ratio": asdict(ratio)}
        print(f"workers={other} by {workers}  {ratio.median:.2f}  ({ratio.slowest:.2f} … {ratio.fastest:.2f})")
    speed = single_speed(games, options.seconds)
    results["single_env_steps_per_second"] = asdict(speed)
    print(f"one game (PettingZoo)  {speed}  env steps", flush=True)
    if options.learner is not None:
        results["learner"] = learners = learner_speed(options)
        for learner in learners:
            shares = ", ".join(f"{what} {share:.0%}" for what, share in learner["shares"].items())
            chosen = ", ".join(f"{name}={value}" for name, value in learner["settings"].items())
            rate = f"{learner['samples_per_second']:,.0f} /s"
            print(f"learner                {rate}  {options.learner} samples ({chosen}): {shares}")
            ways = ("to_device", "to"), ("from_device", "from")
            sent = (
                f"{learner[f'{way}_per_sample']:.3g} copies and {learner[f'bytes_{way}_per_sample']:,.0f} B {word}"
                for way, word in ways
            )
            print(f"copies a sample        {', '.join(sent)} {learner['device']}")
        if len(learners) == 2:
            ratio = learners[0]["samples_per_second"] / learners[1]["samples_per_second"]
            results["learner_ratio"] = ratio
            print(f"ratio                  {ratio:.2f}")
    if options.json is not None:
        write_json(options.json, results)
    return results


def learner_speed(options: Arguments) -> list[dict[str, Any]]:
    """Samples/s of a curriculum's whole training loop, and where its time goes, of each of the `_variants`.

    Two are measured in turn, in slices, so that what else the machine does slows both. A slice ends with the first
    round (an unroll of every game, an update of every agent) after its time; there are at least two rounds of each.
    """
    from magrounding.agents.transfer import Transfers, counted
    from magrounding.experiment.callbacks import prepare
    from magrounding.experiment.stage import StageSession, resolve_device
    from magrounding.threads import plan_threads, using
    from magrounding.training.clock import TRAINING

    settings = _learner_settings(options, _games(options))
    phase = settings.of_stage(settings.stages[0])[-1]
    device = resolve_device(options.device)
    cuda = device.type == "cuda"
    plan = plan_threads(settings.agents, phase.num_envs, learners=settings.num_learners, cuda=cuda)

    def session(changes: Asked) -> StageSession:
        made = StageSession(assign_paths(settings, changes).resolve().segments[0], 0, device)
        prepare(made)
        made.start()
        return made

    variants = _variants(options, settings)
    with using(plan):
        measured = []
        for changes in variants:
            warm_up = session({**changes, **assignments(["learner.unroll=4"])})
            warm_up.iterate(0)
            warm_up.close()
            measured.append(session(changes))
        slices = 1 if len(variants) == 1 else SLICES
        rounds, spent, sent = [0] * len(variants), [0.0] * len(variants), [Transfers() for _ in variants]
        for _ in range(slices):
            for k, each in enumerate(measured):
                start, done = time.perf_counter(), 0
                with counted(sent[k]):
                    while done * slices < 2 or time.perf_counter() - start < options.seconds / slices:
                        each.iterate(0)
                        done += 1
                rounds[k] += done
                spent[k] += time.perf_counter() - start
    results = []
    for k, each in enumerate(measured):
        each.close()
        samples = rounds[k] * each.steps_per_update * settings.agents
        results.append(
            {
                "agent": settings.agent,
                "preset": settings.preset,
                "parameters": sum(parameter.numel() for parameter in each.learners[0].policy.parameters()),
                "phase": phase.name,
                "num_envs": phase.num_envs,
                "unroll": each.phase.learner.unroll,
                "settings": {word.partition("=")[0]: parsed(value) for word, value in variants[k].values()},
                "threads": asdict(plan),
                "samples": samples,
                "seconds": spent[k],
                "samples_per_second": samples / spent[k],
                "device": device.type,
                **{f"{way}_per_sample": number / samples for way, number in asdict(sent[k]).items()},
                "shares": {what: each.clock.spent.get(what, 0.0) / spent[k] for what in TRAINING},
            }
        )
    return results


def _asked(options: Arguments) -> tuple[dict[str, Any], Asked]:
    """Options of the environment, and of the learner and its network."""
    asked = assignments(options.paths)
    others = {} if options.learner is None else {k: v for k, v in asked.items() if not k.startswith(ENV)}
    return parse_env_options({k: v for k, v in asked.items() if k not in others}, options.entry, {}), others


def _games(options: Arguments) -> Game:
    return Game.of(options.env, {**options.stage_options(), **_asked(options)[0]})


def _learner_settings(options: Arguments, games: Game) -> RunConfig:
    """The stage's last phase alone."""
    from magrounding.experiment.config import make_config

    stage = options.named_stage
    settings = make_config(options.env, options.learner or "", options.agents, options.preset, (stage,))
    return replace(
        settings,
        phases={stage: settings.of_stage(stage)[-1:]},
        env_options={**settings.env_options, **_asked(options)[0]},
        workers=choose_workers(options.workers, games),
    )


def _variants(options: Arguments, settings: RunConfig) -> list[Asked]:
    """Return the changes of the preset's configuration in each measured variant."""
    own = _asked(options)[1]
    if options.beside is None:
        return [own]
    learner, words = settings.of_stage(settings.stages[0])[-1].learner, _BETWEEN_OPTIONS.split(options.beside)
    parts = {word.strip(): has(learner, word.partition("=")[0].strip()) for word in words}
    beside = assignments(f"{'learner' if own else 'network'}.{word}" for word, own in parts.items())
    return [own, {**own, **beside}]


@dataclass(frozen=True)
class Speed:
    """Something per second, over several windows: the median, the slowest and the fastest."""

    median: float
    slowest: float
    fastest: float

    @classmethod
    def of(cls, rates: Sequence[float]) -> Speed:
        return cls(statistics.median(rates), min(rates), max(rates))

    def __str__(self) -> str:
        return f"{self.median:,.0f} /s  ({self.slowest:,.0f} … {self.fastest:,.0f})"


def rates_in_turn(plays: Sequence[Callable[[], int]], seconds: float) -> list[tuple[float, ...]]:
    """Return the rate of each of several in each window, in which they take turns: the machine slows all of them.

    Each is called over and over, and returns how many steps it made; one window of warm-up is thrown away.
    """
    return [tuple(_rate(play, seconds / WINDOWS) for play in plays) for _ in range(WINDOWS + 1)][1:]


def _rate(play: Callable[[], int], seconds: float) -> float:
    start = time.perf_counter()
    end, steps = start + seconds, 0
    while (now := time.perf_counter()) < end or not steps:
        steps += play()
    return steps / (now - start)


def vector_rates(
    games: Game, num_envs: int, threads: int, workers: Sequence[int | str], seconds: float
) -> list[tuple[float, ...]]:
    """Env steps/s of `make_vec` with each of several `workers`, in windows of `rates_in_turn`."""
    with ExitStack() as stack:

        def player(workers: int | str) -> Callable[[], int]:
            vec = games.make_vec(num_envs, num_threads=threads, workers=workers)
            stack.enter_context(closing(vec))
            shape = (DRAWN_STEPS, num_envs, vec.num_agents)
            actions = np.random.default_rng(0).integers(0, vec.spec.num_actions, shape)
            vec.reset(seed=0)

            def play() -> int:
                for row in actions:
                    vec.step(row)
                return DRAWN_STEPS * num_envs

            return play

        return rates_in_turn([player(each) for each in workers], seconds)


def single_speed(games: Game, seconds: float) -> Speed:
    """Env steps/s of one game through PettingZoo, resets among them as they come."""
    game, num_actions = games.make(), games.spec.num_actions
    choices = np.random.default_rng(0).integers(0, num_actions, (DRAWN_STEPS, game.max_num_agents)).tolist()
    actions = [dict(zip(game.possible_agents, row, strict=True)) for row in choices]
    game.reset(seed=0)

    def play() -> int:
        for row in actions:
            game.step({agent: row[agent] for agent in game.agents})
            if not game.agents:
                game.reset()
        return DRAWN_STEPS

    with closing(game):
        return Speed.of([rate for (rate,) in rates_in_turn([play], seconds)])


def creation_cost(env: str, options: Mapping[str, Any]) -> dict[str, float]:
    """Seconds and megabytes that one game takes until its first observation; for a process of its own."""
    before = _peak_memory()
    start = time.perf_counter()
    game = mg.make(env, **options)
    created = time.perf_counter()
    game.reset(seed=0)
    ready = time.perf_counter()
    game.close()
    return {
        "create_seconds": created - start,
        "first_reset_seconds": ready - created,
        "megabytes": (_peak_memory() - before) / 2**20,
    }


def machine() -> dict[str, Any]:
    """Describe the machine that the numbers were measured on."""
    from magrounding.agents.weights import versions  # torch, which a world's own memory has nothing of
    from magrounding.experiment.rows import processor

    return {
        "system": platform.platform(),
        "processor": processor(),
        "cores": available_cores(),
        "load_average": list(os.getloadavg()),
        **versions(),
    }


def _peak_memory() -> int:
    """Bytes this process has had in memory at most."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent process had used when this one was forked
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
