"""Corpus: sentences about an entity, its role and its movement, for each split.

Ours is templates with blanks for entity, adjective and role (`data/templates.json`); training, validation and test
share no template, but synonyms and role words. Another corpus, such as that of MESSENGER's authors, is read from a
folder (`find_corpus`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from magrounding.brief import brief
from magrounding.envs.messenger.arrays import ENTITIES, FIRST_WORD, MOVEMENTS, ROLES
from magrounding.errors import DataNotFound
from magrounding.storage import parse_json, require_bytes, text_of, user_path
from magrounding.vocabulary import Vocabulary, without_punctuation

LAYOUTS = ("statements", "paragraph", "stream")
"""One description a row; all in one row, in the order of the rows; the same without punctuation."""
STATEMENTS, PARAGRAPH, STREAM = LAYOUTS

TEXTS = ("train", "val", "test")
Cell = tuple[str, str, str]
"""Entity, role and movement."""
Cells = Mapping[Cell, tuple[str, ...]]
"""Cell → sentences of space-separated tokens; there may be none."""

CELLS: tuple[Cell, ...] = tuple(product(ENTITIES, ROLES, MOVEMENTS))
_OTHER_NAMES = {"chaser": "chasing", "fleer": "fleeing", "stationary": "immovable"}
"""Name of a movement in other corpora → ours; the authors' has the first."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences, and what follows from them.

    Attributes:
        sentences: text of a split → cell → sentences.
        source: where they are from, for reports.
        digest: SHA-256 of the three files, one after another; None for our own.
    """

    __repr__ = brief

    sentences: Mapping[str, Cells]
    source: str
    digest: str | None = None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Symbols and every word, in order of appearance."""
        symbols = (f"<symbol {k}>" for k in range(1, FIRST_WORD))
        return Vocabulary([*symbols, *dict.fromkeys(word for sentence in self._every() for word in sentence.split())])

    @cached_property
    def longest(self) -> tuple[int, int]:
        """Words of the longest sentence of any split, as it is and without punctuation."""
        ways = self._every(), map(without_punctuation, self._every())
        whole, bare = (max((sentence.count(" ") + 1 for sentence in way), default=1) for way in ways)
        return whole, bare

    def _every(self) -> Iterator[str]:
        return (s for cells in self.sentences.values() for sentences in cells.values() for s in sentences)


@cache
def our_corpus() -> Corpus:
    """Every sentence that our templates make: 27 of each for each cell, by synonym, adjective and role word."""
    data = json.loads(files("magrounding.envs.messenger").joinpath("data/templates.json").read_text(encoding="utf-8"))
    sentences = {}
    for text in TEXTS:
        cells = {}
        for entity, role, movement in CELLS:
            words = product(
                data["templates"][text][movement],
                data["entities"][entity],
                data["roles"][role]["adjectives"],
                data["roles"][role]["nouns"],
            )
            cells[entity, role, movement] = tuple(
                template.replace("{entity}", name).replace("{adjective}", adjective).replace("{role}", noun)
                for template, name, adjective, noun in words
            )
        sentences[text] = cells
    return Corpus(sentences, "our templates")


def find_corpus(folder: str | None) -> Corpus:
    """Return our corpus, or read one in the form of the original's: three files of JSON, text_train.json and so on.

    Each maps entity → role → movement → list of sentences; what is empty or left out is not said. Movements are called
    as here or as there ("chaser"). Words are lower-cased, punctuation becomes tokens. A sentence that a list has twice
    is drawn twice as often. Files are read afresh, and parsed where they are new.

    Args:
        folder: of the three files, relative to the current one; None for ours.

    Raises:
        DataNotFound: a file that is missing or no JSON, or has a name that is no entity, role or movement.
    """
    if folder is None:
        return our_corpus()
    return _parse(folder, *(_read(user_path(folder) / _file(text)) for text in TEXTS))


def _file(text: str) -> str:
    return f"text_{text}.json"


def _read(path: Path) -> bytes:
    missing = DataNotFound(f"{path} is missing; a corpus has {' and '.join(map(_file, TEXTS))}")
    return require_bytes(path, missing=missing, refused=DataNotFound)


@lru_cache(maxsize=8)
def _parse(folder: str, *contents: bytes) -> Corpus:
    digest = hashlib.sha256(b"".join(contents)).hexdigest()
    sentences = {
        text: _parse_cells(content, Path(folder) / _file(text)) for text, content in zip(TEXTS, contents, strict=True)
    }
    return Corpus(sentences, f"corpus {folder}, sha256 {digest}", digest)


@cache
def _form() -> Any:
    """The form of a file: entity → role → movement → sentences, each of which may be left out."""
    form: Any = list[str]
    for names in ((*MOVEMENTS, *_OTHER_NAMES), ROLES, ENTITIES):
        form = msgspec.defstruct(
            "Form", [(name, form | UnsetType, UNSET) for name in names], forbid_unknown_fields=True
        )
    return form


def _parse_cells(content: bytes, path: Path) -> Cells:
    try:
        data: dict[str, dict[str, dict[str, list[str]]]] = parse_json(text_of(content))
        msgspec.convert(data, _form())
    except ValueError as error:
        raise DataNotFound(f"{path} has no sentences that can be read: {error}") from None
    cells: dict[Cell, list[str]] = {cell: [] for cell in CELLS}
    for entity, roles in data.items():
        for role, movements in roles.items():
            for name, found in movements.items():
                tokens = (" ".join(re.findall(r"[^\W_]+|[^\w\s]", sentence.lower())) for sentence in found)
                cells[entity, role, _OTHER_NAMES.get(name, name)] += filter(None, tokens)
    return {cell: tuple(sentences) for cell, sentences in cells.items()}


@lru_cache(maxsize=64)
def sentence_tables(
    corpus: Corpus, cells: tuple[tuple[str, ...], ...], *, stream: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All sentences that games draw from, those of each of CELLS; in a stream without punctuation.

    Returns:
        Sentences [R, L] int16, L as `Corpus.longest`; and [12, 3, 4] where those of each cell begin, and how many there
        are.
    """
    count = np.array([len(sentences) for sentences in cells])
    shape = len(ENTITIES), len(ROLES), len(MOVEMENTS)
    longest = corpus.longest[stream]
    every = (without_punctuation(s) if stream else s for sentences in cells for s in sentences)
    rows = [corpus.vocabulary.encode(sentence, longest) for sentence in every]
    sentences = np.stack(rows) if rows else np.zeros((1, longest), np.int16)
    return sentences, (np.cumsum(count) - count).reshape(shape), count.reshape(shape)
