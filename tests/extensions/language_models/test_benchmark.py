"""The table of language models beside others: controls of reading, the same seeds, and going on."""

import json
from collections import Counter

import numpy as np
import pytest

import magrounding as mg
from benchmarks import language_models as command
from magrounding.cli.command import CommandLine
from magrounding.teams.lineup import Lineup
from tests.extensions.language_models.served import Served, file_of, last_legal, serving

pytest.importorskip("httpx2")
pytest.importorskip("aiohttp")


def manual_of(body):
    return body["messages"][1]["content"].partition("\n\nGOAL")[0].partition("\n\nMAP")[0]


@pytest.mark.slow
def test_a_table_is_filled_and_goes_on(tmp_path, capsys):
    words = ["--worlds", "rtfm,ma_rtfm:s2", "--games", "3", "--max-cycles", "4", "--out", str(tmp_path / "out")]

    def fill(served, *more):
        path = file_of(tmp_path, served, price={})
        path.write_text(path.read_text().replace("price = {}", "price = { in = 1.0, out = 2.0 }"))
        assert CommandLine(command.PROG, (*words, *more, "--llm", str(path))).run(command) == 0
        return json.loads((tmp_path / "out" / "language_models.json").read_text())

    with serving(Served(last_legal)) as served:
        found = fill(served)
        asked = len(served.asked)
        assert fill(served)["worlds"] == found["worlds"]
        assert len(served.asked) == asked, "nothing is asked twice"
        manuals = Counter(manual_of(body) for body in served.asked if "You play" in body["messages"][0]["content"])
    assert set(found["worlds"]) == {"rtfm", "ma_rtfm:s2"}
    two = found["worlds"]["ma_rtfm:s2"]
    assert list(two) == ["true", "reassigned", "of another game", "none", "new names"]
    pretrained = "pretrained:ma_rtfm-s2-2agents"
    assert list(two["true"]) == ["llm:small", f"llm:small,{pretrained}", pretrained, "random", "oracle"]
    assert list(two["none"]) == ["llm:small", f"llm:small,{pretrained}", pretrained]
    assert two["true"]["llm:small"]["calls"]["facts"] == 3
    assert two["none"]["llm:small"]["calls"]["facts"] == 0
    assert two["true"]["llm:small"]["calls"]["price"] > 0
    assert any(manual.startswith("MANUAL\n(nothing)") for manual in manuals)
    report = (tmp_path / "out" / "language_models.md").read_text()
    assert "| line-up | true | reassigned | of another game | none | new names |" in report
    assert "## ma_rtfm:s2" in report
    capsys.readouterr()


def test_another_text_is_read_in_the_place_of_a_games_own():
    """A trained reader meets the manual of the game 2³⁰ seeds on, or none; all else is as it was."""
    shown = []

    def watch(observation, legal, info):
        shown.append((info["game"], observation["manual"], observation["goal"]))
        return 0

    vec = mg.make_vec("rtfm", 2, max_cycles=3)
    obs, info = vec.reset(seed=5)
    own, goals = obs["manual"].copy(), obs["goal"].copy()
    other = mg.make_vec("rtfm", 2, max_cycles=3).reset(seed=5 + 2**30)[0]["manual"]
    assert (own != other).any()
    for control, texts in (("of another game", other), ("none", np.zeros_like(own))):
        shown.clear()
        plain = Lineup.parse([watch], 1)
        lineup = command.WithText(plain.players, plain.name, control=control, rules="manual")
        actor = lineup.build_actor(vec, 5)
        actor.act(obs, actor.initial_memory(2), info)
        for game, manual, goal in shown:
            assert (manual == texts[game]).all()
            assert (goal == goals[game]).all()
        reader = Lineup.parse("pretrained:rtfm-nl", 1)
        reader = command.WithText(reader.players, reader.name, control=control, rules="manual").build_actor(vec, 5)
        assert reader.act(obs, reader.initial_memory(2), info)[0].shape == (2, 1)
