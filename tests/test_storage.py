"""JSON that every reader takes, wherever the package writes some; files that are flushed, folders where they can be."""

import errno
import json
import math
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from magrounding import storage
from magrounding.errors import CheckpointError
from magrounding.storage import (
    check_place,
    digest,
    json_text,
    partial_path,
    read_json,
    user_cache,
    write_atomic,
    write_folder,
    write_json,
)

NO_NUMBERS = {"a": math.nan, "b": [1.5, -math.inf, {"c": (math.inf, "NaN")}], 3: np.float64("nan"), "d": 0.0}
NULLS = {"a": None, "b": [1.5, None, {"c": [None, "NaN"]}], "3": None, "d": 0.0}


def strict(text):
    """What a reader finds that knows the standard only."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"compact": True}, {"sort_keys": True}])
def test_what_is_no_number_is_null(layout):
    content = {"a": math.nan, "d": 1} if "sort_keys" in layout else NO_NUMBERS
    assert strict(json_text(content, **layout)) == ({"a": None, "d": 1} if "sort_keys" in layout else NULLS)


def test_a_sealed_file_with_what_is_no_number_is_read_again(tmp_path):
    write_json(tmp_path / "found.json", NO_NUMBERS, sealed=True)
    assert read_json(tmp_path / "found.json") == NULLS
    assert digest(NO_NUMBERS) == digest(NULLS)
    strict((tmp_path / "found.json").read_text())


@pytest.mark.parametrize("code", ["EINVAL", "ENOTSUP", "ENOSYS", "EBADF", "EACCES"])
def test_a_folder_that_cannot_be_flushed_stops_nothing(tmp_path, monkeypatch, code):
    refuse_to_sync(monkeypatch, stat.S_ISDIR, code)
    write_atomic(tmp_path / "a" / "file", "content")
    assert (tmp_path / "a" / "file").read_text() == "content"


@pytest.mark.parametrize(("kind", "code"), [(stat.S_ISREG, "EINVAL"), (stat.S_ISREG, "EIO"), (stat.S_ISDIR, "EIO")])
def test_a_file_that_is_not_flushed_and_a_broken_disk_are_errors(tmp_path, monkeypatch, kind, code):
    (tmp_path / "file").write_text("old")
    refuse_to_sync(monkeypatch, kind, code)
    with pytest.raises(OSError, match=os.strerror(getattr(errno, code))):
        write_atomic(tmp_path / "file", "content")
    assert (tmp_path / "file").read_text() == ("old" if kind is stat.S_ISREG else "content")
    assert not list(tmp_path.glob(".*"))


def refuse_to_sync(monkeypatch, kind, code):
    """A file system that refuses to flush files of a kind (`stat.S_ISDIR`, …)."""
    sync, number = os.fsync, getattr(errno, code)

    def refuse(handle):
        if kind(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)


@pytest.mark.parametrize("name", ["n" * 250, "n" * 300, "file/beneath", "folder"])
def test_a_place_is_checked_for_the_name_that_is_written(tmp_path, name):
    """Also where its folder is yet to be made."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(CheckpointError):
        check_place(tmp_path / name)
    with pytest.raises(OSError):
        write_atomic(tmp_path / name, b"")
    if name != "file/beneath":
        return
    with pytest.raises(CheckpointError):
        check_place(tmp_path / "new" / ("n" * 300) / "file")
    check_place(tmp_path / "new" / ("n" * 200) / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_writers_with_one_process_id_do_not_meet(tmp_path):
    """As of two containers: here they are threads."""
    whole, path = {"a" * 100_000, "b" * 50_000}, tmp_path / "file"
    path.write_text("a" * 100_000)

    def write(text):
        for _ in range(100):
            write_atomic(path, text)
            assert path.read_text() in whole

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(write, sorted(whole))) == [None, None]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_there_whole_or_not_at_all(tmp_path):
    with pytest.raises(FileNotFoundError), write_folder(tmp_path / "it") as folder:
        (folder / "file" / "in a missing folder").touch()
    assert not list(tmp_path.iterdir())
    for left in (tmp_path / ".it.7.partial", partial_path(tmp_path / "it")):
        left.mkdir()
        (left / "file").touch()
    with write_folder(tmp_path / "it") as folder:
        (folder / "file").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["it"]
    with pytest.raises(OSError), write_folder(tmp_path / "it") as folder:
        (folder / "file").write_text("other")
    assert (tmp_path / "it" / "file").read_text() == "new"


@pytest.mark.parametrize("kind", ["none", "closed", "read only", "XDG"])
def test_a_user_without_a_home_has_a_temporary_cache(tmp_path, monkeypatch, kind):
    def none():
        raise RuntimeError if kind == "none" else PermissionError

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(storage.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(Path, "home", none if kind in ("none", "closed") else lambda: tmp_path)
    monkeypatch.setattr(storage.os, "access", lambda *_: False)  # root may write anywhere
    if kind == "XDG":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert user_cache() == tmp_path / "cache" / "magrounding"
    else:
        assert user_cache() == tmp_path / f"magrounding-{os.getuid()}"
        assert user_cache().stat().st_mode & 0o777 == 0o700
