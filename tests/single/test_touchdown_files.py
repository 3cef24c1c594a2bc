"""Touchdown's files: the statistics of the public graph, and what wrong, damaged and packed files lead to."""

import gzip
import json

import numpy as np
import pytest

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.alfworld.games import find_games
from magrounding.single.touchdown import Touchdown, files
from magrounding.single.touchdown.city import FAR, Graph
from tools.touchdown.statistics import PUBLIC, check_public_graph, graph_statistics, route_statistics
from tools.touchdown.statistics import main as statistics_command


def graph_like_the_public_one():
    """Nodes and links of a graph with the public one's numbers: a ring, a dead end, and ways across at random."""
    count, rng = PUBLIC["nodes"], np.random.default_rng(0)
    nodes = [files.Node(f"{k:022d}", float(k % 360), 40 + k / 1e6, -73.9) for k in range(count)]
    ring = [(k, (k + 1) % (count - 1)) for k in range(count - 1)] + [(count - 1, 7)]
    ways = {*ring, *((b, a) for a, b in ring), (7, 100), (7, 200)}
    degree = np.bincount([a for a, _ in ways], minlength=count)
    while len(ways) < PUBLIC["links"]:
        a, b = (int(x) for x in rng.integers(count, size=2))
        if a != b and degree[a] < 4 and 10 < a < count - 1 and (a, b) not in ways:
            ways.add((a, b))
            degree[a] += 1
    links = [files.Link(nodes[a].id, float((a * 7 + b) % 360), nodes[b].id) for a, b in sorted(ways)]
    return nodes, links


def test_the_statistics_of_the_public_graph(tmp_path, capsys):
    nodes, links = graph_like_the_public_one()
    lines = {"nodes.txt": [f"{n.id},{n.yaw:g},{n.latitude:.6f},{n.longitude:.6f}" for n in nodes]}
    lines["links.txt"] = [f"{link.start},{link.heading:g},{link.end}" for link in links]
    for name, each in lines.items():
        (tmp_path / name).write_text("\n".join(each) + "\n")
    found = check_public_graph(tmp_path)
    assert (found.nodes, found.links, found.least, found.most) == (29_641, 61_319, 1, 5)
    graph = Graph(nodes, links)
    far = graph.distances(12_345)
    assert far[12_345] == 0
    assert far.max() < FAR
    (tmp_path / "links.txt").write_text("\n".join(lines["links.txt"][:-1]) + "\n")
    with pytest.raises(ConfigurationError, match=r"the graph has links 61318, Touchdown's has 61319"):
        check_public_graph(tmp_path)
    assert statistics_command([str(tmp_path), "--public"]) == 2
    assert statistics_command([]) == 0
    assert "ways from a place" in capsys.readouterr().out
    shipped = graph_statistics(files.SHIPPED)
    assert (shipped.least, shipped.most) == (2, 5)
    assert all(numbers["within the limit"] == numbers["routes"] for numbers in route_statistics(files.SHIPPED).values())


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("nodes.txt", "", "nodes.txt"),
        ("nodes.txt", "a,1,2\n", "line 1 of nodes.txt"),
        ("nodes.txt", "a,north,2,3\n", "line 1 of nodes.txt"),
        ("links.txt", "nowhere,1,AxA\n", "there is no place 'nowhere'"),
        ("train.json", "[1]\n", "line 1 of train.json"),
        ("train.json", "\n", "train.json"),
        (
            "train.json",
            json.dumps({"route_panoids": ["p", "q"], "navigation_text": "", "start_heading": 1}),
            "no place",
        ),
        ("words.json", "{}", "words.json has to be an object"),
        ("panoids.txt", "a\n", "a row for each line of panoids.txt"),
        ("panoramas.npz", "x", "is no array of panoramas"),
    ],
)
def test_wrong_files_end_in_a_sentence(small_city, file, text, said):
    (small_city / file).write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        Touchdown(data=str(small_city)).make_env()


def test_the_statistics_of_no_graph_end_in_a_sentence(small_city, capsys):
    for file in ("nodes.txt", "links.txt"):
        (small_city / file).write_text("")
    assert statistics_command([str(small_city)]) == 2
    assert "nodes.txt" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_archive_of_panoramas_ends_in_a_sentence(small_city, damage):
    """One without its end is no archive any more; one with other bytes within cannot be unpacked."""
    path = small_city / "panoramas.npz"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    if damage == "flipped":
        data[middle : middle + 8] = bytes(byte ^ 255 for byte in data[middle : middle + 8])
    path.write_bytes(data[:middle] if damage == "cut" else data)
    with pytest.raises(ConfigurationError, match=r"panoramas\.npz is no array of panoramas"):
        Touchdown(data=str(small_city)).make_env()


@pytest.mark.parametrize("find", [Touchdown.describe, lambda options: find_games(options.data, "train")])
def test_a_home_of_nobody_is_refused(find):
    with pytest.raises(ConfigurationError, match="names the home of a user that there is not"):
        find(Touchdown(data="~nobody_at_all/city"))


def test_missing_files_are_named(small_city, tmp_path):
    with pytest.raises(DataNotFound, match=r"there is no words\.json"):
        Touchdown(data=str(tmp_path / "nowhere")).describe()
    (small_city / "panoramas.npz").unlink()
    with pytest.raises(DataNotFound, match=r"panoramas\.npy or panoramas\.npz"):
        Touchdown(data=str(small_city)).make_env()


def test_an_array_of_objects_is_not_opened(small_city):
    (small_city / "panoramas.npz").unlink()
    np.save(small_city / "panoramas.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ConfigurationError, match="no array of panoramas"):
        Touchdown(data=str(small_city)).make_env()


def test_packed_routes_are_the_same_routes(small_city):
    plain = files.read_routes(small_city / "train.json")
    (small_city / "train.json.gz").write_bytes(gzip.compress((small_city / "train.json").read_bytes()))
    (small_city / "train.json").unlink()
    assert files.read_routes(small_city / "train.json") == plain
