"""EMMA: symbols that share no word with a manual attend to its sentences (Hanjie, Zhong, Narasimhan 2021).

Also its ablation Game-ID, which has the symbols of enemy, message and goal instead of a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs, info_nce
from magrounding.agents.emma.symbols import EmmaConfig, SymbolPolicy, initialize
from magrounding.agents.language import WordStates, distinct_rows
from magrounding.agents.modules import SelfAttention, masked_softmax
from magrounding.agents.policy import ATTENTION, TextEncoding, shares
from magrounding.agents.pretrained_language import PretrainedStates
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec


class Emma(SymbolPolicy):
    """The EMMA policy: entities are represented by the sentences that their symbols attend to."""

    def __init__(self, spec: EnvSpec, config: EmmaConfig) -> None:
        super().__init__(spec, config)
        if config.language_model:
            reader = PretrainedStates(config.language_model, spec.words, config.tokens, config.cache)
        else:
            reader = WordStates(spec.vocabulary_size, config.embedding, config.tokens)
        self.key_attention, self.value_attention = SelfAttention(reader.width), SelfAttention(reader.width)
        self.key, self.value = nn.Linear(reader.width, config.width), nn.Linear(reader.width, config.width)
        initialize(self)
        self.reader = reader  # which knows best how its words begin

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Return `key`, `value` [U, S, width] of each sentence of manual [U, S, L], and `spoken` [U, S]: it has words.

        The goal is ignored: MESSENGER has none that changes.
        """
        states, mask = (part.flatten(0, 1) for part in self.reader(manual))  # [U · S, T, …]
        if not self.config.mask_pad:
            mask = torch.ones_like(mask)
        # The weights of a sentence's tokens add up to 1: a linear map of their sum is the sum of their linear maps.
        key, value = self.key(self.key_attention(states, mask)), self.value(self.value_attention(states, mask))
        sentences = manual.shape[:2]
        return {"key": key.unflatten(0, sentences), "value": value.unflatten(0, sentences), "spoken": manual.any(2)}

    def identify(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        """Return x = (1 / S) Σ_j a_j v_j; 0 where a query is 0."""
        value, spoken = (text[name].index_select(0, document) for name in ("value", "spoken"))
        weights = self._attend(queries, text, document)
        read = torch.bmm(weights.unsqueeze(1), value.to(weights.dtype)).squeeze(1)
        return read / spoken.sum(1, keepdim=True).clamp(min=1)

    def aux_outputs(self, inputs: Inputs) -> dict[str, Callable[[], Tensor]]:
        return {ATTENTION: lambda: self.attention(inputs)}

    def attention(self, inputs: Inputs) -> Tensor:
        """Return ATTENTION [N, S], the average over the entities in sight."""
        observation, text, document = inputs
        board, queries, which = self._asking(observation["grid"])
        weights = self._attend(queries.index_select(0, which), text, document.index_select(0, board))
        return shares(weights.new_zeros(len(document), weights.shape[1]).index_add(0, board, weights))

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        board, queries, which = self._asking(observation["grid"])
        fits = torch.matmul(text["key"], self._scaled(queries).t())  # [U, S, E]
        fits = torch.where(text["spoken"].unsqueeze(2), fits, torch.finfo(fits.dtype).min).logsumexp(1)
        scores = fits.new_zeros(len(fits), len(fits)).index_add(0, board, fits.t().index_select(0, which))
        return info_nce(scores)

    def _asking(self, grid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boards [E] of the entities of grid [N, H, W, K], distinct queries [D, width], and each entity's query [E]."""
        occupants = grid.flatten(1, 2).unflatten(2, (-1, self.width)).flatten(1, 2).long()  # [N, P, W]
        is_entity = self.occupant[occupants[:, :, 0]] & ~self.avatar[occupants[:, :, 0]]
        entities, which = distinct_rows(occupants[is_entity])
        queries = self.symbols(entities).sum(1) / (entities != 0).sum(1, keepdim=True)
        return is_entity.nonzero()[:, 0], queries, which

    def _attend(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        """Attention [D, S] to the sentences of documents [D]; zeros where a query is 0."""
        key, spoken = (text[name].index_select(0, document) for name in ("key", "spoken"))
        weights = masked_softmax(torch.bmm(key, self._scaled(queries).unsqueeze(2)).squeeze(2), spoken)
        return weights * queries.any(1, keepdim=True)

    def _scaled(self, queries: Tensor) -> Tensor:
        return queries / math.sqrt(self.config.width)


class GameId(SymbolPolicy):
    """The ablation Game-ID: embeddings of enemy, message and goal (an environment's `game_id`) instead of a text.

    Together they are projected to a vector that all cells of all frames show beside their symbols.
    """

    def __init__(self, spec: EnvSpec, config: EmmaConfig) -> None:
        super().__init__(spec, config, constants=config.width)
        lines, ids = spec["manual"].shape
        if lines != 1:
            raise ConfigurationError(f"Game-ID takes symbols, not {lines} sentences: set game_id of the environment")
        self.ids = nn.Embedding(self.symbols.num_embeddings, config.width, padding_idx=0)
        self.project = nn.Linear(ids * config.width, config.width)
        initialize(self)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Return `symbols` [U, G] of manual [U, 1, 3]."""
        return {"symbols": self.project(self.ids(manual[:, 0].int()).flatten(1))}

    def identify(self, queries: Tensor, text: TextEncoding, document: Tensor) -> Tensor:
        return queries

    def constants(self, text: TextEncoding) -> Tensor:
        return text["symbols"]

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        """Return 0, as there is no text to ground."""
        return text["symbols"].new_zeros(())
