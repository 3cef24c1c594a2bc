"""Imports go only downwards: every file of the package is read, and what it imports, within functions as well."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "magrounding"

LAYERS = (
    (
        "brief",
        "errors",
        "extras",
        "jit",
        "machine",
        "output",
        "plain",
        "ray_cluster",
        "schema",
        "seeding",
        "signals",
        "storage",
        "threads",
        "version",
        "vocabulary",
    ),
    ("spec",),
    ("capabilities", "texts", "vector", "evaluation_plan", "registry", "text_view"),
    ("options",),
    ("envs", "simulators"),
    ("single",),
    ("agents",),
    ("endi",),
    ("pretrained",),
    ("play",),
    ("adapters",),
    ("training",),
    ("experiment",),
    ("builtin",),
    ("__init__",),
    ("cli",),
    ("__main__",),
)
"""From the bottom; a part imports of its own layer and of those below."""

ENTRIES = {f"magrounding.{name}" for name in ("agents.entries", "endi.entries", "training.entries")} | {
    "magrounding.experiment.presets.entries",
    "magrounding.extensions.trackers.entries",
}
"""Lists of strings: they may be read from anywhere above what they list, and import nothing but the registry."""

LATE = {
    (
        "magrounding/__init__.py",
        "magrounding.teams.loading",
    ): "torch is imported with the first team, not with the package",
    (
        "magrounding/__init__.py",
        "magrounding.experiment.results",
    ): "torch is imported with the first run, not with the package",
    ("magrounding/__init__.py", "magrounding.pretrained"): "teams are looked for when one is asked for",
    ("magrounding/envs/drawing/__init__.py", "magrounding.envs.drawing.picture"): "Pillow: only pictures need it",
    ("magrounding/simulators/bootstrap.py", "magrounding.output"): "only after sys.path is the parent's",
    ("magrounding/simulators/bootstrap.py", "magrounding.simulators.worker"): "only after sys.path is the parent's",
    ("magrounding/simulators/env_row.py", "magrounding.texts"): "numba: workers that need none start faster",
    ("magrounding/training/algorithm.py", "magrounding.agents.policy"): "torch: presets are listed without it",
}
"""(file, module) of every import of ours within a function, with its reason."""

TORCHLESS = ("envs", "single", "adapters", "simulators", *(name for layer in LAYERS[:4] for name in layer))
TORCH_LATE = {"magrounding/threads.py"}
"""Sets torch's threads where torch is in use: one place sets all threads."""
TORCH_CLIENTS = {f"magrounding/extensions/clients/{name}.py" for name in ("benchmarl", "sb3", "torchrl", "word_reader")}
"""Faces of libraries that bring torch; nothing imports them but programs that use such a library."""

OWN_NETWORKS = {f"magrounding/training/{name}.py" for name in ("qmix", "drrn", "lge")}
"""Algorithms that train only agents made for them (`AlgorithmEntry.own_agents`) know those agents' networks."""

ENDI = re.compile(r"(?<![a-z])endi(?![a-z])", re.IGNORECASE)
NAMES_ENDI = ("builtin.py", "entry.py")
"""Beside endi/ and the presets: where its agents are registered, and where its paper's tables are quoted."""


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


@cache
def imports(path):
    """(module, line, whether within a function, whether only for types) of every import of a file."""

    def walk(node, within, typed):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, child.lineno, within, typed) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                parts = (f"{child.module}.{alias.name}" for alias in child.names)
                for part in dict.fromkeys(part if is_module(part) else child.module or "" for part in parts):
                    yield part, child.lineno, within, typed
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(child, within or function, typed or is_type_checking(child))

    return list(walk(ast.parse(path.read_text(encoding="utf-8")), False, False))


def is_module(name):
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def part_of(module):
    """The part of the package that a module belongs to."""
    return [*module.split("."), "__init__"][1]


def layer_of(part):
    return next(height for height, layer in enumerate(LAYERS) if part in layer)


def own(name):
    return name.split(".")[0] == "magrounding"


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def part_of_file(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_every_part_of_the_package_has_its_place():
    assert {part_of_file(path) for path in modules()} == {part for layer in LAYERS for part in layer}


def test_imports_go_downwards():
    upwards = [
        f"{name_of(path)}:{line} imports {module}"
        for path in modules()
        for module, line, _, typed in imports(path)
        if own(module)
        and not typed
        and (name_of(path), module) not in LATE
        and layer_of(part_of(module)) > layer_of(part_of_file(path))
    ]
    assert not upwards, "\n".join(upwards)


def test_types_of_higher_layers_are_named_by_nobody_but_the_package_itself():
    upwards = [
        f"{name_of(path)}:{line} imports {module}"
        for path in modules()
        for module, line, _, typed in imports(path)
        if own(module) and typed and layer_of(part_of(module)) > layer_of(part_of_file(path))
    ]
    assert not upwards, "\n".join(upwards)


def test_what_is_imported_within_a_function_has_a_reason():
    late = {
        (name_of(path), module): line
        for path in modules()
        if part_of_file(path) != "cli"  # a command imports what it runs
        for module, line, within, typed in imports(path)
        if own(module) and within and not typed
    }
    unexplained = [f"{path}:{late[path, module]} imports {module}" for path, module in late.keys() - LATE.keys()]
    assert not unexplained, "\n".join(unexplained)
    assert LATE.keys() <= late.keys(), f"no more there: {LATE.keys() - late.keys()}"


def test_worlds_and_the_ground_know_no_torch():
    found = [
        f"{name_of(path)}:{line}"
        for path in modules()
        if part_of_file(path) in TORCHLESS and name_of(path) not in TORCH_CLIENTS
        for module, line, within, _ in imports(path)
        if module.split(".")[0] in ("torch", "safetensors") and not (within and name_of(path) in TORCH_LATE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", ["agents", "endi"])
def test_networks_know_no_learning(part):
    found = [
        f"{name_of(path)}:{line} imports {module}"
        for path in modules()
        if part_of_file(path) == part
        for module, line, _, _ in imports(path)
        if own(module) and part_of(module) in ("training", "play", "experiment")
    ]
    assert not found, "\n".join(found)


def test_training_knows_no_world_and_no_model():
    no_network = ("", ".gradient_step", ".own_defaults", ".policy", ".transfer", ".weights")
    allowed = {f"magrounding.agents{name}" for name in no_network}
    found = [
        f"{name_of(path)}:{line} imports {module}"
        for path in modules()
        if part_of_file(path) == "training" and name_of(path) not in OWN_NETWORKS
        for module, line, _, _ in imports(path)
        if own(module)
        and (
            part_of(module) in ("envs", "simulators", "single", "endi")
            or (part_of(module) == "agents" and module not in allowed)
        )
    ]
    assert not found, "\n".join(found)


def test_only_endi_speaks_of_endi():
    spoken = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in modules()
        if part_of_file(path) != "endi" and path.name not in NAMES_ENDI and "presets" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ENDI.search(line)
    ]
    assert not spoken, "\n".join(spoken)


def test_lists_of_entries_import_only_the_registry():
    for module in ENTRIES:
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        assert {name for name, *_ in imports(path)} <= {"__future__", "magrounding.registry"}, module
