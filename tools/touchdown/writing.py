"""Write the files of a Touchdown folder, which `magrounding.single.touchdown.files` reads."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from magrounding.errors import CheckpointError
from magrounding.single.touchdown.files import (
    LINKS,
    NODES,
    PANOIDS,
    PANORAMAS,
    PANORAMAS_KEY,
    WORDS,
    Link,
    Node,
    Route,
    Vocabulary,
)
from magrounding.storage import json_text, write_atomic


def write_city(
    folder: Path,
    nodes: list[Node],
    links: list[Link],
    routes: Mapping[str, list[Route]],
    panoramas: np.ndarray,
    words: Vocabulary,
    pack: bool = False,
) -> None:
    """Write the files of a folder.

    Args:
        folder: to write into.
        nodes, links, words: what they say.
        routes: by name of their file.
        panoramas: [N, 47, 128] uint8, in the order of the nodes.
        pack: compress the routes.
    """
    lines = {
        NODES: [f"{n.id},{n.yaw:g},{n.latitude:.7f},{n.longitude:.7f}" for n in nodes],
        LINKS: [f"{link.start},{link.heading:g},{link.end}" for link in links],
        **{file: [_as_json(route) for route in each] for file, each in routes.items()},
    }
    for file, each in lines.items():
        data = ("\n".join(each) + "\n").encode()
        packed = file in routes and pack
        write_atomic(
            folder / f"{file}.gz" if packed else folder / file, gzip.compress(data, mtime=0) if packed else data
        )
    write_panoramas(folder, [node.id for node in nodes], panoramas, pack=True)
    write_words(folder, words)


def require_empty(folder: Path) -> None:
    """Raise CheckpointError where a city would be written over other files."""
    if folder.exists() and any(folder.iterdir()):
        raise CheckpointError(f"{folder} has files: name another folder, or move those away")


def write_words(folder: Path, words: Vocabulary) -> None:
    """Write the words of a folder."""
    write_atomic(folder / WORDS, json_text({"words": words.words, "longest": words.longest}) + "\n")


def write_panoramas(folder: Path, names: list[str], classes: np.ndarray, pack: bool = False) -> None:
    """Write the panoramas of a folder.

    Args:
        folder: to write into.
        names: of each.
        classes: [N, 47, 128] uint8.
        pack: compress them; else they are mapped from the disk while they are played.
    """
    buffer, arrays = io.BytesIO(), {PANORAMAS_KEY: classes}
    if pack:
        np.savez_compressed(buffer, **arrays)  # pyright: ignore[reportArgumentType]  of arrays by name
    else:
        np.save(buffer, classes, allow_pickle=False)
    write_atomic(folder / PANORAMAS[pack], buffer.getvalue())
    write_atomic(folder / PANOIDS, "\n".join(names) + "\n")


def _as_json(route: Route) -> str:
    fields = {
        "route_panoids": route.nodes,
        "navigation_text": route.instruction,
        "start_heading": route.heading,
        "main_pano": route.nodes[-1],
    }
    return json_text(fields)
