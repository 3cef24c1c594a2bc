"""Puts a user's Touchdown files into the folder that the environment plays: `python -m benchmarks.touchdown_files`.

    python -m benchmarks.touchdown_files --graph DIR --routes DIR --features segmentations.pt --out FOLDER
    python -m benchmarks.curriculum --env touchdown ... env.data=FOLDER

`--graph` has `nodes.txt` and `links.txt`, `--routes` has `train.json`, `dev.json` and `test.json`, both as Touchdown
publishes them; `--features` is SILG's file of segmentations: a torch file with `feats` [N, 47, 128], classes of
Cityscapes, and `panoid_to_idx`, the row of each panorama. It is read without executing anything it may contain.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from magrounding.errors import ConfigurationError, DataNotFound, MagroundingError
from magrounding.output import show_anything
from magrounding.single.tokenizer import Tokenizer
from magrounding.single.tokenizer import split as words_of
from magrounding.single.touchdown import files
from magrounding.single.touchdown.city import City
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, ROWS, SPLITS
from magrounding.storage import user_path
from tools.touchdown.writing import require_empty, write_panoramas, write_words

FEWEST = 3
"""Times that a word has to occur in training instructions to have an id of its own; others are spelt."""


def read_features(file: Path) -> tuple[list[str], np.ndarray]:
    """Names and classes [N, 47, 128] uint8 of the panoramas in a torch file.

    Raises:
        DataNotFound: no such file.
        ConfigurationError: something else, or a file that would have to execute something.
    """
    if not file.is_file():
        raise DataNotFound(f"there is no {file}")
    try:
        said: Any = torch.load(file, map_location="cpu", weights_only=True, mmap=False)
    except Exception as error:  # whatever is wrong with a file of somebody else
        raise ConfigurationError(f"{file.name} is no file of tensors and names alone: {error}") from error
    good = isinstance(said, Mapping) and isinstance(said.get("feats"), torch.Tensor)
    rows = said.get("panoid_to_idx") if good else None
    if not good or not isinstance(rows, Mapping):
        raise ConfigurationError(f"{file.name} has to have feats, a tensor, and panoid_to_idx, the row of each name")
    feats = said["feats"]
    names = sorted((name for name in rows if isinstance(name, str)), key=lambda name: int(rows[name]))
    numbers = [int(rows[name]) for name in names]
    if feats.dim() != 3 or tuple(feats.shape[1:]) != (ROWS, COLUMNS) or not names or len(names) != len(rows):
        raise ConfigurationError(f"feats is {list(feats.shape)}, expected [N, {ROWS}, {COLUMNS}] and a name for each")
    if min(numbers) < 0 or max(numbers) >= len(feats) or feats.min() < 0 or feats.max() >= len(CLASSES):
        raise ConfigurationError(f"feats has classes 0 to {len(CLASSES) - 1} and panoid_to_idx rows of it; others came")
    return names, feats[torch.tensor(numbers)].to(torch.uint8).numpy()


def list_words(folder: Path) -> files.Vocabulary:
    """The words of training instructions, and the length of the longest of all."""
    counts: Counter[str] = Counter()
    for route in files.read_routes(folder / SPLITS["train"]):
        counts.update(words_of(route.instruction))
    words = tuple(sorted(word for word, count in counts.items() if count >= FEWEST))
    tokenizer = Tokenizer(dict.fromkeys((*CLASSES, *words)))
    everything = (route for file in SPLITS.values() for route in files.read_routes(folder / file))
    return files.Vocabulary(words, max(tokenizer.count(route.instruction) for route in everything))


def make_folder(graph: Path, routes: Path, features: Path, out: Path) -> None:
    """Write the folder, and check that it can be played.

    Raises:
        CheckpointError: `out` has files.
        DataNotFound: a file is missing.
        ConfigurationError: a file that is not what it should be.
    """
    require_empty(out)
    sources = [graph / files.NODES, graph / files.LINKS, *(routes / file for file in SPLITS.values())]
    for source in sources:
        if not source.is_file():
            raise DataNotFound(f"there is no {source}")
    names, classes = read_features(features)
    out.mkdir(parents=True, exist_ok=True)
    for source in sources:
        shutil.copyfile(source, out / source.name)
    write_panoramas(out, names, classes)
    write_words(out, list_words(out))
    city = City(out)
    for name in SPLITS:
        print(f"{name}: {len(city.routes(name)):,} routes")


def main(arguments: list[str] | None = None) -> int:
    """Make the folder as the command line says."""
    show_anything()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.touchdown_files",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, what in (("graph", "folder"), ("routes", "folder"), ("features", "file"), ("out", "folder")):
        parser.add_argument(f"--{name}", type=user_path, required=True, metavar=what.upper())
    chosen = parser.parse_args(arguments)
    try:
        make_folder(chosen.graph, chosen.routes, chosen.features, chosen.out)
    except MagroundingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"the city is in {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
