"""Grouping the names of a manual, compiled: scores of pairs of words, and the best division into pieces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.extensions.running_text.segments_kernels import Recurrence, read_words
from magrounding.jit import cached_njit, inner_njit

STARTS = 16
"""Random starts of the local search, of which the best result is taken."""
BOUND = 4.0
"""Bound of the score of two words."""
_LEAST = 1e-6


class Scorer(NamedTuple):
    """Weights that score pairs of mentions (see `edges.Edges`), and the word counts of the usual pieces."""

    recurrence: Recurrence  # the network
    letters: np.ndarray  # [V] class of each word, 0: not grouped
    related: np.ndarray  # [C + 1, C + 1] bool, classes whose words a usual piece has together
    row_end: int  # the token between two rows
    first: np.ndarray  # [2 H, D]
    second: np.ndarray  # [2 H, D]
    bias: np.ndarray  # [D]
    between: np.ndarray  # [2 H, G]
    between_bias: np.ndarray  # [G]
    across: np.ndarray  # [G, D], of what lies between two mentions
    left: np.ndarray  # [2 H, heads · width], of bilinear products
    right: np.ndarray  # likewise
    mixed: np.ndarray  # [heads, D]
    out: np.ndarray  # [D + 1], weights and bias
    usual: np.ndarray  # [P, C] words of each class, counted from 1, in each piece


def groups_of(text: np.ndarray, scorer: Scorer) -> np.ndarray:
    """Return [S, L], the piece of each word of a text [S, L], counted from 1; 0: none.

    Where each row has just the words of a usual statement, rows are the pieces, whatever their sentences say.
    """
    groups = np.zeros(text.shape, np.int64)
    rows, places = np.nonzero(text)
    ids = text[rows, places]
    spoken = scorer.letters[ids] > 0
    if not spoken.any():
        return groups
    row = np.cumsum(np.diff(rows[spoken], prepend=rows[spoken][0]) > 0)  # of those that have names
    if row[-1] + 1 == len(scorer.usual) and _are_usual(row, ids[spoken], scorer):
        groups[rows[spoken], places[spoken]] = 1 + row
        return groups
    # One token more between two rows.
    index = np.arange(len(ids)) + np.cumsum(np.diff(rows, prepend=rows[0]) > 0)
    tokens = np.full(index[-1] + 1, scorer.row_end)
    tokens[index] = scorer.recurrence.tokens[ids]
    words, word = np.unique(ids[spoken], return_inverse=True)
    states, mentions = read_words(tokens, scorer.recurrence), index[spoken]
    steps = np.tanh(states @ scorer.between + scorer.between_bias).cumsum(0)
    own, passed = states[mentions], steps[mentions] @ scorer.across
    first, second = own @ scorer.first + scorer.bias - passed, own @ scorer.second + passed
    heads = len(scorer.mixed)
    left, right = ((own @ part).reshape(len(own), heads, -1) for part in (scorer.left, scorer.right))
    related = scorer.related[scorer.letters[words]][:, scorer.letters[words]]
    scores = pair_scores(first, second, left, right, scorer.mixed, scorer.out, word, related)
    found = divide(scores, scorer.letters[words], scorer.usual)
    groups[rows[spoken], places[spoken]] = 1 + found[word]
    return groups


def _are_usual(row: np.ndarray, ids: np.ndarray, scorer: Scorer) -> bool:
    """True if as many rows as usual are the usual pieces, given the row [M] and id [M] of each mention of a name."""
    words = np.unique(np.stack((row, ids)), axis=1)
    if len(np.unique(words[1])) < words.shape[1]:
        return False  # a word stands in several
    counts = np.zeros(scorer.usual.shape, np.int64)
    np.add.at(counts, (words[0], scorer.letters[words[1]] - 1), 1)
    counts, usual = (each[np.lexsort(each.T)] for each in (counts, scorer.usual))
    return np.array_equal(counts, usual)


@cached_njit(nogil=True)
def pair_scores(first, second, left, right, mixed, out, word, related):
    """Return scores [N, N] of pairs of words, those of their mentions summed and bounded; 0 where not `related`.

    Args:
        first, second: [M, D] of the mentions in either role; left, right: [M, heads, width] likewise, for products.
        mixed: [heads, D] of the products.
        out: [D + 1] weights and bias of pairs.
        word: [M] below N, the word of each mention.
        related: [N, N] bool.
    """
    words = len(related)
    scores, hidden = np.zeros((words, words)), np.empty(first.shape[1], np.float32)
    for i in range(len(word)):
        for j in range(i + 1, len(word)):
            if word[i] == word[j] or not related[word[i], word[j]]:
                continue
            hidden[:] = first[i] + second[j]
            for h in range(len(mixed)):
                product = np.float32(0)
                for k in range(left.shape[2]):
                    product += left[i, h, k] * right[j, h, k]
                for d in range(len(hidden)):
                    hidden[d] += product * mixed[h, d]
            total = np.float64(out[-1])
            for d in range(len(hidden)):
                total += out[d] * max(hidden[d], np.float32(0))
            scores[word[i], word[j]] += total
            scores[word[j], word[i]] += total
    return BOUND * np.tanh(scores / BOUND)


@cached_njit(nogil=True)
def divide(scores, letters, usual):
    """Return the piece [N] of each word, given scores [N, N], classes [N] and the usual pieces [P, C] (`Scorer`)."""
    return _as_usual(scores, letters, usual) if _is_usual(letters, usual) else _joined(scores)


@inner_njit
def _is_usual(letters, usual):
    """True if there are as many words of each class as usual."""
    for c in range(usual.shape[1]):
        count = 0
        for letter in letters:
            count += letter == c + 1
        if count != usual[:, c].sum():
            return False
    return True


@inner_njit
def _as_usual(scores, letters, usual):
    """The piece [N] of each word, with the class counts of the usual pieces: the best of some local optima.

    Words of one class change places, or all of one class in two pieces with all of the same in the other.
    """
    n, (pieces, classes) = len(letters), usual.shape
    scores = scores.copy()
    for u in range(n):
        scores[u, u] = 0
    bound = np.maximum(scores, 0).sum()
    best, highest, state = np.zeros(n, np.int64), -np.inf, 12345
    piece, pieces_left, ties = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, pieces))
    words = np.argsort(letters, kind="mergesort")
    begin = np.searchsorted(letters[words], np.arange(1, classes + 2))
    for _ in range(STARTS):
        for c in range(classes):
            count = 0
            for p in range(pieces):
                for _ in range(usual[p, c]):
                    pieces_left[count] = p
                    count += 1
            for u in words[begin[c] : begin[c + 1]]:
                state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                k = (state >> 8) % count
                piece[u], pieces_left[k] = pieces_left[k], pieces_left[count - 1]
                count -= 1
        ties[:] = 0
        for u in range(n):
            for v in range(n):
                ties[u, piece[v]] += scores[u, v]
        while _improve(scores, words, begin, usual, piece, ties):
            pass
        total = 0.0
        for u in range(n):
            total += ties[u, piece[u]]
        if total > highest + _LEAST:
            highest, best[:] = total, piece
        if highest > bound - _LEAST:
            break  # none is better
    return best


@inner_njit
def _improve(scores, words, begin, usual, piece, ties):
    """Make the exchange that gains most; False if none gains anything.

    Args:
        scores: [N, N] of pairs of words, 0 of a word with itself.
        words: [N] in the order of their classes; begin: [C + 1] where each class begins.
        usual: [P, C].
        piece: [N] of each word, which is changed.
        ties: [N, P] the sum of each word's scores with the words of each piece, which is changed.
    """
    most, one, other, of = _LEAST, -1, -1, -1
    for c in range(usual.shape[1]):
        alike = words[begin[c] : begin[c + 1]]
        for i in range(len(alike)):
            u, a = alike[i], piece[alike[i]]
            for v in alike[:i]:
                b = piece[v]
                if a != b:
                    gain = ties[u, b] - ties[u, a] + ties[v, a] - ties[v, b] - 2 * scores[u, v]
                    if gain > most:
                        most, one, other, of = gain, u, v, -1
        for p in range(len(usual)):
            for q in range(p):
                if 1 < usual[p, c] == usual[q, c]:
                    gain = _gain(scores, alike, piece, ties, p, q)
                    if gain > most:
                        most, one, other, of = gain, p, q, c
    if one < 0:
        return False
    if of < 0:
        a, b = piece[one], piece[other]
        _move(scores, piece, ties, one, b)
        _move(scores, piece, ties, other, a)
    else:
        for u in words[begin[of] : begin[of + 1]]:
            if piece[u] == one or piece[u] == other:
                _move(scores, piece, ties, u, one + other - piece[u])
    return True


@inner_njit
def _move(scores, piece, ties, word, to):
    """Put a word into another piece."""
    for u in range(len(piece)):
        ties[u, piece[word]] -= scores[u, word]
        ties[u, to] += scores[u, word]
    piece[word] = to


@inner_njit
def _gain(scores, alike, piece, ties, p, q):
    """Gain of two pieces' exchange of all their words of a class, the words `alike`."""
    gain = 0.0
    for u in alike:
        if piece[u] == p or piece[u] == q:
            gain += ties[u, p + q - piece[u]] - ties[u, piece[u]]
            for v in alike:
                if piece[v] == piece[u]:
                    gain += scores[u, v]
                elif piece[v] == p + q - piece[u]:
                    gain -= scores[u, v]
    return gain


