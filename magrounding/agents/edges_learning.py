"""Learning which words share a fact, without rewards: two renderings of the same facts agree.

Where each fact has a row of its own, the words that share a row share a fact. The same game's manual told as running
text, in constructions, says the same in other sentences: that is all that is learnt from. What a sentence claims, and
where, is never looked at. The rarer a function word, the more often it is hidden, as in `segments_learning`.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from magrounding.agents.edges import MOST_PIECES, Edges
from magrounding.agents.segments_learning import check_statements, count_words
from magrounding.spec import EnvSpec

STEPS, BATCH = 400, 32
RATE = 0.01
"""Of AdamW, which rises and falls to 0 by a cosine."""
DECAY, CLIP = 1e-3, 1.0


class Renderings(NamedTuple):
    """What is learnt from: manuals of N games.

    Attributes:
        rows: [N, S, L] ids, each row a statement of one fact, 0 is padding.
        told: the same games' manuals told otherwise, each [N, S', L'].
        weights: how often each of them is drawn.
        places: [V] where in an occupant the map shows a word, counted from 1; 0: nowhere.
        beside: [V] bool, whether the map shows it beside a word that manuals speak of.
    """

    rows: np.ndarray
    told: tuple[np.ndarray, ...]
    weights: tuple[float, ...]
    places: np.ndarray
    beside: np.ndarray


def learn_edges(spec: EnvSpec, renderings: Renderings, seed: int = 0, steps: int = STEPS, parallel: float = 0) -> Edges:
    """A reader of edges for a world; torch's own random state is left as it was.

    Args:
        spec: of the world.
        renderings: what to learn from.
        seed: of weights and of what is drawn.
        steps: of gradient descent.
        parallel: part of the texts that are plain manuals `told_in_parallel`.

    Raises:
        ConfigurationError: plain manuals of one row, from which nothing is learnt.
    """
    rows = renderings.rows
    check_statements("edges", rows)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        edges = Edges(spec)
        often = _classify(edges, renderings)
        edges.usual.zero_()
        usual = _usual(edges.letters.numpy()[rows], edges.base - 1)
        edges.usual[: len(usual)] = torch.from_numpy(usual)
        _train(edges, renderings, often, np.random.default_rng(seed), steps, parallel)
    edges.forget()
    return edges


def _classify(edges: Edges, renderings: Renderings) -> np.ndarray:
    """Give each word its letter, or note that it is a function word; [V] the part of the manuals that have each."""
    once = (count_words(renderings.rows, edges.size) == 1).all(0)
    letters, places = np.where(once, 2 * edges.width + 1, 0), renderings.places
    letters[places > 0] = 2 * places[places > 0] - 1 + renderings.beside[places > 0]
    often = np.mean([(count_words(manuals, edges.size) > 0).mean(0) for manuals in renderings.told], 0)
    edges.letters.copy_(torch.from_numpy(letters))
    edges.known.copy_(torch.from_numpy((letters == 0) & (often > 0)))
    return often


def _usual(letters: np.ndarray, classes: int) -> np.ndarray:
    """[P, C] words of each class in each statement of the most frequent kind of manual."""
    counts = (letters[..., None] == np.arange(1, classes + 1)).sum(2)
    kinds = Counter(tuple(sorted(map(tuple, each[each.any(1)].tolist()))) for each in counts)
    return np.array(kinds.most_common(1)[0][0][:MOST_PIECES], np.int64)


def _train(
    edges: Edges, renderings: Renderings, often: np.ndarray, rng: np.random.Generator, steps: int, parallel: float
) -> None:
    """Descend the mean cross-entropy of which pairs of a manual's words share a statement of the plain rendering."""
    letters = edges.letters.numpy()
    rarity = np.where(letters == 0, 1 - often, 0)
    tokens = np.append(edges.tokens.numpy(), edges.row_end)
    statement = _statements(renderings.rows, edges.size)
    weights = np.array(renderings.weights) / sum(renderings.weights)
    network = [parameter for part in edges.children() for parameter in part.parameters()]
    for parameter in network:
        parameter.requires_grad_(True)
    optimizer = torch.optim.AdamW(network, RATE, betas=(0.9, 0.98), weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps, pct_start=0.1)
    for _ in range(steps):
        texts = []
        for game, told in zip(
            rng.integers(len(statement), size=BATCH), rng.choice(len(weights), BATCH, p=weights), strict=True
        ):
            if parallel and rng.random() < parallel:
                ids = told_in_parallel(renderings.rows[game], letters, rng)
            else:
                ids = running(renderings.told[told][game])
            rates = rarity if rng.random() < 0.5 else letters == 0
            hidden = rng.random(edges.size) < rng.random() * rates
            place = np.flatnonzero(letters[ids] * (ids >= 0) > 0)
            words, word = np.unique(ids[place], return_inverse=True)
            shown = np.where(np.append(hidden, False), 0, tokens)[ids]  # −1, the end of a row, is the last
            own = torch.from_numpy(statement[game, words])
            same = torch.where((own.unsqueeze(1) < 0) | (own < 0), -1, (own.unsqueeze(1) == own).int())
            texts.append((torch.from_numpy(shown), torch.from_numpy(place), torch.from_numpy(word), same))
        shown, places, mentions, same = (list(each) for each in zip(*texts, strict=True))
        most = max(map(len, same))
        wanted = torch.full((BATCH, most, most), -1.0)
        for target, own in zip(wanted, same, strict=True):
            target[: len(own), : len(own)] = own.fill_diagonal_(-1)
        states = edges.states(pad_sequence(shown, True), torch.tensor([len(each) for each in shown]))
        scores = edges.scores(states, pad_sequence(places, True, -1), pad_sequence(mentions, True), most)
        asked = wanted >= 0
        loss = F.binary_cross_entropy_with_logits(scores[asked], wanted[asked])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network, CLIP)
        optimizer.step()
        schedule.step()
    edges.requires_grad_(False)


