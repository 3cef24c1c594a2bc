"""What SIR makes of its texts: a joint text, and fields that are summed up and looked up in it (SILG eq. 1–6)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, distinct_rows, join_statements
from magrounding.agents.modules import DocumentAttention, SelfAttention, attend
from magrounding.agents.policy import TextEncoding
from magrounding.agents.pretrained_language import PretrainedStates
from magrounding.observation import ObservationSpec

GOAL, INVENTORY, FIELDS, STATEMENTS = "goal", "inventory", "fields", "statements"


def scorers(spec: ObservationSpec) -> tuple[str, ...]:
    """The names of what scores the words of each field.

    Fields are the goal, the inventory and the rows of `fields` [F, M], texts that change from step to step. A world
    that has neither goal nor `fields` has the statements of its manual instead. Those share a scorer: they come in any
    order, and stages of a world differ in their number.
    """
    rows = tuple(f"{FIELDS}_{i}" for i in range(spec[FIELDS].shape[0])) if FIELDS in spec else ()
    if GOAL not in spec and not rows:
        return (STATEMENTS,)
    return (*(name for name in (GOAL, INVENTORY) if name in spec), *rows)


class Fields(NamedTuple):
    """n text fields of N observations.

    Attributes:
        told: C~ [N, n, D], what each says.
        joint: A~ [N, n, D], what the joint text says about each.
        spoken: [N, n] bool, false for a statement without words.
    """

    told: Tensor
    joint: Tensor
    spoken: Tensor


class SirEncoder(nn.Module):
    """A BiLSTM, and in +bert what a frozen language model makes of each word, projected and added.

    The model reads one statement at a time: of those there are few, and each is read once on a machine.

    Args:
        embedding: width of a word.
        hidden: units in each direction.
        language: the language model, or None.
    """

    def __init__(self, embedding: int, hidden: int, language: PretrainedStates | None) -> None:
        super().__init__()
        self.encoder = TextEncoder(embedding, hidden)
        self.width = self.encoder.width
        self.language = language
        self.project = None if language is None else nn.Linear(language.width, self.width)

    def forward(self, table: nn.Embedding, text: Tensor) -> tuple[Tensor, Tensor]:
        """States [U, L', D] and mask [U, L'] of the words in text [U, S, L], one after another."""
        states, mask = self.encoder(table, join_statements(text))
        if self.language is not None and self.project is not None:
            read, _ = self.language(text)  # [U, S, T, width], zeros where there is no word
            read = F.pad(read, (0, 0, 0, text.shape[2] - read.shape[2])).flatten(1, 2)
            order = (text.flatten(1) == 0).to(torch.uint8).argsort(dim=1, stable=True)  # that of `join_statements`
            joined = read.gather(1, order.unsqueeze(2).expand_as(read))
            states = states + self.project(F.pad(joined, (0, 0, 0, 1))[:, : states.shape[1]])
        return states, mask


class SirReader(nn.Module):
    """The word table, the two text encoders, and the weighted averages.

    Args:
        spec: what the agent observes.
        embedding: width of a word.
        hidden: units in each direction of the encoders.
        language: the language model of +bert.
    """

    def __init__(self, spec: ObservationSpec, embedding: int, hidden: int, language: PretrainedStates | None) -> None:
        super().__init__()
        self.words = nn.Embedding(spec.vocabulary_size, embedding, padding_idx=0)
        self.fields = SirEncoder(embedding, hidden, language)  # N
        self.joint = SirEncoder(embedding, hidden, language)  # D
        self.width = self.joint.width
        self.scorers = nn.ModuleDict({name: SelfAttention(self.width) for name in scorers(spec)})
        self.merge_told, self.merge_joint = SelfAttention(self.width), SelfAttention(self.width)

    def forward(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U documents: manual [U, S, L], which is the joint text, and goal [U, G].

        Returns:
            `states` [U, L', D] and `mask` [U, L'] of the joint text; `told`, `about` [U, n, D] and `spoken` [U, n] of
            the fields that last as long as the document: goal or statements.
        """
        states, mask = self.joint(self.words, manual)
        if STATEMENTS in self.scorers:
            told, spoken = self._sum_up(STATEMENTS, manual.flatten(0, 1)), manual.any(2)
        elif GOAL in self.scorers:
            told, spoken = self._sum_up(GOAL, goal), mask.new_ones(len(goal), 1)
        else:
            told, spoken = states.new_zeros(0, self.width), mask.new_zeros(len(manual), 0)
        told = told.view(*spoken.shape, self.width)
        return {"states": states, "mask": mask, "told": told, "about": attend(states, mask, told), "spoken": spoken}

    def look_up(self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor) -> Fields:
        """All fields of N observations, those of the document [N] that each reads and those of the present step."""
        told, about, spoken = (text[name].index_select(0, document) for name in ("told", "about", "spoken"))
        now = self._present(observation)
        if not now:
            return Fields(told, about, spoken)
        ask = DocumentAttention(text["states"], text["mask"], document)
        said = [self._sum_up(name, ids) for name, ids in now]
        found = [ask(each) for each in said]
        return Fields(
            torch.cat((told, torch.stack(said, 1)), 1),
            torch.cat((about, torch.stack(found, 1)), 1),
            torch.cat((spoken, spoken.new_ones(len(document), len(said))), 1),
        )

    def merge(self, fields: Fields) -> Tensor:
        """[C; A] [N, 2 · D], whatever the number of fields."""
        return torch.cat(
            (self.merge_told(fields.told, fields.spoken), self.merge_joint(fields.joint, fields.spoken)), 1
        )

    def _present(self, observation: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        """Scorer and ids [N, M] of each field that changes from step to step."""
        now = [(INVENTORY, observation[INVENTORY])] if INVENTORY in self.scorers else []
        if f"{FIELDS}_0" in self.scorers:
            now += [(f"{FIELDS}_{i}", ids) for i, ids in enumerate(observation[FIELDS].unbind(1))]
        return now

    def _sum_up(self, scorer: str, ids: Tensor) -> Tensor:
        """C~_i [N, D] of texts [N, M]."""
        texts, which = distinct_rows(ids)
        states, mask = self.fields(self.words, texts.unsqueeze(1))
        return self.scorers[scorer](states, mask).index_select(0, which)
