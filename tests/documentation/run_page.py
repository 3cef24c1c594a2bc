"""Run the blocks of pages in order, as a reader would: `python -m tests.documentation.run_page PAGE=FOLDER …`.

Each page runs in a folder of its own. Its Python blocks share one namespace; one that begins with the comment
`# name.py` is written to that file. The lines of bash blocks are run one after another. With `--python` bash blocks are
left out. A page may be a notebook, whose cells are blocks (`pages.text`).

A comment before a block says what else is to be done with it, with semicolons between:

* `<!-- test: short -->`: commands get the small budgets of `SHORT`;
* `<!-- test: needs minigrid -->`: the block is left out where the module is absent;
* `<!-- test: parameters -->`: the numbers of `SMALL` take the place of those in the block;
* `<!-- test: skip, why -->`: the block is not run.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from tests.documentation.pages import text

SHORT = {
    "train": "--seeds 0 --budget 0.0005 --quiet evaluation.games=4 evaluation.every=null unlearnt=continue",
    "sweep": "--seeds 0 --random 2 --budget 0.0005 --quiet evaluation.games=4 evaluation.every=null",
    "evaluate": "--episodes 4",
    "match": "--games 4",
    "record": "--games 4",
    "bench": "--num-envs 16 --seconds 0.1",
}
"""Command → options that replace those of the page, or are added."""
SMALL = {"GAMES": 4}
"""Parameter → number."""
MODULES = {"benchmarks.curriculum": "train", "benchmarks.zero_shot": "evaluate", "benchmarks.throughput": "bench"}
_MARK = re.compile(r"<!-- test: ([^>]*) -->\n$")
_FILE = re.compile(r"# (\w+\.py)\n")


def main() -> None:
    """Run the pages that the command line names."""
    for page in sys.argv[1:]:
        if page != "--python":
            path, _, folder = page.partition("=")
            os.chdir(folder)
            sys.path.insert(0, folder)
            run_page(Path(path))
            sys.path.remove(folder)


def run_page(page: Path) -> None:
    """Run the blocks of a page."""
    parsers = [PythonCodeBlockParser(), CodeBlockParser("bash", run_bash)]
    copy = Path(f"{page.stem}.md").absolute()  # tracebacks have its name and lines
    copy.write_text(text(page), encoding="utf-8")
    document = Sybil(parsers=parsers).parse(copy)
    for example in document.examples():
        is_bash = isinstance(example.region.evaluator, type(run_bash))
        if left_out(example.document, example.start) or (is_bash and "--python" in sys.argv):
            continue
        print(f"{page}:{example.line}", flush=True)
        if not is_bash and (file := _FILE.match(str(example.parsed))):
            Path(file[1]).write_text(str(example.parsed), encoding="utf-8")
        else:
            example.evaluate()
        if "parameters" in marks(example.document, example.start):
            document.namespace |= SMALL


def marks(document: Document, start: int) -> list[str]:
    """The entries of the mark before a block that begins at `start`."""
    mark = _MARK.search(document.text[:start])
    return [] if mark is None else [each.strip() for each in mark[1].split(";")]


def left_out(document: Document, start: int) -> bool:
    """Return whether a block is not to be run here."""
    for mark in marks(document, start):
        kind, _, rest = mark.partition(" ")
        if kind == "skip," or (kind == "needs" and find_spec(rest) is None):
            print(f"left out: {mark}", flush=True)
            return True
    return False


def run_bash(example: Example) -> None:
    """Run the lines of a block; SystemExit for one that fails."""
    short = "short" in marks(example.document, example.start)
    for line in str(example.parsed).splitlines():
        words = shlex.split(line.removeprefix(".venv/bin/"), comments=True)
        if words and words[0] == "export":
            for word in words[1:]:
                name, _, value = word.partition("=")
                os.environ[name] = os.pathsep.join([value, os.environ[name]]) if name == "PYTHONPATH" else value
        elif words:
            print("$", shlex.join(words), flush=True)
            run_command(line, words, short)


def run_command(line: str, words: list[str], short: bool) -> None:
    """Run one command, with its small budget if `short`; a server is stopped as soon as it serves."""
    if words[0] == "magrounding":
        name, program, rest = words[1], [sys.executable, "-m", "magrounding.cli.main", words[1]], words[2:]
    elif words[:2] == ["python", "-m"]:
        name, program, rest = MODULES.get(words[2], ""), [sys.executable, "-m", words[2]], words[3:]
    else:
        name, program, rest = "", ["bash", "-c", line], []
    rest = shortened(rest, SHORT[name]) if short and name in SHORT else rest
    if name == "serve":
        serve([*program, *rest, "--port", "0"])
    elif code := subprocess.run([*program, *rest], check=False).returncode:
        sys.exit(f"exit code {code}")


def shortened(words: list[str], options: str) -> list[str]:
    """The words of a command with these options in the place of its own."""
    pairs = shlex.split(options)
    given = {word.partition("=")[0] for word in pairs if word.startswith("--") or "=" in word}
    kept, skip = [], False
    for word in words:
        skip = word.partition("=")[0] in given or (skip and not word.startswith("--") and "=" not in word)
        if not skip:
            kept.append(word)
    return kept if "--resume" in words else [*kept, *pairs]  # a run goes on with its own settings


def serve(command: list[str]) -> None:
    """Start a server, wait until it says its address, and stop it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        print(said, end="", flush=True)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    if not said.startswith("http://"):
        sys.exit("the server did not say its address")


if __name__ == "__main__":
    main()
