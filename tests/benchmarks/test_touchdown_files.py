"""A user's Touchdown files: SILG's features, a torch file, into the folder that is played; none of it is executed."""

import json
import zipfile

import numpy as np
import pytest
import torch

from benchmarks.touchdown_files import main, read_features
from magrounding.errors import ConfigurationError
from magrounding.single.one_agent import AGENT
from magrounding.single.touchdown import SPLITS, Touchdown
from magrounding.single.touchdown.files import read_panoramas

IDS = [f"{letter}_{'q' * 20}" for letter in "abcd"]


@pytest.fixture
def published(tmp_path):
    """Folders and files as they are published, of four places in a ring."""
    for folder in ("graph", "routes"):
        (tmp_path / folder).mkdir()
    nodes = [f"{id},{90 * k},40.7{k},-73.9{k}" for k, id in enumerate(IDS)]
    links = [f"{IDS[a]},{(90 * a + b) % 360},{IDS[(a + step) % 4]}" for a in range(4) for b, step in ((0, 1), (180, 3))]
    (tmp_path / "graph" / "nodes.txt").write_text("\n".join(nodes) + "\n")
    (tmp_path / "graph" / "links.txt").write_text("\n".join(links) + "\n")
    said = {
        "route_panoids": IDS[:3],
        "navigation_text": "Go down the block, then go past the light.",
        "start_heading": 0,
        "main_pano": IDS[2],
        "route_id": 7,
    }
    for file in SPLITS.values():
        (tmp_path / "routes" / file).write_text((json.dumps(said) + "\n") * 3)
    feats = torch.randint(0, 19, (6, 47, 128), generator=torch.Generator().manual_seed(0))
    torch.save({"feats": feats, "panoid_to_idx": {id: 5 - k for k, id in enumerate(IDS)}}, tmp_path / "feats.pt")
    return tmp_path, feats


def arguments(folder, out="city", features="feats.pt"):
    places = {"graph": "graph", "routes": "routes", "features": features, "out": out}
    return [part for name, place in places.items() for part in (f"--{name}", str(folder / place))]


def test_published_files_are_put_where_they_are_played(published, capsys):
    folder, feats = published
    assert main(arguments(folder)) == 0
    assert "train: 3 routes" in capsys.readouterr().out
    names, classes = read_panoramas(folder / "city")
    for name, panorama in zip(names, classes, strict=True):
        np.testing.assert_array_equal(panorama, feats[5 - IDS.index(name)].numpy())
    env = Touchdown(data=str(folder / "city"), split="test").make_env()
    seen = env.reset(seed=0)[0][AGENT]
    assert env.spec.vocabulary.decode(seen["goal"]) == "go down the block , then go past the light ."
    while env.agents:
        infos = env.step({AGENT: int(env.best_actions()[0].argmax())})[4]
    assert infos[AGENT]["won"]
    assert main(arguments(folder)) == 2  # it is there already


class Evil:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return (open, (str(self.place), "w"))


def test_a_file_that_would_execute_something_is_refused(published, capsys):
    folder, _ = published
    torch.save({"feats": Evil(folder / "ran"), "panoid_to_idx": {}}, folder / "evil.pt")
    assert zipfile.is_zipfile(folder / "evil.pt")
    assert main(arguments(folder, features="evil.pt")) == 2
    assert not (folder / "ran").exists()
    assert not (folder / "city").exists()


@pytest.mark.parametrize(
    "content",
    [
        [1],
        {"feats": torch.zeros(2, 3), "panoid_to_idx": {"a": 0}},
        {"feats": torch.full((1, 47, 128), 19), "panoid_to_idx": {"a": 0}},
        {"feats": torch.zeros(1, 47, 128), "panoid_to_idx": {"a": 3}},
    ],
)
def test_other_contents_are_refused(tmp_path, content):
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(ConfigurationError):
        read_features(tmp_path / "x.pt")
