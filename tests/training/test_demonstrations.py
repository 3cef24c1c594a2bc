"""Files of demonstrations: what was saved is read again; what is damaged, foreign or of other games is refused."""

import io
import json
import pickle
import zipfile
from dataclasses import asdict, replace

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.training.demonstrations import Demonstrations, digests, find_demonstrations
from tests.training.recorded_games import assert_equal, by_oracle, make_vec


@pytest.fixture(scope="module")
def shown():
    return by_oracle()


def test_a_file_gives_back_what_was_saved(shown, tmp_path):
    path = tmp_path / "new" / "demos.npz"
    shown.save(path)
    loaded = Demonstrations.load(path)
    loaded.check(path, make_vec(1))
    assert_equal(loaded, shown)
    assert [p.name for p in path.parent.iterdir()] == ["demos.npz"]
    header = shown.header
    assert (header.env, header.stage, header.agents, header.games, header.seed) == ("ma_rtfm", "s3", 2, 9, 7)
    assert header.options == {"stage": "s3", "agents": 2, "max_cycles": 8}
    assert header.version == mg.__version__


def test_recordings_behind_one_another_are_a_recording(shown, tmp_path):
    joined = Demonstrations.joined([shown, shown])
    joined.save(tmp_path / "both.npz")
    loaded = Demonstrations.load(tmp_path / "both.npz")
    assert loaded.header == replace(shown.header, games=18)
    rows = len(shown.game)
    assert np.array_equal(loaded.game, np.concatenate([shown.game, shown.game + 9]))
    for name in ("observation", "texts"):
        for field, array in getattr(shown, name).items():
            assert np.array_equal(getattr(loaded, name)[field], np.concatenate([array, array]))
    for name in ("actions", "labels", "alive", "rewards"):
        assert np.array_equal(getattr(loaded, name)[rows:], getattr(shown, name))
    assert_equal(Demonstrations.joined([shown]), shown)


def damaged(path, change):
    """The file at `path` with some of its arrays changed, removed (None) or added."""
    with np.load(path) as file:
        arrays = {**dict(file), **change}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def with_header(demonstrations, **changes):
    content = {**asdict(demonstrations.header), **changes}
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def test_files_that_are_no_demonstrations(shown, tmp_path):
    path, pickled = tmp_path / "demos.npz", io.BytesIO()
    with pytest.raises(CheckpointError):
        Demonstrations.load(path)
    shown.save(path)
    whole = path.read_bytes()
    middle = len(whole) // 2
    np.savez(pickled, header=np.array([{"format": 2}], object))
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    for data in (whole[:-30], b"", flipped, pickle.dumps({"games": 1}), pickled.getvalue()):
        path.write_bytes(data)
        with pytest.raises(CheckpointError):
            Demonstrations.load(path)


def found(path, vec):
    return find_demonstrations(digests([str(path)]), vec)[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: {"labels": None},
        lambda d: {"labels": d.labels.astype(np.int8)},
        lambda d: {"labels": np.zeros_like(d.labels)},
        lambda d: {"actions": d.actions[:, :1]},
        lambda d: {"text/manual": d.texts["manual"][0]},
        lambda d: {"game": d.game[::-1].copy()},
        lambda d: {"observation/grid": None},
        lambda d: {"observation/grid": d.observation["grid"] + np.int16(999)},
        lambda d: {"header": np.frombuffer(b"[" * 100_000, np.uint8)},
        lambda d: {"header": with_header(d, format=1)},
        lambda d: {"header": with_header(d, games=True)},
        lambda d: {"header": with_header(d, env="rtfm")},
        lambda d: {"header": with_header(d, vocabulary="other")},
    ],
)
def test_damaged_contents_and_demonstrations_of_other_games(shown, tmp_path, change):
    path = tmp_path / "demos.npz"
    shown.save(path)
    assert_equal(found(path, make_vec(1, max_cycles=99)), shown)  # the time limit is free
    damaged(path, change(shown))
    with pytest.raises(CheckpointError):
        found(path, make_vec(1))


def test_demonstrations_of_another_team_split_or_stage(shown, tmp_path):
    path, again = tmp_path / "demos.npz", tmp_path / "again.npz"
    shown.save(path)
    shown.save(again)
    with pytest.raises(CheckpointError):
        found(path, make_vec(1, agents=3))
    with pytest.raises(CheckpointError):
        found(path, make_vec(1, split="eval"))
    with pytest.raises(ConfigurationError):
        found(path, make_vec(1, stage="s1"))
    with pytest.raises(ConfigurationError):
        find_demonstrations(digests([str(path), str(again)]), make_vec(1))


def rewritten(path, name, data, **facts):
    """The file at `path` with a member added or replaced, and facts of its directory entry changed."""
    with zipfile.ZipFile(path) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for other, content in {**members, name: data}.items():
            file.writestr(other, content)
        for fact, value in facts.items():
            setattr(file.getinfo(name), fact, value)


def header_of_array(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    ("shape", "facts"),
    [((2**40,), {}), ((2**62, 2**62), {}), ((-1,), {}), ((2**38,), {"file_size": 2**40}), ((3,), {"flag_bits": 1})],
)
def test_an_array_that_is_encrypted_or_says_it_is_larger_than_it_can_be(shown, tmp_path, shape, facts):
    path = tmp_path / "demos.npz"
    shown.save(path)
    rewritten(path, "game.npy", header_of_array(shape), **facts)
    with pytest.raises(CheckpointError):
        Demonstrations.load(path)
