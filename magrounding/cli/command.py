"""Command lines: parsing, help, and the end of every command: 0, or one clear sentence and another exit code."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_origin

from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.output import show_anything
from magrounding.pretrained import PREFIX
from magrounding.schema import Option, options_of, parts_of
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
PATHS = "paths"
"""Argument for the words "path=value" after all flags."""
_PATH_WORD = re.compile(r"(env|network|learner|phases|evaluation)\.|[a-z_]+(\.[^=]*)?=")
_HELP_ALL = "--help-all"
HELP = frozenset(("-h", "--help", _HELP_ALL))
"""Words that ask for help."""
_PATH_VALUE = "PATH=VALUE …"
_LAST = (PATHS, "jobs", "workers", "device", "threads", "quiet")
"""Arguments that `--help` lists last: they change nothing but the time a command takes."""
_SELDOM = ("workers", "cluster", "cpus_per_job", "gpus_per_job", "tracker", "project", "prepare", "only_seeds")
_SELDOM += ("llm_parallel", "people_per_address", "trusted_proxy")
"""Arguments that `--help-all` lists alone."""
_METAVARS = {str: "STR", int: "INT", float: "FLOAT", Path: "PATH"}


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

        Words "path=value" are `PATHS`, but for one right behind a flag that takes a value, as in "--over
        learner.entropy=0.01,0.03". SystemExit with code 2 for other words, 0 after `--help`; ConfigurationError for a
        value that cannot be.
        """
        import tyro

        show_anything()
        known, words, paths = options_of(arguments), list[str](), list[str]()
        for before, word in pairwise(("", *self.arguments)):
            taker = known.get(before[2:].replace("-", "_")) if before.startswith("--") else None
            is_value = taker is not None and not isinstance(taker.default, bool)
            (paths if PATHS in known and not is_value and _PATH_WORD.match(word) else words).append(word)
        try:
            if HELP.intersection(words):
                print(self.help(arguments, whole=_HELP_ALL in words), flush=True)
                sys.exit(0)
            typed = tyro.cli(arguments, prog=self.prog, args=words, config=(tyro.conf.FlagCreatePairsOff,))
        except BrokenPipeError:
            sys.exit(_closed())
        checked = {name: _checked(self.prog, option, getattr(typed, name)) for name, option in known.items()}
        return arguments(**checked | ({PATHS: tuple(paths)} if paths else {}))

    def help(self, arguments: type, *, whole: bool) -> str:
        """Return the text of `--help`: an example, and what people type; `whole`: and what they seldom do."""
        about, known = inspect.getdoc(arguments), options_of(arguments)
        example = re.search("`(.+?)`", sys.modules[arguments.__module__].__doc__ or "")
        parser = argparse.ArgumentParser(
            usage=f"{self.prog} [OPTIONS]{f' [{_PATH_VALUE}]' if PATHS in known else ''}",
            description=f"example: {example[1]}\n\n{about}" if example else about,
            epilog=None
            if whole or known.keys().isdisjoint(_SELDOM)
            else f"{_HELP_ALL} lists also what is seldom typed.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
        )
        groups = parser.add_argument_group("options"), parser.add_argument_group("seldom typed")
        for name, flag, value, meaning in sorted(described(arguments), key=lambda row: row[0] in _LAST):
            kind: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
            if whole or name not in _SELDOM:
                groups[name in _SELDOM].add_argument(flag or name, help=meaning.replace("%", "%%"), **kind)
        return parser.format_help()

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
        interrupted = getattr(command, "interrupted", lambda *_: getattr(command, "STOPPED", STOPPED))
        refused = getattr(command, "REFUSED", REFUSED)
        return run_command(partial(command.run, arguments, self), partial(interrupted, arguments, self), refused)

    def __str__(self) -> str:
        return shlex.join([*self.prog.split(), *self.arguments])


def program(prog: str, module: str) -> Callable[[], int]:
    """Return the `main` of a module that is a command (`CommandLine.run`) and is started as `prog`."""
    return lambda: CommandLine.of_process(prog).run(sys.modules[module])


def described(arguments: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield (name, flag, value, meaning) of each argument; without a flag for a word, without a value for a switch.

    The meaning is the text behind the field. It ends with "(default: …)", if there is one.
    """
    import tyro

    said: dict[str, str] = {}
    for cls in reversed(arguments.__mro__[:-1]):
        body = ast.parse(inspect.getsource(cls)).body[0].body  # type: ignore[attr-defined]
        for one, text in pairwise(body):
            if isinstance(one, ast.AnnAssign) and isinstance(text, ast.Expr):
                said[ast.unparse(one.target)] = " ".join(ast.literal_eval(text.value).split())
    for name, option in options_of(arguments).items():
        parts, meaning, usual = parts_of(option.type), said.get(name, ""), str(option.default)
        kinds = "|".join(_METAVARS[part] for part in parts if part in _METAVARS)
        word = _PATH_VALUE if name == PATHS else name.upper() if tyro.conf.Positional in parts else ""
        if "(default: " not in meaning and usual not in ("None", "True", "False", "()", "") and not option.required:
            meaning += f" (default: {usual})"
        many = " …" if any(get_origin(part) is tuple for part in parts) else ""
        yield (
            name,
            "" if word else f"--{'no-' * (option.default is True)}{name.replace('_', '-')}",
            word or kinds + many,
            meaning,
        )


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


def flags(**values: Any) -> tuple[str, ...]:
    """Return the words of flags with these values, without those that are None."""
    typed = {f"--{name.replace('_', '-')}": str(value) for name, value in values.items() if value is not None}
    return tuple(word for pair in typed.items() for word in pair)


def items(text: str) -> list[str]:
    """Split a text at its commas, without empty parts."""
    return [item.strip() for item in text.split(",") if item.strip()]


def _checked(prog: str, option: Option, value: Any) -> Any:
    """The value of an argument; ConfigurationError for a number that is not finite, or out of its type's bounds.

    "~" of a path is expanded, which a shell leaves as it is in "--out=~/x".
    """
    if isinstance(value, tuple):
        return tuple(_checked(prog, option, each) for each in value)
    if isinstance(value, Path):
        return user_path(value)
    numeric = isinstance(value, int | float)
    return replace(option, name=f"--{option.name.replace('_', '-')}", owner=prog).check(value) if numeric else value


def _end(sentence: str, code: int) -> int:
    print(" ".join(sentence.split()), file=sys.stderr)
    return code


def _closed() -> int:
    """Let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED
