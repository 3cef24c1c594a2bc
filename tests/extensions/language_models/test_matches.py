"""Matches of language models: faults, kills, what is kept, and what is never written anywhere."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from magrounding.cli import evaluate as evaluation
from magrounding.cli import match as command
from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError
from magrounding.extensions.language_models.calls import Calls
from magrounding.extensions.language_models.player import LanguageModels
from magrounding.teams.lineup import CALLS_FILE, Lineup
from magrounding.teams.match import play_match
from magrounding.teams.saved_games import read_episodes, replayed
from tests.extensions.language_models.served import FAULTS, Served, file_of, last_legal, model, serving
from tests.extensions.language_models.test_endpoint import KEY, KINDS
from tests.full import in_full

pytest.importorskip("httpx2")
pytest.importorskip("aiohttp")

ROOT = Path(__file__).parents[3]
S1 = {"stage": "s1", "agents": 2, "max_cycles": 20}
SMALL = "llm:small,random"
GAMES = in_full(80, 20)
"""Games of more than a thousand moves, or of more than two hundred."""


def play(served, folder, games, players=SMALL, parallel=16, options=S1, **more):
    """Play a match of one line-up; return its games and the totals of its calls."""
    models = LanguageModels({"small": model(served, **more)}, parallel)
    try:
        found = play_match("ma_rtfm", options, [Lineup.parse(players, 2, models)], games, folder)
    finally:
        models.close()
    return found.games[players], SimpleNamespace(**found.calls[players])


def test_moves_of_an_endpoint_that_fails_one_reply_in_five(tmp_path):
    rng = random.Random(0)

    def reply(body):
        chance = rng.random()
        if chance < 0.2:
            return f"fault:{FAULTS[int(chance / 0.2 * len(FAULTS))]}"
        return last_legal(body) if chance < 0.95 else "I cannot decide."

    with serving(Served(reply)) as served:
        games, totals = play(served, tmp_path, GAMES, "llm:small", retries=1, timeout=1.0)
    assert totals.moves > in_full(1000, 200)
    assert [game.seed - games[0].seed for game in games] == list(range(GAMES))
    faults = Counter()
    for fault, many in served.faults.items():
        faults[KINDS[fault]] += many
    late = totals.call_faults["timeout"] - faults["timeout"]  # replies that a busy machine delayed
    assert late >= 0
    faults["timeout"] += late
    repeated = faults["connection"] - totals.call_faults["connection"]  # at once, where a used connection was reset
    assert 0 < repeated <= served.faults["break"]
    faults["connection"] -= repeated
    assert totals.call_faults == faults
    assert set(served.faults) == set(FAULTS)
    assert totals.tries == len(served.asked) - repeated
    assert totals.tries == totals.calls - totals.failures + sum(faults.values())
    answered = len(served.answered)
    assert totals.calls - totals.failures == answered
    assert (totals.read, totals.cached, totals.written, totals.reasoning) == tuple(
        answered * k for k in (100, 40, 7, 2)
    )
    assert totals.replies == answered
    assert totals.substituted < totals.illegal < totals.replies
    calls = Calls(tmp_path / CALLS_FILE).of("llm:small")
    failed = {call.seed for call in calls if call.failure}
    assert failed == {game.seed for game in games if game.ended_by}
    assert 0 < len(failed) <= totals.failures
    assert not any(game.won for game in games if game.ended_by)
    header, episodes = read_episodes(tmp_path / "games_0.jsonl")
    assert list(replayed(tmp_path / "games_0.jsonl", header, episodes)) == list(range(GAMES)), "no call is made"
    assert len(served.asked) == totals.tries + repeated


def test_a_match_goes_on_and_asks_nothing_twice(tmp_path):
    with serving(Served()) as served:
        whole, totals = play(served, tmp_path / "whole", 6)
        asked = len(served.asked)
        again, same = play(served, tmp_path / "whole", 6)
        assert (again, same) == (whole, totals)
        assert len(served.asked) == asked
        (tmp_path / "whole" / "games_0.jsonl").unlink()  # the replies alone are left
        assert play(served, tmp_path / "whole", 6) == (whole, totals)
        assert len(served.asked) == asked
        more, _ = play(served, tmp_path / "whole", 8)
        assert more[:6] == whole
        with pytest.raises(CheckpointError):
            play(served, tmp_path / "whole", 9, temperature=0.7)


def test_a_file_of_calls_that_is_damaged(tmp_path):
    with serving(Served()) as served:
        play(served, tmp_path, 2)
        path = tmp_path / CALLS_FILE
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])  # a kill while the last line was written
        assert len(Calls(path).of(SMALL)) == whole.count(b"\n") - 1
        assert whole.startswith(path.read_bytes())
        path.write_bytes(b"{}\n" + whole)
        with pytest.raises(CheckpointError):
            play(served, tmp_path, 4)


def line(tmp_path, served, out, *more, **options):
    words = ["--env", "ma_rtfm", "--stage", "s1", "--players", SMALL, "--games", "8"]
    path = file_of(tmp_path, served, **options)
    return [*words, "--out", str(out), "--llm", str(path), "--llm-parallel", "4", *more, "env.max_cycles=12"]


@pytest.mark.slow
def test_kill_9_and_resume(tmp_path, capsys):
    """After so many replies the server gives no more; the process is killed while it waits, and goes on elsewhere."""
    given = 30

    def reply(body):
        return "fault:stall" if len(served.answered) >= given else last_legal(body)

    with serving(Served(reply)) as served:
        words = line(tmp_path, served, tmp_path / "killed", timeout=600.0)
        around = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        killed = subprocess.Popen([sys.executable, "-m", "magrounding.cli.main", "match", *words], env=around)
        calls = tmp_path / "killed" / CALLS_FILE
        while not calls.exists() or calls.read_bytes().count(b"\n") < given:
            assert killed.poll() is None
        killed.kill()
        killed.wait()
        before = list(served.answered)
    with serving(Served()) as served:
        words = line(tmp_path, served, tmp_path / "killed")
        assert CommandLine("magrounding match", tuple(words)).run(command) == 0
        after = list(served.answered)
    with serving(Served()) as served:
        words = line(tmp_path, served, tmp_path / "whole")
        assert CommandLine("magrounding match", tuple(words)).run(command) == 0
        whole = list(served.answered)

    def counted(bodies):
        return Counter(json.dumps(body) for body in bodies)

    assert len(before) == given
    assert counted(before) + counted(after) == counted(whole), "no reply was asked for twice"
    files = [(tmp_path / name / "games_0.jsonl").read_bytes() for name in ("killed", "whole")]
    assert files[0] == files[1]
    capsys.readouterr()


def test_the_command_and_no_key_in_what_it_writes(tmp_path, capsys, caplog, monkeypatch):
    """An endpoint that repeats the key in replies and errors."""
    monkeypatch.setenv("TINY_KEY", KEY)
    caplog.set_level("DEBUG")

    def reply(body):
        if len(served.asked) % 7 == 0:
            return "fault:401"
        return f"{served.request.headers['Authorization']} {last_legal(body)}"

    with serving(Served(reply)) as served:
        path = file_of(tmp_path, served, api_key_env="TINY_KEY")
        path.write_text(f"{path.read_text()}price = {{ in = 1.0, out = 10.0 }}\n")
        words = ["--env", "ma_rtfm", "--stage", "s1", "--games", "8", "--ask-facts"]
        words += ["--players", SMALL, "oracle", "--out", str(tmp_path / "out"), "--llm", str(path), "env.max_cycles=12"]
        assert CommandLine("magrounding match", tuple(words)).run(command) == 0
    shown = capsys.readouterr()
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers in served.headers)
    found = json.loads((tmp_path / "out" / "match.json").read_text())["lineups"]
    assert "calls" not in found["oracle"]
    assert found[SMALL]["calls"]["price"] == pytest.approx(len(served.answered) * (100 * 1 + 7 * 10) / 1e6)
    assert sum(found[SMALL]["ended"].values()) >= 1
    assert "## Language models" in (tmp_path / "out" / "match.md").read_text()
    texts = [file.read_bytes().decode("utf-8", "replace") for file in tmp_path.rglob("*") if file.is_file()]
    texts += [shown.out, shown.err, caplog.text]
    assert len(texts) >= 8
    assert [text for text in texts if KEY in text] == []
    assert sum("[key]" in text for text in texts) >= 3


def test_an_evaluation_beside_trained_teams(tmp_path):
    """A line-up plays the games of a run's evaluation, and what is played again asks nothing."""
    words = ["--pretrained", "rtfm-nl", "--splits", "eval", "--episodes", "4", "--play", "greedy", "--ask-facts"]
    words += ["--players", "llm:small", "--out", str(tmp_path / "out")]
    with serving(Served()) as served:
        words += ["--llm", str(file_of(tmp_path, served)), "env.max_cycles=6"]
        for _ in range(2):
            assert CommandLine("magrounding evaluate", tuple(words)).run(evaluation) == 0
            calls = Calls(tmp_path / "out" / CALLS_FILE).of("llm:small, eval")
            assert len(served.asked) == len({call.key for call in calls})
    assert "llm:small" in (tmp_path / "out" / "zero_shot.json").read_text()
    words[words.index("llm:small")] = "human"
    assert CommandLine("magrounding evaluate", tuple(words)).run(evaluation) == 2
