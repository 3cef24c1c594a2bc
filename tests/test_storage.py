"""JSON that every reader takes, wherever the package writes some; files that are flushed, folders where they can be."""

import ast
import errno
import json
import math
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from magrounding.storage import digest, json_text, read_json, write_atomic, write_json

ROOT = Path(__file__).parents[1]
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


def test_json_is_written_in_one_place():
    """Everybody else's would hold NaN as soon as a mean of nothing comes along."""
    writers = {
        str(path.relative_to(ROOT))
        for folder in ("magrounding", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("json.dump", "json.dumps")
    }
    assert writers == {"magrounding/storage.py"}


@pytest.mark.parametrize("code", ["EINVAL", "ENOTSUP", "ENOSYS", "EBADF", "EACCES"])
def test_a_folder_that_cannot_be_flushed_stops_nothing(tmp_path, monkeypatch, code):
    refuse_to_sync(monkeypatch, stat.S_ISDIR, code)
    write_atomic(tmp_path / "a" / "file", "content")
    assert (tmp_path / "a" / "file").read_text() == "content"


@pytest.mark.parametrize(("kind", "code"), [(stat.S_ISREG, "EINVAL"), (stat.S_ISREG, "EIO"), (stat.S_ISDIR, "EIO")])
def test_a_file_that_is_not_flushed_and_a_broken_disk_are_errors(tmp_path, monkeypatch, kind, code):
    refuse_to_sync(monkeypatch, kind, code)
    with pytest.raises(OSError, match=os.strerror(getattr(errno, code))):
        write_atomic(tmp_path / "file", "content")
    assert not list(tmp_path.glob(".*"))


def refuse_to_sync(monkeypatch, kind, code):
    """A file system that refuses to flush files of a kind (`stat.S_ISDIR`, …)."""
    sync, number = os.fsync, getattr(errno, code)

    def refuse(handle):
        if kind(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
