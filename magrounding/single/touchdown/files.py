"""The files of a Touchdown folder: the graph, the routes, the panoramas, the words. Nothing in them is ever executed.

`nodes.txt` (panorama, yaw, latitude, longitude), `links.txt` (panorama, heading, panorama) and the routes
(`train.json`, `dev.json`, `test.json`, an object a line; packed, too, as `train.json.gz`) are Touchdown's own files
(Chen et al. 2019). Panoramas are classes, uint8 [N, 47, 128], in `panoramas.npy` or compressed in `panoramas.npz`, a
row for each line of `panoids.txt`; `words.json` has the words of the instructions and how many the longest has.
In a checkout, `benchmarks.touchdown_files` makes those of SILG's published features and `tools.touchdown.generate`
draws all of them for a city of our own.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from magrounding.errors import ConfigurationError, DataNotFound
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, ROWS
from magrounding.storage import (
    ARRAYS,
    LINES,
    lines_of,
    open_regular,
    read_bytes,
    read_text,
    text_of,
    unpacked,
    user_path,
)

NODES, LINKS, PANOIDS, WORDS = "nodes.txt", "links.txt", "panoids.txt", "words.json"
PANORAMAS = ("panoramas.npy", "panoramas.npz")
PANORAMAS_KEY = "panoramas"
_BLANK = " \t"
_NAMES = {"nodes": "route_panoids", "instruction": "navigation_text", "heading": "start_heading"}

Row = TypeVar("Row")

SHIPPED = Path(__file__).with_name("data")
"""The city of the package."""


_Name = Annotated[str, Meta(min_length=1)]
_Number = Annotated[float, Meta(ge=-1e9, le=1e9)]


class Node(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A place with a panorama; yaw in degrees."""

    id: _Name
    yaw: _Number
    latitude: _Number
    longitude: _Number


class Link(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A way from a node to the next, at a heading in degrees."""

    start: _Name
    heading: _Number
    end: _Name


class Route(msgspec.Struct, frozen=True, rename=_NAMES):
    """A walk by panoramas from the start to the goal, its instruction, and the heading at the start in degrees."""

    nodes: Annotated[tuple[str, ...], Meta(min_length=2)]
    instruction: str
    heading: _Number


@dataclass(frozen=True)
class Vocabulary:
    """The words of the instructions, and how many ids the longest has."""

    words: tuple[str, ...]
    longest: Annotated[int, Meta(gt=0, lt=10_000)]


def folder_of(data: str) -> Path:
    """Return the folder that an option names, seen from the current one; "" is the city of the package."""
    return user_path(data).absolute() if data else SHIPPED


def read_nodes(file: Path) -> list[Node]:
    """Read `nodes.txt`; errors as of `read_routes`."""
    return _read_lines(file, lambda line: msgspec.convert(_parts(line), Node, strict=False))


def read_links(file: Path) -> list[Link]:
    """Read `links.txt`; errors as of `read_routes`."""
    return _read_lines(file, lambda line: msgspec.convert(_parts(line), Link, strict=False))


def read_routes(file: Path) -> list[Route]:
    """Read a file of routes; DataNotFound where there is none, ConfigurationError for a line that is no route."""
    return _read_lines(file, lambda line: msgspec.json.decode(line, type=Route, strict=False))


def _parts(line: str) -> list[str]:
    return [part.strip(_BLANK) for part in line.split(",")]


def _read_lines(file: Path, read: Callable[[str], Row]) -> list[Row]:
    """Return what each line says that is not blank; ConfigurationError for one that says something else, or for none.

    Numbers may stand in texts.
    """
    rows = []
    for number, line in enumerate(lines_of(_text(file)), 1):
        try:
            if line.strip():
                rows.append(read(line))
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"line {number} of {file.name} is not what it should be ({error})") from None
    if not rows:
        raise ConfigurationError(f"{file.name} has no lines")
    return rows


def read_words(folder: Path) -> Vocabulary:
    """Read the words of a folder."""
    try:
        return msgspec.json.decode(_text(folder / WORDS), type=Vocabulary)
    except (msgspec.MsgspecError, RecursionError):
        raise ConfigurationError(f"{WORDS} has to be an object with words, a list, and longest, a number") from None


def read_panoramas(folder: Path) -> tuple[list[str], np.ndarray]:
    """Read names and classes [N, 47, 128] uint8 of all panoramas; those of `panoramas.npy` stay on the disk.

    DataNotFound where there are no such files, ConfigurationError for files that do not fit.
    """
    file = next((folder / name for name in PANORAMAS if (folder / name).is_file()), None)
    if file is None:
        raise DataNotFound(f"{folder} has no {' or '.join(PANORAMAS)}: python -m benchmarks.touchdown_files makes it")
    try:
        if file.suffix == ".npy":
            classes = np.load(file, mmap_mode="r", allow_pickle=False)
        else:
            with open_regular(file, ARRAYS) as packed, np.load(packed, allow_pickle=False) as archive:
                classes = archive[PANORAMAS_KEY]
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise ConfigurationError(f"{file.name} is no array of panoramas ({error})") from error
    names = [name for line in lines_of(_text(folder / PANOIDS)) if (name := line.strip(_BLANK))]
    if classes.dtype != np.uint8 or classes.shape != (len(names), ROWS, COLUMNS):
        raise ConfigurationError(
            f"{file.name} has {classes.dtype} {list(classes.shape)}, expected uint8 [{len(names)}, {ROWS}, {COLUMNS}]: "
            f"a row for each line of {PANOIDS}"
        )
    return names, classes


def _text(file: Path) -> str:
    try:
        packed = file.with_name(f"{file.name}.gz")
        if packed.is_file():
            return text_of(unpacked(read_bytes(packed, LINES), LINES))
        return read_text(file, LINES)
    except FileNotFoundError:
        raise DataNotFound(f"there is no {file.name} in {file.parent}") from None
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise ConfigurationError(f"{file} cannot be read as text ({error})") from error


def check_classes(panoramas: np.ndarray) -> None:
    """Raise ConfigurationError where a patch has an unknown class."""
    if panoramas.size and panoramas.max() >= len(CLASSES):
        raise ConfigurationError(f"panoramas have class {panoramas.max()}, there are 0 to {len(CLASSES) - 1}")
