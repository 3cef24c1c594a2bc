"""The package without one of its extensions: `python -m tests.fence lge trackers -- -n2` runs the core's tests so.

Tests that are about an extension as well are left out where its folder is: those that import of it, and those that are
marked `extension`, all cases or `only` those with a word in their names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTENSIONS = sorted(path.parent.name for path in ROOT.glob("magrounding/extensions/*/entries.py"))


def without(extension: str, folder: Path) -> Path:
    """Make a folder that is the checkout without an extension: a copy of the package with its kernels, else links."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in ROOT.iterdir():
        if path.name not in ("magrounding", "__pycache__", ".git"):
            (folder / path.name).symlink_to(path)
    shutil.copytree(ROOT / "magrounding", folder / "magrounding")
    shutil.rmtree(folder / "magrounding/extensions" / extension)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Variables of a process that imports the package from there."""
    return {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}


class LeftOut(MetaPathFinder):
    """What a test imports of an extension that is not there skips it; what the package imports fails."""

    def find_spec(self, name, path, target=None):
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        by_package = frame.f_code.co_filename.startswith(f"{ROOT / 'magrounding'}{os.sep}")
        if name.startswith("magrounding.extensions.") and not by_package:
            pytest.skip(f"without {name}", allow_module_level=True)


def pytest_configure():
    """Have pytest leave out what is about an extension that is not there; this file is its plugin then."""
    sys.meta_path.append(LeftOut())


def pytest_runtest_setup(item):
    for mark in item.iter_markers("extension"):
        if mark.args[0] not in EXTENSIONS and mark.kwargs.get("only", "") in item.name:
            pytest.skip(f"without {mark.args[0]}")


def main(words: list[str]) -> int:
    """Run the core's tests without each of some extensions, by default without each of all."""
    at = words.index("--") if "--" in words else len(words)
    for extension in words[:at] or EXTENSIONS:
        with tempfile.TemporaryDirectory() as name:
            folder = without(extension, Path(name))
            line = [sys.executable, "-m", "pytest", "-p", "tests.fence", "--ignore=tests/extensions", *words[at + 1 :]]
            print(f"without {extension}", flush=True)
            if code := subprocess.run(line, cwd=folder, env=environment(folder), check=False).returncode:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
