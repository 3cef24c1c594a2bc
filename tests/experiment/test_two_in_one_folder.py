"""Two commands with one --out: the second is refused in a sentence that names the first, and nothing is mixed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from magrounding.cli import compare, evaluate, guide, pieces, play, record, segments
from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError
from magrounding.experiment.match import play_match
from magrounding.play.lineup import Lineup
from magrounding.play.owner import owned
from magrounding.play.saved_games import read_episodes

ROOT = Path(__file__).parents[2]
S1 = {"stage": "s1", "agents": 2, "max_cycles": 20}
OF_S1 = ("--env", "ma_rtfm", "--stage", "s1")


def games(folder, number):
    return play_match("ma_rtfm", S1, [Lineup.parse("random", 2)], number, folder)


def test_a_match_owns_its_folder(tmp_path):
    refused = pytest.raises(CheckpointError)
    with owned(tmp_path / "match", "the match"), refused:
        games(tmp_path / "match", 4)
    assert not (tmp_path / "match").exists()  # it was made to be owned, and nothing came into it
    games(tmp_path / "match", 4)
    assert [path.name for path in (tmp_path / "match").iterdir()] == ["games_0.jsonl"]


@pytest.mark.slow
def test_of_two_matches_at_once_one_plays_and_its_file_goes_on(tmp_path):
    code = (
        "import sys; from pathlib import Path; from magrounding.errors import CheckpointError\n"
        "from tests.experiment.test_two_in_one_folder import games\n"
        "print('ready', flush=True); input()\n"
        "try: games(Path(sys.argv[1]), 600)\n"
        "except CheckpointError as error: sys.exit(str(error))"
    )
    line = [sys.executable, "-c", code, str(tmp_path / "match")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(line, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    ends = [(process.communicate()[1], process.returncode) for process in both]
    told = "".join(error for error, code in ends if code)
    assert told == "" or re.fullmatch(r"the match in [^\n]* is running [^\n]*\n", told)  # or one after the other
    assert len(read_episodes(tmp_path / "match" / "games_0.jsonl")[1]) == 600
    assert games(tmp_path / "match", 600).games


@pytest.mark.parametrize(
    ("command", "arguments", "file"),
    [
        (record, (*OF_S1, "--games", 1), "out.npz"),
        (pieces, (*OF_S1[:2], "--stages", "s1"), "out.json"),
        (play, (*OF_S1, "--players", "random"), "out.jsonl"),
        (guide, ("--gold", "gold.jsonl"), ""),
        (evaluate, ("--pretrained", "ma_rtfm-s1-2agents", "--episodes", 1), ""),
        (segments, ("--run", "pretrained:ma_rtfm-s1-2agents"), ""),
        (compare, ("--runs", "nothing"), ""),
    ],
)
def test_other_commands_own_what_they_write(tmp_path, capsys, command, arguments, file):
    out = tmp_path / "out" / file
    with owned(out, "another", file=bool(file)):
        words = ("--out", str(out), *map(str, arguments))
        code = CommandLine(f"magrounding {command.__name__}", words).run(command)
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1), told
    assert f"is running (process {os.getpid()}" in told
    assert not list(tmp_path.iterdir())


def test_two_files_in_one_folder_are_no_conflict(tmp_path):
    with owned(tmp_path / "a.npz", "one", file=True), owned(tmp_path / "b.npz", "other", file=True):
        assert sorted(path.name for path in tmp_path.iterdir()) == [".a.npz.owner", ".b.npz.owner"]
    assert not list(tmp_path.iterdir())


def test_what_holds_something_stays(tmp_path):
    with owned(tmp_path / "new" / "out", "it"):
        (tmp_path / "new" / "out" / "file").touch()
    assert [path.name for path in (tmp_path / "new" / "out").iterdir()] == ["file"]
