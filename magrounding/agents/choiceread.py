"""choiceread: a reader for choices of text. Choices are matched with the task and with memory.

The counterpart of `relread` and `viewread` for environments without a map. A word of the current text that the task has
too carries its role in the task, so unseen things can be asked for. Texts stay in a table under each two neighbouring
words (`mentions`). A choice is scored by its words, their roles in the task, and their last mentions. No environment is
built in: texts are those of the `EnvSpec`. The memory scales and shifts what is scored (FiLM, Perez et al. 2018), as
the same choice is right or wrong by what was done before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import distinct_rows
from magrounding.agents.modules import mlp, unroll
from magrounding.agents.policy import Accepts, Batch, Policy, PolicyOutput, Reading, TextEncoding
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Options
from magrounding.spec import CHOICES, EPISODE, EnvSpec, TextChoices

SLOTS = 2048
"""Slots of a table. A room of ALFWorld has about 150 pairs of words."""

COUNTS = 3
"""Numbers of mentions from this on are not distinguished."""

_DECAY = 0.9
"""Factor on the freshness of a mention in each step after it."""


class Mentions(NamedTuple):
    """Memories of N = T · B observations: T steps of B episodes."""

    place: Tensor  # [T, B, SLOTS] int64, row of `content` with the last mention; 0: none
    content: Tensor  # [K, R], encoding of each mention; row 0 is zeros
    fresh: Tensor  # [T, B, SLOTS], 1 in the step of the mention, then decaying; 0: none
    times: Tensor  # [T, B, SLOTS], steps of the episode with a mention

    def look_up(self, observation: Tensor, keys: Tensor) -> Tensor:
        """Return [P, L, R + 1 + COUNTS] under keys [P, L] of observations [P], indices below N.

        These are content, freshness, and 1 where there were at least 1, 2, … COUNTS mentions, else 0.
        """
        at = observation.unsqueeze(1) * SLOTS + keys
        content, fresh = self.content[self.place.flatten()[at]], self.fresh.flatten()[at]
        often = self.times.flatten()[at].unsqueeze(2) > torch.arange(COUNTS, device=at.device)
        return torch.cat((content, fresh.unsqueeze(2), often), 2)

    def tables(self) -> Tensor:
        """Return the memory after each step, content, freshness and times [T, B, SLOTS, R + 2], without gradients."""
        content = self.content.detach()
        return torch.cat((content[self.place], torch.stack((self.fresh, self.times), 3)), 3)


def pair_keys(ids: Tensor) -> Tensor:
    """Return the key [U, L] int64 of each word of ids [U, L]: the slot of the pair of it and the word before it."""
    words = ids.long()
    before = torch.cat((torch.zeros_like(words[:, :1]), words[:, :-1]), 1)
    mixed = (before * 0x9E3779B1 + words * 0x85EBCA77) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D >> 13) % SLOTS


def mean_by_key(keys: Tensor, mask: Tensor, content: Tensor) -> Tensor:
    """Return the mean [U, L, R] of `content` over a text's words with the same key; 0 where mask [U, L] is false."""
    text = torch.arange(len(keys), device=keys.device).unsqueeze(1)
    codes, which = torch.unique((text * SLOTS + keys)[mask], return_inverse=True)
    total = content.new_zeros(len(codes), content.shape[2]).index_add(0, which, content[mask])
    count = content.new_zeros(len(codes)).index_add(0, which, content.new_ones(len(which)))
    return torch.zeros_like(content).masked_scatter(mask.unsqueeze(2), (total / count.unsqueeze(1))[which])


def follow(memory: Tensor, keys: Tensor, mask: Tensor, content: Tensor, restarts: Tensor) -> Mentions:
    """Update the memory [B, SLOTS, R + 2] over T steps of B episodes, by the words of one text in each step.

    Args:
        memory: before the first step.
        keys, mask: [T, B, L], key of each word, and False for padding.
        content: [T, B, L, R], encoding of each word, equal under equal keys of a text (`mean_by_key`).
        restarts: [T, B] bool, steps that begin an episode, with an empty memory.
    """
    T, B, L = keys.shape
    row = torch.arange(T * B * L, device=keys.device).view(T, B, L) + 1 + B * SLOTS
    row = row.masked_fill(~mask, 0)
    place = torch.arange(B * SLOTS, device=keys.device).view(B, SLOTS) + 1
    fresh, times = memory[..., -2], memory[..., -1]
    places, freshness, counts = [], [], []
    for t, restart in enumerate(restarts.unsqueeze(2)):
        new = torch.zeros_like(place).scatter_reduce(1, keys[t], row[t], "amax")
        place = torch.where(new > 0, new, place.masked_fill(restart, 0))
        fresh = torch.where(new > 0, 1.0, fresh.masked_fill(restart, 0.0) * _DECAY)
        times = times.masked_fill(restart, 0.0) + (new > 0)
        places.append(place)
        freshness.append(fresh)
        counts.append(times)
    empty = content.new_zeros(1, content.shape[3])
    rows = torch.cat((empty, memory[..., :-2].flatten(0, 1).to(content.dtype), content.flatten(0, 2)))
    return Mentions(torch.stack(places), rows, torch.stack(freshness), torch.stack(counts))


