"""Measure the ways through the package: `python -m tools.ways [--verbose] [--json]`.

It measures the `magrounding` that Python imports; run by its path, with PYTHONPATH naming another checkout, it measures
that one. Functions are those of the package's own files that have a name: bodies of modules and classes, comprehensions
and generated methods do not count. Three quantities are of a run of PPO that is watched (`RUN`), in a process of its
own; the others are of the source.

* How far `env.max_cycles=113` is carried: `option_way`.
* What is entered between `main()` and the first gradient of PPO: `gradient_way`.
* How often the run's folder is handed on: `folder_way`.
* What is read to know PPO and imitation: `closure`.
* Groups of modules that import one another: `circles`.
* Python files of the package, and their lines: `size`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

OPTION, VALUE = "max_cycles", 113
RUN = (
    "--env ma_rtfm --agents 2 --stages s1 --preset quick_rl --budget 0.002 --seeds 0 "
    f"--workers 0 --threads 1 --device cpu --quiet env.{OPTION}={VALUE}"
)
COLLECT = "collect"
"""Function of `training/` that plays the first steps that are learnt from."""
DEPTH = 4
"""Levels of mappings, sequences and dataclasses that are searched for the option."""
DESCRIPTIONS = ("EnvSpec",)
"""Dataclasses with a field of the option's name that say what a finished world is like; they are not searched."""


def package_folder() -> Path:
    """Return the folder of the `magrounding` that is imported."""
    found = find_spec("magrounding")
    if found is None or found.origin is None:
        raise SystemExit("error: magrounding cannot be imported: run this in a checkout, or name one in PYTHONPATH")
    return Path(found.origin).resolve().parent


@dataclass
class Way:
    """One quantity: its counts, and the lines that `--verbose` prints."""

    counts: dict[str, int]
    detail: list[str] = field(default_factory=list)


# What is read: the source


def modules(package: Path) -> dict[str, Path]:
    """Return the file of each module by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: Mapping[str, Path], *, typed: bool) -> Iterator[str]:
    """Yield the package's modules that a file imports, anywhere in it; `typed`: under TYPE_CHECKING as well."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module or "" for name in inner]
        else:
            names = []
        yield from (name for name in names if name in known)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not typed:
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def line_count(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def size(package: Path) -> Way:
    """Count the package's Python files and their lines."""
    lines = {path: line_count(path) for path in modules(package).values()}
    parts: Counter[str] = Counter()
    for path, count in lines.items():
        parts[path.relative_to(package).parts[0]] += count
    detail = [f"{count:6d}  {part}" for part, count in parts.most_common()]
    return Way({"files": len(lines), "lines": sum(lines.values())}, detail)


def closure(package: Path, algorithm: str) -> Way:
    """Count what is read to know an algorithm: its module, and all of `training/` that it imports.

    Imports count at any depth and within functions, but not under TYPE_CHECKING. Whole files are counted.
    """
    known = {name: path for name, path in modules(package).items() if name.startswith("magrounding.training.")}
    start = f"magrounding.training.{algorithm}"
    found, waiting = {start}, [start]
    while waiting:
        new = set(imports(known[waiting.pop()], known, typed=False)) - found
        found |= new
        waiting += new
    lines = {name: line_count(known[name]) for name in found}
    detail = [f"{count:6d}  {name}" for name, count in sorted(lines.items(), key=lambda each: -each[1])]
    return Way({"files": len(lines), "lines": sum(lines.values())}, detail)


def circles(package: Path) -> Way:
    """Count groups of two or more modules each of which imports each other, directly or through others.

    All imports count: at the top, within functions and under TYPE_CHECKING. `from package import module` is an import
    of the module, and not of the package.
    """
    known = modules(package)
    graph = {name: set(imports(path, known, typed=True)) - {name} for name, path in known.items()}
    groups = [sorted(group) for group in strong_components(graph) if len(group) > 1]
    detail = [f"{len(group):6d}  {', '.join(group)}" for group in sorted(groups, key=len, reverse=True)]
    return Way({"circles": len(groups), "modules": sum(map(len, groups))}, detail)


def strong_components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a directed graph (Kosaraju's two passes, without recursion)."""
    order: list[str] = []
    seen: set[str] = set()
    for root in graph:
        stack = [(root, iter(sorted(graph[root])))] if root not in seen else []
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(sorted(graph[following]))))
    backwards: dict[str, list[str]] = {node: [] for node in graph}
    for node, targets in graph.items():
        for target in targets:
            backwards[target].append(node)
    components, placed = [], set()
    for root in reversed(order):
        if root in placed:
            continue
        component, waiting = set(), [root]
        while waiting:
            node = waiting.pop()
            if node not in placed:
                placed.add(node)
                component.add(node)
                waiting += backwards[node]
        components.append(component)
    return components


