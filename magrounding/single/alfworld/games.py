"""Games of a split: the scenes of the package, or those of a user's folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.alfworld.folders import FOLDERS, find_splits
from magrounding.single.alfworld.problem import GAME_FILE, game_of
from magrounding.single.alfworld.scenes import SPLITS, Scene
from magrounding.storage import read_text, user_path

SHIPPED = Path(__file__).parent / "data" / "scenes.json.gz"
"""The scenes that come with the package, by split."""

_KEYS = ("pddl_domain", "grammar", "pddl_problem")


def shipped_scenes(split: str) -> tuple[Scene, ...]:
    """Return the package's scenes of a split, in their order."""
    return _read_shipped()[split]


class Games:
    """The games of a split, by number.

    Args:
        folder: where a user's games lie, "" for the package's scenes.
        split: one of SPLITS.

    Raises:
        DataNotFound: a folder that does not exist or has no games.
    """

    def __init__(self, folder: str, split: str) -> None:
        self._found: Sequence[Scene | Path] = find_games(folder, split) if folder else shipped_scenes(split)

    def __len__(self) -> int:
        return len(self._found)

    def name(self, number: int) -> str:
        """Return the name of a game."""
        found = self._found[number]
        return found.name if isinstance(found, Scene) else found.parent.name

    def data(self, number: int) -> dict[str, Any]:
        """Return the content of a game's file.

        Raises:
            ConfigurationError: a file that is no game.
        """
        found = self._found[number]
        return game_of(found) if isinstance(found, Scene) else read_game(found)


def find_games(folder: str, split: str) -> tuple[Path, ...]:
    """Return the game files of a split, in alphabetic order: those in folders of its name, at any depth.

    Games that are known to be impossible, or need what the engine lacks (movable receptacles, slices), are left out.

    Raises:
        DataNotFound: no such folder, or one without a folder of this split that has games.
        ConfigurationError: a file that is no game, or folders that do not say which split a game is of.
    """
    return _find(user_path(folder).absolute(), split)


@lru_cache(maxsize=16)
def _find(top: Path, split: str) -> tuple[Path, ...]:
    found = find_splits(top)
    games = [file for file in sorted(found.get(split, ())) if read_game(file).get("solvable", True)]
    if not games:
        there = f"has games of {', '.join(found)} only" if found else "has no games"
        raise DataNotFound(
            f"there is no {GAME_FILE} for the split {split!r} in {top}, which {there}: name the folder that holds "
            f"{' or '.join(FOLDERS[split])}, or make games by python -m tools.alfworld.generate"
        )
    return tuple(games)


def read_game(path: Path) -> dict[str, Any]:
    """Read a game file; ConfigurationError for one that is no game."""
    try:
        data = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read as JSON ({error}): is it a game of ALFWorld?") from error
    if not isinstance(data, dict) or not all(_is_text(data.get(key)) for key in _KEYS):
        raise ConfigurationError(f"{path} lacks one of {', '.join(_KEYS)}, each a text: is it a game of ALFWorld?")
    if not isinstance(data.get("solvable", True), bool):
        raise ConfigurationError(f"{path} says that solvable is {data['solvable']!r}, expected true or false")
    return data


def _is_text(value: object) -> bool:
    """Return whether the engine can take a text: JSON can hold half of a pair of surrogates."""
    return isinstance(value, str) and not any("\ud800" <= sign <= "\udfff" for sign in value)


@lru_cache(maxsize=1)
def _read_shipped() -> dict[str, tuple[Scene, ...]]:
    found = json.loads(gzip.decompress(SHIPPED.read_bytes()))
    return {split: tuple(map(Scene.from_dict, found[split])) for split in SPLITS}
