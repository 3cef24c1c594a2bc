"""Learning which words share a fact, without rewards: two renderings of the same facts agree.

Where each fact has a row of its own, the words of a row share a fact. The same episode's manual as running text says
the same in other sentences: that is the only supervision. The rarer a function word, the more often it is hidden, as in
`segments_learning`. Assumptions about language, where asked for, are in `assumptions.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from magrounding.agents.gradient_step import gradient_step
from magrounding.agents.running_text.assumptions import SHARE, made_up
from magrounding.agents.running_text.edges import MOST_PIECES, Edges
from magrounding.agents.running_text.segments import EDGES, LEARNT, STOPS
from magrounding.agents.running_text.segments_learning import check_statements, count_words
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec

STEPS, BATCH = 400, 32
RATE = 0.01
"""Learning rate of AdamW, which rises and falls to 0 by a cosine."""
DECAY, CLIP = 1e-3, 1.0


class Renderings(NamedTuple):
    """Training data: manuals of N episodes."""

    rows: np.ndarray  # [N, S, L] ids, each row a statement of one fact, 0 is padding
    reworded: tuple[np.ndarray, ...]  # the same manuals in other renderings, each [N, S', L']
    weights: tuple[float, ...]  # how often each of them is drawn
    places: np.ndarray  # [V] where in an occupant the map shows a word, counted from 1; 0: nowhere
    beside: np.ndarray  # [V] bool, the map shows it beside a word that manuals speak of


def learn_edges(
    spec: EnvSpec, renderings: Renderings, seed: int = 0, steps: int | None = None, assume: tuple[str, ...] = ()
) -> Edges:
    """Train a reader of edges; torch's own random state is left alone.

    By default there are STEPS of gradient descent, and half as many more for each assumption about language
    (ASSUMPTIONS).

    Raises:
        ConfigurationError: plain manuals of one row, or manuals without any word of the map.
    """
    rows, steps = renderings.rows, STEPS + STEPS // 2 * len(assume) if steps is None else steps
    check_statements("edges", rows)
    if not renderings.places[rows].any():
        raise ConfigurationError(
            f"segments={EDGES} puts together the names on the map that a manual speaks of, and manuals of this world "
            f"have none: choose segments={LEARNT}, or {STOPS} where there are full stops"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        edges = Edges(spec)
        often = _classify(edges, renderings)
        edges.usual.zero_()
        usual = _usual(edges.letters.numpy()[rows], edges.base - 1)
        edges.usual[: len(usual)] = torch.from_numpy(usual)
        _train(edges, renderings, often, np.random.default_rng(seed), steps, assume)
    edges.forget()
    return edges


def _classify(edges: Edges, renderings: Renderings) -> np.ndarray:
    """Set the classes and known function words; return [V], the part of the manuals that have each word."""
    once = (count_words(renderings.rows, edges.size) == 1).all(0)
    letters, places = np.where(once, 2 * edges.width + 1, 0), renderings.places
    letters[places > 0] = 2 * places[places > 0] - 1 + renderings.beside[places > 0]
    often = np.mean([(count_words(manuals, edges.size) > 0).mean(0) for manuals in renderings.reworded], 0)
    edges.letters.copy_(torch.from_numpy(letters))
    edges.known.copy_(torch.from_numpy((letters == 0) & (often > 0)))
    return often


def _usual(letters: np.ndarray, classes: int) -> np.ndarray:
    """[P, C] words of each class in each statement of the most frequent kind of manual."""
    counts = (letters[..., None] == np.arange(1, classes + 1)).sum(2)
    kinds = Counter(tuple(sorted(map(tuple, each[each.any(1)].tolist()))) for each in counts)
    return np.array(kinds.most_common(1)[0][0][:MOST_PIECES], np.int64)


def _train(
    edges: Edges,
    renderings: Renderings,
    often: np.ndarray,
    rng: np.random.Generator,
    steps: int,
    assume: tuple[str, ...],
) -> None:
    """Minimise the mean cross-entropy of which pairs of a manual's words share a statement of the plain rendering."""
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
        for game, rendering in zip(
            rng.integers(len(statement), size=BATCH), rng.choice(len(weights), BATCH, p=weights), strict=True
        ):
            if assume and rng.random() < SHARE * len(assume):
                ids = made_up(assume[rng.integers(len(assume))], renderings.rows[game], letters, rng)
            else:
                ids = running(renderings.reworded[rendering][game])
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
        targets = torch.full((BATCH, most, most), -1.0)
        for target, own in zip(targets, same, strict=True):
            target[: len(own), : len(own)] = own.fill_diagonal_(-1)
        states = edges.states(pad_sequence(shown, True), torch.tensor([len(each) for each in shown]))
        scores = edges.scores(states, pad_sequence(places, True, -1), pad_sequence(mentions, True), most)
        asked = targets >= 0
        loss = F.binary_cross_entropy_with_logits(scores[asked], targets[asked])
        optimizer.zero_grad()
        loss.backward()
        gradient_step(optimizer, loss, CLIP)
        schedule.step()
    edges.requires_grad_(False)


def running(manual: np.ndarray) -> np.ndarray:
    """Return the words [T] of a manual [S, L] one after another, −1 between two rows."""
    rows = [row[row != 0] for row in manual if row.any()]
    return np.concatenate([part for row in rows for part in (row, [-1])])[:-1].astype(np.int64)


def _statements(rows: np.ndarray, words: int) -> np.ndarray:
    """[N, V], the row of manual [N, S, L] that has each word; −1: none, or several."""
    count, found = count_words(rows, words), np.full((len(rows), words), -1)
    games, row, _ = np.nonzero(rows)
    found[games, rows[rows != 0]] = row
    return np.where(count == 1, found, -1)
