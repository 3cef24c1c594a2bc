"""Names: words that say nothing but which thing is meant. They may share a vector, or be dealt anew in training.

A map then says where those stand that are attended to.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from magrounding.agents.dealing import POOL, Dealer
from magrounding.agents.document_policy import Inputs
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec

NAMES = ("vectors", "shared", "dealt")
MATCHES = ("none", "equal", "learnt")
_GAIN, _RANK = 4.0, 32


class Matching:
    """How well the words in N observations' cells, and those held, fit words of their documents that are attended to.

    Args:
        inputs: observations and documents, whose `text` has `ids` [U, L].
        ranks: [V] int64, 1 … M for the words that are names, 0 for all others; names: M.
        codes: [V, D], whose product says how well two words fit; None: names fit where they are equal.

    Attributes:
        ranks: as given.
        names: [N, L] ranks of the documents' words.
    """

    def __init__(self, inputs: Inputs, ranks: Tensor, names: int, codes: Tensor | None) -> None:
        observation, text, self._document = inputs
        self.ranks = ranks
        grid, held = observation["grid"], observation["inventory"].long()
        self._size, self._count = grid.shape[1:3], names + 1
        cells, tokens = grid.flatten(1, 2).long(), text["ids"].long()
        self.names = ranks[tokens].index_select(0, self._document)
        self._cells, self._held = ranks[cells], ranks[held]
        self._codes = None
        if codes is not None:
            said = codes[tokens].index_select(0, self._document)
            self._codes = codes[cells].sum(2), codes[held].sum(1, keepdim=True), said

    def __call__(self, weights: Tensor, shown: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return fits [N, 1, H, W] of cells and [N, 1] of what is held, for weights [N, L] of the documents' words.

        Only the cells of `shown` [N, H · W] are seen, all by default.
        """
        weights = weights.float()
        if self._codes is None:
            said = weights.new_zeros(len(weights), self._count)
            said = said.scatter_add(1, self.names, weights * (self.names > 0))
            fit = said.gather(1, self._cells.flatten(1)).view(self._cells.shape).sum(2)
            held = said.gather(1, self._held).sum(1, keepdim=True)
        else:
            cells, carried, tokens = self._codes
            said = torch.bmm(weights.unsqueeze(1), tokens)
            fit, held = (cells * said).sum(2), (carried * said).sum(2)
        fit = fit if shown is None else fit * shown
        return _GAIN * fit.view(-1, 1, *self._size), _GAIN * held

    def state_of_held(self, states: Tensor) -> Tensor:
        """Of states [U, L, D], that of the first word that names what is held [N, D]; zeros where there is none."""
        equal = (self.names.unsqueeze(2) == self._held.unsqueeze(1)) & (self._held > 0).unsqueeze(1)
        named = equal.any(2)
        place = self._document * states.shape[1] + named.float().argmax(1)
        return states.flatten(0, 1).index_select(0, place) * named.any(1, keepdim=True)

    def named_in(self, cells: Tensor) -> Tensor:
        """Return which words of the documents [N, L] are names of what is in some cells [N, H, W]."""
        marks = self.names.new_zeros(len(self.names), self._count, dtype=torch.bool)
        marks.scatter_(1, (self._cells * cells.flatten(1).unsqueeze(2)).flatten(1), value=True)
        return marks.gather(1, self.names) & (self.names > 0)


class Matcher(nn.Module):
    """Makes the `Matching` of observations and documents.

    Args:
        ranks: see `Matching`.
        width: of a word's vector.
        kind: "equal" names fit; or "learnt": words fit whose codes, linear in their vectors, are alike.
    """

    def __init__(self, ranks: Tensor, width: int, kind: str) -> None:
        super().__init__()
        self.ranks, self._names = nn.Buffer(ranks, persistent=False), int(ranks.max())
        self.code = nn.Linear(width, _RANK, bias=False) if kind == "learnt" else None

    def forward(self, inputs: Inputs, words: nn.Embedding) -> Matching:
        codes = None if self.code is None else self.code(words.weight).float() * _RANK**-0.25
        return Matching(inputs, self.ranks, self._names, codes)


class _OneVector(nn.Module):
    """Parametrization of a word table [V, D] in which all names have one row."""

    def __init__(self, ranks: Tensor) -> None:
        super().__init__()
        row = torch.where(ranks > 0, ranks.argmax(), torch.arange(len(ranks)))
        self.row = nn.Buffer(row, persistent=False)

    def forward(self, table: Tensor) -> Tensor:
        return table.index_select(0, self.row)


class NameReader(nn.Module):
    """A reader with a table `words` in which names have the vectors that `names` says, and what deals and matches them.

    Raises:
        ConfigurationError: a world that does not say which words are names.
    """

    def __init__(self, spec: EnvSpec, width: int, names: str, match: str) -> None:
        super().__init__()
        size = spec.vocabulary_size + POOL * (names == "dealt")
        self.words = words = nn.Embedding(size, width, padding_idx=0)
        self.dealer: Dealer | None = None
        self.matcher: Matcher | None = None
        if names == "vectors" and match == "none":
            return
        if not spec.names:
            raise ConfigurationError(
                f"names={names} and match={match} need a world that says its names (EnvSpec.names)"
            )
        places = [*(spec.vocabulary[word] for word in sorted(spec.names)), *range(spec.vocabulary_size, size)]
        ranks = torch.zeros(size, dtype=torch.int64)
        ranks[places] = torch.arange(1, len(places) + 1)
        if names == "shared":
            register_parametrization(words, "weight", _OneVector(ranks))
        elif names == "dealt":
            with torch.no_grad():
                words.weight[places] = torch.randint(0, 2, (len(places), width)) * 2.0 - 1.0
            self.dealer = Dealer(ranks)
            register_parametrization(words, "weight", self.dealer)
        if match != "none":
            self.matcher = Matcher(ranks, width, match)

    def match(self, inputs: Inputs) -> Matching | None:
        """Return the `Matching` of observations and documents, where words are matched."""
        return None if self.matcher is None else self.matcher(inputs, self.words)
