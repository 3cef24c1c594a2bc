"""JSON that every reader takes, wherever the package writes some."""

import ast
import json
import math
from pathlib import Path

import numpy as np
import pytest

from magrounding.storage import digest, json_text, read_json, write_json

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
