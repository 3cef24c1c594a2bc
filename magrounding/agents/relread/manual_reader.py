"""ManualReader, how relread reads: what is said of a word is found by the words that share its statements.

No identity of a word gets out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.policy import TextEncoding
from magrounding.agents.relread import kernels
from magrounding.agents.relread.motion import FRAMES, GAITS
from magrounding.agents.relread.phrases import shared_phrases
from magrounding.agents.relread.said_motion import SaidMotion
from magrounding.errors import ConfigurationError

_CLOSENESS = 8.0
"""Logit of a symbol and a statement whose embeddings point the same way."""
_ABOUT = 0.5
"""Once a thing is seen to move, that decides among the statements about it: those whose cosine is this or more."""
_DECIDED = 3.0
"""And what is more likely counts this much more, in logits: half of each of two statements is neither."""

ROW_OF = "row_of"
"""Of an encoding whose statements are pieces of rows: [U, P, S], the part of a piece that is from
a row, all 0 for padding."""
_NOWHERE = -1e4
"""Logit of a statement that is none."""


class WordRelations(NamedTuple):
    """What each of U manuals says of the P distinct words of a batch.

    said(w) is the sum of the statements' values, weighted by how much each statement has to do with w.

    Attributes:
        mentions: [U, P, P], said(w) · w': what is said of w mentions w'.
        alike: [U, P, P], cosine of said(w) and said(w').
        features: [U, P, 2 + D], said(w) · goal, how much any statement has to do with w, and what they mean; where
            motion counts, P are the distinct words that move in some way.
    """

    mentions: Tensor
    alike: Tensor
    features: Tensor


class ManualReader(nn.Module):
    """Reads by one attention over statements: the query is a word, keys and values are the sets of a statement's words.

    A word is like itself and like no other, so a word never seen is read as well as any. (Learned embeddings fit the
    words of training: new ones then look like nothing the policy knows.) Words that stand in many statements say little
    of any: in the value, a word of k statements weighs k^-fade, with a learned exponent.

    Where a world shows symbols that no statement contains, two tables of embeddings say which statement a symbol is
    kin to (`kinship`), and a third what the words of a statement mean (`meaning`). Where it shows things that only
    motion distinguishes, attention goes by how likely a statement makes it that things move so, too (`motion`). That
    is learned by foreseeing how they move: actions teach it nothing, as they favour whatever happens to win.

    Args:
        vocabulary_size: V.
        kinship: E, or 0.
        meaning: D, or 0.
        motion: D, or 0.
        spelling: of each id, where it is known.
        phrases: whether words of the goal count more where a statement has them beside the same word.
    """

    def __init__(
        self,
        vocabulary_size: int,
        kinship: int = 0,
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
        self.symbols = nn.Embedding(vocabulary_size, kinship) if kinship else None
        self.words = nn.Embedding(vocabulary_size, kinship) if kinship else None
        self.meanings = nn.Embedding(vocabulary_size, meaning) if meaning else None
        self.moves = SaidMotion(motion, spelling or [f"{k}" for k in range(vocabulary_size)]) if motion else None
        for table in (self.words, self.meanings):
            if table is not None:
                nn.init.normal_(table.weight, std=0.01)  # a word that training never shows shall say next to nothing

    @property
    def knows_words(self) -> bool:
        """Whether anything was learnt of single words; else a word is nothing but the statements that it stands in."""
        return any(table is not None for table in (self.symbols, self.words, self.meanings, self.moves))

    @property
    def word_rows(self) -> Mapping[str, Sequence[str]] | None:
        """See `Policy`; None where words were learnt whose spelling is not known."""
        tables = {"symbols": self.symbols, "words": self.words, "meanings": self.meanings}
        rows = {f"{name}.weight": self._spelling for name, table in tables.items() if table is not None}
        if self.moves is not None:
            rows["moves.embedding.weight"] = self.moves.ngrams
        return rows if len(self._spelling) == self.vocabulary_size or not rows else None

    def forward(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U documents.

        `key`, `value` [U, S, V]: which words each statement has, and what they weigh; `overlap` [U, S, S], `goal`
        [U, S]: how much each statement's value has in common with that of every other, and with the goal. With kinship
        `kin` [U, S, E], with meanings `meaning` [U, S, D]: the sums of the words', the one of length 1. With motion
        `moves` [U, S, GAITS], what a statement says of how that moves which it is about.
        """
        statements = self._words(manual)
        weight = statements.sum(1, keepdim=True).clamp(min=1) ** -self.fade  # [U, 1, V]
        value = statements * weight
        learned = {}
        if self.words is not None:
            learned["kin"] = F.normalize(statements @ self.words.weight, dim=-1)
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
        """[U, S]: how much each statement has in common with the goal: words, and words in the same phrases.

        By single words "can you wipe out the star alliance for us ?" has as much of "who fights for the rebel enclave ?
        mostly …" as of a statement about the star alliance.
        """
        shared = torch.bmm(value, (self._words(goal).unsqueeze(1) * weight).transpose(1, 2)).squeeze(2)
        if self.phrase is None:
            return shared
        weighs = weight.gather(2, goal.long().unsqueeze(1))  # [U, 1, G]
        return shared + self.phrase * (shared_phrases(manual, goal) * weighs).sum(2)

    def _words(self, ids: Tensor) -> Tensor:
        """[U, …, V]: 1 for each word of ids [U, …, L], and 0 for padding."""
        words = self.fade.new_zeros(*ids.shape[:-1], self.vocabulary_size)
        words.scatter_(-1, ids.long(), 1.0)
        words[..., 0] = 0
        return words

    def read(
        self, words: Tensor, text: TextEncoding, gait: Tensor | None = None
    ) -> tuple[WordRelations, Tensor, Tensor]:
        """What the manuals say of some words.

        Attention from U documents to the few distinct words of a batch is one product of matrices; observations gather
        from it what is about their own words, a handful of numbers each.

        Args:
            words: [...] ids.
            text: encoding of U documents.
            gait: [...] below GAITS, how what has the word moves (`motion.Motion`); None where motion is off.

        Returns:
            What is said of the P distinct words, which of them each is [...], and whose features are its own [...].
        """
        distinct, which = self.distinct(words, self.vocabulary_size)
        # Statements come before words in every table, so that no product has to copy what it multiplies.
        scores, attention = self._attend(distinct, text)  # [U, S, P]
        mentioned = text["value"].index_select(2, distinct)  # [U, S, P], how much each statement mentions each word
        through = torch.bmm(text["overlap"], attention)  # [U, S, P]
        length = (through * attention).sum(1, keepdim=True).clamp(min=1e-8).sqrt()
        is_word = (distinct != 0).to(scores.dtype)  # of no word nothing is said
        if gait is None:
            features, of = self._features(scores, attention, text) * is_word, which
        else:
            moving, of = self.distinct(words * GAITS + gait, self.vocabulary_size * GAITS)
            features = self._features(*self._attend(moving // GAITS, text, moving % GAITS), text) * (moving >= GAITS)
        attention = attention * is_word
        mentions = torch.bmm(attention.transpose(1, 2), mentioned)  # [U, P, P]
        alike = torch.bmm((attention / length).transpose(1, 2), through / length)
        return WordRelations(mentions, alike, features.transpose(1, 2)), which, of

    def attention(self, words: Tensor, text: TextEncoding, gait: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Attention [U, S, P] to the statements, of the distinct among some words [...] that move so [...].

        Arguments as in `read`.

        Returns:
            It, and which of the P each is [...].
        """
        if gait is None:
            distinct, which = self.distinct(words, self.vocabulary_size)
            return self._attend(distinct, text)[1], which
        moving, which = self.distinct(words * GAITS + gait, self.vocabulary_size * GAITS)
        return self._attend(moving // GAITS, text, moving % GAITS)[1], which

    def _attend(self, words: Tensor, text: TextEncoding, gait: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Whether each statement has each of some words [P] that move so, and attention to it, both [U, S, P].

        Once things have been seen to move, actions no longer shape what statements are about.
        """
        scores, kinship = self._likeness(words, text)
        logits = self.sharpness * scores + kinship
        if gait is not None:
            about = self.sharpness * scores + kinship.clamp(max=_ABOUT * _CLOSENESS)
            decided = _DECIDED * (about + text["moves"].index_select(2, gait)).detach()
            logits = torch.where(gait % FRAMES > 0, decided, logits)
        return scores, logits.softmax(1)

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor:
        """[U, M, N]: how much what is said of each of some words mentions each name, see `Policy.relate_words`."""
        attention = self._attend(subjects, text)[1]  # [U, S, M]
        mentioned = text["value"].index_select(2, names.flatten()).unflatten(2, names.shape)
        return torch.bmm(attention.transpose(1, 2), (mentioned * (names != 0)).sum(3))

    def foresee(self, words: Tensor, gait: Tensor, text: TextEncoding) -> tuple[Tensor, Tensor]:
        """Log probability [U, P] that things of some words [...] move so [...], as each of U manuals has it.

        It is that of a mixture of what statements say, so it also teaches which statement is about a word.

        Returns:
            It, of the P that are distinct, and which of them each is [...].
        """
        if self.moves is None:
            raise ConfigurationError("relread foresees no motion that it does not see: set its option motion")
        moving, which = self.distinct(words * GAITS + gait, self.vocabulary_size * GAITS)
        scores, kinship = self._likeness(moving // GAITS, text)
        about, gait = (self.sharpness * scores + kinship).log_softmax(1), moving % GAITS
        return self.moves.usual()[gait] + (about + text["moves"].index_select(2, gait)).logsumexp(1), which

    def _likeness(self, words: Tensor, text: TextEncoding) -> tuple[Tensor, Tensor]:
        """Whether each statement has each of some words [P], [U, S, P], and how much it is kin to it (or just 0)."""
        scores = text["key"].index_select(2, words)
        kin = _absence(text) if self.symbols is None else self.kinship(words, text).transpose(1, 2)
        return scores, kin

    def _features(self, scores: Tensor, attention: Tensor, text: TextEncoding) -> Tensor:
        """[U, 2 + D, P] of words with these scores and attention [U, S, P]."""
        goal = (text["goal"].unsqueeze(2) * attention).sum(1, keepdim=True)  # [U, 1, P]
        features = [goal, scores.amax(1, keepdim=True)]
        if "meaning" in text:
            features.append(torch.bmm(text["meaning"].transpose(1, 2), attention))
        return torch.cat(features, 1)

    def kinship(self, words: Tensor, text: TextEncoding) -> Tensor:
        """[U, P, S]: how much each of some words [P] is kin to each statement, in [−8, 8], 10⁴ lower for padding."""
        if self.symbols is None:
            raise ConfigurationError("relread grounds symbols by contrast only with embeddings: set its option kinship")
        close = _CLOSENESS * F.normalize(self.symbols(words.long()), dim=-1) @ text["kin"].transpose(1, 2)
        return close + _absence(text).mT if ROW_OF in text else close

    def distinct(self, words: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """The distinct of some ids [...] below `size`, [P], and which each is (`unique` would sort them all)."""
        if kernels.suits(words):
            return kernels.distinct(words, size)
        is_there = torch.zeros(size, dtype=torch.bool, device=words.device)
        is_there[words.long()] = True
        return is_there.nonzero().squeeze(1), (is_there.cumsum(0) - 1)[words.long()]


def _absence(text: TextEncoding) -> Tensor:
    """[U, P, 1] what is added to the logits of statements, so that padding is none; just 0 where they are rows.

    A manual has as many rows as any of its world; how many pieces there are differs, also with what is encoded along.
    """
    if ROW_OF not in text:
        return text["key"].new_zeros(())
    return _NOWHERE * (text[ROW_OF] == 0).all(2, keepdim=True)