@inner_njit
def _joined(scores):
    """The piece [N] of each word, by agglomerative merging of the pieces with the highest scores."""
    n = len(scores)
    ties, piece = scores.copy(), np.arange(n)
    for u in range(n):
        ties[u, u] = -np.inf
    while True:
        best = np.argmax(ties)
        one, other = best // n, best % n
        if not ties[one, other] > 0:
            return piece
        piece[piece == other] = one
        ties[one] += ties[other]
        ties[:, one] = ties[one]
        ties[one, one] = -np.inf
        ties[other], ties[:, other] = -np.inf, -np.inf


@cached_njit(nogil=True)
def pieces_from(texts, groups):
    """Return the pieces [U, P, L'], each with its distinct words, and the rows [U, P, S] bool they have words in.

    `groups` [U, S, L] are the pieces of the words of `texts`, counted from 1; 0: none.
    """
    most, longest = 1, 1
    for u in range(len(texts)):
        lengths = np.zeros(texts[u].size + 1, np.int64)
        for s in range(texts.shape[1]):
            for k in range(texts.shape[2]):
                lengths[groups[u, s, k]] += 1
                most = max(most, groups[u, s, k])
        longest = max(longest, lengths[1:].max())
    pieces = np.zeros((len(texts), most, longest), texts.dtype)
    rows = np.zeros((len(texts), most, texts.shape[1]), np.bool_)
    for u in range(len(texts)):
        for s in range(texts.shape[1]):
            for k in range(texts.shape[2]):
                if groups[u, s, k] > 0:
                    piece = pieces[u, groups[u, s, k] - 1]
                    rows[u, groups[u, s, k] - 1, s] = True
                    for place in range(longest):
                        if piece[place] == 0 or piece[place] == texts[u, s, k]:
                            piece[place] = texts[u, s, k]
                            break
    return pieces, rows
