"""Commands that pages, docstrings, sentences and reports print: they exist, and take what stands behind them."""

import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest

from magrounding.cli import main as console
from tests.documentation import pages

EXTENSIONS = "cluster language_models lge people running_text trackers"
pytestmark = [pytest.mark.extension(name) for name in EXTENSIONS.split()]  # pages show the commands of all

ROOT = Path(__file__).parents[1]
PAGES = [*pages.PAGES, ROOT / "CONTRIBUTING.md", *ROOT.glob("examples/**/*.md")]
KINDS = {".py", ".md", ".json", ".toml", ".txt", ".html", ".js"}
BEFORE = {"--env-option", "--network", "--learning", "--set", "--contrast", "--share-parameters", "--games"}
"""Flags that commands had when reports of version 0.2 were written."""
PROGRAM = r"python -m benchmarks\.\w+|magrounding [a-z-]+"


def printed():
    """Every file that may print a command (the changelog tells of some that are gone), its white space as blanks."""
    files = {*PAGES, ROOT / "Makefile", ROOT / "THIRD_PARTY.md"}
    for part in ("magrounding", "benchmarks", "examples"):
        files |= {path for path in (ROOT / part).rglob("*") if path.suffix in KINDS}
    return {str(file.relative_to(ROOT)): " ".join(file.read_text(encoding="utf-8").split()) for file in files}


def blocks():
    """The commands of the pages' blocks, in words, without comments."""
    for page in PAGES:
        for block in re.findall(r"```bash\n(.*?)```", pages.text(page), re.DOTALL):
            for line in block.splitlines():
                words = shlex.split(line.removeprefix(".venv/bin/").partition(" > ")[0], comments=True)
                if re.match(PROGRAM, " ".join(words)):
                    yield pytest.param(words, id=f"{page.name}: {' '.join(words)}")


def start(words, monkeypatch):
    """Run the program that a command names, with what stands behind its name."""
    if words[0] == "magrounding":
        monkeypatch.setattr(sys, "argv", words)
        return console.main()
    _, _, name, *arguments = words
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    return import_module(f"{name}.__main__" if (ROOT / name.replace(".", "/")).is_dir() else name).main()


@pytest.mark.parametrize("words", list(blocks()))
def test_a_command_of_a_page_is_parsed(words, monkeypatch):
    monkeypatch.setattr("magrounding.cli.command.run_command", lambda *_: 0)
    assert start(words, monkeypatch) == 0


def test_the_options_of_a_command_within_a_sentence_are_known(monkeypatch, capsys):
    """Such commands are in part without what has to be there, so that only the names of options are looked up."""
    asked, known = [], {}
    for file, text in printed().items():
        for program, rest in re.findall(rf"`(?:\.venv/bin/)?({PROGRAM})([^`]*)`", text):
            asked.append((file, program, set(re.findall(r"(?<=\s)--[a-z][a-z-]*", rest))))
    assert len(asked) > 100
    for program in {program for _, program, _ in asked}:
        with pytest.raises(SystemExit) as end:
            start([*program.split(), "--help", "--help-all"], monkeypatch)
        assert end.value.code == 0, program
        known[program] = {"--help", "--help-all", *re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)}
    recorded = {f"{file}": BEFORE for file, _, _ in asked if file.startswith("benchmarks/results")}
    assert [each for each in asked if not each[2] <= known[each[1]] | recorded.get(each[0], set())] == []
