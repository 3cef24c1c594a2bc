"""Tokens of a text: the world's own words, or word pieces of a unigram model (Kudo 2018), which write any text.

SentencePiece trains the pieces (`magrounding pieces`); they are kept as strings with their log-probabilities, in JSON
and with a network's weights. Finding the most probable pieces of a text is a loop of ten lines here, so that a trained
network is read without a tokenizer's package.
"""

from __future__ import annotations

import io
import math
import string
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from magrounding.errors import CheckpointError, ConfigurationError, needed
from magrounding.storage import WRONG_JSON, json_text, require_bytes, text_of, unpacked
from magrounding.texts import content_keys
from magrounding.vocabulary import plain_text

SHIPPED = Path(__file__).with_name("data") / "pieces.json.gz"
"""Pieces of the texts of ScienceWorld's training variations."""

SPACE = "\u2581"
"""Sign for the space before a word."""
PAD, UNKNOWN, MARKER, FIRST = range(4)
"""Tokens that are no pieces: padding, a letter that no piece has, the divider of fields that are read together; and the
first piece."""
_WORSE = 10.0
"""Log-probability by which a letter that no piece has is below the least probable piece, as in SentencePiece."""
_LETTERS = string.ascii_lowercase + string.digits + string.punctuation
"""Letters that are pieces in any case."""
_WORDS_LONGEST, _PHRASES_LONGEST = 16, 32
"""Letters of a piece at most."""
_KEPT = 1 << 18
"""Texts whose tokens are kept."""


Tokens = tuple[np.ndarray, np.ndarray]
"""Tokens [S] of U concatenated texts, and the place where each begins [U + 1], both int64."""


def own_words(ids: Sequence[np.ndarray], divider: int) -> Tokens:
    """Return a world's own ids as tokens.

    Args:
        ids: [U, L] of each field that is read together, the first one first; 0 is padding.
        divider: token between fields.
    """
    between = np.full((len(ids[0]), 1), divider, np.int64)
    parts = [part for each in ids for part in (between, each.reshape(len(each), -1))][1:]
    joined = np.concatenate(parts, 1, dtype=np.int64)
    there = joined != PAD
    return joined[there], np.concatenate(([0], np.cumsum(there.sum(1))))


class _File(msgspec.Struct):
    """Content of a file of pieces."""

    pieces: Annotated[list[tuple[str, float]], msgspec.Meta(min_length=1)]


class Pieces:
    """Word pieces and their log-probabilities.

    Args:
        scores: piece → log-probability; SPACE stands for a space, every word has one before it.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self.scores = dict(scores)
        self._places = {piece: FIRST + i for i, piece in enumerate(self.scores)}
        self._longest = max(map(len, self.scores))
        self._unknown = min(self.scores.values()) - _WORSE

    def __len__(self) -> int:
        """Return the number of tokens, with those that are no pieces."""
        return FIRST + len(self.scores)

    def divide(self, text: str) -> list[str]:
        """Return the most probable pieces of a text; letters that no piece has are pieces by themselves."""
        text = SPACE + text.replace(" ", SPACE)
        best, begin, scores = [0.0, *[-math.inf] * len(text)], [0] * (len(text) + 1), self.scores
        for start in range(len(text)):
            so_far = best[start]
            for end in range(start + 1, min(start + self._longest, len(text)) + 1):
                score = scores.get(text[start:end])
                if score is None:
                    if end > start + 1:
                        continue
                    score = self._unknown
                if so_far + score > best[end]:
                    best[end], begin[end] = so_far + score, start
        pieces, end = [], len(text)
        while end:
            pieces.append(text[begin[end] : end])
            end = begin[end]
        return pieces[::-1]

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text; none of an empty one."""
        return [self._places.get(piece, UNKNOWN) for piece in self.divide(text)] if text else []

    def to_json(self) -> str:
        """Return the text that `from_json` reads."""
        return json_text({"pieces": list(self.scores.items())}, compact=True)

    @classmethod
    def from_json(cls, text: str | bytes, source: Path | str) -> Pieces:
        """Return the pieces that `to_json` wrote; CheckpointError for anything else."""
        with suppress(*WRONG_JSON, msgspec.DecodeError):
            listed = msgspec.json.decode(text, type=_File).pieces
            if len(scores := dict(listed)) == len(listed):  # no piece twice
                return cls(scores)
        raise CheckpointError(f"{source} is damaged, or no list of word pieces: magrounding pieces makes one")

    @classmethod
    def load(cls, path: Path) -> Pieces:
        """Load the pieces of a JSON file, compressed or not; CheckpointError where it is missing or damaged."""
        data = require_bytes(path)
        try:
            return cls.from_json(text_of(unpacked(data) if path.suffix == ".gz" else data), path)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise CheckpointError(f"{path} cannot be read: {error}") from None


