"""Trained teams that come with the package: each folder is a run folder cut down to one seed and one stage.

`about.json` of each says by which command it was trained, when, for how long, and what it reached on each set of games.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from magrounding.errors import ConfigurationError, choose
from magrounding.storage import user_path

PREFIX = "pretrained:"
ABOUT_FILE = "about.json"


def pretrained_names() -> tuple[str, ...]:
    """The names of all teams, e.g. "ma_rtfm-s5-2agents"."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob(f"*/{ABOUT_FILE}")))


def find_run(source: str | PathLike[str]) -> Path:
    """The folder that a source stands for: "pretrained:<name>" or a path.

    Raises:
        ConfigurationError: no team of that name, its name without "pretrained:", or what is neither a name nor a path.
    """
    if not isinstance(source, str | PathLike):
        raise ConfigurationError(f'source is a run folder or "{PREFIX}<name>", got {source!r}')
    if not str(source).startswith(PREFIX):
        folder = user_path(source)
        if str(source) in pretrained_names() and not folder.exists():
            raise ConfigurationError(f'{str(source)!r} is no folder, but a pretrained team: ask for "{PREFIX}{source}"')
        return folder
    return Path(__file__).parent / choose("pretrained team", str(source)[len(PREFIX) :], pretrained_names())
