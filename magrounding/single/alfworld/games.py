"""Games of a split: the scenes of the package, or those of a user's folder.

A user's game belongs to the split that one of the folders above it is named after, and to one only.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NotRequired, TypedDict

import msgspec

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.alfworld import kinds, package
from magrounding.single.alfworld.scenes import Scene
from magrounding.storage import read_text, user_path

GAME_FILE = "game.tw-pddl"
START = "loc_bar_0"
AGENT = "agent1"
UNKNOWN_TASK = "UNKNOWN GOAL"
"""Placeholder of the task in the package's grammar."""


def game_of(scene: Scene) -> Game:
    """Return the content of `game.tw-pddl`: domain, problem, and the grammar with the task filled in.

    MissingExtra where alfworld is not installed, which has domain, grammar and goals.
    """
    package.require()
    domain, grammar = package.rules()
    goal = package.part("gen.goal_library").gdict[scene.task]
    names = {"obj": scene.target, "recep": scene.goal, "toggle": kinds.LAMP, "mrecep": ""}
    sentence = goal["templates"][scene.template].format(**{name: kind.lower() for name, kind in names.items()})
    return {
        "pddl_domain": domain,
        "grammar": grammar.replace(UNKNOWN_TASK, sentence),
        "pddl_problem": problem(scene) + goal["pddl"].format(**names).replace("#", "-"),
        "solvable": True,
    }


def problem(scene: Scene) -> str:
    """Return the scene in PDDL, up to its goal, which closes the definition."""
    receptacles, objects = _identify(scene.receptacles), _identify(tuple(kind for kind, _ in scene.things))
    places = [f"loc_bar_{number}" for number in range(1, len(receptacles) + 1)]
    declared = [
        f"{AGENT} - agent",
        *(f"{place} - location" for place in (START, *places)),
        *(f"{name} - receptacle" for name in receptacles),
        *(f"{name} - object" for name in objects),
        *(f"{kind}Type - rtype" for kind in kinds.RECEPTACLES),
        *(f"{kind}Type - otype" for kind in kinds.OBJECTS),
    ]
    facts = [f"(atLocation {AGENT} {START})"]
    for name, kind, place in zip(receptacles, scene.receptacles, places, strict=True):
        facts += [f"(receptacleType {name} {kind}Type)", f"(receptacleAtLocation {name} {place})"]
        facts += [f"(openable {name})"] * (kind in kinds.OPENABLE)
    for name, (kind, where) in zip(objects, scene.things, strict=True):
        facts += [f"(objectType {name} {kind}Type)", f"(inReceptacle {name} {receptacles[where]})"]
        facts += [f"(objectAtLocation {name} {places[where]})"]
        facts += [f"({property} {name})" for property, holders in _PROPERTIES.items() if kind in holders]
    present = {kind for kind, _ in scene.things}
    facts += [
        f"(canContain {receptacle}Type {kind}Type)"
        for receptacle in sorted(set(scene.receptacles))
        for kind in sorted(present & kinds.HOLDS[receptacle])
    ]
    things, known = ("".join(f"  {line}\n" for line in lines) for lines in (declared, facts))
    objects_and_facts = f" (:objects\n{things} )\n (:init\n{known}  (= (total-cost) 0)\n )"
    return f"(define (problem scene)\n (:domain alfred)\n{objects_and_facts}"


_PROPERTIES = {
    "pickupable": frozenset(kinds.OBJECTS) - {kinds.LAMP},
    "toggleable": frozenset({kinds.LAMP}),
    "isReceptacleObject": kinds.VESSELS,
    "sliceable": kinds.SLICEABLE,
    "heatable": kinds.HEATABLE,
    "coolable": kinds.COOLABLE,
    "cleanable": kinds.CLEANABLE,
}


def _identify(of_kinds: tuple[str, ...]) -> list[str]:
    """Return an id for each thing, of the shape that ALFWorld makes names of: `Apple_bar_2` becomes "apple 2"."""
    counted: Counter[str] = Counter()
    names = []
    for kind in of_kinds:
        counted[kind] += 1
        basin = f"_bar_{kind}" if kind.endswith("Basin") else ""
        # Ids are numbered from the last in alphabetic order to the first, so the number says only which are distinct.
        names.append(f"{kind.removesuffix('Basin')}_bar_{counted[kind]:02d}{basin}")
    return names


SHIPPED = Path(__file__).parent / "data" / "scenes.json.gz"
"""The scenes that come with the package, by split."""

FOLDERS = {"train": ("train",), "valid": ("valid", "valid_seen"), "test": ("test", "valid_unseen")}
"""Split → names of its folder: in what our command writes, and in ALFWorld's download."""

