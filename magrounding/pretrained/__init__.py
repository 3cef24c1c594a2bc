"""Trained teams by name, the package's and a user's own: each folder is a run folder cut down to a seed and a stage.

`about.json` of each says by which command it was trained, when, for how long, and what it reached on each set of games.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from magrounding.errors import ConfigurationError, check_choice
from magrounding.pretrained.hub import HUB, download_team
from magrounding.registry import TEAMS, load
from magrounding.storage import user_data, user_path

PREFIX = "pretrained:"
ABOUT_FILE = "about.json"


def own_folder() -> Path:
    """The folder of teams that `magrounding publish` writes: the package's in a checkout, else one of the user's."""
    package = Path(__file__).parent
    return package if (package.parents[1] / "pyproject.toml").is_file() else _users_folder()


def pretrained_names() -> tuple[str, ...]:
    """The names of all teams, e.g. "ma_rtfm-s5-2agents"."""
    return tuple(sorted(_teams()))


def _users_folder() -> Path:
    return user_data() / "pretrained"


def _teams() -> dict[str, Path]:
    """Name → folder; of two teams of one name the package's counts."""
    folders = _users_folder(), Path(__file__).parent
    found = {path.parent.name: path.parent for folder in folders for path in folder.glob(f"[!.]*/{ABOUT_FILE}")}
    return found | {each.id: load(each.code) for each in TEAMS.values()}


def find_run(source: str | PathLike[str]) -> Path:
    """The folder that a source stands for: "pretrained:<name>", "hub:<owner>/<name>" or a path.

    Raises:
        ConfigurationError: no team of that name, or what is neither a name nor a path.
        MissingExtra, CheckpointError: as of `hub.download_team`.
    """
    if not isinstance(source, str | PathLike):
        raise ConfigurationError(f'source is a run folder, "{PREFIX}<name>" or "{HUB}<owner>/<name>", got {source!r}')
    if str(source).startswith(HUB):
        return download_team(str(source).removeprefix(HUB))
    if not str(source).startswith(PREFIX):
        path = user_path(source)
        if str(source) in _teams() and not path.exists():
            raise ConfigurationError(f"there is no folder {source}; the trained team is {PREFIX}{source}")
        return path
    return _teams()[check_choice("pretrained team", str(source)[len(PREFIX) :], pretrained_names())]
