"""SIR, the Symbolic Interactive Reader, for many environments (Zhong et al. 2021, "SILG", sec. 3, 4.1).

txt2π's FiLM² layers over a map; any number of text fields, each summed up and looked up in a joint text; choices of
text or directions as actions too (`heads.py`). Every distinct text is encoded once.

Differences from the paper. Where its shapes leave no choice, or would bind a network to one size of map, the released
program is followed: the last map is max-pooled and not flattened, and each layer queries the joint text with its
summary projected to the text's width. Words are the environment's own, not word pieces. In MESSENGER, whose cells show
symbols and no words, the released program has a table for them, without a row of padding: `symbol_table`, which preset
`silg` sets there. The statements of a manual share a scorer (see `reader.scorers`), and +bert reads them one at a time.
A text ends with a terminator, so none is empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs, contrast_of
from magrounding.agents.language import TextEncoder, distinct_rows, join_statements, statements_of
from magrounding.agents.matching import NameReader
from magrounding.agents.modules import (
    DocumentAttention,
    SelfAttention,
    around,
    attend,
    distance_map,
    embed_cells,
    masked_softmax,
)
from magrounding.agents.policy import Accepts, Batch, PolicyOutput, TextEncoding
from magrounding.agents.pretrained_language import PretrainedStates
from magrounding.agents.reasoning import ReasoningOptions, ReasoningPolicy, Seen
from magrounding.agents.sir.heads import ChoiceHead, make_action_head
from magrounding.agents.txt2pi import Txt2PiConfig, Txt2PiGrounding, attention_to_text
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, OneOf, Sizes
from magrounding.spec import CHOICES, Directions, EnvSpec, FixedActions, Text, TextChoices

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


class SirReader(NameReader):
    """Word table, two text encoders, and self-attentions."""

    def __init__(self, spec: EnvSpec, config: SirConfig) -> None:
        super().__init__(spec, config.cells, config.names, config.match)
        language = None
        if config.bert:
            language = PretrainedStates(config.language_model, spec.words, config.tokens, config.cache, by_word=True)
        self.fields, self.joint = (SirEncoder(config.cells, config.hidden, language) for _ in range(2))  # N and D
        self.width = self.joint.width
        self.scorers = nn.ModuleDict({name: SelfAttention(self.width) for name in scorers(spec)})
        self.further = further_texts(spec)
        self.has_manual = MANUAL in spec
        if self.matcher is not None and GOAL not in self.scorers:
            raise ConfigurationError("match needs a world with a goal: it maps the words that the goal asks for")
        self.merge_told, self.merge_joint = SelfAttention(self.width), SelfAttention(self.width)

    def forward(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U documents: manual [U, S, L], the joint text (without one the goal is), and goal [U, G].

        Returns:
            `states` [U, L', D] and `mask` [U, L'] of the joint text; `summary`, `about` [U, n, D] and `spoken` [U, n]
            of goal or statements as fields; `from` [U, L', S] of a manual, see `statements_of`; with `match`, the words
            `ids` [U, L'] of the joint text, and the goal's weights `asked` [U, L'] of them.
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
        about, weights = attend(states, mask, summary)
        read = {"states": states, "mask": mask, "summary": summary, "about": about, "spoken": spoken}
        if self.matcher is not None:
            read |= {"ids": join_statements(manual).ids, "asked": weights[:, 0]}
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

    def _sum_up(self, scorer: str, ids: Tensor) -> Tensor:
        """C~_i [N, D] of texts [N, M]."""
        texts, which = distinct_rows(ids)
        states, mask = self.fields(self.words, texts.unsqueeze(1))
        return self.scorers[scorer](states, mask).index_select(0, which)


@dataclass(frozen=True)
class SirConfig(ReasoningOptions):
    """Options of SIR; sizes are those of the paper (app. H), NetHack's and Touchdown's are smaller.

    Attributes:
        channels: of the FiLM² layers; the skip connection is that of txt2π.
        embedding: d, width of a word; with `entity_attn` it is 2 · hidden, whatever is asked for here.
        hidden: r, units in each direction of the text encoders.
        width: of H, the final representation.
        symbol_table: ids on the map are rows of a table of their own, as in the released program in MESSENGER; 0, which
            stands in every empty place of a cell, is a row that learns as all others do, so that empty cells are no
            zeros. False: they are words of the texts' table, and 0 is a vector of zeros.
        state: +state, an LSTM keeps track of the episode.
        local_conv: +local conv, FiLM² layers of their own look at the cells around the agent.
        crop: height and width of what they see.
        entity_attn: +entity attn, a cell shows what the text fields say of it, and not itself.
        bert: +bert, the states of a frozen language model are added to those of the text encoders.
        language_model: folder of that model.
        tokens: of that model, that a statement may have.
        cache: folder of what that model has read; "": a folder of the user's.
        head: "linear" (paper): H is a tanh, actions and value are linear maps of it. "mlp": H is a ReLU, and each has a
            ReLU layer of its own before its linear map, as in txt2π; of neither the paper nor the released program.
    """

    channels: Sizes = (16, 32, 64, 64, 64)
    embedding: Count = 100
    hidden: Count = 200
    width: Count = 400
    symbol_table: bool = False
    state: bool = False
    local_conv: bool = False
    crop: Count = 3
    entity_attn: bool = False
    bert: bool = False
    language_model: str = ""
    tokens: Count = 64
    cache: str = ""
    head: Annotated[str, OneOf(("linear", "mlp"))] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.crop % 2 == 0:
            raise ConfigurationError(f"crop is odd, as the agent is in the middle, not {self.crop}")
        if self.bert != bool(self.language_model):
            raise ConfigurationError(
                f"bert is {self.bert} and language_model is {self.language_model!r}: set bert to true and "
                "language_model to a model's folder, or neither"
            )

    @property
    def cells(self) -> int:
        """Width of a word, and so of a cell."""
        return 2 * self.hidden if self.entity_attn else self.embedding


_LAYERS = Txt2PiConfig(initial_query="max_project")
"""SIR's layers are txt2π's but for the first query, which follows the released program: s_0 is projected."""


class EntityAttention(nn.Module):
    """EMMA's attention, from the cells of a map to the text fields (Hanjie et al. 2021): scaled, a mean over fields."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, cells: Tensor, shown: Tensor, fields: Fields) -> Tensor:
        """Return [N, D, H, W], the fields that cells U [N, D, H, W] attend to; zeros where not `shown` [N, H, W]."""
        n, width, *size = cells.shape
        queries = cells.flatten(2).transpose(1, 2)  # [N, H · W, D]
        scores = torch.bmm(queries, self.key(fields.summary).transpose(1, 2)) / math.sqrt(width)
        weights = masked_softmax(scores, fields.spoken.unsqueeze(1)) * shown.view(n, -1, 1)
        attended = torch.bmm(weights, self.value(fields.summary).to(weights.dtype))
        attended = attended / fields.spoken.sum(1).clamp(min=1).view(-1, 1, 1)
        return attended.transpose(1, 2).unflatten(2, size)


