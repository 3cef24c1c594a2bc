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
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from magrounding.agents.document_policy import DocumentPolicy, Inputs
from magrounding.agents.modules import around, distance_map, embed_cells, masked_softmax, spatial_max
from magrounding.agents.policy import Accepts, Batch, PolicyOutput, TextEncoding, mask_logits
from magrounding.agents.pretrained_language import PretrainedStates
from magrounding.agents.sir.heads import ChoiceHead, make_action_head
from magrounding.agents.sir.reader import DOCUMENT, SUMMARY, Fields, SirReader, further_texts, goal_field
from magrounding.agents.txt2pi import Txt2PiConfig, Txt2PiGrounding, attention_to_statements
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Options, Sizes
from magrounding.spec import CHOICES, Directions, EnvSpec, FixedActions, TextChoices


@dataclass(frozen=True)
class SirConfig(Options):
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


class Sir(DocumentPolicy):
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
        language = None
        if config.bert:
            language = PretrainedStates(config.language_model, spec.words, config.tokens, config.cache, by_word=True)
        self.reader = SirReader(spec, config.cells, config.hidden, language)
        text, top = self.reader.width, config.channels[-1]
        self.symbols = nn.Embedding(int(spec.grid.high) + 1, config.cells) if config.symbol_table else None
        self.entities = EntityAttention(text) if config.entity_attn else None
        layers = config.channels, config.cells, 2, 3 * text, text, _LAYERS
        self.grounding = Txt2PiGrounding(*layers)
        self.local = Txt2PiGrounding(*layers) if config.local_conv else None
        self.final = nn.Linear(top, config.width)
        self.tracker = nn.LSTMCell(config.width, config.width) if config.state else None
        self.policy = make_action_head(spec, config.cells, config.hidden, config.width, top)
        self.value = nn.Linear(config.width, 1)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        return self.reader(manual, goal)

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        if name == DOCUMENT:
            return self.encode_text(ids["manual"], ids[self.goal])
        if name == CHOICES and isinstance(self.policy, ChoiceHead):
            return self.policy.encode(ids[name], self.reader.words)
        return self.reader.sum_up_text(name, ids[name])

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        queries: list[Tensor] = []
        hidden, maps = self._perceive(inputs, queries)
        if self.tracker is not None:
            if memory is None:
                memory = torch.zeros(len(hidden), 2, self.config.width, device=hidden.device)
            hidden, memory = self._track(self.tracker, hidden, memory)
        aux = attention_to_statements(queries, inputs) if self.reader.has_manual else {}
        return self._decide(hidden, maps, inputs, memory)._replace(aux=aux)

    def unroll(self, inputs: Inputs, memory: Tensor, restarts: Tensor) -> PolicyOutput:
        """Compute all but the LSTM for all steps at once, see `DocumentPolicy.unroll`."""
        assert self.tracker is not None
        hidden, maps = self._perceive(inputs)
        tracked, memories = [], []
        for now, restart in zip(hidden.view(*restarts.shape, -1), restarts, strict=True):
            memory = memory.masked_fill(restart[:, None, None], 0.0)
            now, memory = self._track(self.tracker, now, memory)
            tracked.append(now)
            memories.append(memory)
        return self._decide(torch.cat(tracked), maps, inputs, torch.cat(memories))

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

    def _perceive(self, inputs: Inputs, queries: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """H [N, width] without memory, and V_last; for `queries` see `Txt2PiGrounding`."""
        observation, fields = inputs.observation, self.reader.look_up(inputs)
        grid = observation["grid"]
        cells = embed_cells(self.reader.words if self.symbols is None else self.symbols, grid)  # U [N, D, H, W]
        if self.entities is not None:
            cells = self.entities(cells, grid.any(3), fields)
        position = observation["position"] if self.has_place else grid.new_full((len(grid), 2), -1)
        positions = distance_map(position, *grid.shape[1:3])  # Z [N, 2, H, W]
        summary = self.reader.merge(fields)  # [C; A] [N, 4 · hidden], the text that does not depend on the map
        maps = self.grounding(cells, positions, summary, inputs, queries)[-1]
        pooled = spatial_max(maps)
        if self.local is not None:
            near = (around(part, position, self.config.crop) for part in (cells, positions))
            pooled = pooled + spatial_max(self.local(*near, summary, inputs)[-1])
        return torch.tanh(self.final(pooled)), maps

    def _track(self, tracker: nn.LSTMCell, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """H' = H + LSTM(H, state) and the next state, in float32 under autocast too: it sums up over an episode."""
        with torch.autocast(hidden.device.type, enabled=False):
            after = tracker(hidden.float(), memory.unbind(1))
        return hidden + after[0], torch.stack(after, 1)

    def _decide(self, hidden: Tensor, maps: Tensor, inputs: Inputs, memory: Tensor | None) -> PolicyOutput:
        observation, text, _ = inputs
        logits = self.policy(hidden, maps, observation, text)
        value = self.value(hidden).squeeze(1)
        return PolicyOutput(mask_logits(logits.float(), observation["action_mask"]), value.float(), memory)
