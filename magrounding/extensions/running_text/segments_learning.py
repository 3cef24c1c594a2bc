"""Learning to cut running text, from manuals whose rows are statements, in seconds of one core.

Ordinary manuals are written as running text, in another order, in pieces of one, two, three or all statements, with or
without punctuation; labels are the ends of their rows. The rarer a function word, the more often it is hidden, by a
rate that differs from text to text: so the network learns to do with those that other sentences have as well.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from magrounding.errors import ConfigurationError
from magrounding.extensions.running_text.segments import Segmenter
from magrounding.extensions.running_text.segments_kernels import MOST_LETTERS
from magrounding.spec import EnvSpec
from magrounding.training.gradient_step import gradient_step

STEPS, BATCH = 300, 64
RATE = 0.03
"""Learning rate of Adam, falling to 0 by a cosine."""
WHOLE = 0.5
"""Part of the texts that are all of a manual; the others are one, two or three of its statements."""
SHAPE = 2.0
"""Weight of a shape's log-probability beside the logit of a boundary."""


def learn_segments(spec: EnvSpec, rows: np.ndarray, places: np.ndarray, seed: int = 0, steps: int = STEPS) -> Segmenter:
    """Train a Segmenter; torch's own random state is left alone.

    Args:
        spec: of the environment.
        rows: [N, S, L] ids of manuals whose rows are statements, 0 is padding.
        places: [V] where in an occupant the map shows a word, counted from 1; 0: nowhere.
        seed: of the weights and of the texts that are drawn.
        steps: of gradient descent.

    Raises:
        ConfigurationError: manuals of one row, from which no cut is learned.
    """
    check_statements("cuts", rows)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        segmenter = Segmenter(spec)
        seen = count_words(rows, segmenter.size)
        _classify(segmenter, places, seen)
        _count_shapes(segmenter, rows)
        statements = rows.any(-1).sum(-1)
        if (statements == statements[0]).all():
            segmenter.statements.fill_(int(statements[0]))
        _train(segmenter, rows, seen, punctuation_of(spec), np.random.default_rng(seed), steps)
    return segmenter


def check_statements(what: str, rows: np.ndarray) -> None:
    """Raise a ConfigurationError where manuals [N, S, L] do not have their statements in rows."""
    if rows.ndim != 3 or rows.shape[1] < 2:
        raise ConfigurationError(
            f"{what} are learnt from manuals whose rows are statements, [S, L]; those of this world are "
            f"{list(rows.shape[1:])}"
        )


