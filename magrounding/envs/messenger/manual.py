"""The corpus: what is said of an entity in a role that moves in some way, for each split.

Ours is templates with blanks for entity, adjective and role (`data/templates.json`); training, validation and test
share no template, but synonyms and role words. Another corpus can be read from a folder (`read_corpus`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np

from magrounding.envs.messenger.entities import ENTITIES, MOVEMENTS, ROLES, messenger_vocabulary
from magrounding.errors import DataNotFound
from magrounding.vocabulary import Vocabulary

TEXTS = ("train", "val", "test")
Cell = tuple[str, str, str]
"""Entity, role and movement."""
Corpus = Mapping[str, Mapping[Cell, tuple[str, ...]]]
"""Text of a split → cell → distinct sentences of space-separated tokens."""

CELLS: tuple[Cell, ...] = tuple(product(ENTITIES, ROLES, MOVEMENTS))


@cache
def our_corpus() -> Corpus:
    """Every sentence that our templates make: 27 of each for each cell, by synonym, adjective and role word."""
    data = json.loads(files("magrounding.envs.messenger").joinpath("data/templates.json").read_text(encoding="utf-8"))
    corpus = {}
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
        corpus[text] = cells
    return corpus


@cache
def read_corpus(folder: str) -> Corpus:
    """Read a corpus in the form of the original's: `text_train.json`, `text_val.json` and `text_test.json`.

    Each maps entity → role → movement → list of sentences. Words are lower-cased, punctuation becomes tokens.

    Args:
        folder: where the three files are.

    Raises:
        DataNotFound: a file that is missing or no JSON, or a cell without sentences.
    """
    return {text: _read_cells(Path(folder) / f"text_{text}.json") for text in TEXTS}


def _read_cells(path: Path) -> dict[Cell, tuple[str, ...]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        names = " and ".join(f"text_{text}.json" for text in TEXTS)
        raise DataNotFound(f"{path} is missing; a corpus has {names}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataNotFound(f"{path} is no readable JSON: {error}") from None
    cells = {}
    for cell in CELLS:
        found = data
        for key in cell:
            found = found.get(key, []) if isinstance(found, Mapping) else None
        name = " → ".join(cell)
        if not isinstance(found, list) or not all(isinstance(sentence, str) for sentence in found):
            raise DataNotFound(f"{path}: {name} must be a list of sentences")
        tokens = (" ".join(re.findall(r"[^\W_]+|[^\w\s]", sentence.lower())) for sentence in found)
        cells[cell] = tuple(dict.fromkeys(filter(None, tokens)))
        if not cells[cell]:
            raise DataNotFound(f"{path} has no sentence for {name}, which games need")
    return cells


@cache
def vocabulary_of(folder: str | None) -> Vocabulary:
    """Symbols and every word of our corpus, or of that in a folder, in order of appearance."""
    corpus = our_corpus() if folder is None else read_corpus(folder)
    everything = " ".join(s for cells in corpus.values() for sentences in cells.values() for s in sentences)
    return messenger_vocabulary(dict.fromkeys(everything.split()))


@cache
def longest_sentence(folder: str | None) -> int:
    """Words of the longest sentence of any split of our corpus, or of that in a folder."""
    corpus = our_corpus() if folder is None else read_corpus(folder)
    return max(s.count(" ") + 1 for cells in corpus.values() for sentences in cells.values() for s in sentences)


@cache
def sentence_tables(folder: str | None, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All sentences of a split.

    Args:
        folder: of a corpus; None for ours.
        text: "train", "val" or "test".

    Returns:
        Sentences [R, L] int16, L as `longest_sentence`; and [12, 3, 4] where those of each cell begin, and how many
        there are.
    """
    corpus, vocabulary = our_corpus() if folder is None else read_corpus(folder), vocabulary_of(folder)
    sentences = [sentence for cell in CELLS for sentence in corpus[text][cell]]
    count = np.array([len(corpus[text][cell]) for cell in CELLS])
    shape = len(ENTITIES), len(ROLES), len(MOVEMENTS)
    rows = np.stack([vocabulary.encode(sentence, longest_sentence(folder)) for sentence in sentences])
    return rows, (np.cumsum(count) - count).reshape(shape), count.reshape(shape)
