"""The budget of the rooms: a room with too many tokens fails, and so does a file in no room."""

import subprocess
import sys

import pytest

from tools import budget

ROOMS = '[house]\ntokens = 300\nfiles = ["house/*"]\n'


@pytest.mark.parametrize(
    ("tokens", "name", "expected"),
    [(300, "house/deep/a.py", 0), (500, "house/deep/a.py", 1), (3, "garden/a.py", 1)],
    ids=["as much as it may have", "200 too many", "in no room"],
)
def test_a_room_has_so_many_tokens(tmp_path, tokens, name, expected):
    (tmp_path / "budget.toml").write_text(ROOMS)
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("# comments and lines cost nothing\n\n" + "a\n" * tokens)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    command = [sys.executable, budget.__file__, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == expected