class Sir(ReasoningPolicy):
    """The SIR policy.

    `manual` is the joint text; for the fields see `reader.scorers`, for the actions `heads.make_action_head`. Without a
    `position` on the map, cells have no distances; without a map, there is one cell without words.

    Raises:
        ConfigurationError: an environment that it is not made for, `local_conv` without positions, or `symbol_table`
            without a map.
    """

    defaults = SirConfig()
    accepts = Accepts(
        actions=(FixedActions, TextChoices, Directions),
        grid=False,
        fields=("action_mask",),
        also=("grid", "position", "columns"),
    )

    def __init__(self, spec: EnvSpec, config: SirConfig) -> None:
        super().__init__(spec)
        self.has_map = "grid" in spec
        self.has_place = self.has_map and "position" in spec and not spec.grid.egocentric
        if config.local_conv and not self.has_place:
            raise ConfigurationError("this world does not say where an agent is: set local_conv to false")
        if config.symbol_table and not self.has_map:
            raise ConfigurationError("this world shows no map of symbols: set symbol_table to false")
        self.config = config
        alone = (*further_texts(spec), *((CHOICES,) if isinstance(spec.actions, TextChoices) else ()))
        self.goal = goal_field(spec)
        self.reads = {DOCUMENT: ("manual", self.goal), **{name: (name,) for name in alone}}
        self.reader = SirReader(spec, config)
        text, top = self.reader.width, config.channels[-1]
        self.symbols = nn.Embedding(int(spec.grid.high) + 1, config.cells) if config.symbol_table else None
        self.entities = EntityAttention(text) if config.entity_attn else None
        self.scenery = (0, *spec.grid.scenery_ids, *spec.grid.avatar_ids) if self.has_map else ()
        layers = config.channels, config.cells, 2
        held = 0 if config.match == "none" else 1 + text  # of what is held: how well it fits, and its state
        self.grounding = Txt2PiGrounding(*layers, 3 * text + held, text, replace(_LAYERS, match=config.match))
        self.local = Txt2PiGrounding(*layers, 3 * text, text, _LAYERS) if config.local_conv else None
        self.final = nn.Linear(top, config.width)
        self.tracker = nn.LSTMCell(config.width, config.width) if config.state else None
        self.policy = make_action_head(spec, config.cells, config.hidden, config.width, top)
        self.value = nn.Linear(config.width, 1)
        # What is before the linear maps of policy and value.
        self.acting, self.judging = (
            nn.Sequential(nn.Linear(config.width, config.width), nn.ReLU()) if config.head == "mlp" else nn.Identity()
            for _ in range(2)
        )
        self.learn_reasons(config, config.cells)

    @property
    def symbols_shown(self) -> nn.Embedding:
        """The table whose rows the ids on the map are."""
        return self.reader.words if self.symbols is None else self.symbols

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        if name == DOCUMENT:
            return super().encode(name, {"manual": ids["manual"], "goal": ids[self.goal]})
        if name == CHOICES and isinstance(self.policy, ChoiceHead):
            return self.policy.encode(ids[name], self.reader.words)
        return self.reader.sum_up_text(name, ids[name])

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        hidden, seen = self._perceive(inputs)
        if self.tracker is not None:
            hidden, memory = self._track(self.tracker, hidden, memory)
        decided = self._decide(hidden, seen, inputs, memory)
        return decided._replace(aux=attention_to_text(seen.weights, inputs)) if self.reader.has_manual else decided

    @property
    def contrasts(self) -> bool:
        return self.entities is not None

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        """Return the loss that grounds what is on the map in the text fields, by the scores of entity attention."""
        assert self.entities is not None
        grid = observation["grid"].flatten(1).long()  # [U, P]
        shown = torch.isin(grid, grid.new_tensor(self.scenery), invert=True)
        ids, which = torch.unique(grid[shown], return_inverse=True)
        fits = self.entities.key(text["summary"]) @ self.symbols_shown(ids).t() / math.sqrt(self.reader.width)
        return contrast_of(fits, text["spoken"], shown.nonzero()[:, 0], which)

    def unroll(self, inputs: Inputs, memory: Tensor, restarts: Tensor) -> PolicyOutput:
        """Compute all but the LSTM for all steps at once, see `DocumentPolicy.unroll`."""
        assert self.tracker is not None
        hidden, seen = self._perceive(inputs)
        tracked, memories = [], []
        for now, restart in zip(hidden.view(*restarts.shape, -1), restarts, strict=True):
            memory = self._begin(memory, restart)
            now, memory = self._track(self.tracker, now, memory)
            tracked.append(now)
            memories.append(memory)
        return self._decide(torch.cat(tracked), seen, inputs, torch.cat(memories))

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """Return zeros [N, 2, width], state and cell of +state's LSTM."""
        return None if self.tracker is None else self.tracker.weight_ih.new_zeros(num_envs, 2, self.config.width)

    def _flat(self, batch: Batch) -> Inputs:
        """Inputs with a summary of each further text and the offered choices among the observations."""
        observation, text, document = super()._flat(batch)
        if not self.has_map:
            observation["grid"] = document.new_zeros(len(document), 1, 1, 1)
        for name in self.reads.keys() - {DOCUMENT}:
            read = batch.texts[name]
            if name == CHOICES:
                observation[CHOICES], text = read.index.flatten(0, 1), {**text, **read.encoding}
            else:
                observation[name] = read.encoding[SUMMARY].index_select(0, read.index.flatten())
        return Inputs(observation, text, document)

    def _perceive(self, inputs: Inputs) -> tuple[Tensor, Seen]:
        """H [N, width] without memory, and the layers of the whole map."""
        observation, fields = inputs.observation, self.reader.look_up(inputs)
        grid = observation["grid"]
        cells = embed_cells(self.symbols_shown, grid)  # U [N, D, H, W]
        if self.entities is not None:
            cells = self.entities(cells, grid.any(3), fields)
        position = observation["position"] if self.has_place else grid.new_full((len(grid), 2), -1)
        positions = distance_map(position, *grid.shape[1:3])  # Z [N, 2, H, W]
        told = self.reader.merge_told(fields.summary, fields.spoken)  # of any number of fields
        joint = self.reader.merge_joint(fields.joint, fields.spoken)
        summary = torch.cat((told, joint), 1)  # [C; A] [N, 4 · hidden], the text that does not depend on the map
        seen = self.grounding(cells, positions, summary, inputs, self.reader.match(inputs))
        pooled = seen.tops[-1]
        if self.local is not None:
            near = (around(part, position, self.config.crop) for part in (cells, positions))
            pooled = pooled + self.local(*near, summary, inputs).tops[-1]
        activation = torch.tanh if self.config.head == "linear" else F.relu
        return activation(self.final(pooled)), seen

    def _track(self, tracker: nn.LSTMCell, hidden: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor]:
        """H' = H + LSTM(H, state) and the next state, in float32 under autocast too: it sums up over an episode."""
        with torch.autocast(hidden.device.type, enabled=False):
            after = tracker(hidden.float(), None if memory is None else memory.unbind(1))
        return hidden + after[0], torch.stack(after, 1)

    def _decide(self, hidden: Tensor, seen: Seen, inputs: Inputs, memory: Tensor | None) -> PolicyOutput:
        observation, text, _ = inputs
        logits = self.policy(self.acting(hidden), seen.maps[-1], observation, text)
        value = self.value(self.judging(hidden)).squeeze(1)
        return PolicyOutput.masked(logits, value, observation, memory, seen=seen)
