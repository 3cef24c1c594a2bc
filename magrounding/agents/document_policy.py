"""DocumentPolicy: a policy that reads one document an episode and acts on each observation by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.dealing import Dealer
from magrounding.agents.policy import Auxiliary, Batch, Policy, PolicyOutput, TextEncoding
from magrounding.agents.transfer import download, upload
from magrounding.spec import EnvSpec

_DRAWN = "drawn"
"""In encodings: the names that documents were dealt."""


class Inputs(NamedTuple):
    """N observations of one agent, and the documents they go with.

    Attributes:
        observation: `grid` [N, H, W, K], `position` [N, 2], `inventory` [N, I], `action_mask` [N, A] and, of several
            agents, `teammates` [N, n − 1, 2 + I], integers as the environment wrote them; and `draw_record`'s.
        text: encoding of U documents.
        document: [N] int64, which of the U documents each observation reads.
    """

    observation: dict[str, Tensor]
    text: TextEncoding
    document: Tensor


class DocumentPolicy(Policy):
    """A policy that reads one document an episode and acts on each observation by itself.

    Its memory, if it has one, either follows from past observations (`memories`, so that all steps are computed at
    once) or is recurrent (`unroll`).

    Attributes:
        dealer: what deals names anew in training, if anything does.
    """

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__(spec)
        self.dealer: Dealer | None = None

    @abstractmethod
    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U distinct documents: manual [U, S, L], goal [U, G], integer ids, 0 is padding."""

    @abstractmethod
    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        """Act on N observations, given the memory [N, …]; the output has N where that of `forward` has [T, B]."""

    def auxiliary(self, inputs: Inputs, output: PolicyOutput, extras: Mapping[str, Tensor]) -> Auxiliary:
        """Return the auxiliary losses [N]; `extras` [N, …] as of `losses`."""
        return Auxiliary()

    @property
    def contrasts(self) -> bool:
        return type(self).contrast is not DocumentPolicy.contrast

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        """Return the scalar loss CONTRAST of U observations and the encoding of their U documents, in order."""
        raise NotImplementedError

    def memories(self, memory: Tensor, observation: dict[str, Tensor], restarts: Tensor) -> Tensor | None:
        """Return the memory [T, B, …] before each of T steps, given the first's; None for a recurrent policy."""
        return None

    def unroll(self, inputs: Inputs, memory: Tensor, restarts: Tensor) -> PolicyOutput:
        """Act on T steps of B episodes one after another, N = T · B rows, time first, as a recurrent policy has to.

        A policy of which only a part is recurrent overrides this and computes the rest for all steps at once.
        """
        observation, text, document = inputs
        batch = restarts.shape[1]
        outputs = []
        for t, restart in enumerate(restarts):
            rows = slice(t * batch, (t + 1) * batch)
            memory = self._begin(memory, restart)
            now = Inputs({name: tensor[rows] for name, tensor in observation.items()}, text, document[rows])
            output = self.respond(now, memory)
            memory = memory if output.memory is None else output.memory
            outputs.append((output.logits, output.value, memory))
        logits, values, memories = (torch.cat(parts) for parts in zip(*outputs, strict=True))
        return PolicyOutput(logits, values, memories)

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        dealer = self.dealer if self.training else None
        if dealer is None:
            return self.encode_text(ids["manual"], ids["goal"])
        drawn = dealer.draw(ids["manual"])
        manual, goal = (dealer.deal(ids[field], drawn) for field in ("manual", "goal"))
        return {**self.encode_text(manual, goal), _DRAWN: drawn}

    def forward(self, batch: Batch) -> PolicyOutput:
        shape, inputs, memory = batch.restarts.shape, self._flat(batch), batch.memory
        if memory is not None and shape[0] == 1:
            memory = self._begin(memory, batch.restarts[0])
        elif memory is not None:
            before = self.memories(memory, batch.observation, batch.restarts)
            if before is None:
                return _unflatten(self.unroll(inputs, memory, batch.restarts), shape)
            memory = before.flatten(0, 1)
        return _unflatten(self.respond(inputs, memory), shape)

    def losses(
        self, batch: Batch, output: PolicyOutput, extras: Mapping[str, Tensor], names: Collection[str]
    ) -> Auxiliary:
        shape = batch.restarts.shape
        known = {name: each.flatten(0, 1) for name, each in extras.items()}
        parts = self.auxiliary(self._flat(batch), output, known)
        return Auxiliary(*({name: each.unflatten(0, shape) for name, each in part.items()} for part in parts))

    def contrast_games(self, batch: Batch) -> Tensor:
        """Return the contrastive loss of the first observation and the document of each episode."""
        observation, reading = self._flat(batch).observation, batch.texts["document"]
        assert reading.ids is not None
        shown, first = np.unique(download({"": reading.index})[""], return_index=True)
        texts, rows = upload({"shown": shown, "first": first}, reading.index.device).values()
        with torch.autocast(reading.index.device.type, enabled=False):
            boards = {name: array.index_select(0, rows) for name, array in observation.items()}
            ids = {name: array.index_select(0, texts) for name, array in reading.ids.items()}
            return self.contrast(boards, self.encode("document", ids))

    def _flat(self, batch: Batch) -> Inputs:
        """Inputs of the T · B steps of a batch."""
        read = batch.texts["document"]
        seen = {name: tensor.flatten(0, 1) for name, tensor in {**batch.observation, **batch.record}.items()}
        document = read.index.flatten()
        if self.dealer is not None and _DRAWN in read.encoding:
            drawn = read.encoding[_DRAWN].index_select(0, document)
            seen.update({field: self.dealer.deal(seen[field], drawn) for field in ("grid", "inventory")})
        return Inputs(seen, read.encoding, document)

    def _begin(self, memory: Tensor, restart: Tensor) -> Tensor:
        """Memory [B, …], reset where an episode begins [B]."""
        fresh = self.initial_memory(len(restart))
        assert fresh is not None
        return torch.where(restart.view(-1, *[1] * (memory.dim() - 1)), fresh, memory)


def _unflatten(output: PolicyOutput, shape: torch.Size) -> PolicyOutput:
    """[T, B, …] of an output's [T · B, …], but for `seen`."""
    return PolicyOutput(
        output.logits.unflatten(0, shape),
        output.value.unflatten(0, shape),
        None if output.memory is None else output.memory.unflatten(0, shape),
        {name: each.unflatten(0, shape) for name, each in output.record.items()},
        {name: lambda each=each: each().unflatten(0, shape) for name, each in output.aux.items()},
        output.seen,
    )


def contrast_of(fits: Tensor, spoken: Tensor, board: Tensor, which: Tensor) -> Tensor:
    """Return the loss CONTRAST of U boards and their U documents.

    Args:
        fits: [U, S, E], of the statements of each document with E distinct entities.
        spoken: [U, S] bool, false for a statement without words.
        board, which: of each entity on a board, the board and which of the E it is.
    """
    fits = torch.where(spoken.unsqueeze(2), fits, torch.finfo(fits.dtype).min).logsumexp(1)
    scores = fits.new_zeros(len(fits), len(fits)).index_add(0, board, fits.t().index_select(0, which))
    return info_nce(scores)


def info_nce(scores: Tensor) -> Tensor:
    """InfoNCE both ways, of scores [U, U] of observations and documents, matching pairs on the diagonal."""
    own = torch.arange(len(scores), device=scores.device)
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.t(), own)) / 2
