"""Splits of games: a game belongs to the split that one of the folders above it is named after, and to one only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.alfworld.problem import GAME_FILE

FOLDERS = {"train": ("train",), "valid": ("valid", "valid_seen"), "test": ("test", "valid_unseen")}
"""Split → names of its folder: in what our command writes, and in ALFWorld's download."""

_SPLIT_OF = {name: split for split, names in FOLDERS.items() for name in names}
_SKIPPED = ("movable", "Sliced")


class _Place(NamedTuple):
    """A folder, or a game in one.

    Attributes:
        path: its path, links included.
        real: its path with links resolved.
        split: its split, "" where no folder of the path has the name of a split.
        named: the folder that has the name.
    """

    path: Path
    real: Path
    split: str
    named: Path


def find_splits(top: Path) -> dict[str, list[Path]]:
    """Return split → the game files in folders of its name, at any depth below `top`; or all, if `top` has that name.

    Links are followed, except to a folder that contains them. Games with movable receptacles or slices are left out. So
    are games outside the folders of splits, if others lie inside.

    Raises:
        DataNotFound: no such folder, or one that cannot be read.
        ConfigurationError: a game of two splits, or games of which none has a split.
    """
    games = list(_walk(top, ""))
    own = next((_SPLIT_OF[name] for name in (top.name, _real(top).name) if name in _SPLIT_OF), "")
    if own and not any(game.split for game in games):
        games = list(_walk(top, own))
    found: dict[str, list[Path]] = {}
    known: dict[Path, _Place] = {}
    for game in games:
        split = game.split
        first = known.setdefault(game.real, game) if split else game
        if first.split != split:
            raise ConfigurationError(
                f"{first.path} and {game.path} are one game, of {first.split} and of {split}: take it out of one"
            )
        if split and first is game and not any(word in str(game.path.relative_to(game.named)) for word in _SKIPPED):
            found.setdefault(split, []).append(game.path)
    if games and not known:
        raise ConfigurationError(
            f"{top} has games, such as {games[0].path.relative_to(top)}, but no folder that says of which split they "
            f"are: put them into folders {', '.join(_SPLIT_OF)}"
        )
    return found


def _walk(top: Path, split: str) -> Iterator[_Place]:
    """Yield every game file below a folder, in alphabetic order; once for each split if links lead to it twice."""
    root = _real(top)
    waiting, seen = [_Place(top, root, split, top)], set[tuple[Path, str]]()
    while waiting:
        folder = waiting.pop()
        if (folder.real, folder.split) in seen:
            continue
        seen.add((folder.real, folder.split))
        try:
            with os.scandir(folder.path) as listed:
                entries = sorted(Path(entry.path) for entry in listed)
            folders = {path for path in entries if path.is_dir()}
        except OSError as error:
            raise DataNotFound(
                f"{folder.path} cannot be read ({error.strerror}): name the folder of the games"
            ) from None
        inner = []
        for path in entries:
            linked = path.is_symlink()
            real = _real(path) if linked else folder.real / path.name
            if path not in folders:
                if path.name == GAME_FILE:
                    yield _Place(path, real, folder.split, folder.named)
            elif not (linked and any(each.is_relative_to(real) for each in (folder.real, root))):
                inner.append(_enter(folder, path, real))
        waiting += reversed(inner)


def _enter(outer: _Place, path: Path, real: Path) -> _Place:
    """Return a folder in another one; ConfigurationError where the two have the names of different splits."""
    split = _SPLIT_OF.get(path.name, outer.split)
    if outer.split not in ("", split):
        raise ConfigurationError(
            f"{path} lies in {outer.named}, so its games are of {split} and of {outer.split}: name a folder within, or "
            "move one of the two"
        )
    return _Place(path, real, split, outer.named if outer.split else path)


def _real(path: Path) -> Path:
    """Return the path with links resolved; a link to itself stays, for which `Path.resolve` would raise."""
    return Path(os.path.realpath(path))
