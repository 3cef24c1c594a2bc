"""Touchdown's files: their statistics, and what wrong, damaged and packed files lead to."""

import gzip

import numpy as np
import pytest

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.alfworld.games import find_games
from magrounding.single.touchdown import Touchdown, files

ROUTE = '{"route_panoids": ["p", "q"], "navigation_text": "", "start_heading": %s}'
WRONG = [
    ("nodes.txt", ""),
    ("nodes.txt", "a,north,2,3\n"),
    ("links.txt", "nowhere,1,AxA\n"),
    ("train.json", "[1]\n"),
    ("train.json", "\n"),
    ("train.json", ROUTE % 1),
    ("train.json", ROUTE % "NaN"),
    ("words.json", "{}"),
    ("words.json", '{"words": [], "longest": true}'),
    ("panoids.txt", "a\n"),
    ("panoramas.npz", "x"),
]


@pytest.mark.parametrize(("file", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_files_end_in_a_sentence(small_city, file, text):
    (small_city / file).write_text(text)
    with pytest.raises(ConfigurationError):
        Touchdown(data=str(small_city)).make_env()


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_archive_of_panoramas_ends_in_a_sentence(small_city, damage):
    """One without its end is no archive any more; one with other bytes within cannot be unpacked."""
    path = small_city / "panoramas.npz"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    if damage == "flipped":
        data[middle : middle + 8] = bytes(byte ^ 255 for byte in data[middle : middle + 8])
    path.write_bytes(data[:middle] if damage == "cut" else data)
    with pytest.raises(ConfigurationError):
        Touchdown(data=str(small_city)).make_env()


@pytest.mark.parametrize("find", [Touchdown.describe, lambda options: find_games(options.data, "train")])
def test_a_home_of_nobody_is_refused(find):
    with pytest.raises(ConfigurationError):
        find(Touchdown(data="~nobody_at_all/city"))


def test_missing_files_are_named(small_city, tmp_path):
    with pytest.raises(DataNotFound):
        Touchdown(data=str(tmp_path / "nowhere")).describe()
    (small_city / "panoramas.npz").unlink()
    with pytest.raises(DataNotFound):
        Touchdown(data=str(small_city)).make_env()


def test_an_array_of_objects_is_not_opened(small_city):
    (small_city / "panoramas.npz").unlink()
    np.save(small_city / "panoramas.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ConfigurationError):
        Touchdown(data=str(small_city)).make_env()


def test_packed_routes_are_the_same_routes(small_city):
    plain = files.read_routes(small_city / "train.json")
    (small_city / "train.json.gz").write_bytes(gzip.compress((small_city / "train.json").read_bytes()))
    (small_city / "train.json").unlink()
    assert files.read_routes(small_city / "train.json") == plain