# What is entered: a run, watched


class Watch:
    """A profile function (`sys.setprofile`) that sees the functions of the package that a run enters.

    Args:
        package: the package's folder.
        out: the run's folder.

    Attributes:
        carried: calls of functions that carry the option, until training begins (`carries`).
        entered: functions entered before the first gradient, in order.
        handed: calls of pairs of functions in two files, the first of which hands the run's folder to the second.
    """

    def __init__(self, package: Path, out: Path) -> None:
        self.carried: Counter[CodeType] = Counter()
        self.entered: dict[CodeType, None] = {}
        self.handed: Counter[tuple[CodeType, CodeType]] = Counter()
        self.begun = self.learnt = False
        self._package, self._out = package, str(out)
        self._counted: dict[CodeType, bool] = {}
        self._generators: dict[int, FrameType] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not self._counts(code) or self._goes_on(frame):
            return
        if code.co_name == COLLECT and name_of(self._package, code).startswith("training/"):
            self.begun = True
        if not self.learnt:
            self.entered.setdefault(code)
        arguments = arguments_of(frame)
        if not self.begun and any(carries(each) for each in arguments):
            self.carried[code] += 1
        if any(isinstance(each, str | os.PathLike) and os.fspath(each) == self._out for each in arguments):
            caller = self._caller(frame)
            if caller is not None and caller.co_filename != code.co_filename:
                self.handed[caller, code] += 1

    def _counts(self, code: CodeType) -> bool:
        """Tell whether it is a function of the package with a name."""
        if code not in self._counted:
            named = not code.co_name.startswith("<") or code.co_name == "<lambda>"
            function = bool(code.co_flags & inspect.CO_OPTIMIZED)  # no body of a class
            self._counted[code] = named and function and code.co_filename.startswith(f"{self._package}{os.sep}")
        return self._counted[code]

    def _goes_on(self, frame: FrameType) -> bool:
        """Tell whether it is a generator that was entered before."""
        if not frame.f_code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            return False
        known = id(frame) in self._generators
        self._generators[id(frame)] = frame  # kept, so that no other frame gets its id
        return known

    def _caller(self, frame: FrameType) -> CodeType | None:
        """Return the function of the package that called, perhaps through other packages' functions."""
        above = frame.f_back
        while above is not None and not self._counts(above.f_code):
            above = above.f_back
        return None if above is None else above.f_code


def watch_run(package: Path) -> dict[str, Way]:
    """Run `magrounding train` in this process, watched in every thread, and count the three ways through it.

    What is entered while numba compiles is not watched: a kernel is compiled once, and then read from numba's cache.

    Raises:
        SystemExit: the run failed.
    """
    from numba.core.event import Listener, install_listener
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    from magrounding.cli.main import main

    class Compilation(Listener):
        depth = 0

        def on_start(self, event: object) -> None:
            self.depth += 1
            sys.setprofile(None)

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if self.depth == 0:
                sys.setprofile(watch)

    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(StringIO()),
        install_listener("numba:compiler_lock", Compilation()),
    ):
        out = Path(folder).resolve() / "run"
        watch = Watch(package, out)
        hook = register_optimizer_step_pre_hook(lambda *_: setattr(watch, "learnt", True))
        sys.argv = ["magrounding", "train", "--out", str(out), *RUN.split()]
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            code = main()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            hook.remove()
    if code or not watch.begun or not watch.learnt:
        raise SystemExit(f"error: magrounding {' '.join(sys.argv[1:])} ended with {code}, or nothing was learnt")
    return {
        "option": option_way(package, watch),
        "gradient": gradient_way(package, watch),
        "folder": folder_way(package, watch),
    }


def arguments_of(frame: FrameType) -> list[Any]:
    """Return the values of a function's parameters as it is entered."""
    code = frame.f_code
    number = code.co_argcount + code.co_kwonlyargcount
    number += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return [frame.f_locals.get(name) for name in code.co_varnames[:number]]


def name_of(package: Path, code: CodeType) -> str:
    """Return file and qualified name of a function."""
    return f"{Path(code.co_filename).relative_to(package).as_posix()}: {code.co_qualname}"


