"""Packages that register themselves: one that is broken neither hides nor is hidden by those that are whole."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from magrounding import registry
from magrounding.errors import ConfigurationError
from magrounding.registry import AlgorithmEntry, Registry


def register_broken() -> None:
    """Stands for a package whose registration fails."""
    raise OSError("its file is missing")


def register_whole() -> None:
    """Stands for one that works, and looks something up on the way."""
    with pytest.raises(ConfigurationError):
        registry.ALGORITHMS.find("nothing")
    registry.ALGORITHMS.add(AlgorithmEntry("my_algorithm", "my.package:Config"))


def test_a_broken_package_is_named_at_every_look_up(monkeypatch):
    points = [EntryPoint(f"{kind}", f"{__name__}:register_{kind}", registry.GROUP) for kind in ("broken", "whole")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    monkeypatch.setattr(registry, "ALGORITHMS", Registry("algorithm", AlgorithmEntry))
    monkeypatch.setattr(registry, "_DISCOVERED", False)
    monkeypatch.setattr(registry, "_FAILED", None)
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            registry.ALGORITHMS.find("my_algorithm")
    monkeypatch.setattr(registry, "_FAILED", None)  # the broken one is removed: the one after it has registered itself
    assert registry.ALGORITHMS.find("my_algorithm").config == "my.package:Config"


def test_a_file_that_is_not_installed_is_named_in_a_variable(monkeypatch, tmp_path):
    (tmp_path / "one_file.py").write_text(
        "import magrounding as mg\n\n"
        "def register():\n"
        "    mg.register_algorithm(mg.AlgorithmEntry('of_one_file', 'one_file:Config'))\n"
    )
    show = "from magrounding.registry import algorithm_entry as find; print(find('of_one_file').config)"

    def found(value: str) -> subprocess.CompletedProcess[str]:
        paths = filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), registry.VARIABLE: value}
        return subprocess.run([sys.executable, "-c", show], env=env, capture_output=True, text=True, check=False)

    assert found(" one_file:register, ").stdout == "one_file:Config\n"
    for wrong, complaint in (("one_file:enrol", "has no attribute 'enrol'"), ("one_file", "one_file"), ("", "unknown")):
        answer = found(wrong)
        assert answer.returncode
        assert complaint in answer.stderr
        assert "RegistrationError" in answer.stderr.splitlines()[-1]
