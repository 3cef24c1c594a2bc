"""The package as a whole: what importing costs, what is shipped, and that the README tells the truth."""

import ast
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

import magrounding as mg
from magrounding.registry import AGENTS, ENVS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def python(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


def test_importing_prints_nothing_and_loads_nothing_heavy():
    heavy = {"torch", "numba", "scipy", "matplotlib", "PIL", "tensorboard", "rich", "tyro", "supersuit", "tianshou"}
    heavy |= {"minigrid", "nle"}
    done = python(f"import sys, magrounding; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)")
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")


def test_playing_a_game_does_not_need_torch():
    """One process plays all that are installed, and names the first that imports torch."""
    absent = {"alfworld"} if find_spec("alfworld") is None else set()
    absent |= {"scienceworld"} if find_spec("scienceworld") is None or which("java") is None else set()
    code = (
        "import sys, magrounding as mg\n"
        f"for id in {[id for id in ENVS if id not in absent]}:\n"
        "    mg.make(id).reset(seed=0)\n"
        "    if 'torch' in sys.modules:\n"
        "        sys.exit(f'{id} imports torch')\n"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_same_everywhere():
    assert "version" in PROJECT["dynamic"], "it stands in magrounding/version.py alone"
    assert f"version: {mg.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{mg.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_types_and_every_data_file_are_shipped_and_have_an_origin():
    assert (files("magrounding") / "py.typed").is_file()
    data = [p.relative_to(ROOT).as_posix() for p in (ROOT / "magrounding").glob("**/data/*") if p.suffix != ".py"]
    assert data
    third_party = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
    known = re.findall(r"`(magrounding/[^`]+)`", third_party)
    assert [path for path in data if not any(fnmatch(path, each) for each in known)] == []
    shipped = [f"magrounding/{each}" for each in PYPROJECT["tool"]["setuptools"]["package-data"]["magrounding"]]
    assert [path for path in data if not any(Path(path).match(each) for each in shipped)] == []


@pytest.mark.extension("lge")
def test_every_environment_and_agent_has_a_row_and_a_page():
    code = {
        page: set(re.findall(r"`([^`\n]+)`", (ROOT / page).read_text(encoding="utf-8")))
        for page in ("README.md", "docs/environments.md", "docs/agents.md")
    }
    assert set(ENVS) <= code["README.md"] & code["docs/environments.md"]
    assert {id for id in AGENTS if not id.startswith("endi_") or id.count("_") == 1} <= code["docs/agents.md"]
    for id in ENVS:
        assert f"```{{environment}} {id}" in (ROOT / "docs" / "environments" / f"{id}.md").read_text(encoding="utf-8")
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "agents").glob("*.md"))
    shown = " ".join(re.findall(r"```{agents} (.*)", pages)).split()
    assert sorted(shown) == sorted(AGENTS), "each agent is on one page"


def test_every_package_that_is_imported_is_declared():
    """Also those that come with another one today."""
    named = {"PIL": "pillow", "tensordict": "torchrl", "fast_downward": "textworld", "py4j": "scienceworld"}
    also = {"pandas", "typing-extensions"}  # a face of it for who has it; type checkers alone
    declared = {re.split(r"[^\w-]", each)[0] for part in PROJECT["optional-dependencies"].values() for each in part}
    core = {re.split(r"[^\w-]", each)[0] for each in PROJECT["dependencies"]}
    undeclared = set()
    for path in (ROOT / "magrounding").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in {each.partition(".")[0] for each in modules} - {"magrounding", *sys.stdlib_module_names}:
                if named.get(module, module).replace("_", "-") not in core | declared | also:
                    undeclared.add((module, path.name))
    assert undeclared == set()
    assert "cloudpickle" in core


def test_every_promise_names_tests_that_there_are():
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[^`]+)`", page))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
