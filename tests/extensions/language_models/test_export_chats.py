"""Games as chats: the messages are those that a language model has, and every line says where it is from."""

import json

import pytest

from magrounding.cli.command import CommandLine
from magrounding.extensions.language_models.cli import export_chats as command
from magrounding.extensions.language_models.player import LanguageModels
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import play_match
from magrounding.teams.saved_games import EpisodeWriter, SavedEpisode, read_episodes
from tests.extensions.language_models.served import Served, model, serving


def export(folder, *words, name="chats.jsonl"):
    """The lines of a file that the command writes."""
    out = folder / name
    assert CommandLine("magrounding export-chats", ("--out", str(out), "--quiet", *words)).run(command) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_games_of_the_oracle(tmp_path):
    words = ("--env", "ma_rtfm", "--stage", "s1", "--agents", "2", "--games", "3")
    lines = export(tmp_path, *words, "env.max_cycles=30")
    assert [(line["seed"] - lines[0]["seed"], line["agent"]) for line in lines] == [
        (game, agent) for game in range(3) for agent in (0, 1)
    ]
    for line in lines:
        assert (line["env"], line["split"], line["player"]) == ("ma_rtfm", "train", "oracle")
        assert line["options"]["split"] == "train"
        roles = [message["role"] for message in line["messages"]]
        assert roles == ["system"] + ["user", "assistant"] * ((len(roles) - 1) // 2)
        assert line["messages"][1]["content"].startswith("MANUAL\n")
        assert "MANUAL" not in line["messages"][3]["content"]
    assert all(line["won"] for line in lines)
    lost = export(tmp_path, *words, "--players", "random", "--split", "eval", "--games", "3", name="lost.jsonl")
    assert {line["split"] for line in lost} == {"eval"}
    assert not all(line["won"] for line in lost)
    as_json = export(tmp_path, *words, "--games", "1", "--reply", "json", name="json.jsonl")
    replies = [message["content"] for message in as_json[0]["messages"] if message["role"] == "assistant"]
    assert all(set(json.loads(reply)) == {"move"} for reply in replies)


def test_the_messages_are_those_that_a_model_has(tmp_path):
    pytest.importorskip("httpx2")
    pytest.importorskip("aiohttp")
    with serving(Served()) as served:
        models = LanguageModels({"small": model(served, history=99)})
        options = {"stage": "s1", "agents": 2, "max_cycles": 6}
        play_match("ma_rtfm", options, [Lineup.parse("llm:small,oracle", 2, models)], 2, tmp_path / "match")
        models.close()
    lines = export(tmp_path, "--saved", str(tmp_path / "match" / "games_0.jsonl"))
    assert [line["player"] for line in lines] == ["llm:small", "oracle"] * 2
    asked = [body["messages"] for body in served.asked]
    for line in lines[::2]:
        *had, reply = line["messages"]
        assert had in asked
        assert reply["role"] == "assistant"


def test_games_that_were_ended_are_left_out(tmp_path, capsys):
    path = tmp_path / "games.jsonl"
    play_match("rtfm", {"max_cycles": 4}, [Lineup.parse("random", 1)], 2, tmp_path / "match")
    header, episodes = read_episodes(tmp_path / "match" / "games_0.jsonl")
    ended = SavedEpisode(9, (), (), False, 0.0, 0, (0.0,), False, "its endpoint was asked in vain")
    EpisodeWriter(path, header).write([episodes[0], ended, episodes[1]])
    assert [line["seed"] for line in export(tmp_path, "--saved", str(path))] == [each.seed for each in episodes]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--env rtfm --players human",
        "--env rtfm --games 0",
        "--env rtfm --prompt few_games",
        "--env rtfm --reply verse",
        "--env rtfm --saved games.jsonl",
        "--env rtfm --players random --won --games 1 env.max_cycles=1",
    ],
)
def test_what_cannot_be_exported(tmp_path, words):
    line = CommandLine("magrounding export-chats", ("--out", str(tmp_path / "out" / "chats.jsonl"), *words.split()))
    assert line.run(command) == 2
    assert not (tmp_path / "out").exists(), "nothing is left behind"