def carries(value: object, depth: int = DEPTH) -> bool:
    """Tell whether a value is the option, or a mapping, sequence or dataclass that holds it `depth` levels down.

    The option is its number, its text or part of a text. Other objects are not searched, and descriptions of a
    finished world neither: who is given the world does not carry the option.
    """
    if isinstance(value, str):
        return value == str(VALUE) or f"{OPTION}={VALUE}" in value
    if isinstance(value, int):
        return value == VALUE
    if depth == 0:
        return False
    if isinstance(value, Mapping):
        return any(carries(each, depth - 1) for each in list(value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(carries(each, depth - 1) for each in list(value))
    if is_dataclass(value) and not isinstance(value, type) and type(value).__name__ not in DESCRIPTIONS:
        return any(carries(getattr(value, each.name, None), depth - 1) for each in fields(value))
    return False


def option_way(package: Path, watch: Watch) -> Way:
    """Count functions, files and calls that carry `env.max_cycles=113` until training begins.

    A function carries it if one of its arguments, as it is called, `carries` it. Watched are all calls from `main()`
    to the first entry of a function `collect` of `training/`, that is until worlds, networks and learners of the first
    phase stand and nothing has been played by them.
    """
    detail = [f"{count:6d}  {name_of(package, code)}" for code, count in watch.carried.items()]
    files = {code.co_filename for code in watch.carried}
    return Way({"functions": len(watch.carried), "files": len(files), "calls": sum(watch.carried.values())}, detail)


def gradient_way(package: Path, watch: Watch) -> Way:
    """Count files, lines and number of the functions entered from `main()` to the first optimiser step of PPO.

    The lines of a function are those of its source, from its first decorator to its end, inner functions included and
    docstrings not; a line counts once, and all lines of a function that is entered count.
    """
    files: dict[str, set[int]] = {}
    functions = []
    for code in watch.entered:
        known = files.setdefault(code.co_filename, set())
        new = set(range(*extent(code))) - docstring_lines(code.co_filename) - known
        known |= new
        functions.append(f"{len(new):6d}  {name_of(package, code)}")
    by_length = sorted(files.items(), key=lambda each: -len(each[1]))
    detail = [f"{len(own):6d}  {Path(name).relative_to(package).as_posix()}" for name, own in by_length]
    counts = {"files": len(files), "lines": sum(map(len, files.values())), "functions": len(functions)}
    return Way(counts, detail + functions)


def folder_way(package: Path, watch: Watch) -> Way:
    """Count the ways on which a run's folder is handed from one file of the package to another.

    A way is a pair of functions in two files, one of which calls the other with the folder as an argument of its own, a
    path or its text; an object that has the folder is none, and neither is a path within it. It counts once, however
    often it is taken. Watched is the whole run, with evaluations and report.
    """
    detail = [
        f"{count:6d}  {name_of(package, caller)} -> {name_of(package, called)}"
        for (caller, called), count in watch.handed.items()
    ]
    return Way({"ways": len(watch.handed)}, detail)


def extent(code: CodeType) -> tuple[int, int]:
    """Return the first line of a function, and the one behind its last."""
    numbers = [line for _, _, line in code.co_lines() if line is not None]
    inner = [extent(each)[1] - 1 for each in code.co_consts if isinstance(each, CodeType)]
    return code.co_firstlineno, max(numbers + inner) + 1


@cache
def docstring_lines(file: str) -> frozenset[int]:
    """Return the numbers of the lines of a file that are docstrings."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            found |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return frozenset(found)


# The table


TITLES = {
    "option": "an option of the environment until training begins",
    "gradient": "argv to the first gradient of PPO",
    "folder": "a run's folder from file to file",
    "ppo": "files to read PPO",
    "imitation": "files to read imitation",
    "circles": "circles of imports",
    "size": "the package",
}


def measure() -> dict[str, Way]:
    """Measure every quantity of the package that is imported, the run in a process of its own.

    Raises:
        SystemExit: the run failed.
    """
    package = package_folder()
    paths = os.pathsep.join([str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(Path(__file__).resolve()), "--within"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: the run cannot be watched:\n{done.stderr}")
    found = {name: Way(**way) for name, way in json.loads(done.stdout).items()}
    found |= {name: closure(package, name) for name in ("ppo", "imitation")}
    return {**found, "circles": circles(package), "size": size(package)}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print counts as JSON")
    parser.add_argument("--verbose", action="store_true", help="print functions, files or modules of each as well")
    parser.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.within:
        print(json.dumps({name: asdict(way) for name, way in watch_run(package_folder()).items()}))
        return 0
    found = measure()
    if arguments.json:
        print(json.dumps({name: way.counts for name, way in found.items()}, indent=2))
        return 0
    for name, way in found.items():
        print(f"{TITLES[name]:40}  {', '.join(f'{count:,} {of}' for of, count in way.counts.items())}")
        if arguments.verbose:
            print("\n".join(way.detail), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