TASK, NOW = "task", "now"
_HISTORY = "history"
"""Field that is left out, as the network has a memory."""


@dataclass(frozen=True)
class ChoiceReadConfig(Options):
    """Options of choiceread.

    Attributes:
        embedding: width of a word's embedding.
        states: width of a word's state, and of a choice.
        role: width of what the task, or a mention, says of a word.
        hidden: width of the memory.
    """

    embedding: Count = 32
    states: Count = 64
    role: Count = 16
    hidden: Count = 128


class ChoiceRead(Policy):
    """The reader for choices of text.

    Raises:
        ConfigurationError: an environment without choices, without a text for the whole episode (the task) or without a
            text of the step.
    """

    defaults = ChoiceReadConfig()
    accepts = Accepts(actions=(TextChoices,), grid=False, fields=(CHOICES, "action_mask"))

    def __init__(self, spec: EnvSpec, config: ChoiceReadConfig) -> None:
        super().__init__(spec)
        self.config = config
        texts = [text for text in spec.texts if text.name not in (CHOICES, _HISTORY)]
        self.lasting = tuple(text.name for text in texts if text.lifetime == EPISODE)
        self.passing = tuple(text.name for text in texts if text.lifetime != EPISODE)
        if not self.lasting or not self.passing:
            raise ConfigurationError(
                "choiceread reads a text for the whole episode and one of the moment, this world has "
                f"{', '.join((*self.lasting, *self.passing)) or 'neither'}: choose another agent"
            )
        self.reads = {TASK: self.lasting, NOW: (*self.lasting, *self.passing), CHOICES: (CHOICES,)}
        self.vocabulary = spec.vocabulary_size
        states, role, hidden = config.states, config.role, config.hidden
        self.words = nn.Embedding(self.vocabulary, config.embedding, padding_idx=0)
        self.fields = nn.Embedding(max(len(self.lasting), len(self.passing)), config.embedding)
        self.task, self.now, self.choice = (_Reader(config.embedding, states) for _ in range(3))
        self.task_role, self.said = nn.Linear(2 * states, role), nn.Linear(2 * states, role)
        self.wanted = nn.Linear(role, config.embedding, bias=False)
        self.asked = nn.Linear(role, states, bias=False)
        self.known = nn.Linear(role + 1 + COUNTS, states, bias=False)
        self.choice_norm = nn.LayerNorm(states)
        self.view = nn.Linear(3 * states, hidden)
        self.view_norm = nn.LayerNorm(hidden)
        self.memory = nn.GRUCell(hidden, hidden)
        self.beside = nn.Linear(3 * states, states)
        self.heed = nn.Linear(2 * hidden, 2 * states)
        self.score = nn.Linear(states, 1)
        self.value = mlp(hidden, states, 1)
        with torch.no_grad():
            self.fields.weight.mul_(0.3)
            self.score.weight.mul_(0.1)

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Encode U texts.

        Returns:
            of TASK `roles` [U, V, role] by word id and `gist` [U, states]; of NOW `keys` [U, L], `mask` [U, L],
            `content` [U, L, role] and `gist`; of CHOICES `words` [U, L], `keys` [U, L] and `states` [U, L, states].
        """
        if name == CHOICES:
            words = ids[CHOICES].long()
            states, _ = self.choice(self.words(words), words > 0)
            return {"words": words, "keys": pair_keys(words), "states": states}
        if name == TASK:
            return self._read_task(ids)
        rows, which = distinct_rows(torch.cat([ids[field].flatten(1) for field in self.lasting], 1))
        sizes = [ids[field].flatten(1).shape[1] for field in self.lasting]
        task = self._read_task(dict(zip(self.lasting, rows.split(sizes, 1), strict=True)))["roles"]
        words, field = self._join(ids, self.passing)
        stated = task.flatten(0, 1)[which.unsqueeze(1) * self.vocabulary + words]
        states, gist = self.now(self.words(words) + self.fields(field) + self.wanted(stated), words > 0)
        keys, mask = pair_keys(words), words > 0
        content = self.said(torch.cat((states, gist.unsqueeze(1).expand_as(states)), 2))
        return {"keys": keys, "mask": mask, "content": mean_by_key(keys, mask, content), "gist": gist}

    def initial_memory(self, num_envs: int) -> Tensor:
        """Return zeros [N, SLOTS · (role + 2) + hidden]: no mentions, and the recurrent memory."""
        return self.score.weight.new_zeros(num_envs, SLOTS * (self.config.role + 2) + self.config.hidden)

    def forward(self, batch: Batch) -> PolicyOutput:
        T, B = batch.restarts.shape
        memory = self.initial_memory(B) if batch.memory is None else batch.memory
        table, hidden = memory.split((memory.shape[1] - self.config.hidden, self.config.hidden), 1)
        now, task = batch.texts[NOW], batch.texts[TASK]
        shown = {name: tensor[now.index] for name, tensor in now.encoding.items()}
        mentions = follow(
            table.view(B, SLOTS, -1).float(), shown["keys"], shown["mask"], shown["content"].float(), batch.restarts
        )
        mask = batch.observation["action_mask"].flatten(0, 1).bool()
        offered = self._offered(mask, task, batch.texts[CHOICES], mentions)
        best = offered.choice.new_zeros(T * B, offered.choice.shape[1])
        owner = offered.observation.unsqueeze(1).expand_as(offered.choice)
        best = best.scatter_reduce(0, owner, offered.choice, "amax")
        gists = task.encoding["gist"][task.index], shown["gist"], best.view(T, B, -1)
        seen = F.relu(self.view_norm(self.view(torch.cat(gists, 2))))
        after = unroll(self.memory, seen, hidden.to(seen.dtype), batch.restarts)
        heed = self.heed(torch.cat((after, seen), 2)).flatten(0, 1)
        scale, shift = F.embedding(offered.observation, heed).chunk(2, 1)
        scores = F.relu(offered.beside * (1 + scale) + shift)
        logits = mask.new_zeros(mask.shape, dtype=torch.float32)
        logits = logits.masked_scatter(mask, self.score(scores).squeeze(1).float()).view(T, B, -1)
        memories = torch.cat((mentions.tables().flatten(2), after.detach().float()), 2)
        return PolicyOutput.masked(logits, self.value(after).squeeze(2), batch.observation, memories)

    def _read_task(self, ids: Mapping[str, Tensor]) -> TextEncoding:
        words, field = self._join(ids, self.lasting)
        states, gist = self.task(self.words(words) + self.fields(field), words > 0)
        roles = self.task_role(torch.cat((states, gist.unsqueeze(1).expand_as(states)), 2)) * (words > 0).unsqueeze(2)
        by_word = roles.new_zeros(len(words), self.vocabulary, roles.shape[2])
        return {"roles": by_word.scatter_add(1, words.unsqueeze(2).expand_as(roles), roles), "gist": gist}

    def _join(self, ids: Mapping[str, Tensor], names: tuple[str, ...]) -> tuple[Tensor, Tensor]:
        """Words [U, L] of several fields, one behind another, cut to the longest, and the field's index [U, L]."""
        parts = [ids[name].flatten(1).long() for name in names]
        parts = [part[:, : max(1, int((part > 0).sum(1).max()))] if len(part) else part for part in parts]
        field = [torch.full_like(part, number) for number, part in enumerate(parts)]
        return torch.cat(parts, 1), torch.cat(field, 1)

    def _offered(self, mask: Tensor, task: Reading, choices: Reading, mentions: Mentions) -> _Offered:
        """The P choices that N observations offer, mask [N, A]."""
        observation = mask.nonzero()[:, 0]
        which = choices.index.flatten(0, 1)[mask]
        words = choices.encoding["words"][which]
        longest = int((words > 0).any(0).sum())  # 0 where nothing is offered
        words, keys = words[:, :longest], choices.encoding["keys"][which][:, :longest]
        asked = task.index.flatten()[observation].unsqueeze(1) * self.vocabulary + words
        states = choices.encoding["states"][which][:, :longest]
        states = states + self.asked(F.embedding(asked, task.encoding["roles"].flatten(0, 1)))
        states = F.relu(states + self.known(mentions.look_up(observation, keys).to(states.dtype)))
        choice = F.relu(self.choice_norm((states * (words > 0).unsqueeze(2)).sum(1)))
        return _Offered(observation, choice, self.beside(_with_neighbours(choice, observation)))


