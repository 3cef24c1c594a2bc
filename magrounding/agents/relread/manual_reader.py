"""ManualReader: attention over the statements of a manual, by the words that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import distinct_ids
from magrounding.agents.policy import TextEncoding
from magrounding.agents.relread import kernels
from magrounding.agents.relread.motion import FRAMES, MOTION_CLASSES, StatedMotion
from magrounding.jit import cached_njit

_CLOSENESS = 8.0
"""Logit of a symbol and a statement whose embeddings have a cosine of 1."""
_ABOUT = 0.5
"""Largest cosine that counts for a thing that has been seen to move: its motion decides between closer statements."""
_DECIDED = 3.0
"""Factor on the logits of things seen to move, so that attention is on one statement: a mean of two is neither."""

ROW_OF = "row_of"
"""Key of an encoding whose statements are pieces cut from rows: [U, P, S], the share of each piece that comes from each
row, 0 for padding.
"""
_NOWHERE = -1e4
"""Logit of padding."""


class WordRelations(NamedTuple):
    """Relations of the P distinct words of a batch in each of U manuals.

    summary(w), the sum of the statements' values weighted by the attention of w to each, is what the manual says of w.
    """

    mentions: Tensor  # [U, P, P], summary(w) · w': how much it mentions w'
    alike: Tensor  # [U, P, P], cosine of summary(w) and summary(w')
    # [U, P, 2 + D], summary(w) · goal, the best match of w with any statement, and the statements' meanings weighted by
    # attention; with motion, P are the distinct pairs of word and motion class
    features: Tensor


class ManualReader(nn.Module):
    """One attention over statements: the query is a word, keys and values are the sets of a statement's words.

    A word is similar to itself only, so words unseen in training are read as well as any; learned embeddings would fit
    the words of training. A word that is in many statements distinguishes none: in the value, a word of k statements
    weighs k^-fade, with a learned exponent.

    Where symbols are in no statement, two tables of embeddings say which statement a symbol belongs to (`similarity`),
    and a third what the words of a statement mean (`meaning`). Where only motion distinguishes things, attention also
    depends on how likely a statement makes their motion (`motion`). That is learned by predicting motion and not from
    the policy's loss, which would favour any reading that happens to win.

    Args:
        vocabulary_size: V.
        similarity: E, width of the embeddings of symbols and statements, or 0.
        meaning: D, width of the embeddings of meanings, or 0.
        motion: width of the embeddings of motion, or 0.
        spelling: word of each id, where it is known.
        phrases: words of the goal count more in a statement that has them next to the same word as the goal.
    """

    def __init__(
        self,
        vocabulary_size: int,
        similarity: int = 0,
        meaning: int = 0,
        motion: int = 0,
        spelling: Sequence[str] = (),
        *,
        phrases: bool = False,
    ) -> None:
        super().__init__()
        self.vocabulary_size, self._spelling = vocabulary_size, tuple(spelling)
        self.fade = nn.Parameter(torch.tensor(1.0))
        self.sharpness = nn.Parameter(torch.tensor(6.0))
        self.phrase = nn.Parameter(torch.tensor(1.0)) if phrases else None
        self.symbols = nn.Embedding(vocabulary_size, similarity) if similarity else None
        self.words = nn.Embedding(vocabulary_size, similarity) if similarity else None
        self.meanings = nn.Embedding(vocabulary_size, meaning) if meaning else None
        self.moves = StatedMotion(motion, spelling or [f"{k}" for k in range(vocabulary_size)]) if motion else None
        for table in (self.words, self.meanings):
            if table is not None:
                nn.init.normal_(table.weight, std=0.01)  # words unseen in training stay near 0

    @property
    def knows_words(self) -> bool:
        """True if any embedding of words is learned."""
        return any(table is not None for table in (self.symbols, self.words, self.meanings, self.moves))

    @property
    def word_rows(self) -> Mapping[str, Sequence[str]] | None:
        """Return `Policy.word_rows`; None where words were learned whose spelling is not known."""
        tables = {"symbols": self.symbols, "words": self.words, "meanings": self.meanings}
        rows = {f"{name}.weight": self._spelling for name, table in tables.items() if table is not None}
        if self.moves is not None:
            rows["moves.embedding.weight"] = self.moves.ngrams
        return rows if len(self._spelling) == self.vocabulary_size or not rows else None

    def forward(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U documents.

        Returns:
            `key`, `value` [U, S, V]: words of each statement, and their weights.
            `overlap` [U, S, S], `goal` [U, S]: product of each statement's value with that of every other, and with
            the goal.
            Optional `similar` [U, S, E], `meaning` [U, S, D]: sums of the words' embeddings, the first of length 1.
            Optional `moves` [U, S, MOTION_CLASSES]: log likelihood ratios of motion classes.
        """
        statements = self._words(manual)
        weight = statements.sum(1, keepdim=True).clamp(min=1) ** -self.fade  # [U, 1, V]
        value = statements * weight
        learned = {}
        if self.words is not None:
            learned["similar"] = F.normalize(statements @ self.words.weight, dim=-1)
        if self.meanings is not None:
            learned["meaning"] = statements @ self.meanings.weight
        if self.moves is not None:
            learned["moves"] = self.moves(statements)
        return {
            **learned,
            "key": statements,
            "value": value,
            "overlap": torch.bmm(value, value.transpose(1, 2)),
            "goal": self._asked(manual, goal, value, weight),
        }

    def _asked(self, manual: Tensor, goal: Tensor, value: Tensor, weight: Tensor) -> Tensor:
        """Overlap [U, S] of each statement with the goal: by words, and by words in the same phrases.

        By single words the goal "can you wipe out the star alliance for us ?" is as close to "who fights for the rebel
        enclave ? mostly …" as to a statement about the star alliance.
        """
        shared = torch.bmm(value, (self._words(goal).unsqueeze(1) * weight).transpose(1, 2)).squeeze(2)
        if self.phrase is None:
            return shared
        weighs = weight.gather(2, goal.long().unsqueeze(1))  # [U, 1, G]
        return shared + self.phrase * (shared_phrases(manual, goal) * weighs).sum(2)

    def _words(self, ids: Tensor) -> Tensor:
        """Bag of words [U, …, V]: 1 for each word of ids [U, …, L], and 0 for padding."""
        words = self.fade.new_zeros(*ids.shape[:-1], self.vocabulary_size)
        words.scatter_(-1, ids.long(), 1.0)
        words[..., 0] = 0
        return words

    def read(
        self, words: Tensor, text: TextEncoding, motion_class: Tensor | None = None
    ) -> tuple[WordRelations, Tensor, Tensor]:
        """Return relations of the few distinct words of a batch, from which each observation gathers its own.

        Args:
            words: [...] ids.
            text: encoding of U documents.
            motion_class: [...] of the thing that has the word (`motion.Motion`); None where motion is off.

        Returns:
            Relations of the P distinct words, the index of each word among them [...], and that of its features [...].
        """
        distinct, which = self.distinct(words, self.vocabulary_size)
        # Statements come before words in every table, so that no product has to copy what it multiplies.
        scores, attention = self._attend(distinct, text)  # [U, S, P]
        mentioned = text["value"].index_select(2, distinct)  # [U, S, P], how much each statement mentions each word
        through = torch.bmm(text["overlap"], attention)  # [U, S, P]
        length = (through * attention).sum(1, keepdim=True).clamp(min=1e-8).sqrt()
        is_word = (distinct != 0).to(scores.dtype)  # padding has no relations
        if motion_class is None:
            features, of = self._features(scores, attention, text) * is_word, which
        else:
            moving, classes, of = self._moving(words, motion_class)
            features = self._features(*self._attend(moving, text, classes), text) * (moving != 0)
        attention = attention * is_word
        mentions = torch.bmm(attention.transpose(1, 2), mentioned)  # [U, P, P]
        alike = torch.bmm((attention / length).transpose(1, 2), through / length)
        return WordRelations(mentions, alike, features.transpose(1, 2)), which, of

    def attention(self, words: Tensor, text: TextEncoding, motion_class: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return attention [U, S, P] of distinct words and motion classes, and each word's index [...]; see `read`."""
        moving, classes, which = self._moving(words, motion_class)
        return self._attend(moving, text, classes)[1], which

    def _attend(self, words: Tensor, text: TextEncoding, motion_class: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Matches of statements with words [P] of some motion, and attention to statements, both [U, S, P].

        Attention of things that have been seen to move is detached: the policy's loss does not train it.
        """
        scores, similarity = self._scores(words, text)
        logits = self.sharpness * scores + similarity
        if motion_class is not None:
            about = self.sharpness * scores + similarity.clamp(max=_ABOUT * _CLOSENESS)
            decided = _DECIDED * (about + text["moves"].index_select(2, motion_class)).detach()
            logits = torch.where(motion_class % FRAMES > 0, decided, logits)
        return scores, logits.softmax(1)

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor:
        """Return [U, M, N]: how much what is said of each word mentions each name, see `Policy.relate_words`."""
        attention = self._attend(subjects, text)[1]  # [U, S, M]
        mentioned = text["value"].index_select(2, names.flatten()).unflatten(2, names.shape)
        return torch.bmm(attention.transpose(1, 2), (mentioned * (names != 0)).sum(3))

    def predict_motion(self, words: Tensor, motion_class: Tensor, text: TextEncoding) -> tuple[Tensor, Tensor]:
        """Return the log probability [U, P] that each manual gives to the P distinct pairs of word and motion class.

        It is that of a mixture over statements, so it also teaches which statement is about a word.

        Returns:
            The log probability, and the index [...] of each word and motion class among the P pairs.
        """
        moving, classes, which = self._moving(words, motion_class)
        assert self.moves is not None
        assert classes is not None
        scores, similarity = self._scores(moving, text)
        about = (self.sharpness * scores + similarity).log_softmax(1) + text["moves"].index_select(2, classes)
        return self.moves.usual()[classes] + about.logsumexp(1), which

    def _moving(self, words: Tensor, motion_class: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor]:
        """Words and motion classes of distinct pairs [P], and the index of each [...]; without motion, of words."""
        if motion_class is None:
            distinct, which = self.distinct(words, self.vocabulary_size)
            return distinct, None, which
        pairs, which = self.distinct(words * MOTION_CLASSES + motion_class, self.vocabulary_size * MOTION_CLASSES)
        return pairs // MOTION_CLASSES, pairs % MOTION_CLASSES, which

    def _scores(self, words: Tensor, text: TextEncoding) -> tuple[Tensor, Tensor]:
        """Matches [U, S, P] of statements with words [P], and their similarity (or just 0)."""
        scores = text["key"].index_select(2, words)
        similarity = _absence(text) if self.symbols is None else self.similarity(words, text).transpose(1, 2)
        return scores, similarity

    def _features(self, scores: Tensor, attention: Tensor, text: TextEncoding) -> Tensor:
        """Features [U, 2 + D, P] of words (`WordRelations`), from their scores and attention [U, S, P]."""
        goal = (text["goal"].unsqueeze(2) * attention).sum(1, keepdim=True)  # [U, 1, P]
        features = [goal, scores.amax(1, keepdim=True)]
        if "meaning" in text:
            features.append(torch.bmm(text["meaning"].transpose(1, 2), attention))
        return torch.cat(features, 1)

    def similarity(self, words: Tensor, text: TextEncoding) -> Tensor:
        """Return [U, P, S], the similarity of words [P] and statements, in [−8, 8], 10⁴ lower for padding."""
        assert self.symbols is not None
        close = _CLOSENESS * F.normalize(self.symbols(words.long()), dim=-1) @ text["similar"].transpose(1, 2)
        return close + _absence(text).mT if ROW_OF in text else close

    def distinct(self, words: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Return the distinct ids [P] below `size`, and the index of each [...] (`unique` would sort them all)."""
        if kernels.suits(words):
            return kernels.distinct(words, size)
        return distinct_ids(words.long(), size)


def _absence(text: TextEncoding) -> Tensor:
    """Summand [U, P, 1] of the logits of statements that excludes padding; just 0 where statements are rows.

    All manuals of an environment have the same number of rows; the number of pieces differs, and pieces are padded to
    the largest number in the batch.
    """
    if ROW_OF not in text:
        return text["key"].new_zeros(())
    return _NOWHERE * (text[ROW_OF] == 0).all(2, keepdim=True)


def shared_phrases(manual: Tensor, goal: Tensor) -> Tensor:
    """Return [U, S, G] bool: words of goal [U, G] that a statement [U, S, L] has next to the same word as the goal."""
    if kernels.suits(manual, goal):
        shared = torch.zeros(*manual.shape[:2], goal.shape[1], dtype=torch.bool)
        _mark_shared(manual.contiguous().numpy(), goal.contiguous().numpy(), shared.numpy())
        return shared
    same = (manual.unsqueeze(3) == goal[:, None, None]) & (goal != 0)[:, None, None]  # [U, S, L, G]
    pair = (same[:, :, :-1, :-1] & same[:, :, 1:, 1:]).any(2)  # [U, S, G - 1], begins at each word of the goal
    return F.pad(pair, (0, 1)) | F.pad(pair, (1, 0))


@cached_njit(nogil=True)
def _mark_shared(manual, goal, shared):
    top = 0
    for word in goal.flat:
        top = max(top, word)
    asked = np.zeros(top + 1, np.bool_)  # true for the words of this goal: few of a manual's words pass
    for u in range(len(manual)):
        for word in goal[u]:
            asked[word] = word != 0
        for s in range(manual.shape[1]):
            for at in range(manual.shape[2] - 1):
                first, second = manual[u, s, at], manual[u, s, at + 1]
                if first > top or second > top or not asked[first] or not asked[second]:
                    continue
                for g in range(goal.shape[1] - 1):
                    if goal[u, g] == first and goal[u, g + 1] == second:
                        shared[u, s, g] = shared[u, s, g + 1] = True
        for word in goal[u]:
            asked[word] = False
