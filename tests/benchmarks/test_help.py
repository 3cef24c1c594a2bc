"""What `--help` says: every flag's default, or where it comes from, and what to type."""

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest
import tyro

from magrounding.cli.command import CommandLine, derived
from magrounding.cli.main import COMMANDS, MODULES


def help_of(parse, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as end:
        parse(("--help",))
    assert end.value.code == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_no_default_is_none_and_none_is_said_twice(name, monkeypatch, capsys):
    command = import_module(MODULES[name])
    said = help_of(lambda words: CommandLine(f"magrounding {name}", words).run(command), monkeypatch, capsys)
    assert f"usage: magrounding {name} " in said
    assert "(default: None)" not in said
    assert "{None}" not in said
    assert "(default: )" not in said
    assert re.findall(r"\(default: [^)]*\)\.? \(default", said) == []
    assert "by default" not in said.lower(), "a default is said at one place, behind what a flag does"


@dataclass(frozen=True)
class Arguments:
    """What a command takes."""

    file: Annotated[Path | None, tyro.conf.Positional] = derived("none")
    """A file."""
    games: int | None = derived("the preset's")
    """Games."""
    shared: bool = derived("the preset's", False)
    """Shared."""
    names: tuple[str, ...] = derived("their folders'", ())
    """Names."""
    seed: int = 3
    """Seed."""


def test_where_a_default_comes_from_stands_behind_what_a_flag_does(monkeypatch, capsys):
    said = help_of(lambda words: CommandLine("try", words).parse(Arguments), monkeypatch, capsys)
    assert "--games INT Games. (default: the preset's)" in said
    assert "Shared. (default: the preset's)" in said
    assert "Names. (default: their folders')" in said
    assert "--seed INT Seed. (default: 3)" in said
    assert "[PATH] A file. (default: none)" in said
    assert "What a command takes." in said
