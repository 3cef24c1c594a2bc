"""Where games come from: the scenes of the package, or a folder of games of the user's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.alfworld.problem import GAME_FILE, game_of
from magrounding.single.alfworld.scenes import SPLITS, Scene
from magrounding.storage import json_text, user_path

SHIPPED = Path(__file__).parent / "data" / "scenes.json.gz"
"""The scenes that come with the package, by split."""

FOLDERS = {"train": ("train",), "valid": ("valid", "valid_seen"), "test": ("test", "valid_unseen")}
"""Split → names of its folder: what our command writes, and what ALFWorld's download has."""

_SKIPPED = ("movable", "Sliced")
_KEYS = ("pddl_domain", "grammar", "pddl_problem")


def shipped_scenes(split: str) -> tuple[Scene, ...]:
    """The package's scenes of a split, in their order."""
    return _read_shipped()[split]


def save_scenes(path: Path, scenes: dict[str, list[Scene]]) -> None:
    """Write a file like SHIPPED: the same scenes, the same bytes."""
    text = json_text({split: [scene.as_dict() for scene in some] for split, some in scenes.items()})
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(text.encode())


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
        """What to call a game."""
        found = self._found[number]
        return found.name if isinstance(found, Scene) else found.parent.name

    def data(self, number: int) -> dict[str, Any]:
        """What a game's file says.

        Raises:
            ConfigurationError: a file that is no game.
        """
        found = self._found[number]
        return game_of(found) if isinstance(found, Scene) else read_game(found)


@lru_cache(maxsize=16)
def find_games(folder: str, split: str) -> tuple[Path, ...]:
    """The game files of a split below a folder, in alphabetic order; all of the folder's where it has no splits.

    Games that are known to be impossible, or need what the engine lacks (movable receptacles, slices), are left out.

    Raises:
        DataNotFound: a folder that does not exist or has no games.
    """
    top = user_path(folder)
    known = [top / name for names in FOLDERS.values() for name in names if (top / name).is_dir()]
    own = [top / name for name in FOLDERS[split] if (top / name).is_dir()]
    places = own if known else [top]
    files = sorted(file for place in places for file in place.rglob(GAME_FILE))
    games = [file for file in files if not any(word in str(file.relative_to(top)) for word in _SKIPPED)]
    games = [file for file in games if read_game(file).get("solvable", True)]
    if not games:
        raise DataNotFound(
            f"there is no {GAME_FILE} for the split {split!r} in {top}: name the folder that holds "
            f"{' or '.join(FOLDERS[split])}, or make games by python -m magrounding.single.alfworld.generate"
        )
    return tuple(games)


def read_game(path: Path) -> dict[str, Any]:
    """What a game file says; ConfigurationError for one that is no game."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read as JSON ({error}): is it a game of ALFWorld?") from error
    if not isinstance(data, dict) or not all(isinstance(data.get(key), str) for key in _KEYS):
        raise ConfigurationError(f"{path} lacks one of {', '.join(_KEYS)}: is it a game of ALFWorld?")
    return data


@lru_cache(maxsize=1)
def _read_shipped() -> dict[str, tuple[Scene, ...]]:
    found = json.loads(gzip.decompress(SHIPPED.read_bytes()))
    return {split: tuple(map(Scene.from_dict, found[split])) for split in SPLITS}