def running(manual: np.ndarray) -> np.ndarray:
    """[T] the words of a manual [S, L] one after another, −1 between two rows."""
    rows = [row[row != 0] for row in manual if row.any()]
    return np.concatenate([part for row in rows for part in (row, [-1])])[:-1].astype(np.int64)


def told_in_parallel(rows: np.ndarray, letters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A plain manual as running text, in which statements of the same classes of words are told two by two as one.

    The sentence of the first names, wherever it lists words of a class, its own and then those of the second. That
    lists are told in the order of their partners is an assumption about language that this puts in.

    Args:
        rows: [S, L] ids, each row a statement.
        letters: [V] class of each word, 0 for function words.
        rng: decides which, and their order.

    Returns:
        [T] ids; 0 for a word between two lists that is not known.
    """
    waiting: dict[tuple[int, ...], np.ndarray] = {}
    parts: list[np.ndarray] = []
    for row in (row[row != 0] for row in rows[rng.permutation(len(rows))] if row.any()):
        kinds = tuple(np.unique(letters[row]).tolist())
        if kinds not in waiting:
            waiting[kinds] = row
        else:
            parts.append(_zipped(waiting.pop(kinds), row, letters, rng.random() < 0.5))
    parts += list(waiting.values())
    return np.concatenate([parts[k] for k in rng.permutation(len(parts))]).astype(np.int64)


def _zipped(first: np.ndarray, second: np.ndarray, letters: np.ndarray, linked: bool) -> np.ndarray:
    """Two statements [T] as one, see `told_in_parallel`; `linked`: with a word between their lists."""
    parts, done = [], 0
    spans = {}
    for letter in np.unique(letters[first][letters[first] > 0]):
        places, others = (np.flatnonzero(letters[each] == letter) for each in (first, second))
        spans[places[0]] = places[-1] + 1, second[others[0] : others[-1] + 1]
    for end, others in (spans[place] for place in sorted(spans)):
        parts += [first[done:end], np.zeros(int(linked), first.dtype), others]
        done = end
    return np.concatenate([*parts, first[done:]])


def _statements(rows: np.ndarray, words: int) -> np.ndarray:
    """[N, V] in which row [N, S, L] each word of each manual stands; −1: in none, or in several."""
    count, found = count_words(rows, words), np.full((len(rows), words), -1)
    games, row, _ = np.nonzero(rows)
    found[games, rows[rows != 0]] = row
    return np.where(count == 1, found, -1)
