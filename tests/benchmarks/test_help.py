"""What `--help` says: every flag's default, or where it comes from, and what to type."""

import re
from importlib import import_module

import pytest

from magrounding.cli.command import CommandLine
from magrounding.cli.main import commands


@pytest.mark.parametrize("name", commands())
def test_no_default_is_none_and_none_is_said_twice(name, monkeypatch, capsys):
    command = import_module(commands()[name].module)
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as end:
        CommandLine(f"magrounding {name}", ("--help",)).run(command)
    assert end.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"usage: magrounding {name} " in said
    assert "(default: None)" not in said
    assert "{None}" not in said
    assert "(default: )" not in said
    assert re.findall(r"\(default: [^)]*\)\.? \(default", said) == []
    assert "(default: the preset's)" in said or name not in ("train", "sweep")
    assert "by default" not in said.lower(), "a default is said at one place, behind what a flag does"
