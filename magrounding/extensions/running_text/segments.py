"""Segments: pieces of running text that are read as one statement each, where rows are not.

relread relates the words that share a statement. By default each row of a manual is one; `Stops` cut rows at full
stops; a `Segmenter` has learned to cut (see `segments_learning`). None joins a statement that goes on in the next row.
`edges` does not cut: it groups the words that share a fact.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, Words
from magrounding.agents.relread.statements import EDGES, LEARNT, ROWS, Pieces, Statements
from magrounding.errors import ConfigurationError
from magrounding.extensions.running_text.segments_kernels import Cutter, Recurrence, ends_of_pieces, pieces_of
from magrounding.spec import EnvSpec

STOPS = "stops"
SEGMENTS = ROWS, STOPS, LEARNT, EDGES
STOP = "."
"""The word that ends a sentence. A question mark does not: it stands inside of statements as well."""
EMBEDDING, UNITS = 24, 16
"""Widths of the Segmenter's network."""
MOST_SHAPES = 64
"""Most shapes that a Segmenter distinguishes."""
_GATES = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
_NO_SHAPE = torch.iinfo(torch.int64).max


class Cuts(Statements):
    """Base of readers that cut the rows of a manual into pieces; a piece ends with each row."""

    @abstractmethod
    def ends(self, texts: np.ndarray) -> np.ndarray:
        """Return [U, S, L] bool, the last word of each piece of texts [U, S, L]."""

    def forward(self, manual: Tensor) -> Pieces:
        texts = array_of(manual)
        ids, rows = (torch.from_numpy(each).to(manual.device) for each in pieces_of(texts, self.ends(texts)))
        return Pieces(ids, rows.unsqueeze(2) == torch.arange(manual.shape[1], device=manual.device))


class Delexicalised(Statements):
    """Base of readers of names by class, not by identity, so that unseen names are read like any.

    Weights are learned before reinforcement, which does not change them.

    Args:
        spec: of the environment.
        words: network of the identity of words.
        classes: of words, the first of which is that of function words.
        embedding, units: widths of the network.

    Attributes:
        letters: [V] class of each word; 0: a function word.
    """

    depends_on_names = True

    def __init__(self, spec: EnvSpec, words: nn.Module, classes: int, embedding: int, units: int) -> None:
        super().__init__()
        self.size, self.base = spec.vocabulary_size, classes
        self.words = words
        self.classes = nn.Embedding(classes, embedding)
        self.encoder = TextEncoder(embedding, units, "gru")
        # A parameter, not a buffer: networks that share their parameters with others share this.
        self.letters = fixed(torch.zeros(self.size, dtype=torch.int64))
        self.word_rows = {"letters": spec.words} if len(spec.words) == self.size else None

    @property
    @abstractmethod
    def tokens(self) -> Tensor:
        """Row of `embeddings` [V] of each word."""

    @abstractmethod
    def embeddings(self) -> Tensor:
        """Return [rows, E], the inputs of the network."""

    def recurrence(self) -> Recurrence:
        """Return the network's weights for the kernels."""
        weights, table = dict(self.encoder.named_parameters()), self.embeddings()
        of = [{name: weights[f"{side}.{name}_l0"] for name in _GATES} for side in ("ahead", "back")]
        ahead, back = (array_of(table @ each["weight_ih"].t() + each["bias_ih"]) for each in of)
        recurrent_ahead, recurrent_back = (array_of(each["weight_hh"].t()) for each in of)
        return Recurrence(
            tokens=array_of(self.tokens),
            ahead=ahead,
            back=back,
            recurrent_ahead=recurrent_ahead,
            recurrent_back=recurrent_back,
            bias_ahead=array_of(of[0]["bias_hh"]),
            bias_back=array_of(of[1]["bias_hh"]),
        )


class Stops(Cuts):
    """Reader that cuts at full stops: a baseline for readers of running text.

    Raises:
        ConfigurationError: an environment without full stops.
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


class Segmenter(Delexicalised, Cuts):
    """Reader that cuts at the best boundaries: those that a network finds likely, between pieces of known shapes.

    A word that the map shows is of the class of its place in an occupant, words that stand once in every manual are of
    one class (the teams), function words of training each have their own, and all else shares one. The shape of a piece
    is the order of the classes of its words, function words left out. Where all manuals of training have as many
    statements, so has any other. Its weights come from `segments_learning.learn_segments`.
    """

    def __init__(self, spec: EnvSpec) -> None:
        # A letter is 1 + the place in an occupant, or the last: the digits of a shape's code.
        words = nn.Embedding(spec.vocabulary_size, EMBEDDING)
        super().__init__(spec, words, spec.grid.words_per_occupant + 2, EMBEDDING, UNITS)
        self.known = fixed(torch.zeros(self.size, dtype=torch.bool))  # the function words of training
        if self.word_rows is not None:
            self.word_rows = {**self.word_rows, "words.weight": spec.words, "known": spec.words}
        self.width = spec.grid.words_per_occupant
        self.head = nn.Linear(self.encoder.width, 1)
        self.shapes = fixed(torch.full((MOST_SHAPES,), _NO_SHAPE))
        self.scores = fixed(torch.zeros(MOST_SHAPES + 2))
        self.statements = fixed(torch.zeros((), dtype=torch.int64))
        self.requires_grad_(False)

    @property
    def tokens(self) -> Tensor:
        own = torch.arange(self.size, device=self.letters.device) + self.base
        return torch.where(self.known, own, self.letters)

    def embeddings(self) -> Tensor:
        return torch.cat((self.classes.weight, self.get_parameter("words.weight")))

    def states(self, tokens: Tensor, length: Tensor) -> Tensor:
        """Return states [U, L, 2 units] of texts of so many [U] tokens [U, L]."""
        table = self.embeddings()
        return self.encoder(lambda ids: F.embedding(ids, table), Words(tokens, length))[0]

    def set_shapes(self, codes: np.ndarray, scores: np.ndarray, other: tuple[float, float]) -> None:
        """Set the scores of pieces of some shapes, the most frequent first, and of any other (`Cutter`)."""
        kept = np.argsort(codes[:MOST_SHAPES])
        self.shapes[: len(kept)] = torch.from_numpy(codes[kept])
        self.scores[: len(kept)] = torch.from_numpy(scores[kept]).float()
        self.scores[-2:] = torch.tensor(other)

    def ends(self, texts: np.ndarray) -> np.ndarray:
        return ends_of_pieces(texts, self.cutter())

    def cutter(self) -> Cutter:
        """Return the weights for the kernels; ConfigurationError where nothing was learned."""
        if int(self.shapes[0]) == _NO_SHAPE:
            raise ConfigurationError(
                f"segments={LEARNT} has learnt nothing yet: train the team, or put a trained one behind a segmenter "
                "with `magrounding segments`"
            )
        return Cutter(
            recurrence=self.recurrence(),
            letters=array_of(self.letters),
            head=array_of(torch.cat((self.head.weight[0], self.head.bias))),
            shapes=array_of(self.shapes),
            scores=array_of(self.scores),
            base=self.base,
            statements=int(self.statements),
        )


def fixed(tensor: Tensor) -> nn.Parameter:
    """Make a tensor a parameter without gradients."""
    return nn.Parameter(tensor, requires_grad=False)


def array_of(tensor: Tensor) -> np.ndarray:
    """Return a tensor as a contiguous array."""
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
