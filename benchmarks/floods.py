"""Waits of people while others attack the server: `python -m benchmarks.floods --json floods.json` (Linux).

People play as in `benchmarks.latency`, from 127.0.0.1. Meanwhile, from other addresses of the loopback, one opens 1,100
connections whose requests never end, again and again; one takes all websockets and games that it gets; and a hundred
visitors behind a proxy, which is named to the server, ask for pages. After that one address enters a study as often
as it can.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks import latency
from magrounding.cli.command import CommandLine, program
from magrounding.errors import ConfigurationError

HOST = "127.0.0.1"
HEADS_FROM, GAMES_FROM, PROXY, STUDY_FROM = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"
UNFINISHED = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 2000
HEADS, SOCKETS, VISITORS = 1100, 512, 100
PAUSE = 2.0
"""Seconds after which an attacker tries again what was refused."""


@dataclass(frozen=True)
class Arguments(latency.Arguments):
    """Measure how long people in a browser wait for a new picture after a key, while others attack the server."""

    calm: bool = False
    """Nobody attacks, to compare."""


async def heads(port: int, said: Counter[str]) -> None:
    """One of the connections that never end their request."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, port, local_addr=(HEADS_FROM, 0))
            said["unfinished requests"] += 1
            writer.write(UNFINISHED)
            with suppress(OSError):
                await reader.read()
            writer.close()
        await asyncio.sleep(PAUSE)


async def games(session: Any, origin: str, said: Counter[str]) -> None:
    """One of the websockets of somebody who wants all games."""
    game = {"env": "ma_rtfm", "options": {"stage": "s1"}, "players": ["human", "oracle"], "pace": 0}
    while True:
        with suppress(Exception):
            async with session.ws_connect(f"{origin}/socket", headers={"Origin": origin}) as socket:
                said["attacker's websockets"] += 1
                while True:
                    await socket.send_json({"type": "create", **game})
                    answer = json.loads(await socket.receive_str())
                    refused = answer["type"] == "refused"
                    said[f"attacker's games, {answer['code'] if refused else 'made'}"] += 1
                    await asyncio.sleep(PAUSE)
        await asyncio.sleep(PAUSE)


async def visit(session: Any, origin: str, number: int, said: Counter[str]) -> None:
    """One of the visitors behind the proxy."""
    while True:
        with suppress(OSError):
            async with session.get(f"{origin}/", headers={"X-Forwarded-For": f"203.0.113.{number}"}) as answer:
                said[f"visitors behind the proxy, status {answer.status}"] += 1
        await asyncio.sleep(PAUSE)


async def attack(port: int, stop: Connection) -> Counter[str]:
    """Attack until told to stop; what came of it."""
    import aiohttp

    said, origin = Counter[str](), f"http://{HOST}:{port}"
    greedy = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, local_addr=(GAMES_FROM, 0)))
    proxy = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, local_addr=(PROXY, 0)))
    async with greedy, proxy:
        tasks = [asyncio.create_task(heads(port, said)) for _ in range(HEADS)]
        tasks += [asyncio.create_task(games(greedy, origin, said)) for _ in range(SOCKETS)]
        tasks += [asyncio.create_task(visit(proxy, origin, k, said)) for k in range(VISITORS)]
        while not stop.poll():
            await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return said


def attacking(port: int, stop: Connection) -> None:
    """In a process of its own: attack, and send back what came of it.

    Real attackers take no time of the server's own cores, so what plays is served first.
    """
    os.nice(5)
    stop.send(asyncio.run(attack(port, stop)))


async def enter_often(port: int, seconds: float) -> Counter[str]:
    """Enter a study from one address as often as it goes; codes of the answers."""
    import aiohttp

    said, origin, until = Counter[str](), f"http://{HOST}:{port}", time.monotonic() + seconds
    connector = aiohttp.TCPConnector(limit=0, local_addr=(STUDY_FROM, 0))
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one() -> None:
            async with session.ws_connect(f"{origin}/socket", headers={"Origin": origin}) as socket:
                while time.monotonic() < until:
                    await socket.send_json({"type": "enter", "consent": True, "answers": {"plays": "never"}})
                    answer = json.loads(await socket.receive_str())
                    said[answer["code"] if answer["type"] == "refused" else "entered"] += 1
                    await asyncio.sleep(0.06)  # more messages of one connection are refused

        await asyncio.gather(*(one() for _ in range(20)))
    return said


def memory(process: int) -> float:
    """MiB that a process holds."""
    return round(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20, 1)


def seconds_of(process: int) -> float:
    """Seconds of a core that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(arguments: Arguments, line: CommandLine) -> None:
    """Serve, attack, measure, print."""
    if sys.platform != "linux":
        raise ConfigurationError("attackers have addresses of the loopback of their own here, which only Linux has")
    words = "--people-per-address", str(arguments.games + 8), "--trusted-proxy", PROXY
    said, entered = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, latency.serving(*words, folder=folder) as (address, process):
        port, before = port_of(address), memory(process)
        ours, theirs = multiprocessing.Pipe()
        attacker = multiprocessing.get_context("spawn").Process(target=attacking, args=(port, theirs), daemon=True)
        if not arguments.calm:
            attacker.start()
        begin, used = time.monotonic(), seconds_of(process)
        waits = asyncio.run(latency.measure(f"http://{HOST}:{port}", arguments))
        cores = (seconds_of(process) - used) / (time.monotonic() - begin)
        if not arguments.calm:
            ours.send("stop")
            said = ours.recv()
            attacker.join()
        after, logged = memory(process), Path(folder, "log").stat().st_size
    if not arguments.calm:
        study = "--study", "example:study.toml", "--env", "ma_rtfm"
        with tempfile.TemporaryDirectory() as folder, latency.serving(*study, folder=folder) as (address, _):
            entered = asyncio.run(enter_often(port_of(address), min(10.0, arguments.seconds)))
    found = {
        "cores_of_the_server": round(cores, 2),
        "memory_before_mib": before,
        "memory_after_mib": after,
        "log_bytes": logged,
        "attack": dict(said),
        "study": dict(entered),
    }
    latency.report(waits, found, arguments, line)


def port_of(address: str) -> int:
    """Return the port in http://HOST:PORT, behind which a path may stand."""
    return int(address.split(":")[2].partition("/")[0])


main = program("python -m benchmarks.floods", __name__)

if __name__ == "__main__":
    sys.exit(main())
