"""Installed wheels, outside any checkout: every command works, also with a package of anybody's own beside ours."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest

from magrounding.teams.actor import make_expert
from magrounding.teams.evaluate import evaluate
from tests.forked import Forked
from tests.full import in_full
from tests.wheels import NEEDED, ROOT, bring_kernels, build_wheels, clean_environment, install, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), NEEDED]

GAME = ("--env", "rock_paper_scissors")
PATIENCE = 300
"""Seconds for a program to say something."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs' folder of a fresh environment with the wheels of the package and of the example."""
    wheels = build_wheels(tmp_path_factory.mktemp("wheels"), ROOT, ROOT / "examples" / "my_game")
    programs = install(tmp_path_factory.mktemp("venv"), *wheels.values())
    evaluate(make_expert, GAME[1], {}, 2)  # compiles its kernels here, if nothing has
    bring_kernels(programs)
    return programs


@pytest.fixture(scope="module")
def folder(programs, tmp_path_factory):
    """A folder that holds nothing but a run of a few steps, in `run`."""
    folder = tmp_path_factory.mktemp("elsewhere")
    brief = ("--preset", "quick", "--agent", "conv", "--budget", "0.001", "--out", "run", "evaluation.games=20")
    run(programs / "magrounding", "train", *GAME, *brief, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def command(programs, folder):
    """Call a command there, and return what it printed."""
    with Forked(programs / "python", clean_environment(), folder) as forked:

        def command(*words, module="magrounding", succeeds=True, **options):
            done = forked.run(module, *words, cwd=folder, env=clean_environment(), **options)
            assert (done.returncode == 0) == succeeds, f"{words}\n{done.stdout}\n{done.stderr}"
            return done.stdout + ("" if succeeds else done.stderr)

        yield command


def test_what_is_imported_is_the_wheel_and_no_torch(programs, tmp_path):
    code = "import sys, magrounding, my_game; print(magrounding.__file__, my_game.__file__, 'torch' in sys.modules)"
    *files, torch = run(programs / "python", "-c", code, cwd=tmp_path).split()
    assert all(Path(file).is_relative_to(programs.parent) for file in files), files
    assert torch == "False"


def test_it_says_what_there_is(programs, command, folder):
    version = command("--version")
    assert run(programs / "magrounding", "--version", cwd=folder) == version
    assert "rock_paper_scissors" in command("list", "envs")
    listed = json.loads(command("list", "extras", "--json"))["extras"]
    assert {row["id"] for row in listed} >= {"nethack", "web", "all"}
    found = json.loads(command("doctor", "--json"))
    assert version == f"magrounding {found['magrounding']['version']}\n"
    assert Path(found["magrounding"]["package"]).is_relative_to(programs.parent)


def test_it_trains_and_evaluates(command, folder):
    assert (folder / "run" / "report.md").is_file()
    assert "eval" in command("evaluate", "--run", "run", "--episodes", "20", "--play", "greedy", "--out", "evaluation")
    assert (folder / "evaluation" / "zero_shot.json").is_file()


def test_it_plays_a_match_and_replays_it(command, folder):
    assert "oracle" in command("match", *GAME, "--players", "run:run", "oracle", "--games", "5", "--out", "match")
    games = sorted((folder / "match").glob("*.jsonl"))
    assert len(games) == 2
    command("replay", games[0])


def test_it_shows_a_game(command, folder):
    command("watch", "--run", "run", "--out", "game.gif")
    assert (folder / "game.gif").read_bytes().startswith(b"GIF8")


def test_it_records_games(command, folder):
    command("record", *GAME, "--games", "3", "--out", "demos.npz")
    assert (folder / "demos.npz").stat().st_size > 0
    stopped = ("record", *GAME, "--player", "keyboard", "--games", "1", "--out", "own.npz")
    assert "no game was played to its end" in command(*stopped, succeeds=False, input="q\n")


def test_it_publishes_a_team(command):
    command("publish", "--run", "run", "--name", "mine", "--to", "teams")
    code = "import magrounding as mg; print(mg.load_team('teams/mine').num_agents)"
    assert command(code, module="-c") == "1\n"


@pytest.mark.skipif(find_spec("textual") is None, reason="the extra `play` is absent: textual")
def test_it_plays_at_a_terminal(programs, command, folder):
    assert "a game is shown at a terminal" in command("play", *GAME, succeeds=False, input="")
    ours, theirs = pty.openpty()
    line = [programs / "magrounding", "play", *GAME, "--players", "oracle"]
    terminal = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(line, cwd=folder, env=clean_environment(TERM="xterm-256color"), **terminal)
    os.close(theirs)
    try:
        shown, end = b"", time.monotonic() + PATIENCE
        while b"oracle" not in shown and process.poll() is None and time.monotonic() < end:
            if select.select([ours], [], [], 1)[0]:
                try:
                    shown += os.read(ours, 2**16)
                except OSError:  # Linux: the other end is closed
                    break
        assert b"oracle" in shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.skipif(find_spec("aiohttp") is None, reason="the extra `web` is absent: aiohttp")
def test_it_serves_a_page_until_it_is_stopped(programs, folder):
    line = [programs / "magrounding", "serve", *GAME, "--port", "0"]
    process = subprocess.Popen(line, cwd=folder, env=clean_environment(), stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().strip()
        with urlopen(address, timeout=PATIENCE) as page:
            assert b"<html" in page.read().lower()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module", params=in_full(["demo", "reinforce"], ["demo"]))
def reader(request, command):
    """The name of a run of the example's game."""
    options = ("--budget", "0.2", "--out", f"reader-{request.param}", "evaluation.games=100", "network.width=48")
    command("train", "--env", "my_game", "--preset", request.param, *options)
    return f"reader-{request.param}"


def test_a_package_of_ones_own_learns_to_read(reader, folder):
    assert "my_game" in (folder / reader / "report.md").read_text(encoding="utf-8")
    lines = map(json.loads, (folder / reader / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    ends = [
        line for line in lines if line["kind"] == "evaluation" and line["when"] == "after" and line["set"] == "eval"
    ]
    true = max(line["win_rate"] for line in ends if line["manual"] == "true")
    wrong = max(line["win_rate"] for line in ends if line["manual"] != "true")
    assert true >= 0.9, "chance is 4 ** -2"
    assert wrong < true / 2


@pytest.mark.parametrize("reader", ["demo"], indirect=True)
def test_what_it_trained_can_be_loaded_and_evaluated(reader, command):
    code = f"import magrounding as mg; policies = mg.load_team({reader!r}).policies"
    names = "print(policies[0].words.embedding_dim, *(type(policy).__name__ for policy in policies))"
    found = command(f"{code}; {names}", module="-c").split()
    assert found == ["48", "Healer", "Healer"], "network.width, not the default 32"
    assert "eval" in command("evaluate", "--run", reader, "--episodes", "50", "--play", "greedy")


def test_bad_options_of_its_game_are_one_sentence(command):
    said = command("train", "--env", "my_game", "--preset", "silg", "--out", "none", succeeds=False)
    assert "silg" in said
    assert "Traceback" not in said
