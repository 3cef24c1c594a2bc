"""Overlap of the sentences that a reader is tried on with those that it learnt from, and facts read by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from magrounding.capabilities import HasFacts, find_capability
from magrounding.experiment.plan import Stage
from magrounding.extensions.running_text.edges import Edges
from magrounding.extensions.running_text.edges_learning import Renderings
from magrounding.extensions.running_text.segmenting import games_of, held_out

CLASSES = (0, 4, 6)
"""Least words of a shared run, of each class of sentences."""
NAMES = (*(f"{least} to {after - 1}" for least, after in pairwise(CLASSES)), f"{CLASSES[-1]} and more")
_OTHER = 0x1000
"""Characters from here on stand for words; those below for classes of names."""


class SharedRuns:
    """Finds the longest run of words that a text shares with any of some others.

    Names are told apart by class alone, a list of names is one, and punctuation is left out. Names are part of a run
    and are not counted. "bat , imp serve the alliance" and "wolf , ghost serve the enclave" share a run of two words.

    Args:
        texts: the others, each [T] ids below V.
        words: [V] spelling of each id.
        letters: [V] class of each name; 0: another word.
    """

    def __init__(self, texts: Iterable[np.ndarray], words: Sequence[str], letters: np.ndarray) -> None:
        self._characters: dict[str, str] = {}
        # every text ends with a character that no text has within
        self._known = "\0".join({self._write(text, words, letters) for text in texts})
        self._found: dict[str, int] = {}

    def longest(self, text: np.ndarray, words: Sequence[str], letters: np.ndarray) -> int:
        """Return how many words the longest run of a text [T] has."""
        written = self._write(text, words, letters)
        if written not in self._found:
            first, most = 0, 0
            for last in range(1, len(written) + 1):
                while written[first:last] not in self._known:
                    first += 1
                most = max(most, sum(ord(character) >= _OTHER for character in written[first:last]))
            self._found[written] = most
        return self._found[written]

    def _write(self, text: np.ndarray, words: Sequence[str], letters: np.ndarray) -> str:
        written = ""
        for i in map(int, text[text != 0]):
            if letters[i] > 0:
                character = chr(letters[i])
                written += character * (written[-1:] != character)
            elif any(map(str.isalnum, words[i])):
                written += self._characters.setdefault(words[i], chr(_OTHER + len(self._characters)))
        return written


class Reading(NamedTuple):
    """Facts that a reader reads in a set of manuals.

    Attributes:
        longest: words of the longest run of any sentence.
        classes: class of sentences by the words of the run that they share with training → number of facts, and the
            share of them that is read.
    """

    longest: int
    classes: dict[str, tuple[int, float]]


def read_by_overlap(stage: Stage, edges: Edges, learnt: Renderings) -> dict[str, Reading]:
    """Evaluation set → how a reader reads it, by the overlap of each sentence with what the reader learnt from.

    A sentence is a row of the layout in which each text of a manual has one. Nothing where games do not have HasFacts.
    """
    letters = np.zeros(len(learnt.words), np.int64)
    letters[: edges.size] = edges.letters.numpy()
    texts = {row.tobytes(): row for manuals in learnt.reworded for row in manuals.reshape(-1, manuals.shape[2])}
    runs, found = SharedRuns(texts.values(), learnt.words, letters), {}
    for name in stage.sets:
        with closing(games_of(stage, name)) as vec:
            games = find_capability(vec, HasFacts)
            if games is None:
                return {}
            found[name] = _read(edges, runs, held_out(vec), games.fact_table(), vec.spec.words)
    return found


def _read(edges: Edges, runs: SharedRuns, manuals: np.ndarray, facts: np.ndarray, words: Sequence[str]) -> Reading:
    """Facts read in manuals [N, S, L], whose facts are `facts` [N, F, 9] (`HasFacts.fact_table`)."""
    letters, most = edges.letters.numpy(), 0
    pieces = edges(torch.from_numpy(manuals)).ids.numpy()
    right: Mapping[int, list[bool]] = defaultdict(list)
    for manual, own, claimed in zip(manuals, pieces, facts, strict=True):
        for relation, _, _, polarity, row, first, _, name_first, name_last in claimed.tolist():
            if relation < 0 or polarity != 0:
                continue
            longest = runs.longest(manual[row], words, letters)
            name = manual[row, name_first : name_last + 1]
            has = (own[..., None] == [manual[row, first], *name[letters[name] > 0]]).any(1)
            right[max(least for least in CLASSES if least <= longest)].append(bool(has.all(1).any()))
            most = max(most, longest)
    found = {name: right[least] for name, least in zip(NAMES, CLASSES, strict=True) if right[least]}
    return Reading(most, {name: (len(each), float(np.mean(each))) for name, each in found.items()})
