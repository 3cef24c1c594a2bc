"""Edges: words of a manual that share a fact, however many facts its sentences hold.

No cut divides "bat and ghost serve the alliance and the enclave respectively" into facts, and none takes back what
another sentence denies. An edge scorer scores each pair of mentions of names, positive where the two words share a
fact, negative where that is denied or taken back. Words are then grouped so that the sum of scores is greatest: one
piece for each fact, the form that relread reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.relread.statements import EDGES, Pieces
from magrounding.errors import ConfigurationError
from magrounding.extensions.running_text.edges_kernels import BOUND, Scorer, groups_of, pieces_from
from magrounding.extensions.running_text.segments import Delexicalised, array_of, fixed
from magrounding.spec import EnvSpec

SIGNS = 384
"""Numbers that stand for the spelling of a word."""
SLOPE = 0.2
"""Factor on the sums over what lies between two mentions."""
MOST_PIECES = 32
"""Most pieces of a usual manual."""
_REMEMBERED = 4096


class Shape(NamedTuple):
    """Widths of a reader of edges."""

    embedding: int = 128  # of a word
    units: int = 96  # of the network in each direction
    hidden: int = 64  # of a pair
    between: int = 32  # of what lies between its mentions
    heads: int = 4  # products of the two mentions
    head: int = 16  # width of each


USUAL_SHAPE = Shape()


class Edges(Delexicalised):
    """Reader that groups the names of a manual by facts.

    Names are of classes as in `Segmenter`, which divides those of the map by one more thing: whether what they stand
    beside is spoken of in manuals. (An element stands beside a monster's name, which is; a modifier beside a thing's,
    which is not.) Each other word is known by a vector of its own, made of its spelling (`signs_of`) and never learned:
    so two words that training did not have are two, and weights fit every vocabulary.

    A pair of mentions i < j has the score w · relu(A h_i + B h_j + C Σ tanh(D h_t) for i < t ≤ j + M p_ij), h being the
    states of the network and p_ij bilinear in h_i and h_j, a number for each head: the words between them add up to a
    distance in sentences rather than in words. The score of two words is the sum over their mentions, bounded by BOUND
    · tanh(· / BOUND) lest one pair outweigh all others; pairs that no usual piece has together have none. If a manual
    has as many words of each class as usual, its pieces are those of the usual manual; if not, pieces are joined as
    long as their words' scores are positive.

    Its weights come from `edges_learning.learn_edges`.
    """

    def __init__(self, spec: EnvSpec, shape: Shape = USUAL_SHAPE) -> None:
        self.width = spec.grid.words_per_occupant
        # The last class is the end of a row.
        super().__init__(spec, nn.Linear(SIGNS, shape.embedding), 2 * self.width + 3, shape.embedding, shape.units)
        self.shape, states = shape, self.encoder.width
        self.first = nn.Linear(states, shape.hidden)
        self.second = nn.Linear(states, shape.hidden, bias=False)
        self.between = nn.Linear(states, shape.between)
        self.across = nn.Linear(shape.between, shape.hidden, bias=False)
        self.left, self.right = (nn.Linear(states, shape.heads * shape.head, bias=False) for _ in range(2))
        self.mixed = nn.Linear(shape.heads, shape.hidden, bias=False)
        self.out = nn.Linear(shape.hidden, 1)
        self.usual = fixed(torch.zeros(MOST_PIECES, self.base - 1, dtype=torch.int64))
        self.spelling = spec.words if len(spec.words) == self.size else [f"#{i}" for i in range(self.size)]
        self.requires_grad_(False)
        self._read: _Read | None = None
        self.register_load_state_dict_post_hook(_forget)

    @property
    def tokens(self) -> Tensor:
        return torch.arange(self.size, device=self.letters.device)

    def embeddings(self) -> Tensor:
        signs = torch.from_numpy(signs_of(self.spelling)).to(self.letters.device)
        signs = torch.where(self.letters.unsqueeze(1) > 0, 0, signs)
        ends = self.letters.new_tensor([self.base - 1])
        return self.embed(torch.cat((signs, signs.new_zeros(1, SIGNS))), torch.cat((self.letters, ends)))

    def embed(self, signs: Tensor, classes: Tensor) -> Tensor:
        """Return the inputs [..., E] of words of these `signs_of` [..., SIGNS], 0 for names, and classes [...]."""
        return torch.relu(self.words(signs) + self.classes(classes))

    def forget(self) -> None:
        """Drop what was cached, as the weights have changed."""
        self._read = None

    def forward(self, manual: Tensor) -> Pieces:
        texts = array_of(manual)
        groups = np.zeros(texts.shape, np.int64)
        for text, own in zip(texts, groups, strict=True):
            own[:] = self._reading().groups_of(text.tobytes(), text.shape, text.dtype)
        ids, rows = (torch.from_numpy(each).to(manual.device) for each in pieces_from(texts, groups))
        return Pieces(ids, rows)

    def scores(self, states: Tensor, place: Tensor, word: Tensor, words: int) -> Tensor:
        """Return symmetric scores [U, N, N] of pairs of words, as `edges_kernels.groups_of` computes them.

        Args:
            states: [U, T, 2 units] of the network.
            place: [U, M] place of each mention among T, in order; −1 is none.
            word: [U, M] below N, the word of each mention.
            words: N.
        """
        at = place.clamp(min=0).unsqueeze(2)
        sums = SLOPE * torch.tanh(self.between(states)).cumsum(1)
        passed = self.across(sums.gather(1, at.expand(-1, -1, sums.shape[2])))
        own = states.gather(1, at.expand(-1, -1, states.shape[2]))
        i, j = torch.triu_indices(place.shape[1], place.shape[1], 1)
        hidden = (self.first(own) - passed)[:, i] + (self.second(own) + passed)[:, j]
        left, right = (part(own).unflatten(2, (self.shape.heads, -1)) for part in (self.left, self.right))
        products = self.shape.head**-0.5 * torch.einsum("umhd,unhd->umnh", left, right)[:, i, j]
        scores = self.out(torch.relu(hidden + self.mixed(products))).squeeze(2)
        scores = scores * ((place[:, i] >= 0) & (place[:, j] >= 0))
        pairs = scores.new_zeros(len(place), words * words).scatter_add(1, word[:, i] * words + word[:, j], scores)
        pairs = pairs.unflatten(1, (words, words))
        return BOUND * torch.tanh((pairs + pairs.transpose(1, 2)) / BOUND)

    def scorer(self) -> Scorer:
        """Return the weights for the kernels; ConfigurationError where nothing was learned."""
        return self._reading().scorer

    def _reading(self) -> _Read:
        """Cache of these weights."""
        if self._read is None:
            weights = hashlib.sha256("\0".join(self.spelling).encode())
            for name, tensor in self.state_dict().items():
                weights.update(name.encode() + array_of(tensor).tobytes())
            key = weights.digest()
            self._read = _READ.get(key) or _READ.setdefault(key, _Read(self._make_scorer()))
        return self._read

    def _make_scorer(self) -> Scorer:
        if not self.usual.any():
            raise ConfigurationError(
                f"segments={EDGES} has learnt nothing yet: train the team, or put a trained one behind a reader of "
                f"edges with `magrounding segments --by {EDGES}`"
            )
        usual = self.usual[self.usual.any(1)]
        linear = "first", "second", "between", "left", "right"
        return Scorer(
            recurrence=self.recurrence(),
            **{name: array_of(self.get_parameter(f"{name}.weight").t()) for name in linear},
            letters=array_of(self.letters),
            related=related(array_of(usual)),
            row_end=self.size,
            bias=array_of(self.first.bias),
            between_bias=array_of(self.between.bias),
            across=array_of(SLOPE * self.across.weight.t()),
            mixed=array_of(self.shape.head**-0.5 * self.mixed.weight.t()),
            out=array_of(torch.cat((self.out.weight[0], self.out.bias))),
            usual=array_of(usual),
        )


def signs_of(words: Sequence[str]) -> np.ndarray:
    """Return vectors [V, SIGNS] of ±1 that stand for the spelling of words: bits of its hash."""
    digests = b"".join(hashlib.shake_256(word.encode()).digest(SIGNS // 8) for word in words)
    bits = np.unpackbits(np.frombuffer(digests, np.uint8).reshape(len(words), SIGNS // 8), axis=1)
    return 2 * bits.astype(np.float32) - 1


def related(usual: np.ndarray) -> np.ndarray:
    """Return [C + 1, C + 1] bool, the classes whose words some usual piece [P, C] has together; 0 is none."""
    has = np.pad(usual > 0, ((0, 0), (1, 0)))
    return np.asarray((has[:, :, None] & has[:, None, :]).any(0))


class _Read:
    """Cache of some weights: their form for the kernels, and the last manuals they grouped.

    Networks of the same weights share it: the agents of a team read the same manuals.

    Attributes:
        groups_of: (bytes, shape, dtype) of a text [S, L] → [S, L], the piece of each word, counted from 1; 0: none.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.groups_of = lru_cache(_REMEMBERED)(
            lambda data, shape, dtype: groups_of(np.frombuffer(data, dtype).reshape(shape), scorer)
        )


_READ: WeakValueDictionary[bytes, _Read] = WeakValueDictionary()


def _forget(module: nn.Module, _keys: object) -> None:
    if isinstance(module, Edges):
        module.forget()
