"""What can go wrong for a reason the user can mend: one sentence says what came, what was expected, and what to do."""

from __future__ import annotations

from difflib import get_close_matches

_FEW = 8
"""So many names are read at a glance."""


class MagroundingError(Exception):
    """Base of every error that a command prints as one line."""

    def __str__(self) -> str:
        return " ".join(line.strip() for line in super().__str__().splitlines())  # arrays are printed in several


class ConfigurationError(MagroundingError, ValueError):
    """An option that does not exist, or a combination that cannot work."""


class InvalidAction(MagroundingError, ValueError):
    """An action outside its space (an action that is merely masked is a legal no-op)."""


class CallOrderError(MagroundingError):
    """A call at the wrong time: before `reset`, after the episode's end or `close`, or during a step that was sent."""


class CheckpointError(MagroundingError):
    """A run folder or a file of weights that is missing, foreign, truncated or in the way."""


class DataNotFound(MagroundingError, FileNotFoundError):
    """A data file that the user has to supply is not where it was looked for."""


class MissingExtra(MagroundingError, ImportError):
    """An optional dependency is absent; the message holds the line to type."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package: pip install 'magrounding[{extra}]'")
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return type(self), (self.feature, self.extra)  # a worker's error that cannot be unpickled is never reported


def check_bool(name: str, value: object) -> None:
    """ConfigurationError for anything but True or False."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is True or False, got {value!r}")


def choose(kind: str, value: str, known) -> str:
    """Return `value` if it is one of `known`; otherwise raise a ConfigurationError that lists what there is.

    Below a list that is long to search the name that is most like the value is said as well.
    """
    known = tuple(known)
    if not isinstance(value, str) or value not in known:  # an array would be compared with each by itself
        like = get_close_matches(value, known, 1) if isinstance(value, str) and len(known) > _FEW else []
        meant = f"; did you mean {like[0]!r}?" if like else ""
        raise ConfigurationError(f"unknown {kind} {value!r}; choose from: {', '.join(known)}{meant}")
    return value
