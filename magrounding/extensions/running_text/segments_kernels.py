"""Cutting text into pieces, compiled: boundary logits of a bidirectional GRU, the best cuts, and the pieces themselves.

Few texts come at a time, as episodes begin: calls of torch would take fifty times as long. All that numba compiles here
is in this file, so its cache on disk notices every change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from magrounding.jit import cached_njit, inner_njit

MOST_LETTERS = 12
"""Most letters of a shape that is distinguished; longer ones count as unseen."""
_IMPOSSIBLE = -1e30

_ONE, _TWO = np.float32(1), np.float32(2)
"""Float32 constants, as whole numbers would make sums float64."""


class Recurrence(NamedTuple):
    """Weights of a bidirectional GRU."""

    tokens: np.ndarray  # [V] row of `ahead` and `back` of each word
    ahead: np.ndarray  # [C, 3 H], input of each token to the gates of a GRU, in torch's order: reset, update, new
    back: np.ndarray  # likewise
    recurrent_ahead: np.ndarray  # [H, 3 H]
    recurrent_back: np.ndarray  # [H, 3 H]
    bias_ahead: np.ndarray  # [3 H], of the recurrent part
    bias_back: np.ndarray  # likewise


class Cutter(NamedTuple):
    """Weights of a segmenter: a network, and a histogram of shapes."""

    recurrence: Recurrence  # the network
    letters: np.ndarray  # [V] letter of each word in a shape; 0: none
    head: np.ndarray  # [2 H + 1], weights and bias of a boundary's logit
    shapes: np.ndarray  # [M] codes of shapes, in order
    # [M + 2] of a piece of each shape, and last one of any other: a constant, and one for each letter
    scores: np.ndarray
    base: int  # letters and one, of which the codes are numbers
    statements: int  # pieces of every text that has no more rows; 0: any number


@cached_njit(nogil=True)
def ends_of_pieces(texts, cutter):
    """Return [U, S, L] bool, the last word of each piece; they maximise the logits of cuts and scores of pieces.

    The end of a row is a cut in any case; `texts` [U, S, L] are ids, 0 is padding.
    """
    ends = np.zeros(texts.shape, np.bool_)
    size = texts.shape[1] * texts.shape[2]
    place, words = np.empty((size, 2), np.int64), np.empty(size, np.int64)
    logits, last = np.empty(size, np.float32), np.zeros(size, np.bool_)
    for u in range(texts.shape[0]):
        rows, count = 0, 0
        last[:] = False
        for s in range(texts.shape[1]):
            first = count
            for k in range(texts.shape[2]):
                if texts[u, s, k] != 0:
                    place[count], words[count] = (s, k), texts[u, s, k]
                    count += 1
            if count > first:
                logits[first:count] = boundary_logits(words[first:count], cutter)
                last[count - 1] = True
                rows += 1
        pieces = min(cutter.statements, count) if rows <= cutter.statements else 0
        cuts = _best_cuts(words[:count], logits[:count], last[:count], pieces, cutter)
        for k in range(count):
            ends[u, place[k, 0], place[k, 1]] = cuts[k]
    return ends


@cached_njit(nogil=True)
def boundary_logits(words, cutter):
    """Return the logit [T] that a statement ends with each of words [T]."""
    states = read_words(cutter.recurrence.tokens[words], cutter.recurrence)
    logits = np.empty(len(words), np.float32)
    for t in range(len(words)):
        logit = cutter.head[-1]
        for j in range(states.shape[1]):
            logit += cutter.head[j] * states[t, j]
        logits[t] = logit
    return logits


@cached_njit(nogil=True)
def read_words(tokens, recurrence):
    """Return the states [T, 2 H] of the network on tokens [T]."""
    units = len(recurrence.recurrent_ahead)
    states = np.empty((len(tokens), 2 * units), np.float32)
    _read(tokens, recurrence.ahead, recurrence.recurrent_ahead, recurrence.bias_ahead, states[:, :units])
    _read(tokens[::-1], recurrence.back, recurrence.recurrent_back, recurrence.bias_back, states[::-1, units:])
    return states


@inner_njit
def _read(tokens, given, recurrent, bias, states):
    """Run a GRU over the tokens and write down its states."""
    units = len(recurrent)
    state, gates = np.zeros(units, np.float32), np.empty(3 * units, np.float32)
    for t in range(len(tokens)):
        gates[:] = bias
        for j in range(units):
            own = state[j]
            for k in range(3 * units):
                gates[k] += own * recurrent[j, k]
        new = given[tokens[t]]
        for j in range(units):
            reset, update = _sigmoid(new[j] + gates[j]), _sigmoid(new[units + j] + gates[units + j])
            candidate = (
                _TWO * _sigmoid(_TWO * (new[2 * units + j] + reset * gates[2 * units + j])) - _ONE
            )  # tanh, faster
            state[j] = candidate + update * (state[j] - candidate)
        states[t] = state


@njit(nogil=True, inline="always")
def _sigmoid(x):
    return _ONE / (_ONE + np.exp(-x))


@inner_njit
def _best_cuts(words, logits, last, pieces, cutter):
    """[T] bool, the last words of pieces of words [T], among them the `last` [T] bool of rows.

    There are as many pieces as asked for; 0: any number.
    """
    count = len(words)
    best, since = np.full((count + 1, pieces + 1), _IMPOSSIBLE), np.zeros((count + 1, pieces + 1), np.int64)
    best[0, 0] = 0
    for first in range(count):
        code, length = 0, 0
        score = score_of(code, length, cutter.shapes, cutter.scores)
        for t in range(first, count):
            letter = cutter.letters[words[t]]
            if letter > 0:
                code, length = code * cutter.base + letter if length < MOST_LETTERS else 0, length + 1
                score = score_of(code, length, cutter.shapes, cutter.scores)
            gain = score + (0 if last[t] else logits[t])
            for before in range(max(pieces, 1)):
                piece, total = min(before + 1, pieces), best[first, before] + gain
                if total > best[t + 1, piece]:
                    best[t + 1, piece], since[t + 1, piece] = total, first
            if last[t]:
                break
    cuts, end, piece = np.zeros(count, np.bool_), count, pieces
    while end > 0:
        cuts[end - 1] = True
        end, piece = since[end, piece], max(piece - 1, 0)
    return cuts


@cached_njit(nogil=True)
def score_of(code, length, shapes, scores):
    """Return the score of a piece by the code and length of its shape."""
    low, high = 0, len(shapes) if length <= MOST_LETTERS else 0
    while low < high:
        middle = (low + high) // 2
        if shapes[middle] < code:
            low = middle + 1
        else:
            high = middle
    if length <= MOST_LETTERS and low < len(shapes) and shapes[low] == code:
        return scores[low]
    return scores[-2] + length * scores[-1]


@cached_njit(nogil=True)
def pieces_of(texts, ends):
    """Return the pieces [U, P, L'] of texts, as many and long as needed, and the row of each [U, P], −1 for padding.

    `ends` [U, S, L] bool are the last words of pieces; the last of a row is one too.
    """
    most, longest = 1, 1
    for u in range(texts.shape[0]):
        count = 0
        for s in range(texts.shape[1]):
            length = 0
            for k in range(texts.shape[2]):
                length += texts[u, s, k] != 0
                longest = max(longest, length)
                if ends[u, s, k]:
                    count, length = count + 1, 0
        most = max(most, count)
    pieces = np.zeros((texts.shape[0], most, longest), texts.dtype)
    rows = np.full((texts.shape[0], most), -1)
    for u in range(texts.shape[0]):
        count = 0
        for s in range(texts.shape[1]):
            length = 0
            for k in range(texts.shape[2]):
                if texts[u, s, k] != 0:
                    pieces[u, count, length] = texts[u, s, k]
                    rows[u, count] = s
                    length += 1
                if ends[u, s, k]:
                    count, length = count + 1, 0
    return pieces, rows
