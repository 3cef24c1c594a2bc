"""Segments: the pieces of running text that are read as one statement each, where rows are not.

relread relates the words that share a statement, so it has to be told what one is. `Rows` take each row of a manual for
one, which is what worlds write by default; `Stops` cut rows at full stops; a `Segmenter` has learnt to cut (see
`segments_learning`). None cuts a statement that goes on in the next row together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, Words
from magrounding.agents.segments_kernels import Cutter, ends_of_pieces, pieces_of
from magrounding.errors import ConfigurationError, choose
from magrounding.spec import EnvSpec

ROWS, STOPS, LEARNT = SEGMENTS = ("rows", "stops", "learnt")
"""Ways to find the statements of a manual."""
STOP = "."
"""The word that ends a sentence. A question mark does not: it stands inside of statements as well."""
EMBEDDING, UNITS = 24, 16
"""Widths of the Segmenter's network."""
MOST_SHAPES = 64
"""Shapes that a Segmenter tells from others."""
_GATES = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
_NO_SHAPE = torch.iinfo(torch.int64).max


class Pieces(NamedTuple):
    """The statements of U manuals.

    Attributes:
        ids: [U, P, L] word ids, 0 is padding.
        row_of: [U, P, S] bool, which of the manual's rows each is from; from none: it is padding.
    """

    ids: Tensor
    row_of: Tensor


class Cuts(nn.Module, ABC):
    """What cuts the rows of a manual into pieces; a row's end is the end of a piece in any case."""

    @abstractmethod
    def ends(self, texts: np.ndarray) -> np.ndarray:
        """[U, S, L] bool, the last word of each piece of texts [U, S, L]."""

    def forward(self, manual: Tensor) -> Pieces:
        """The pieces of manual [U, S, L]."""
        texts = _array(manual)
        ids, rows = (torch.from_numpy(each).to(manual.device) for each in pieces_of(texts, self.ends(texts)))
        return Pieces(ids, rows.unsqueeze(2) == torch.arange(manual.shape[1], device=manual.device))


class Stops(Cuts):
    """Cuts at full stops: what any reader of running text has to beat.

    Args:
        spec: of the world.

    Raises:
        ConfigurationError: a world without full stops.
    """

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        if STOP not in spec.words:
            raise ConfigurationError(
                f"this world has no word {STOP!r} to cut at: choose segments={ROWS} or segments={LEARNT}"
            )
        self.stop = spec.words.index(STOP)

    def ends(self, texts: np.ndarray) -> np.ndarray:
        there = texts != 0
        last = np.cumsum(there[..., ::-1], -1)[..., ::-1] == 1  # or padding behind it
        return (texts == self.stop) | (there & last)


class Segmenter(Cuts):
    """Cuts at the best boundaries: those that a network finds likely, between pieces of shapes that are known.

    Words are told apart by class, not by identity: a word that the map shows is of the class of its place in an
    occupant (a monster's name is one like any other), words that stand once in every manual are of one class (the
    teams), function words of training each have their own, and all else shares one. So names that were never written in
    training are read like any, and sentences that were not, as far as their function words are known.

    The shape of a piece is the order of the classes of its words, function words left out. Its weights come from
    `segments_learning.learn_segments`, and reinforcement does not change them.

    Args:
        spec: of the world.

    Attributes:
        word_rows: see `Policy.word_rows`.
    """

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        self.size, self.width = spec.vocabulary_size, spec.grid.words_per_occupant
        self.words = nn.Embedding(self.size, EMBEDDING)
        self.classes = nn.Embedding(self.base, EMBEDDING)  # the first is that of words which training did not show
        self.encoder = TextEncoder(EMBEDDING, UNITS, "gru")
        self.head = nn.Linear(self.encoder.width, 1)
        # Parameters, not buffers: networks that share their parameters with others share these.
        self.letters = _fixed(torch.zeros(self.size, dtype=torch.int64))  # 1 + place in an occupant, or the last
        self.known = _fixed(torch.zeros(self.size, dtype=torch.bool))  # function words
        self.shapes = _fixed(torch.full((MOST_SHAPES,), _NO_SHAPE))
        self.scores = _fixed(torch.zeros(MOST_SHAPES + 2))
        self.requires_grad_(False)

        rows = {"words.weight": spec.words, "letters": spec.words, "known": spec.words}
        self.word_rows = rows if len(spec.words) == self.size else None

    @property
    def tokens(self) -> Tensor:
        """[V] which row of `embeddings` is each word's."""
        own = torch.arange(self.size, device=self.letters.device) + self.base
        return torch.where(self.known, own, self.letters)

    def embeddings(self) -> Tensor:
        """[base + V, EMBEDDING] of classes and words."""
        return torch.cat((self.classes.weight, self.words.weight))

    def states(self, tokens: Tensor, length: Tensor) -> Tensor:
        """States [U, L, 2 UNITS] of the network on texts of so many [U] tokens [U, L]."""
        table = self.embeddings()
        return self.encoder(lambda ids: F.embedding(ids, table), Words(tokens, length))[0]

    @property
    def base(self) -> int:
        """Numbers of letters: a shape's letters are the digits of its code."""
        return self.width + 2

    def set_shapes(self, codes: np.ndarray, scores: np.ndarray, other: tuple[float, float]) -> None:
        """Take over what pieces of some shapes are worth, the most frequent first, and one of any other (`Cutter`)."""
        kept = np.argsort(codes[:MOST_SHAPES])
        self.shapes[: len(kept)] = torch.from_numpy(codes[kept])
        self.scores[: len(kept)] = torch.from_numpy(scores[kept]).float()
        self.scores[-2:] = torch.tensor(other)

    def ends(self, texts: np.ndarray) -> np.ndarray:
        return ends_of_pieces(texts, self.cutter())

    def cutter(self) -> Cutter:
        """This module in the form in which it is computed; ConfigurationError where nothing was learnt."""
        if int(self.shapes[0]) == _NO_SHAPE:
            raise ConfigurationError(
                f"segments={LEARNT} has learnt nothing yet: train the team, or put a trained one behind a segmenter "
                "with `magrounding segments`"
            )
        weights, table = dict(self.encoder.named_parameters()), self.embeddings()
        of = [{name: weights[f"{side}.{name}_l0"] for name in _GATES} for side in ("ahead", "back")]
        ahead, back = (_array(table @ each["weight_ih"].t() + each["bias_ih"]) for each in of)
        recurrent_ahead, recurrent_back = (_array(each["weight_hh"].t()) for each in of)
        return Cutter(
            tokens=_array(self.tokens),
            letters=_array(self.letters),
            ahead=ahead,
            back=back,
            recurrent_ahead=recurrent_ahead,
            recurrent_back=recurrent_back,
            bias_ahead=_array(of[0]["bias_hh"]),
            bias_back=_array(of[1]["bias_hh"]),
            head=_array(torch.cat((self.head.weight[0], self.head.bias))),
            shapes=_array(self.shapes),
            scores=_array(self.scores),
            base=self.base,
        )


def make_segments(kind: str, spec: EnvSpec) -> Cuts | None:
    """What cuts manuals into statements, one of SEGMENTS; None: nothing, each row is one."""
    if choose("way to find statements", kind, SEGMENTS) == ROWS:
        return None
    return Stops(spec) if kind == STOPS else Segmenter(spec)


def _fixed(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


def _array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