_SPLIT_OF = {name: split for split, names in FOLDERS.items() for name in names}
_SKIPPED = ("movable", "Sliced")


class Game(TypedDict):
    """The content of a game's file."""

    pddl_domain: str
    grammar: str
    pddl_problem: str
    solvable: NotRequired[bool]


def shipped_scenes(split: str) -> tuple[Scene, ...]:
    """Return the package's scenes of a split, in their order."""
    return _read_shipped()[split]


class Games:
    """The games of a split in a user's folder, or the package's scenes with "", by number.

    DataNotFound for a folder that does not exist or has no games.
    """

    def __init__(self, folder: str, split: str) -> None:
        self._found: Sequence[Scene | Path] = find_games(folder, split) if folder else shipped_scenes(split)

    def __len__(self) -> int:
        return len(self._found)

    def name(self, number: int) -> str:
        found = self._found[number]
        return found.name if isinstance(found, Scene) else found.parent.name

    def data(self, number: int) -> Game:
        """Return the content of a game's file; ConfigurationError for one that is no game."""
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


def read_game(path: Path) -> Game:
    """Read a game file; ConfigurationError for one that is no game."""
    try:
        return msgspec.json.decode(read_text(path), type=Game)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} cannot be read as a game of ALFWorld, JSON with pddl_domain, grammar and pddl_problem: {error}"
        ) from error


@lru_cache(maxsize=1)
def _read_shipped() -> dict[str, tuple[Scene, ...]]:
    return msgspec.json.decode(gzip.decompress(SHIPPED.read_bytes()), type=dict[str, tuple[Scene, ...]])


def find_splits(top: Path) -> dict[str, list[Path]]:
    """Return split → the game files in folders of its name, at any depth below `top`; or all, if `top` has that name.

    Links are followed, except to a folder that contains them. Games with movable receptacles or slices are left out. So
    are games outside the folders of splits, if others lie inside.

    Raises:
        DataNotFound: no such folder, or one that cannot be read.
        ConfigurationError: a game of two splits, or games of which none has a split.
    """
    games = dict(_walk(top))
    own = next((_SPLIT_OF[name] for name in (top.name, _real(top).name) if name in _SPLIT_OF), "")
    if own and not any(games.values()):
        games = dict.fromkeys(games, own)
    found: dict[str, list[Path]] = {}
    known: dict[Path, Path] = {}
    for path, split in games.items():
        first = known.setdefault(_real(path), path) if split else path
        if games[first] != split:
            raise ConfigurationError(
                f"{first} and {path} are one game, of {games[first]} and of {split}: take it out of one"
            )
        if split and first is path and not any(word in _below_split(path, top) for word in _SKIPPED):
            found.setdefault(split, []).append(path)
    if games and not known:
        raise ConfigurationError(
            f"{top} has games, such as {next(iter(games)).relative_to(top)}, but no folder that says of which split "
            f"they are: put them into folders {', '.join(_SPLIT_OF)}"
        )
    return found


def _below_split(path: Path, top: Path) -> str:
    """Return the part of a path from the first folder on that is named after a split; all where none is."""
    parts = path.relative_to(top).parts
    return "/".join(parts[next((k for k, part in enumerate(parts) if part in _SPLIT_OF), 0) :])


def _walk(top: Path) -> Iterator[tuple[Path, str]]:
    """Yield every game file below a folder, in alphabetic order, and its split; "" where no folder says.

    One comes once for each split if links lead to it twice. A ConfigurationError for a folder of several splits.
    """
    root = _real(top)
    waiting, seen = [top], set[tuple[Path, str]]()
    while waiting:
        folder = waiting.pop()
        splits = sorted({_SPLIT_OF[part] for part in folder.relative_to(top).parts if part in _SPLIT_OF})
        if len(splits) > 1:
            raise ConfigurationError(
                f"{folder} lies in folders of several splits, so its games are of {' and of '.join(splits)}: "
                "name a folder within, or move one"
            )
        real, split = _real(folder), "".join(splits)
        if (real, split) in seen:
            continue
        seen.add((real, split))
        try:
            with os.scandir(folder) as listed:
                entries = sorted(Path(entry.path) for entry in listed)
            folders = {path for path in entries if path.is_dir()}
        except OSError as error:
            raise DataNotFound(f"{folder} cannot be read ({error.strerror}): name the folder of the games") from None
        yield from ((path, split) for path in entries if path.name == GAME_FILE and path not in folders)
        rings = {p for p in folders if p.is_symlink() and any(each.is_relative_to(_real(p)) for each in (real, root))}
        waiting += sorted(folders - rings, reverse=True)


def _real(path: Path) -> Path:
    """Return the path with links resolved; a link to itself stays, for which `Path.resolve` would raise."""
    return Path(os.path.realpath(path))
