"""DRRN, the deep reinforcement relevance network (He et al. 2016), as it is used on ScienceWorld (Golchha et al. 2024).

A GRU for what was just seen, one for the room, one for what is held and one for the action, over one table of words;
their last states go through a hidden layer to the value of the action. Other worlds have other texts, and a GRU for
each. Choices that begin alike share the steps of their GRU (`prefix_tree`), and padding is never read.

With `reader="bag"` the state of a text is the mean of its words' embeddings: the same network without word order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.extensions.lge.drrn.choice_values import ChoiceValues
from magrounding.extensions.lge.drrn.pieces import SHIPPED, Pieces, PieceTokens, Tokens, own_words
from magrounding.extensions.lge.drrn.prefix_tree import TreeGRU
from magrounding.schema import Count, OneOf, Options
from magrounding.spec import EnvSpec
from magrounding.storage import user_path

PIECES, WORDS = "pieces", "words"
READERS = ("gru", "bag")


@dataclass(frozen=True)
class DrrnConfig(Options):
    """Options of DRRN; sizes are those of the text-game programs.

    Attributes:
        embedding: width of a token, and with "bag" of a text.
        hidden: units of each GRU and of the hidden layer.
        reader: "gru" or "bag".
        vocabulary: "pieces", those that come with the package; "words", the world's own words; or a file of word
            pieces. Pieces are kept with the weights.
        pieces: rows of the table of pieces, at least as many as there are.
        readers: name → the text fields that one reader reads together; by default see `choice_values.default_readers`.
    """

    embedding: Count = 128
    hidden: Count = 128
    reader: Annotated[str, OneOf(READERS)] = "gru"
    vocabulary: str = PIECES
    pieces: Count = 8000
    readers: Mapping[str, tuple[str, ...]] | None = None


class Bag(nn.Module):
    """Mean of the embeddings of a text's words, as its state; zeros of an empty text."""

    def read(self, words: nn.Embedding, tokens: np.ndarray, start: np.ndarray) -> Tensor:
        """Return the states [U, embedding] of concatenated texts, as `Tokens` has them."""
        flat, begin = (torch.from_numpy(each).to(words.weight.device) for each in (tokens, start[:-1]))
        return F.embedding_bag(flat, words.weight, begin, mode="mean")


class Drrn(ChoiceValues):
    """The DRRN policy.

    Args:
        spec: of the world.
        config: options.

    Raises:
        ConfigurationError: a world that it is not made for, or pieces for one that does not say its words.
        CheckpointError: a file of pieces that is damaged; one that is missing, when the first text is read.
    """

    defaults = DrrnConfig()

    def __init__(self, spec: EnvSpec, config: DrrnConfig) -> None:
        bag = config.reader == "bag"
        super().__init__(spec, config.embedding if bag else config.hidden, config.hidden, config.readers)
        self.config = config
        self._spec = spec
        self.vocabulary: Tensor = nn.Buffer(torch.zeros(0, dtype=torch.uint8))
        self._pieces: PieceTokens | None = None  # none of a missing file: trained weights bring their own
        if config.vocabulary != WORDS:
            self._file = SHIPPED if config.vocabulary == PIECES else user_path(config.vocabulary)
            if self._file.exists():
                self._use(Pieces.load(self._file))
        tokens = spec.vocabulary_size + 1 if config.vocabulary == WORDS else config.pieces
        self.words = nn.Embedding(tokens, config.embedding)
        units = config.embedding, config.hidden
        self.texts = nn.ModuleList(Bag() if bag else TreeGRU(*units) for _ in self.reads)

    def read(self, name: str, ids: Mapping[str, Tensor]) -> Tensor:
        tokens, start = self._tokens([each.cpu().numpy() for each in ids.values()])
        self.encoded += len(start) - 1
        reader: Any = self.texts[list(self.reads).index(name)]
        return reader.read(self.words, tokens, start)

    def _tokens(self, ids: Sequence[np.ndarray]) -> Tokens:
        if self.config.vocabulary == WORDS:
            return own_words(ids, divider=self._spec.vocabulary_size)
        if self._pieces is None:
            raise CheckpointError(f"{self._file} is missing: magrounding pieces makes a list of word pieces")
        return self._pieces(ids)

    def _use(self, pieces: Pieces) -> None:
        """Divide texts into these pieces from now on."""
        if not self._spec.words:
            raise ConfigurationError("this world does not say its words: it cannot be read in pieces, vocabulary=words")
        if len(pieces) > self.config.pieces:
            raise ConfigurationError(f"{len(pieces)} pieces and a table of {self.config.pieces}: set pieces to more")
        self._pieces = PieceTokens(pieces, self._spec.words)
        written = np.frombuffer(pieces.to_json().encode(), np.uint8).copy()
        self.vocabulary = torch.from_numpy(written).to(self.vocabulary.device)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *more: Any, **named: Any) -> None:
        """Take the pieces that the weights were trained with."""
        kept: Any = state_dict.get(f"{prefix}vocabulary")
        pieces = self.config.vocabulary != WORDS and isinstance(kept, Tensor) and kept.dtype == torch.uint8
        if pieces and not torch.equal(kept.cpu(), self.vocabulary.cpu()):
            self._use(Pieces.from_json(kept.cpu().numpy().tobytes(), "the vocabulary of the weights"))
        super()._load_from_state_dict(state_dict, prefix, *more, **named)
