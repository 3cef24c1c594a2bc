"""Statements: what relread relates the words of; rows of a manual, or what a reader of running text finds in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from magrounding.errors import check_choice
from magrounding.registry import SEGMENTS, load
from magrounding.spec import EnvSpec

ROWS, LEARNT, EDGES = "rows", "learnt", "edges"
AUTO = "auto"
"""ROWS; where a manual is a single row, EDGES if it claims facts of names on the map, else LEARNT."""


class Pieces(NamedTuple):
    """Statements of U manuals."""

    ids: Tensor  # [U, P, L] word ids, 0 is padding
    row_of: Tensor  # [U, P, S] bool, the manual's rows that each has words from; none for padding


class Statements(nn.Module, ABC):
    """Base of what finds the statements of manuals.

    Attributes:
        depends_on_names: whether it has to know which words are names, see `Policy.depends_on_names`.
        word_rows: see `Policy.word_rows`.
    """

    depends_on_names: ClassVar[bool] = False
    word_rows: Mapping[str, Sequence[str]] | None = MappingProxyType({})

    @abstractmethod
    def forward(self, manual: Tensor) -> Pieces:
        """Return the pieces of manual [U, S, L]."""


def make_statements(kind: str, spec: EnvSpec) -> Statements | None:
    """Build what finds statements, one of `registry.SEGMENTS`; None for ROWS."""
    if check_choice("way to find statements", kind, (ROWS, *SEGMENTS)) == ROWS:
        return None
    return load(SEGMENTS[kind].code)(spec)