class _Offered(NamedTuple):
    observation: Tensor  # [P] int64, whose choice it is
    choice: Tensor  # [P, states], what it says
    beside: Tensor  # [P, states], what it says beside those before and after it in the list


class _Reader(nn.Module):
    """Two convolutions over the words of texts, each over three words, and the maximum over a text.

    The words of all texts stand in one row, without padding.
    """

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3 * width, states), nn.Linear(3 * states, states)

    def forward(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return states [U, L, states], zeros where mask [U, L] is false, and gists [U, states] of [U, L, width]."""
        text = mask.nonzero()[:, 0]
        near = F.relu(self.first(_with_neighbours(words[mask], text)))
        near = near + F.relu(self.second(_with_neighbours(near, text)))
        gist = near.new_zeros(len(mask), near.shape[1])
        gist = gist.scatter_reduce(0, text.unsqueeze(1).expand_as(near), near, "amax")
        states = near.new_zeros(*mask.shape, near.shape[1]).masked_scatter(mask.unsqueeze(2), near)
        return states, gist


def _with_neighbours(rows: Tensor, owner: Tensor) -> Tensor:
    """[P, 3 · D]: rows [P, D] with the one before and the one after, zeros where another owner [P] has that."""
    if not len(rows):
        return rows.new_zeros(0, 3 * rows.shape[1])
    same = (owner[1:] == owner[:-1]).unsqueeze(1)
    return torch.cat((F.pad(rows[:-1] * same, (0, 0, 1, 0)), rows, F.pad(rows[1:] * same, (0, 0, 0, 1))), 1)
