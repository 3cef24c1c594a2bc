"""A user's games of ALFWorld: of which split they are, wherever they lie, and what is said of files that are none."""

import json
import os

import pytest

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.alfworld import SPLITS
from magrounding.single.alfworld.games import Games, find_games

DOWNLOAD = {"train": "train", "valid": "valid_seen", "test": "valid_unseen"}


def write(folder, name, **changes):
    (folder / name).mkdir(parents=True)
    game = {"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", "solvable": True} | changes
    (folder / name / "game.tw-pddl").write_text(json.dumps(game))


def download(top):
    """What ALFWorld's download has in its folder of games."""
    for name in DOWNLOAD.values():
        for task in ("b", "a"):
            write(top / name, f"{task}-{name}/trial")
        write(top / name, f"pick_and_place_with_movable_recep-{name}/trial")
        write(top / name, f"pick_and_place_simple-TomatoSliced-{name}/trial")
        write(top / name, f"c-{name}/trial", solvable=False)


def tasks(folder, split):
    return [path.parent.parent.name for path in find_games(str(folder), split)]


@pytest.mark.parametrize("below", [".", "json_2.1.1", "data/alfworld/json_2.1.1", "removable_Sliced/json_2.1.1"])
def test_splits_are_found_at_any_depth(tmp_path, below):
    download(tmp_path / below)
    for split, name in DOWNLOAD.items():
        assert tasks(tmp_path, split) == [f"a-{name}", f"b-{name}"]
    games = Games(str(tmp_path), "test")
    assert (len(games), games.name(0), games.data(0)["pddl_problem"]) == (2, "trial", "p")


@pytest.mark.parametrize("split", SPLITS)
def test_a_folder_of_one_split_serves_for_no_other(tmp_path, split):
    download(tmp_path)
    folder = tmp_path / DOWNLOAD[split]
    (tmp_path / "link").symlink_to(folder)
    for other in SPLITS:
        for named in (folder, tmp_path / "link"):
            if other == split:
                assert tasks(named, other) == [f"a-{DOWNLOAD[split]}", f"b-{DOWNLOAD[split]}"]
            else:
                with pytest.raises(DataNotFound):
                    find_games(str(named), other)


@pytest.mark.parametrize("split", SPLITS)
def test_games_of_no_split_are_refused(tmp_path, split):
    write(tmp_path, "task/trial")
    with pytest.raises(ConfigurationError):
        find_games(str(tmp_path), split)
    write(tmp_path, "train/other/trial")  # beside folders that say it they are none of theirs
    if split == "train":
        assert tasks(tmp_path, split) == ["other"]


def test_splits_within_one_another_are_refused(tmp_path):
    write(tmp_path, "valid_seen/json/train/a/trial")
    for split in SPLITS:
        with pytest.raises(ConfigurationError):
            find_games(str(tmp_path), split)
    write(tmp_path / "same", "train/json/train/a/trial")
    assert tasks(tmp_path / "same", "train") == ["a"]


def test_links_are_followed_and_never_in_a_ring(tmp_path):
    elsewhere, top = tmp_path / "elsewhere", tmp_path / "top"
    write(elsewhere, "a/trial")
    write(elsewhere, "b/trial")
    (top / "train").mkdir(parents=True)
    for name, target in {
        "a": elsewhere / "a",  # out of the folder
        "twin": elsewhere / "a",  # twice the same
        "ring": top / "train",
        "up": top,
        "root": "/",
        "itself": top / "train" / "itself",
        "nowhere": tmp_path / "nowhere",
    }.items():
        (top / "train" / name).symlink_to(target)
    (top / "train" / "c").mkdir()
    (top / "train" / "c" / "game.tw-pddl").symlink_to(elsewhere / "b" / "trial" / "game.tw-pddl")
    found = [os.path.relpath(path, top / "train") for path in find_games(str(top), "train")]
    assert found == ["a/trial/game.tw-pddl", "c/game.tw-pddl"]


@pytest.mark.parametrize("link", ["valid_seen", "valid_seen/task", "valid_seen/task/trial/game.tw-pddl"])
def test_a_game_that_links_put_into_two_splits_is_refused(tmp_path, link):
    write(tmp_path, "train/task/trial")
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / link.replace("valid_seen", "train"))
    for split in SPLITS:
        with pytest.raises(ConfigurationError):
            find_games(str(tmp_path), split)


def test_folders_without_games_are_refused(tmp_path):
    with pytest.raises(DataNotFound):
        find_games(str(tmp_path), "train")
    with pytest.raises(DataNotFound):
        find_games(str(tmp_path / "nowhere"), "train")
    with pytest.raises(DataNotFound):
        find_games("x" * 5000, "train")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff\xfe{",
        b"[]",
        b'{"pddl_domain": "d", "grammar": null, "pddl_problem": "p"}',
        b'{"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", "solvable": "no"}',
    ],
    ids=range(5),
)
def test_files_that_are_no_games_end_in_a_sentence(tmp_path, content):
    write(tmp_path, "train/x")
    (tmp_path / "train" / "x" / "game.tw-pddl").write_bytes(content)
    with pytest.raises(ConfigurationError):
        find_games(str(tmp_path), "train")


def test_a_game_that_windows_wrote_is_a_game(tmp_path):
    write(tmp_path, "train/x")
    path = tmp_path / "train" / "x" / "game.tw-pddl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\r\n")
    assert Games(str(tmp_path), "train").data(0)["pddl_domain"] == "d"
