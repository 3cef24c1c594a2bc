"""Files and paths as people write them: byte-order marks, line ends of Windows, signs that end no line, "~"."""

import codecs
import gzip
import json

import pytest

import magrounding as mg
from magrounding.cli.command import CommandLine
from magrounding.cli.compare import Arguments as Compare
from magrounding.cli.train import Arguments as Train
from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.pretrained import find_run
from magrounding.single.scienceworld.trajectories import read_trajectories
from magrounding.single.script import Script
from magrounding.single.touchdown import Touchdown, files
from magrounding.storage import lines_of, read_text, user_path
from magrounding.teams.lineup import Lineup
from magrounding.teams.saved_games import Header, SavedEpisode, read_episodes, to_text
from tests.envs.people_corpus import small_corpus, write_corpus
from tests.single.test_scienceworld_trajectories import PATH
from tools.scienceworld.collect_gold import append_trajectory

NO_ENDS = "\u2028 \u2029 \x85 \x0b \x0c \x1c \x1d \x1e \r "
"""Signs that `str.splitlines` takes for ends of lines, or opening a file as text does."""


def as_windows_writes(path):
    """The same text, with a byte-order mark and other line ends."""
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))


def test_only_a_line_feed_ends_a_line():
    assert lines_of(f"a{NO_ENDS}b\r\n\nc\r\n") == [f"a{NO_ENDS}b", "", "c"]
    assert lines_of("a\n") == lines_of("a") == ["a"]
    assert lines_of("") == []


def test_a_text_loses_its_mark_and_nothing_else(tmp_path):
    (tmp_path / "x").write_bytes(codecs.BOM_UTF8 + f"\ufeff{NO_ENDS}\r\n".encode())
    assert read_text(tmp_path / "x") == f"\ufeff{NO_ENDS}\r\n"


class TestTouchdown:
    def test_files_of_windows_are_the_same_city(self, small_city):
        def read():
            return [
                files.read_nodes(small_city / files.NODES),
                files.read_links(small_city / files.LINKS),
                files.read_routes(small_city / "train.json"),
                files.read_words(small_city),
                files.read_panoramas(small_city)[0],
            ]

        before = read()
        for name in (files.NODES, files.LINKS, files.PANOIDS, files.WORDS, "train.json"):
            as_windows_writes(small_city / name)
        assert read() == before
        mg.make("touchdown", data=str(small_city)).reset(seed=0)

    def test_a_route_may_say_anything(self, small_city):
        (route,) = files.read_routes(small_city / "train.json")
        said = {"route_panoids": route.nodes, "navigation_text": "Go\u2028\u2029\x85on.", "start_heading": 0}
        text = json.dumps(said, ensure_ascii=False)
        (small_city / "train.json").write_text(f"{text}\n{text}\r\n", newline="")
        with gzip.open(small_city / "dev.json.gz", "wb") as packed:
            packed.write(codecs.BOM_UTF8 + text.encode())
        for name, count in (("train.json", 2), ("dev.json", 1)):
            found = files.read_routes(small_city / name)
            assert len(found) == count
            assert found[0].instruction == said["navigation_text"]


class TestScripts:
    def test_a_script_of_windows(self, tmp_path):
        (tmp_path / "moves.txt").write_text("left\nup * 2\n")
        as_windows_writes(tmp_path / "moves.txt")
        assert Script.load(tmp_path / "moves.txt").moves == ("left", "up", "up")


def test_gold_trajectories_of_windows_are_the_same(tmp_path):
    append_trajectory(tmp_path / "gold.jsonl", PATH)
    as_windows_writes(tmp_path / "gold.jsonl")
    assert read_trajectories(tmp_path / "gold.jsonl") == [PATH]
    text = (tmp_path / "gold.jsonl").read_text("utf-8-sig")
    (tmp_path / "gold.jsonl").write_text(text.replace('"score":100', '"score":Infinity'))
    with pytest.raises(ConfigurationError):
        read_trajectories(tmp_path / "gold.jsonl")


def test_saved_games_of_windows_are_the_same(tmp_path):
    header = Header("rtfm", {}, 1, "hash", ("stay",), ("oracle",), "greedy")
    game = SavedEpisode(3, ((0,),), ("seen",), True, 1.0, 1, (1.0,), False)
    (tmp_path / "games.jsonl").write_text(to_text(header, [game]))
    as_windows_writes(tmp_path / "games.jsonl")
    assert read_episodes(tmp_path / "games.jsonl") == (header, [game])


class TestHome:
    """ "~" is a home wherever a person names a file or a folder."""

    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))

    def test_in_options_of_worlds(self, tmp_path, small_city):
        write_corpus(tmp_path / "corpus", small_corpus())
        named, at_home = (mg.make("messenger", corpus=path) for path in (str(tmp_path / "corpus"), "~/corpus"))
        assert named.spec.words == at_home.spec.words
        mg.make("touchdown", data="~/city").reset(seed=0)

    def test_in_line_ups(self, tmp_path):
        (tmp_path / "moves.txt").write_text("stay")
        vec = mg.make_vec("rtfm", 1)
        Lineup.parse("script:~/moves.txt", 1).build_actor(vec, 0)
        with pytest.raises(MagroundingError, match=str(tmp_path / "run")):
            Lineup.parse("run:~/run", 1).build_actor(vec, 0)
        assert find_run("~/run") == tmp_path / "run"

    def test_in_flags(self, tmp_path):
        arguments = CommandLine("magrounding train", ("--env", "rtfm", "--out=~/x")).parse(Train)
        assert arguments.out == tmp_path / "x"
        compared = CommandLine("magrounding compare", ("--runs", "~/a", "b", "--out", "~/c")).parse(Compare)
        assert [*map(str, compared.runs)] == [str(tmp_path / "a"), "b"]
        with pytest.raises(ConfigurationError):
            CommandLine("magrounding train", ("--env", "rtfm", "--out=~nobody_at_all/x")).parse(Train)

    @pytest.mark.parametrize("path", ["a\0b", "~nobody_at_all/x"])
    def test_what_can_be_no_path(self, path):
        with pytest.raises(ConfigurationError):
            user_path(path)
        with pytest.raises(ConfigurationError):
            Touchdown(data=path).describe()
