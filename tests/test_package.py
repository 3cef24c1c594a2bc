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


def test_importing_prints_nothing_and_loads_neither_torch_nor_a_plotting_library():
    heavy = {"torch", "matplotlib", "scipy", "tensorboard", "rich", "tyro", "supersuit", "tianshou", "minigrid", "nle"}
    done = python(f"import sys, magrounding; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)")
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("id", ENVS)
def test_playing_a_game_does_not_need_torch(id):
    if id == "alfworld":
        pytest.importorskip("alfworld", reason="the extra `alfworld` is absent: alfworld")
    if id == "scienceworld" and (find_spec("scienceworld") is None or which("java") is None):
        pytest.skip("needs the extra `scienceworld` and Java")
    done = python(f"import sys, magrounding as mg; mg.make({id!r}).reset(seed=0); sys.exit('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_same_everywhere():
    assert PROJECT["version"] == mg.__version__
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


def test_all_holds_the_light_extras_only():
    extras = PROJECT["optional-dependencies"]
    assert {"alfworld", "scienceworld", "lm", "ray", "dev"} <= set(extras)
    assert extras["all"] == ["magrounding[nethack,babyai,tianshou,supersuit,play,web,pieces]"]


def test_the_readme_and_its_page_of_environments_list_every_environment_stage_option_and_agent():
    code = set(re.findall(r"`([^`\n]+)`", README + (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")))
    for entry in ENVS.values():
        missing = ({entry.id, *entry.stages, *entry.options}) - code - {""}  # a world without stages has one of no name
        assert not missing, f"{entry.id}: {missing}"
    assert set(AGENTS) | set(ENVS) <= set(re.findall(r"`([^`\n]+)`", README))


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *(
            f"docs/{name}.md"
            for name in ("architecture", "environments", "from_python", "performance", "results", "your_game")
        ),
    ],
)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        assert target.startswith("https://") or (ROOT / page).parent.joinpath(target).exists(), target


def test_the_readme_code_runs():
    namespace = {}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        if "babyai" in block and find_spec("minigrid") is None:
            continue
        if "load_team" not in block:  # needs a run: shown in the tests of teams
            exec(compile(block, "README.md", "exec"), namespace)
    assert namespace["env"].agents == []
    assert namespace["info"]["done"].shape == (1024,)


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
