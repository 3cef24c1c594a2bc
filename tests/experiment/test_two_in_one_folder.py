"""Two commands with one --out: the second is refused in a sentence that names the first, and nothing is mixed."""

import os

import pytest

from magrounding.cli import compare, evaluate, record
from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError
from magrounding.extensions.lge.cli import pieces
from magrounding.extensions.people.cli import play
from magrounding.extensions.running_text.cli import segments
from magrounding.owner import owned
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import play_match

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


@pytest.mark.parametrize(
    ("command", "arguments", "file"),
    [
        (record, (*OF_S1, "--games", 1), "out.npz"),
        (pieces, (*OF_S1[:2], "--stages", "s1"), "out.json"),
        (play, (*OF_S1, "--players", "random"), "out.jsonl"),
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
