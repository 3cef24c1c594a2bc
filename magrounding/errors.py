"""Errors that the user can mend: one sentence with the value, what was expected, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

_ALIKE = 0.75
"""Share of letters in common from which on one name is taken for another: one or two of six are wrong."""
_LONGEST = 300
"""Letters of a word that an error shows whole: more are neither a name nor a path."""


class MagroundingError(Exception):
    """Base of every error that a command prints as one line."""

    def __str__(self) -> str:
        words = super().__str__().split()  # arrays are printed in several lines
        return " ".join(word if len(word) <= _LONGEST else f"{word[:80]}…{word[-20:]}" for word in words)


class ConfigurationError(MagroundingError, ValueError):
    """An option that does not exist, or a combination that cannot work."""


class RegistrationError(ConfigurationError):
    """A name that no package registers here, or a package that cannot be loaded: files that name it may be whole."""


class Unplayable(ConfigurationError):
    """Games that a team's networks cannot play, such as those of a map they were not built for."""


class InvalidAction(MagroundingError, ValueError):
    """An action outside its space (an action that is merely masked is a legal no-op)."""


class CallOrderError(MagroundingError):
    """A call at the wrong time: before `reset`, after the episode's end or `close`, or during a step that was sent."""


class CheckpointError(MagroundingError):
    """A run folder or a file of weights that is missing, foreign, truncated or in the way."""


class Diverged(MagroundingError):
    """A network that learnt from, or answers with, numbers that are not finite. What was saved before is whole.

    Attributes:
        remedy: an option of the learner that may help, "name=value"; "": none is known.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class DataNotFound(MagroundingError, FileNotFoundError):
    """A data file that the user has to supply is not where it was looked for."""


class MissingExtra(MagroundingError, ImportError):
    """An optional dependency is absent; the message holds the line to type."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package: pip install 'magrounding[{extra}]'")
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return type(self), (self.feature, self.extra)  # a worker's error that cannot be unpickled is never reported


@contextmanager
def needed(feature: str, extra: str) -> Iterator[None]:
    """Import optional packages within; raise MissingExtra for a `feature` where one of an extra is not installed."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(feature, extra) from error


def check_bool(name: str, value: object) -> None:
    """Raise ConfigurationError for anything but True or False."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is True or False, got {value!r}")


def check_choice(kind: str, value: Any, known: Iterable[str]) -> str:
    """Return `value` if it is one of `known`; otherwise raise a ConfigurationError that lists what there is.

    Behind the list stands the name that was probably meant, where one is like the value.
    """
    known = tuple(known)
    if not isinstance(value, str) or value not in known:  # an array would be compared with each by itself
        there = f"choose from: {', '.join(known)}" if known else "there is none"
        raise ConfigurationError(f"unknown {kind} {value!r}; {there}{did_you_mean(value, known)}")
    return value


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """Return an error's ending, "; did you mean 'name'?" with the name most like a value, or "" where none is like it.

    Names that differ in their numbers only are never meant: who asks for seed 3 does not want seed 8.
    """
    if not isinstance(value, str) or len(value) < 3:  # two letters are like anything
        return ""
    written, names = value.casefold(), {name.casefold(): name for name in known if name != value}
    others = [name for name in names if name == written or _but_digits(name) != _but_digits(written)]
    like = get_close_matches(written, others, 1, _ALIKE)
    return f"; did you mean {names[like[0]]!r}?" if like else ""


def _but_digits(name: str) -> str:
    return re.sub(r"\d", "", name)
