"""Learning which words share a fact, without rewards: two renderings of the same facts agree.

Where each fact has a row of its own, the words of a row share a fact. The same episode's manual as running text says
the same in other sentences: that is the only supervision. Texts are whole manuals, excerpts in which little stands
between the words of a sentence, or interrupted within one. Assumptions about language, where asked for, are in
`assumptions.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from magrounding.agents.language import Words
from magrounding.agents.relread.statements import EDGES, LEARNT
from magrounding.errors import ConfigurationError
from magrounding.extensions.running_text.assumptions import ENGLISH, MADE_UP, SHARE, made_up
from magrounding.extensions.running_text.edges import MOST_PIECES, USUAL_SHAPE, Edges, Shape, related, signs_of
from magrounding.extensions.running_text.segments import STOPS
from magrounding.extensions.running_text.segments_learning import check_statements, count_words
from magrounding.spec import EnvSpec
from magrounding.training.gradient_step import gradient_step

STEPS, ENGLISH_STEPS, BATCH = 450, 675, 16
"""Steps of gradient descent, also with ENGLISH, and texts of each."""
POOL = 4
"""Batches drawn at once, whose texts are sorted by length: less padding, two thirds of the time."""
RATE = 4e-3
"""Learning rate of AdamW, which rises and falls to 0 by a cosine."""
DECAY, CLIP, DROPOUT = 1e-3, 1.0, 0.1
SPARE = 4096
"""Vectors that no word has, for unknown words."""
RARE = 0.05
"""A word is rare if it stands in less than this part of the distinct sentences; names of a class are alike."""
INTERRUPTIONS, LONGEST, COMMAS = 0.15, 6, 0.7
"""Most interruptions for each word of a text, most words of one, and the part of them that stand between commas."""


class Recipe(NamedTuple):
    """Composition of the texts to learn from."""

    excerpts: float = 0.7  # part of the texts that are excerpts of manuals, of 2 to 4 rows
    unpunctuated: float = 0.35  # part of the texts without punctuation
    rows: float = 0.25  # part of the texts some of whose rows stay rows
    unknown: float = 0  # largest part of the rare words of a text that are read as unknown ones
    interrupted: float = 0  # part of the texts that have runs of unknown words between their own


USUAL_RECIPE = Recipe()
ENGLISH_RECIPE = Recipe(excerpts=0, unknown=0.6, interrupted=0.5)
"""Recipe where ENGLISH is assumed: with its many sentences whole manuals need no excerpts beside them."""


class Renderings(NamedTuple):
    """Training data: manuals of N episodes."""

    words: tuple[str, ...]  # spelling of each id, first those of the environment
    rows: np.ndarray  # [N, S, L] ids, each row a statement of one fact, 0 is padding
    reworded: tuple[np.ndarray, ...]  # the same manuals in other sentences, each [N, S', L']
    weights: tuple[float, ...]  # how often each of them is drawn
    places: np.ndarray  # [V] where in an occupant the map shows a word, counted from 1; 0: nowhere
    beside: np.ndarray  # [V] bool, the map shows it beside a word that manuals speak of


def learn_edges(
    spec: EnvSpec,
    renderings: Renderings,
    seed: int = 0,
    steps: int | None = None,
    assume: tuple[str, ...] = (),
    recipe: Recipe | None = None,
    shape: Shape = USUAL_SHAPE,
) -> Edges:
    """Train a reader of edges; torch's own random state is left alone.

    By default there are STEPS of gradient descent, and half as many more for each assumption of made-up texts
    (MADE_UP). ENGLISH has its texts among the `renderings`, steps of its own, and another recipe by default.

    Raises:
        ConfigurationError: plain manuals of one row, or manuals without any word of the map.
    """
    rows, fictions = renderings.rows, tuple(name for name in assume if name in MADE_UP)
    usual_steps, usual_recipe = (ENGLISH_STEPS, ENGLISH_RECIPE) if ENGLISH in assume else (STEPS, USUAL_RECIPE)
    steps = usual_steps + STEPS // 2 * len(fictions) if steps is None else steps
    check_statements("edges", rows)
    if not renderings.places[rows].any():
        raise ConfigurationError(
            f"segments={EDGES} puts together the names on the map that a manual speaks of, and manuals of this world "
            f"have none: choose segments={LEARNT}, or {STOPS} where there are full stops"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        edges = Edges(spec, shape)
        _classify(edges, renderings)
        edges.usual.zero_()
        usual = _usual(edges.letters.numpy()[rows], edges.base - 1)
        edges.usual[: len(usual)] = torch.from_numpy(usual)
        _train(edges, _Texts(edges, renderings, fictions, recipe or usual_recipe), np.random.default_rng(seed), steps)
    edges.forget()
    return edges


def _classify(edges: Edges, renderings: Renderings) -> None:
    """Set the classes."""
    once = (count_words(renderings.rows, edges.size) == 1).all(0)
    letters, places = np.where(once, 2 * edges.width + 1, 0), renderings.places
    letters[places > 0] = 2 * places[places > 0] - 1 + renderings.beside[places > 0]
    edges.letters.copy_(torch.from_numpy(letters))


def _usual(letters: np.ndarray, classes: int) -> np.ndarray:
    """[P, C] words of each class in each statement of the most frequent kind of manual."""
    counts = (letters[..., None] == np.arange(1, classes + 1)).sum(2)
    kinds = Counter(tuple(sorted(map(tuple, each[each.any(1)].tolist()))) for each in counts)
    return np.array(kinds.most_common(1)[0][0][:MOST_PIECES], np.int64)


class _Batch(NamedTuple):
    tokens: Tensor  # [U, T] row of the table of vectors, times the number of classes, and class
    length: Tensor  # [U]
    place: Tensor  # [U, M] place of each mention of a name, −1 is none
    word: Tensor  # [U, M] which of the text's names it is of
    same: Tensor  # [U, N, N] whether two names share a statement, −1 where that is not asked


class _Texts:
    """Draws texts to learn from.

    Attributes:
        signs: [rows, SIGNS] the table of vectors: of words, 0 for names; of SPARE unknown words; 0 for ends of rows.
    """

    def __init__(self, edges: Edges, renderings: Renderings, fictions: tuple[str, ...], recipe: Recipe) -> None:
        self._renderings, self._fictions, self._recipe = renderings, fictions, recipe
        self._classes, self._words = edges.base, len(renderings.words)
        self._letters = np.zeros(self._words, np.int64)
        self._letters[: edges.size] = edges.letters.numpy()
        self._punctuation = np.array([not any(map(str.isalnum, word)) for word in renderings.words])
        self._comma = [i for i, word in enumerate(renderings.words) if word == ","]
        if recipe.unknown:
            self._rare = _rare(renderings, self._letters)
        self._statement = _statements(renderings.rows, self._words)
        self._related = related(edges.usual[edges.usual.any(1)].numpy())
        signs = signs_of([*renderings.words, *(f"#{i}" for i in range(SPARE)), ""])
        signs[: self._words][self._letters > 0] = 0
        signs[-1] = 0
        self.signs = torch.from_numpy(signs)

    def batches(self, rng: np.random.Generator) -> Iterator[_Batch]:
        """Draw BATCH texts for ever, those of a batch about as long as each other."""
        weights, count = np.array(self._renderings.weights), POOL * BATCH
        while True:
            games = rng.integers(len(self._statement), size=count)
            renderings = rng.choice(len(weights), count, p=weights / weights.sum())
            texts = [self._text(*each, rng) for each in zip(games, renderings, strict=True)]
            texts.sort(key=lambda text: len(text[0]))
            for first in BATCH * rng.permutation(POOL):
                yield self._batch(texts[first : first + BATCH])

    @staticmethod
    def _batch(texts: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]]) -> _Batch:
        tokens, place, word, same = (list(each) for each in zip(*texts, strict=True))
        most = max(map(len, same))
        return _Batch(
            pad_sequence(tokens, True),
            torch.tensor([len(each) for each in tokens]),
            pad_sequence(place, True, -1),
            pad_sequence(word, True),
            torch.stack([F.pad(each, (0, most - len(each)) * 2, value=-1.0) for each in same]),
        )

    def _text(self, game: int, rendering: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tokens [T], places [M] and words [M] of mentions, and [N, N] which share a statement."""
        letters = self._letters
        if rng.random() < SHARE * len(self._fictions):
            fiction = self._fictions[rng.integers(len(self._fictions))]
            ids = made_up(fiction, self._renderings.rows[game], letters, rng)
        else:
            ids = self._written(self._renderings.reworded[rendering][game], rng)
        if self._recipe.interrupted and rng.random() < self._recipe.interrupted:
            ids = self._interrupted(ids, rng)
        classes = np.where(ids >= 0, letters[ids], self._classes - 1)
        vectors = np.where(ids >= 0, ids, len(self.signs) - 1)
        if self._recipe.unknown:
            vectors = np.where(ids > 0, self._hidden(rng)[ids], vectors)
        unknown = ids == 0
        vectors[unknown] = self._words + rng.integers(SPARE, size=int(unknown.sum()))
        place = np.flatnonzero((ids >= 0) & (letters[ids] > 0))
        names, word = np.unique(ids[place], return_inverse=True)
        own = self._statement[game, names]
        asked = (own[:, None] >= 0) & (own >= 0) & self._related[letters[names]][:, letters[names]]
        np.fill_diagonal(asked, False)
        same = np.where(asked, own[:, None] == own, np.float32(-1))
        tokens, place, word, same = map(torch.from_numpy, (vectors * self._classes + classes, place, word, same))
        return tokens, place, word, same

    def _hidden(self, rng: np.random.Generator) -> np.ndarray:
        """Return the vector [V] of each word in a text, that of an unknown word for some rare ones."""
        hidden = self._rare & (rng.random(self._words) < rng.random() * self._recipe.unknown)
        return np.where(hidden, self._words + rng.integers(SPARE, size=self._words), np.arange(self._words))

    def _interrupted(self, ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Words [T] with interruptions, of unknown words (0), as "which, as luck would have it, beat" has one."""
        before = np.flatnonzero(rng.random(len(ids)) < rng.random() * INTERRUPTIONS)
        commas = [self._comma * (rng.random() < COMMAS) for _ in before]
        runs = [[*comma, *[0] * int(rng.integers(1, LONGEST + 1)), *comma] for comma in commas]
        return np.insert(ids, np.repeat(before, list(map(len, runs))), np.concatenate([[], *runs]).astype(np.int64))

    def _written(self, manual: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Words [T] of a manual [S, L], all or some successive rows, −1 between two rows that stay rows."""
        rows = [row[row != 0] for row in manual if row.any()]
        if rng.random() < self._recipe.excerpts:
            count = rng.integers(2, 5)
            first = rng.integers(max(1, len(rows) - count + 1))
            rows = rows[first : first + count]
        if rng.random() < self._recipe.unpunctuated:
            rows = [row[~self._punctuation[row]] for row in rows]
        rate = rng.random() if rng.random() < self._recipe.rows else 0
        return np.concatenate([part for row in rows for part in (row, [-1] * (rng.random() < rate))]).astype(np.int64)


def _train(edges: Edges, texts: _Texts, rng: np.random.Generator, steps: int) -> None:
    """Minimise the mean cross-entropy of which pairs of a text's names share a statement of the plain rendering."""
    network = [parameter for part in edges.children() for parameter in part.parameters()]
    for parameter in network:
        parameter.requires_grad_(True)
    optimizer = torch.optim.AdamW(network, RATE, betas=(0.9, 0.98), weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps, pct_start=0.1)

    def table(tokens: Tensor) -> Tensor:
        distinct, index = tokens.unique(return_inverse=True)
        embeddings = edges.embed(texts.signs[distinct // edges.base], distinct % edges.base)
        return F.dropout(F.embedding(index, embeddings), DROPOUT)

    for batch in islice(texts.batches(rng), steps):
        states = edges.encoder(table, Words(batch.tokens, batch.length))[0]
        scores, asked = edges.scores(states, batch.place, batch.word, batch.same.shape[1]), batch.same >= 0
        loss = F.binary_cross_entropy_with_logits(scores[asked], batch.same[asked])
        optimizer.zero_grad()
        loss.backward()
        gradient_step(optimizer, loss, CLIP)
        schedule.step()
    edges.requires_grad_(False)


def _statements(rows: np.ndarray, words: int) -> np.ndarray:
    """[N, V], the row of manual [N, S, L] that has each word; −1: none, or several."""
    count, found = count_words(rows, words), np.full((len(rows), words), -1)
    games, row, _ = np.nonzero(rows)
    found[games, rows[rows != 0]] = row
    return np.where(count == 1, found, -1)


def _rare(renderings: Renderings, letters: np.ndarray) -> np.ndarray:
    """[V] bool, words other than names that are in a part of all sentences below RARE; all names of a class are one."""
    rows = [row for manuals in renderings.reworded for row in manuals.reshape(-1, manuals.shape[2])]
    sentences = {np.where(letters[row] > 0, -letters[row], row).tobytes(): row for row in rows}
    count = np.zeros(len(letters), np.int64)
    for row in sentences.values():
        count[np.unique(row)] += 1
    return (letters == 0) & (count < RARE * len(sentences))
