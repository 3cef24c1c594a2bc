"""Command lines: parsing, help, and the end of every command: 0, or one clear sentence and another exit code."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType, NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.output import show_anything
from magrounding.pretrained import PREFIX
from magrounding.schema import Option, options_of
from magrounding.signals import CTRL_C, OTHERS, Raise, caught, stop_with_parent
from magrounding.storage import reason, user_path

BAD_INPUT = 2
SIGNALLED = 128
CLOSED = 141
"""Exit codes, as a shell has them: SIGNALLED plus the number of the signal that ended a command, such as Ctrl-C; and
CLOSED where what reads the output has ended, as `head` does."""

STOPPED = "stopped"
REFUSED = "mend that"
REPEATABLE = "mend that, and the same command goes on"
"""The sentence after a signal; what to do where a file is refused, of most commands and those that keep their work."""

Arguments = TypeVar("Arguments")
SOURCE = "source"
_LAST = ("workers", "device", "threads", "quiet")
"""Arguments that `--help` lists last: they change nothing but the time a command takes."""
_METAVARS = {str: "STR", int: "INT", float: "FLOAT", Path: "PATH"}
"""Metavariables of types in `--help`; tyro's own of a value that may be left out begins with {None}."""


@dataclass(frozen=True)
class CommandLine:
    """A command line as it was typed: the command, such as "python -m benchmarks.curriculum", and the words behind."""

    prog: str
    arguments: tuple[str, ...]

    @classmethod
    def of_process(cls, prog: str) -> CommandLine:
        """The command line of this process, which was started as `prog`."""
        return cls(prog, tuple(sys.argv[1:]))

    def parse(self, arguments: type[Arguments]) -> Arguments:
        """Return the arguments as a dataclass.

        SystemExit with code 2 for other words, 0 after `--help`; ConfigurationError for a value that cannot be.
        """
        import tyro

        show_anything()
        known = options_of(arguments)
        try:
            typed = tyro.cli(explained(arguments), prog=self.prog, args=self.arguments)
            return arguments(**{name: self._checked(option, getattr(typed, name)) for name, option in known.items()})
        except BrokenPipeError:
            sys.exit(_closed())

    def _checked(self, option: Option, value: Any) -> Any:
        """The value of an argument; ConfigurationError for a number that is not finite, or out of its type's bounds.

        "~" of a path is expanded, which a shell leaves as it is in "--out=~/x".
        """
        if isinstance(value, tuple):
            return tuple(user_path(each) if isinstance(each, Path) else each for each in value)
        if not isinstance(value, int | float):
            return user_path(value) if isinstance(value, Path) else value
        return replace(option, name=f"--{option.name.replace('_', '-')}", owner=self.prog).check(value)

    def run(self, command: ModuleType) -> int:
        """Run a command and return its exit code.

        Args:
            command: module with a dataclass `Arguments` and a function `run(arguments, line)`. It may have `STOPPED`,
                the sentence after Ctrl-C, SIGTERM or SIGHUP, or `interrupted(arguments, line)`, which returns it; and
                `REFUSED`: what to do where a file cannot be written or read.
        """
        try:
            arguments = self.parse(command.Arguments)
        except ConfigurationError as error:
            return _end(f"error: {error}", BAD_INPUT)

        def interrupted() -> str:
            if hasattr(command, "interrupted"):
                return command.interrupted(arguments, self)
            return getattr(command, "STOPPED", STOPPED)

        return run_command(lambda: command.run(arguments, self), interrupted, getattr(command, "REFUSED", REFUSED))

    def __str__(self) -> str:
        return shlex.join([*self.prog.split(), *self.arguments])


def program(prog: str, module: str) -> Callable[[], int]:
    """Return the `main` of a module that is a command (`CommandLine.run`) and is started as `prog`."""
    return lambda: CommandLine.of_process(prog).run(sys.modules[module])


def derived(source: str, value: Any = None) -> Any:
    """Return a field of arguments whose default `--help` describes by its source, such as "the preset's"."""
    return field(default=value, metadata={SOURCE: source})


def explained(arguments: type[Arguments]) -> type[Arguments]:
    """Return the same arguments, whose help has kinds of values, and the source of a default instead of "None"."""
    import tyro

    hints = get_type_hints(arguments, include_extras=True)
    for each in fields(arguments):  # type: ignore[arg-type]
        says: dict[str, Any] = {}
        if SOURCE in each.metadata:
            says["help_behavior_hint"] = f"(default: {each.metadata[SOURCE]})"
        kinds, marks = get_args(hints[each.name]), ()
        if get_origin(hints[each.name]) is Annotated:
            kinds, marks = get_args(kinds[0]), kinds[1:]
        kinds = [getattr(kind, "__origin__", kind) for kind in kinds]  # int, of a Count
        shown = [_METAVARS[kind] for kind in kinds if kind in _METAVARS]
        if shown and NoneType in kinds:
            name = "|".join(shown)
            says["metavar"] = f"[{name}]" if tyro.conf.Positional in marks else name
        hints[each.name] = Annotated[hints[each.name], tyro.conf.arg(**says)] if says else hints[each.name]
    known: dict[str, Any] = arguments.__dataclass_fields__  # type: ignore[attr-defined]
    ordered = {name: known[name] for name in sorted(known, key=_LAST.__contains__)}
    content = {"__annotations__": hints, "__doc__": arguments.__doc__, "__dataclass_fields__": ordered}
    return type(arguments.__name__, (arguments,), content)  # type: ignore[return-value]


def run_command(
    command: Callable[[], object], interrupted: Callable[[], str] = lambda: STOPPED, refused: str = REFUSED
) -> int:
    """Call a command and return its exit code; `interrupted` and `refused` as of the module in `CommandLine.run`."""
    show_anything()
    stop_with_parent()
    try:
        with caught(OTHERS, Raise()):
            command()
        print(end="", flush=True)  # an output that is closed (`>&-`) is None
    except MagroundingError as error:
        return _end(f"error: {error}", getattr(error, "code", BAD_INPUT))
    except BrokenPipeError:
        return _closed()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _end(f"error: {where}{reason(error)}; {refused}", BAD_INPUT)
    except MemoryError:
        return _end("error: this takes more memory than there is; ask for less", BAD_INPUT)
    except KeyboardInterrupt as stopped:
        return _end(interrupted(), SIGNALLED + getattr(stopped, "signum", CTRL_C))
    return 0


def distinct_names(sources: Sequence[str | Path], names: Sequence[str]) -> tuple[str, ...]:
    """Return names of runs: those given, or of their folders; ConfigurationError unless each has its own."""
    chosen = tuple(names) or tuple(Path(str(source).removeprefix(PREFIX)).name for source in sources)
    if len(chosen) != len(sources) or len(set(chosen)) < len(chosen):
        raise ConfigurationError(
            f"--names takes a name of its own for each of the {len(sources)} runs, got {', '.join(chosen)}"
        )
    return chosen


def items(text: str) -> list[str]:
    """Split a text at its commas, without empty parts."""
    return [item.strip() for item in text.split(",") if item.strip()]


def _end(sentence: str, code: int) -> int:
    print(" ".join(sentence.split()), file=sys.stderr)
    return code


def _closed() -> int:
    """Let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED
