"""Numbers on command lines: one that is none is refused by every option of every command."""

from dataclasses import MISSING, fields
from importlib import import_module
from typing import get_type_hints

import pytest
import tyro

from magrounding.cli.command import CommandLine
from magrounding.cli.main import commands
from magrounding.errors import ConfigurationError


@pytest.mark.parametrize("name", commands())
def test_no_option_takes_what_is_no_number(name):
    arguments = import_module(commands()[name].module).Arguments
    hints = get_type_hints(arguments, include_extras=True)
    needed = [each.name for each in fields(arguments) if each.default is MISSING]
    positional = [each for each in needed if tyro.conf.Positional in getattr(hints[each], "__metadata__", ())]
    flags = [word for each in needed if each not in positional for word in (f"--{each}", "x")]
    chosen = {"action": "check", "shell": "bash"}
    words = [chosen.get(each, "x") for each in positional] + flags
    CommandLine(name, tuple(words)).parse(arguments)
    for option, hint in hints.items():
        kinds = str(hint)
        if "float" in kinds or ("int" in kinds and "str" not in kinds):
            for number in ("nan", "inf", "-inf"):
                with pytest.raises((ConfigurationError, SystemExit)):  # SystemExit: it is no word of an integer
                    CommandLine(name, (*words, f"--{option.replace('_', '-')}={number}")).parse(arguments)
