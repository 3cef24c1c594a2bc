"""The measurement of matches of language models runs, and its counts add up; no clock is looked at."""

import json

import pytest

from benchmarks import llm_speed
from magrounding.cli.command import CommandLine

pytest.importorskip("httpx2")
pytest.importorskip("aiohttp")


def test_a_match_is_measured(tmp_path, capsys):
    out = tmp_path / "speed.json"
    words = ("--games", "3", "--milliseconds", "1", "--max-cycles", "5", "--repeats", "1", "--json", str(out))
    assert CommandLine(llm_speed.PROG, words).run(llm_speed) == 0
    (match,) = json.loads(out.read_text())["matches"]
    assert match["tries"] == match["moves"] <= 3 * 5
    assert CommandLine(llm_speed.PROG, ("--games", "0")).run(llm_speed) == 2
