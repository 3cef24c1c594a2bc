"""The waiting for language models that a match hides: `python -m benchmarks.llm_speed --json llm_speed.json`.

An endpoint in a process of its own answers each call after a fixed time. A match of many games at once should take
little longer than its longest game alone would: its moves times that time.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError, needed
from magrounding.extensions.language_models.models import LanguageModel
from magrounding.extensions.language_models.player import LanguageModels
from magrounding.storage import write_json
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import play_match
from magrounding.threads import ThreadPlan, available_cores, using

PROG = "python -m benchmarks.llm_speed"
_SERVE = "--serve"


@dataclass(frozen=True)
class Arguments:
    """Measure how long a match of language models takes, beside the time that its longest game has to wait."""

    games: int = 32
    """Games, all at once."""
    milliseconds: float = 50.0
    """Time in which the endpoint answers."""
    env: str = "ma_rtfm"
    """Environment id."""
    stage: str = "s1"
    """Stage or task of the games."""
    players: str = "llm:fixed,random"
    """Line-up; llm:fixed is the endpoint's model."""
    max_cycles: int = 60
    """Steps of a game at most."""
    repeats: int = 3
    """Matches, each of other games."""
    json: Path | None = None
    """File for the numbers."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Measure, and print a line for each match."""
    if min(arguments.games, arguments.repeats, arguments.max_cycles) < 1 or arguments.milliseconds <= 0:
        raise ConfigurationError("--games, --repeats and --max-cycles are 1 or more, --milliseconds is more than 0")
    with needed("an endpoint to measure", "web"):
        import aiohttp  # noqa: F401
    command = [sys.executable, "-m", "benchmarks.llm_speed", _SERVE, str(arguments.milliseconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            with using(ThreadPlan()):
                found = [measure(arguments, url, number) for number in range(arguments.repeats + 1)][1:]
        finally:
            server.kill()
    for each in found:
        print(
            f"{each['moves']:,} moves in {each['seconds']:.2f} s ({each['moves'] / each['seconds']:,.0f} a second): "
            f"{each['ratio']:.2f} times the {each['longest']} moves of the longest game at "
            f"{arguments.milliseconds:g} ms; load {each['load'][0]:.1f}"
        )
    if arguments.json is not None:
        machine = {"cores": available_cores(), "python": platform.python_version()}
        options = {**asdict(arguments), "json": str(arguments.json)}
        write_json(arguments.json, {"command": str(line), "options": options, "machine": machine, "matches": found})


def measure(arguments: Arguments, url: str, number: int) -> dict[str, Any]:
    """Play one match; the first, of one game, compiles what the others use."""
    options = {"stage": arguments.stage, "max_cycles": arguments.max_cycles}
    games = arguments.games if number else 1
    models = LanguageModels({"fixed": LanguageModel("fixed", url, history=2)}, arguments.games)
    agents = len(arguments.players.split(","))
    options |= {"agents": agents} if arguments.env.startswith("ma_") else {}
    lineup = Lineup.parse(arguments.players, agents, models)
    with tempfile.TemporaryDirectory() as folder, models:
        began = time.perf_counter()
        found = play_match(arguments.env, options, [lineup], games, Path(folder), seed=number * arguments.games)
        seconds = time.perf_counter() - began
    totals, longest = found.calls[lineup.name], max(game.length for game in found.games[lineup.name])
    least = longest * arguments.milliseconds / 1000
    return {
        "games": games,
        "moves": totals["moves"],
        "tries": totals["tries"],
        "longest": longest,
        "seconds": seconds,
        "ratio": seconds / least,
        "load": os.getloadavg(),
    }


def serve(seconds: float) -> None:
    """Answer each call after so many seconds, with one of its legal moves, until the process is killed."""
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        await asyncio.sleep(seconds)
        text = json.loads(body)["messages"][-1]["content"]
        moves = re.findall(r"MOVES\n(.*)", text)[-1].split(", ")
        reply = {"role": "assistant", "content": f"<move>{moves[len(body) % len(moves)]}</move>"}
        return web.json_response({"choices": [{"message": reply, "finish_reason": "stop"}]})

    async def listen() -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        print(f"http://{host}:{port}/v1", flush=True)
        await asyncio.Event().wait()

    asyncio.run(listen())


def main() -> int:
    """Measure, or serve where this process is the endpoint; return the exit code."""
    if sys.argv[1:2] == [_SERVE]:
        serve(float(sys.argv[2]) / 1000)
        return 0
    return CommandLine.of_process(PROG).run(sys.modules[__name__])


if __name__ == "__main__":
    sys.exit(main())
