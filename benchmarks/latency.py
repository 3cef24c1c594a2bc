"""From a key to the new picture, with many games at once: `python -m benchmarks.latency --json latency.json`.

The server is a process of its own, `magrounding serve`; its visitors are websockets of this one, over loopback. Each
plays a game with an agent: it waits as a hurried person would, sends a move, and measures the time until the next frame
is there, and has been read as JSON. What a browser then takes to draw it comes on top.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from magrounding.cli.command import CommandLine, program
from magrounding.errors import ConfigurationError, needed
from magrounding.registry import env_entry
from magrounding.storage import json_text, write_json
from magrounding.threads import available_cores


@dataclass(frozen=True)
class Arguments:
    """Measure how long people in a browser wait for a new picture after a key, with many games at once."""

    games: int = 50
    """Games at once, with one person each."""
    seconds: float = 30.0
    """For how long."""
    env: str = "ma_rtfm"
    """Environment id."""
    stage: str = "s5"
    """Stage or task of the games."""
    ally: str = "oracle"
    """Player of the other agents, by its name in `magrounding serve`."""
    wait: tuple[float, float] = (0.3, 1.0)
    """Seconds between a picture and the next key, least and most."""
    json: Path | None = None
    """File for the numbers."""


async def play(
    session: Any,
    address: str,
    arguments: Arguments,
    rng: random.Random,
    seconds: float,
    options: dict[str, Any],
    together: asyncio.Barrier,
) -> list[float]:
    """One person's waits, in seconds, from when all are there and for so long."""
    waits: list[float] = []
    async with session.ws_connect(f"{address}/socket", headers={"Origin": address}) as socket:

        async def hear(*kinds: str) -> dict[str, Any]:
            while True:
                message = json.loads(await socket.receive_str())
                if message["type"] == "refused":
                    raise ConfigurationError(f"the server refused: {message['sentence']}")
                if message["type"] in kinds:
                    return message

        players = ["human", *[arguments.ally] * (options.get("agents", 1) - 1)]
        game = {"env": arguments.env, "options": options, "players": players, "seed": rng.randrange(10_000), "pace": 0}
        await socket.send_json({"type": "create", **game})
        await socket.send_json({"type": "join", "code": (await hear("created"))["code"]})
        await hear("joined")
        frame = await hear("frame")
        await together.wait()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await asyncio.sleep(rng.uniform(*arguments.wait))
            if frame["over"]:
                await socket.send_json({"type": "restart", "seed": "next"})
                frame = await hear("frame")
                continue
            legal = frame["moves"].get("0")
            if not legal:  # the agent is out, and the others play on
                frame = await hear("frame")
                continue
            move = {"type": "move", "agent": 0, "step": frame["step"], "action": rng.choice(legal)}
            begin = time.perf_counter()
            await socket.send_json(move)
            frame = await hear("frame")
            waits.append(time.perf_counter() - begin)
    return waits


async def measure(address: str, arguments: Arguments) -> list[float]:
    """The waits of all, in seconds; those of somebody before, for whom kernels may be compiled, do not count."""
    import aiohttp

    entry = env_entry(arguments.env)
    options = entry.with_stage(arguments.stage) | ({"agents": 2} if entry.multi_agent else {})
    async with aiohttp.ClientSession() as session:
        await play(session, address, arguments, random.Random(-1), 10.0, options, asyncio.Barrier(1))
        all_there = asyncio.Barrier(arguments.games)
        people = [
            play(session, address, arguments, random.Random(k), arguments.seconds, options, all_there)
            for k in range(arguments.games)
        ]
        return [wait for waits in await asyncio.gather(*people) for wait in waits]


def run(arguments: Arguments, line: CommandLine) -> None:
    """Serve, measure, print."""
    most = str(arguments.games + 8)
    with serving("--games", most, "--people-per-address", most) as (address, _):
        waits = asyncio.run(measure(address, arguments))
    rate = {"keys_per_second": round(len(waits) / arguments.seconds, 1), "python": platform.python_version()}
    report(waits, rate, arguments, line)


@contextmanager
def serving(*words: str, folder: str | None = None) -> Iterator[tuple[str, int]]:
    """`magrounding serve` in a process of its own: its address and its id; a folder gets its games and its `log`."""
    with needed("playing in a browser", "web"):
        import aiohttp  # noqa: F401
    out = () if folder is None else ("--out", f"{folder}/out")
    serve = [sys.executable, "-m", "magrounding.cli.main", "serve", "--port", "0", *out, *words]
    log = None if folder is None else Path(folder, "log")
    with (
        nullcontext() if log is None else log.open("w") as errors,
        subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            address = (process.stdout.readline() if process.stdout else "").strip()
            if not address:
                raise ConfigurationError(f"the server did not start{'' if log is None else f': {log.read_text()}'}")
            yield address.rstrip("/"), process.pid
        finally:
            process.terminate()


def report(waits: Sequence[float], more: dict[str, Any], arguments: Arguments, line: CommandLine) -> None:
    """Print and write the waits of all keys, in seconds, and what else was measured."""
    if not waits:
        raise ConfigurationError("no key was answered in that time: allow more --seconds")
    median, late = np.percentile(1000 * np.array(waits), (50, 99)).tolist()
    result = {
        "command": str(line),
        "asked": {name: str(each) if isinstance(each, Path) else each for name, each in asdict(arguments).items()},
        "keys": len(waits),
        "median_ms": round(median, 2),
        "p99_ms": round(late, 2),
        "largest_ms": round(1000 * max(waits), 2),
        **more,
        "cores": available_cores(),
        "load_average": [round(each, 2) for each in os.getloadavg()],
    }
    print(json_text(result, indent=2))
    if arguments.json is not None:
        write_json(arguments.json, result)


main = program("python -m benchmarks.latency", __name__)

if __name__ == "__main__":
    sys.exit(main())
