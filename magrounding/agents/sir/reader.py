"""Text encoders of SIR: a joint text, and fields that are summed up and looked up in it (SILG eq. 1–6)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.language import TextEncoder, distinct_rows, join_statements, statements_of
from magrounding.agents.modules import DocumentAttention, SelfAttention, attend
from magrounding.agents.policy import TextEncoding
from magrounding.agents.pretrained_language import PretrainedStates
from magrounding.spec import CHOICES, EnvSpec, Text

DOCUMENT = "document"
"""Name under which `manual` and `goal` are encoded together."""
SUMMARY = "summary"
"""Key of the encoding of a further text."""
MANUAL, GOAL, INVENTORY, STATEMENTS = "manual", "goal", "inventory", "statements"


def goal_field(spec: EnvSpec) -> str:
    """Return the field used as the goal: `goal`, or without that and a manual, the first text of a whole episode."""
    lasting = spec.lasting_texts
    return lasting[0] if lasting and GOAL not in spec and MANUAL not in spec else GOAL


def further_texts(spec: EnvSpec) -> dict[str, tuple[str, ...]]:
    """Return name → scorers of the rows, of every text field but manual, goal and choices; a text [L] has one row."""
    further = [text for text in spec.texts if text.name not in (MANUAL, goal_field(spec), CHOICES)]
    rows = {text.name: text.shape[0] if len(text.shape) > 1 else 1 for text in further}
    return {name: tuple(f"{name}_{i}" for i in range(count)) for name, count in rows.items()}


def scorers(spec: EnvSpec) -> tuple[str, ...]:
    """Return the names of the self-attentions that sum up the fields.

    Fields are the goal, the inventory where it is an array of word ids, and the rows of every further text. Without a
    goal or further texts the statements of the manual are fields instead. Those share a scorer: they come in any order,
    and stages differ in their number.
    """
    rows = tuple(name for names in further_texts(spec).values() for name in names)
    has_goal = goal_field(spec) in spec
    if not has_goal and not rows:
        return (STATEMENTS,)
    held = INVENTORY in spec and not isinstance(spec[INVENTORY], Text)
    return (*((GOAL,) if has_goal else ()), *((INVENTORY,) if held else ()), *rows)


class Fields(NamedTuple):
    """n text fields of N observations."""

    summary: Tensor  # C~ [N, n, D], summary of each
    joint: Tensor  # A~ [N, n, D], attention of each to the joint text
    spoken: Tensor  # [N, n] bool, false for a statement without words


class SirEncoder(nn.Module):
    """A BiLSTM, and in +bert the word states of a frozen language model, projected and added.

    The model reads one statement at a time: there are few, and each is read once on a machine.
    """

    def __init__(self, embedding: int, hidden: int, language: PretrainedStates | None) -> None:
        super().__init__()
        self.encoder = TextEncoder(embedding, hidden)
        self.width = self.encoder.width
        self.language = language
        self.project = None if language is None else nn.Linear(language.width, self.width)

    def forward(self, table: nn.Embedding, text: Tensor) -> tuple[Tensor, Tensor]:
        """Return states [U, L', D] and mask [U, L'] of the words in text [U, S, L], one after another."""
        states, mask = self.encoder(table, join_statements(text))
        if self.language is not None and self.project is not None:
            read, _ = self.language(text)  # [U, S, T, width], zeros where there is no word
            read = F.pad(read, (0, 0, 0, text.shape[2] - read.shape[2])).flatten(1, 2)
            order = (text.flatten(1) == 0).to(torch.uint8).argsort(dim=1, stable=True)  # that of `join_statements`
            joined = read.gather(1, order.unsqueeze(2).expand_as(read))
            states = states + self.project(F.pad(joined, (0, 0, 0, 1))[:, : states.shape[1]])
        return states, mask


class SirReader(nn.Module):
    """Word table, two text encoders, and self-attentions."""

    def __init__(self, spec: EnvSpec, embedding: int, hidden: int, language: PretrainedStates | None) -> None:
        super().__init__()
        self.words = nn.Embedding(spec.vocabulary_size, embedding, padding_idx=0)
        self.fields = SirEncoder(embedding, hidden, language)  # N
        self.joint = SirEncoder(embedding, hidden, language)  # D
        self.width = self.joint.width
        self.scorers = nn.ModuleDict({name: SelfAttention(self.width) for name in scorers(spec)})
        self.further = further_texts(spec)
        self.has_manual = MANUAL in spec
        self.merge_told, self.merge_joint = SelfAttention(self.width), SelfAttention(self.width)

    def forward(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U documents: manual [U, S, L], the joint text (without one the goal is), and goal [U, G].

        Returns:
            `states` [U, L', D] and `mask` [U, L'] of the joint text; `summary`, `about` [U, n, D] and `spoken` [U, n]
            of goal or statements as fields; `from` [U, L', S] of a manual, see `statements_of`.
        """
        if manual.dim() == 2:
            manual = goal.unsqueeze(1)
        states, mask = self.joint(self.words, manual)
        if STATEMENTS in self.scorers:
            summary, spoken = self._sum_up(STATEMENTS, manual.flatten(0, 1)), manual.any(2)
        elif GOAL in self.scorers:
            summary, spoken = self._sum_up(GOAL, goal), mask.new_ones(len(goal), 1)
        else:
            summary, spoken = states.new_zeros(0, self.width), mask.new_zeros(len(manual), 0)
        summary = summary.view(*spoken.shape, self.width)
        about = attend(states, mask, summary)
        read = {"states": states, "mask": mask, "summary": summary, "about": about, "spoken": spoken}
        return {**read, "from": statements_of(manual)} if self.has_manual else read

    def sum_up_text(self, name: str, ids: Tensor) -> TextEncoding:
        """Return SUMMARY [U, S, D] of a further text [U, S, L] or [U, L], row by row."""
        rows = ids.unsqueeze(1) if ids.dim() == 2 else ids
        summaries = [self._sum_up(scorer, row) for scorer, row in zip(self.further[name], rows.unbind(1), strict=True)]
        return {SUMMARY: torch.stack(summaries, 1)}

    def look_up(self, inputs: Inputs) -> Fields:
        """Return all fields of N observations, which have the summaries [N, S, D] of further texts, by name."""
        observation, text, document = inputs
        summary, about, spoken = (text[name].index_select(0, document) for name in ("summary", "about", "spoken"))
        now = [self._sum_up(INVENTORY, observation[INVENTORY])] if INVENTORY in self.scorers else []
        now += [row for name in self.further for row in observation[name].unbind(1)]
        if not now:
            return Fields(summary, about, spoken)
        ask = DocumentAttention(text["states"], text["mask"], document)
        found = [ask(each) for each in now]
        return Fields(
            torch.cat((summary, torch.stack(now, 1)), 1),
            torch.cat((about, torch.stack(found, 1)), 1),
            torch.cat((spoken, spoken.new_ones(len(document), len(now))), 1),
        )

    def merge(self, fields: Fields) -> Tensor:
        """Return [C; A] [N, 2 · D], for any number of fields."""
        return torch.cat(
            (self.merge_told(fields.summary, fields.spoken), self.merge_joint(fields.joint, fields.spoken)), 1
        )

    def _sum_up(self, scorer: str, ids: Tensor) -> Tensor:
        """C~_i [N, D] of texts [N, M]."""
        texts, which = distinct_rows(ids)
        states, mask = self.fields(self.words, texts.unsqueeze(1))
        return self.scorers[scorer](states, mask).index_select(0, which)
