"""ChoiceValues: a network of the value of each text to choose from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.policy import Accepts, Batch, Policy, PolicyOutput, TextEncoding, mask_logits
from magrounding.errors import ConfigurationError
from magrounding.spec import CHOICES, EPISODE, EnvSpec, TextChoices

_PAIRS = 4096
"""Pairs of a state and a choice whose hidden layers are computed at once: as many as a processor's cache holds."""


class ChoiceValues(Policy):
    """Q of a state and a choice: a hidden layer over the states of their texts, and a score.

    Each text adds a part to the hidden layer, whatever it is read along with, so that a text costs the same for one
    choice as for a thousand. Play draws from the softmax of Q over the candidates, or takes the best.

    Args:
        spec: of the world.
        width: of the state of a text.
        hidden: units of the hidden layer.
        readers: name → the text fields that one reader reads together; None: see `default_readers`.

    Attributes:
        temperature: that Q is divided by before the softmax; kept with the weights.
        shown, encoded: texts that observations and batches referred to, and texts that were encoded for it, so far.

    Raises:
        ConfigurationError: a world without texts to choose from, or a reader of what is none of its texts.
    """

    accepts = Accepts(actions=(TextChoices,), grid=False, fields=(CHOICES, "action_mask"))

    def __init__(self, spec: EnvSpec, width: int, hidden: int, readers: Mapping[str, tuple[str, ...]] | None) -> None:
        super().__init__(spec)
        self.readers = dict(readers or default_readers(spec))
        texts = {text.name for text in spec.texts} - {CHOICES}
        for name, fields in self.readers.items():
            if name == CHOICES or not fields or not texts.issuperset(fields):
                raise ConfigurationError(f"reader {name!r} reads some of {', '.join(sorted(texts))}, got {fields!r}")
        self.reads = {**self.readers, CHOICES: (CHOICES,)}
        self.hidden = nn.Linear(width * len(self.reads), hidden)
        self.score = nn.Linear(hidden, 1)
        self.temperature = nn.Buffer(torch.ones(()))
        self.shown = self.encoded = 0
        self._columns = {name: slice(i * width, (i + 1) * width) for i, name in enumerate(self.reads)}

    @abstractmethod
    def read(self, name: str, ids: Mapping[str, Tensor]) -> Tensor:
        """Return the states [U, width] of U distinct texts; arguments as in `encode`."""

    def candidates(self, batch: Batch) -> Tensor:
        """Return [T, B, C] bool, the choices that play is confined to, at least one on offer: here all of them.

        For acting alone: what a state is worth is the value of its best choice, be it a candidate or not.
        """
        return batch.observation["action_mask"].bool()

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        return {"part": self.part(name, self.read(name, ids))}

    def part(self, name: str, states: Tensor) -> Tensor:
        """Return the summands [U, hidden] of texts of one reader, by their states [U, width], in the hidden layer."""
        bias = self.hidden.bias if name == CHOICES else None
        return F.linear(states, self.hidden.weight[:, self._columns[name]], bias)

    def values(self, state: Tensor, choice: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return Q [P] float32 of pairs.

        Args:
            state: [S, hidden], the sums of their texts' parts.
            choice: [U, hidden], parts.
            rows, columns: [P] int64, which state and which choice.
        """
        weight, pieces = self.score.weight[0], []
        for first in range(0, max(len(rows), 1), _PAIRS):
            some = slice(first, first + _PAIRS)
            both = state.index_select(0, rows[some]).add(choice.index_select(0, columns[some]))
            pieces.append(torch.mv(both.relu_() if not both.requires_grad else both.relu(), weight.to(both.dtype)))
        return torch.cat(pieces).float() + self.score.bias

    def forward(self, batch: Batch) -> PolicyOutput:
        """Act on T steps of B games; `value` is the Q of the best choice on offer, 0 where there is none."""
        offered, valid = batch.texts[CHOICES], batch.observation["action_mask"].bool()
        shape = batch.restarts.shape
        choice = offered.encoding["part"]
        state = choice.new_zeros(*shape, choice.shape[1])
        for name in self.readers:
            text = batch.texts[name]
            state = state + text.encoding["part"][text.index]
        where = valid.flatten().nonzero().squeeze(1)
        rows = where.div(valid.shape[-1], rounding_mode="floor")
        values = self.values(state.flatten(0, 1), choice, rows, offered.index.flatten()[where])
        least = torch.finfo(values.dtype).min
        q = torch.full((valid.numel(),), least, device=values.device).index_put((where,), values).view(valid.shape)
        best = torch.where(valid.any(-1), q.amax(-1), 0.0)
        self.shown += len(self.readers) * shape.numel() + len(where)
        return PolicyOutput(mask_logits(q / self.temperature, valid & self.candidates(batch)), best)


def default_readers(spec: EnvSpec) -> dict[str, tuple[str, ...]]:
    """Return name → fields: texts that last an episode and the first that changes are read together, others alone.

    In ScienceWorld: task and observation; look; inventory (He et al. 2016; Golchha et al. 2024).
    """
    passing = [text.name for text in spec.texts if text.lifetime != EPISODE and text.name != CHOICES]
    together = (*spec.lasting_texts, *passing[:1])
    return {**({"observation": together} if together else {}), **{name: (name,) for name in passing[1:]}}