class PieceTokens:
    """A world's ids as pieces; each text is divided once.

    Args:
        pieces: the pieces.
        words: word of each id, as in the EnvSpec.
    """

    def __init__(self, pieces: Pieces, words: Sequence[str]) -> None:
        self._pieces, self._words = pieces, words
        self._known: dict[int, np.ndarray] = {}

    def __call__(self, ids: Sequence[np.ndarray]) -> Tokens:
        """Return tokens; arguments as in `own_words`."""
        if len(self._known) > _KEPT:
            self._known = {}
        keys = content_keys({str(i): array for i, array in enumerate(ids)}).tolist()
        for row, key in enumerate(keys):
            if key not in self._known:
                self._known[key] = self._divide([array[row] for array in ids])
        found = [self._known[key] for key in keys]
        start = np.cumsum([0, *map(len, found)])
        return np.concatenate(found) if found else np.zeros(0, np.int64), start

    def __deepcopy__(self, memo: dict[int, Any]) -> PieceTokens:
        return self  # copies of a network divide texts alike

    def _divide(self, row: Sequence[np.ndarray]) -> np.ndarray:
        tokens: list[int] = []
        for i, ids in enumerate(row):
            tokens += [MARKER] * (i > 0) + self._pieces.tokens(plain_text(self._words, ids.ravel().tolist()))
        return np.array(tokens, np.int64)


def train_pieces(texts: Iterable[str], size: int, *, across_words: bool) -> Pieces:
    """Train a unigram model of some texts (Kudo 2018) by SentencePiece; the same texts give the same pieces.

    Args:
        texts: lower case, words and signs with spaces between them, as `tokenizer.plain_text` writes them.
        size: tokens that there can be, with those that are no pieces; there are fewer where texts have too little.
        across_words: a piece may be several words.

    Raises:
        ConfigurationError: texts that give no pieces, or too few places for all their letters.
        MissingExtra: there is no SentencePiece.
    """
    with needed("Making word pieces", "pieces"):
        import sentencepiece
    made = sentencepiece.SentencePieceProcessor(model_proto=_train(sentencepiece, texts, size, across_words))
    numbers = [i for i in range(made.get_piece_size()) if not (made.is_control(i) or made.is_unknown(i))]
    return Pieces({made.id_to_piece(i): made.get_score(i) for i in numbers})


def _train(sentencepiece: Any, texts: Iterable[str], size: int, across_words: bool) -> bytes:
    """Return SentencePiece's model of some texts, as bytes."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            required_chars=_LETTERS,
            normalization_rule_name="identity",
            split_by_whitespace=not across_words,
            split_by_unicode_script=not across_words,
            split_by_number=not across_words,
            max_sentencepiece_length=_PHRASES_LONGEST if across_words else _WORDS_LONGEST,
            num_threads=1,
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise ConfigurationError(f"SentencePiece makes no {size} pieces of these texts: {error}") from None
    return model.getvalue()