def render(
    rows: np.ndarray, rng: np.random.Generator, punctuation: np.ndarray, statements: int, *, stream: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the words [T] of some statements [S, L] of a manual as running text, and [T] bool the last words of each.

    The order is random; a `stream` has no `punctuation` [V].
    """
    chosen = [row[row != 0] for row in rows[rng.permutation(len(rows))] if row.any()][:statements]
    if stream:
        chosen = [row[~punctuation[row]] for row in chosen]
    ends = np.zeros(sum(map(len, chosen)), np.bool_)
    ends[np.cumsum([len(row) for row in chosen]) - 1] = True
    return np.concatenate(chosen), ends


def exactness(spec: EnvSpec, segmenter: Segmenter, rows: np.ndarray) -> dict[str, float]:
    """Return the part of manuals [N, S, L] whose words of the map and names are divided just as statements divide them.

    Function words do not count, as they are not informative; unless the map shows no words of the manuals.

    Returns:
        "statements": one in a row; "merged": two in a row; "paragraph": all; "stream": all, without punctuation.
    """
    found, every, informative = {}, rows.shape[1], segmenter.letters.cpu().numpy() > 0
    informative = informative | ~informative[rows].any()
    for name, statements in (("statements", 1), ("merged", 2), ("paragraph", every), ("stream", every)):
        rng, marks = np.random.default_rng(0), punctuation_of(spec)
        divided = []
        for manual in rows:
            words, ends = render(manual, rng, marks, every, stream=name == "stream")
            text = np.zeros((every, len(words)), words.dtype)
            before = np.cumsum(ends) - ends  # statements that have ended
            text[before // statements, np.arange(len(words))] = words
            cuts = segmenter.ends(text[None])[0][text != 0]
            own = informative[words]
            divided.append((_divides(ends, own) == _divides(cuts, own)).all())
        found[name] = float(np.mean(divided))
    return found


def _divides(ends: np.ndarray, informative: np.ndarray) -> np.ndarray:
    """True where a statement ends between an informative word of a text and the next, by its last words [T]."""
    return np.diff(np.cumsum(ends)[informative] - ends[informative]) > 0


def count_words(rows: np.ndarray, words: int) -> np.ndarray:
    """Return [N, V], the count of each word in each manual, without padding."""
    flat = rows.reshape(len(rows), -1).astype(np.int64)
    counts = np.zeros((len(rows), words), np.int16)
    np.add.at(counts, (np.arange(len(rows))[:, None], flat), 1)
    counts[:, 0] = 0
    return counts


def punctuation_of(spec: EnvSpec) -> np.ndarray:
    """Return [V] bool, words without any letter or digit."""
    marks = np.zeros(spec.vocabulary_size, np.bool_)
    marks[1 : len(spec.words)] = [not any(map(str.isalnum, word)) for word in spec.words[1:]]
    return marks


def _classify(segmenter: Segmenter, places: np.ndarray, seen: np.ndarray) -> None:
    """Set the letters and the known function words."""
    letters = np.zeros(segmenter.size, np.int64)
    letters[(seen == 1).all(0)] = segmenter.width + 1
    letters[places > 0] = places[places > 0]
    segmenter.letters.copy_(torch.from_numpy(letters))
    segmenter.known.copy_(torch.from_numpy((letters == 0) & seen.any(0)))


def _count_shapes(segmenter: Segmenter, rows: np.ndarray) -> None:
    """Set shapes of statements and their log-probabilities, with one more of each, and one of any other.

    Of others each letter, and the end, is as likely as any: so long ones are the less likely.
    """
    letters, codes = segmenter.letters.numpy()[rows], np.zeros(rows.shape[:2], np.int64)
    lengths = (letters > 0).sum(-1)
    for k in range(rows.shape[2]):
        codes = np.where(letters[..., k] > 0, codes * segmenter.base + letters[..., k], codes)
    known = rows.any(-1) & (lengths <= MOST_LETTERS)
    shapes, counts = np.unique(codes[known], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    total = np.log(counts.sum() + len(counts) + 1)
    letter = float(np.log(segmenter.base))
    known_scores = SHAPE * (np.log(counts[order] + 1) - total)
    segmenter.set_shapes(shapes[order], known_scores, (-SHAPE * float(total + letter), -SHAPE * letter))


def _train(
    segmenter: Segmenter,
    rows: np.ndarray,
    seen: np.ndarray,
    punctuation: np.ndarray,
    rng: np.random.Generator,
    steps: int,
) -> None:
    """Minimise the mean cross-entropy of the ends of statements, those of texts left out."""
    tokens, is_function = segmenter.tokens.numpy(), segmenter.letters.numpy() == 0
    rarity = np.where(is_function, 1 - (seen > 0).mean(0), 0)
    parts = segmenter.words, segmenter.classes, segmenter.encoder, segmenter.head
    network = [parameter for part in parts for parameter in part.parameters()]
    for parameter in network:
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(network, RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        texts = []
        for manual in rows[rng.integers(len(rows), size=BATCH)]:
            statements = len(manual) if rng.random() < WHOLE else int(rng.integers(1, 4))
            words, ends = render(manual, rng, punctuation, statements, stream=rng.random() < 0.5)
            hidden = rng.random(segmenter.size) < rng.random() * rarity
            shown = torch.from_numpy(np.where(hidden, 0, tokens)[words])
            texts.append((shown, torch.from_numpy(ends[:-1]).float()))
        ids, ends = (list(each) for each in zip(*texts, strict=True))
        states = segmenter.states(pad_sequence(ids, True), torch.tensor([len(each) for each in ids]))
        ends = pad_sequence(ends, True, -1.0)
        logits = segmenter.head(states).squeeze(2)[:, : ends.shape[1]]
        loss = F.binary_cross_entropy_with_logits(logits[ends >= 0], ends[ends >= 0])
        optimizer.zero_grad()
        loss.backward()
        gradient_step(optimizer, loss)
        schedule.step()
    segmenter.requires_grad_(False)
