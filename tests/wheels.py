"""Wheels, and fresh environments in which they are installed, which see no checkout."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MISSING = [name for name in ("pip", "venv", "ensurepip", "setuptools") if importlib.util.find_spec(name) is None]
NEEDED = pytest.mark.skipif(bool(MISSING), reason=f"wheels and environments are made with {', '.join(MISSING)}")


def clean_environment(**added):
    """The environment variables of this process without those that would show the checkout to another."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    return {**kept, **added}


def run(*command, cwd, succeeds=True, **options):
    """Run a command that sees no checkout, and return what it printed."""
    command = list(map(str, command))
    done = subprocess.run(
        command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False, **options
    )
    assert (done.returncode == 0) == succeeds, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + ("" if succeeds else done.stderr)


def build_wheels(folder, *sources):
    """Name → wheel of source trees; copies are built, so no file of an earlier build gets in, and none stays behind."""
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "runs")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder)
    copies = [shutil.copytree(source, folder / f"{source.name}-source", ignore=unwanted) for source in sources]
    run(sys.executable, "-m", "pip", "wheel", "--quiet", *options, *copies, cwd=folder)
    return {path.name.split("-")[0]: path for path in folder.glob("*.whl")}


def install(folder, *wheels):
    """Make an environment with wheels, and with what they depend on from this one; return its programs' folder."""
    venv.create(folder, symlinks=True)
    programs = folder / "bin"
    run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet", "--no-deps", "--no-index",
        *wheels, cwd=folder)  # fmt: skip
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    # A folder on the path, not a site folder: .pth files in it, an editable install's among them, are not read.
    (own / "dependencies.pth").write_text("\n".join({sysconfig.get_path(kind) for kind in ("purelib", "platlib")}))
    return programs


def bring_kernels(programs):
    """Give an installed package the kernels that this checkout has compiled: numba goes by the age of their source."""
    own = Path(sysconfig.get_path("purelib", vars={"base": str(programs.parent)}))
    for compiled in (ROOT / "magrounding").rglob("__pycache__/*.nb[ic]"):
        source = compiled.parents[1] / f"{compiled.name.partition('.')[0]}.py"
        shutil.copystat(source, own / source.relative_to(ROOT))
        shutil.copy2(compiled, own / compiled.relative_to(ROOT))
