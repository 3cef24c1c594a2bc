"""txt2π: three-way reasoning over goal, document and grid (Zhong, Rocktäschel, Grefenstette 2020, "RTFM", sec. 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.building import configure
from magrounding.agents.document_policy import Inputs
from magrounding.agents.language import RECURRENT, TextEncoder, distinct_rows, join_statements, statements_of
from magrounding.agents.matching import Matching, NameReader
from magrounding.agents.modules import (
    HEADS,
    ActorCritic,
    DocumentAttention,
    FiLM2,
    SelfAttention,
    attend_once,
    distance_map,
    embed_cells,
    layer_widths,
    skips,
    spatial_max,
)
from magrounding.agents.policy import (
    ATTENTION,
    WORD_ATTENTION,
    Accepts,
    PolicyOutput,
    TextEncoding,
    shares,
)
from magrounding.agents.reasoning import ReasoningOptions, ReasoningPolicy, Seen
from magrounding.errors import ConfigurationError, check_choice
from magrounding.schema import Count, OneOf, Sizes
from magrounding.spec import EnvSpec
from magrounding.vocabulary import PAD


@dataclass(frozen=True)
class Txt2PiConfig(ReasoningOptions):
    """Options of txt2π; the defaults are the paper's (app. C.1).

    Attributes:
        channels: of the FiLM² layers; the sum of the last two maps below the top enters the top layer where these are
            equally wide (three layers or more).
        embedding: width of a word.
        goal_hidden: units in each direction of the goal encoder, which reads the document for the goal as well.
        inventory_hidden: of the inventory encoder.
        document_hidden: of the encoder that reads the document for the eye.
        inventory_encoder: "lstm" (paper) or "gru" (released program).
        goal_in_text: whether the goal's summary is part of the text of each layer; the released program leaves it out.
        initial_query: "project_max" projects each cell and takes the maximum (paper), "max_project" the other way
            round (released program).
        head: "paper" (ReLU and MLPs of two layers) or "code" (tanh and linear maps).
        head_width: units of the head.
        positions: "seen", or "released": positions, shares of the map's size below 1, are truncated to integers, all 0,
            wherever gradients are computed, but not in acting. The buffers between actors and learner of the released
            programs of RTFM and SILG are integers: what they published was learnt without any positions.
        task_attention: False is the ablation no_task_attn: no attention to the document given the goal.
        visual_attention: False is no_vis_attn: the document for the eye is summed up once, by self-attention.
        text_modulation: False is no_text_mod: the layers are FiLM.
    """

    channels: Sizes = (16, 32, 64, 64, 64)
    embedding: Count = 30
    goal_hidden: Count = 10
    inventory_hidden: Count = 10
    document_hidden: Count = 100
    inventory_encoder: Annotated[str, OneOf(RECURRENT)] = "lstm"
    goal_in_text: bool = True
    initial_query: Annotated[str, OneOf(("project_max", "max_project"))] = "project_max"
    head: Annotated[str, OneOf(HEADS)] = "paper"
    head_width: Count = 400
    positions: Annotated[str, OneOf(("seen", "released"))] = "seen"
    task_attention: bool = True
    visual_attention: bool = True
    text_modulation: bool = True


PROFILES = {
    "paper": Txt2PiConfig(),
    "code": Txt2PiConfig(
        goal_hidden=100,
        inventory_encoder="gru",
        goal_in_text=False,
        initial_query="max_project",
        head="code",
        positions="released",
    ),
}
"""Configurations of the paper and of the released program, where they differ.

"code" has 912,872 parameters with 262 words and 5 actions: goal encoder of 100, inventory GRU, text of 420 without the
goal's summary, maximum over cells before the initial projection, tanh and linear head, positions that the learner never
sees; positions="seen" is the same network with them. For rock-paper-scissors the program had embedding 10 and
head_width 300.
"""


class Txt2PiReader(NameReader):
    """Word table and text encoders."""

    def __init__(self, spec: EnvSpec, config: Txt2PiConfig) -> None:
        super().__init__(spec, config.embedding, config.names, config.match)
        # Without attention given the goal, its summary is all that is left of the goal.
        self.goal_in_text = config.goal_in_text or not config.task_attention
        self.task_attention = config.task_attention
        self.goal = TextEncoder(config.embedding, config.goal_hidden)
        self.goal_attention = SelfAttention(self.goal.width)
        self.inventory = TextEncoder(config.embedding, config.inventory_hidden, config.inventory_encoder)
        self.inventory_attention = SelfAttention(self.inventory.width)
        self.document = TextEncoder(config.embedding, config.document_hidden)
        self.document_attention = None if config.visual_attention else SelfAttention(self.document.width)
        self.tells = spec.tells
        if self.tells and not config.visual_attention:
            raise ConfigurationError("tells are scored by the document's states: they need visual attention")
        shared = self.goal.width * (self.goal_in_text + self.task_attention)
        self.query_width = self.document.width
        self.text_width = shared + self.inventory.width + self.document.width  # d_t
        if config.reasons and not config.visual_attention:
            raise ConfigurationError("reasons need visual attention: a query that asks the document")
        if self.matcher is not None:
            if not (config.task_attention and config.visual_attention):
                raise ConfigurationError("match needs task attention and visual attention: it maps the words they find")
            self.text_width += 1 + self.document.width  # of what is held: how well it fits, and its state

    def forward(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U documents: manual [U, S, L], goal [U, G].

        Returns:
            `summary` [U, D], the text that does not depend on the map (goal, document given the goal, without visual
            attention the document too); with visual attention `states` [U, L, 2 · document_hidden] and `mask` [U, L],
                which
            maps attend to; `from` [U, L, S], see `statements_of`, and with task attention its weights `asked` [U, L].
        """
        document = join_statements(manual)
        task = self.goal_attention(*self.goal(self.words, join_statements(goal)))  # c_goal
        summary = [task] if self.goal_in_text else []
        read = {"from": statements_of(manual, document.ids.shape[1])}
        if self.matcher is not None or self.tells:
            read["ids"] = document.ids
        if self.task_attention:
            states, mask = self.goal(self.words, document)
            told, read["asked"] = attend_once(states, mask, task)
            summary.append(told)  # c_doc
        states, mask = self.document(self.words, document)
        if self.document_attention is not None:
            return {**read, "summary": torch.cat((*summary, self.document_attention(states, mask)), 1)}
        return {**read, "summary": torch.cat(summary, 1), "states": states, "mask": mask}

    def hear(self, inputs: Inputs) -> tuple[Tensor, Matching | None]:
        """Return [N, D], the text that does not depend on the map and what is held, and the option `match`'s maps."""
        observation, text, document = inputs
        inventory, longest, which = observation["inventory"], None, None
        if inventory.is_cpu:
            inventory, which = distinct_rows(inventory)
        else:  # to find the few different ones would take a wait, to read them all takes less
            longest = inventory.shape[1] + 1
        held = self.inventory_attention(*self.inventory(self.words, join_statements(inventory, longest)))  # c_inv
        held = held if which is None else held.index_select(0, which)
        return torch.cat((text["summary"].index_select(0, document), held), 1), self.match(inputs)

    def statements(self, inputs: Inputs) -> Tensor:
        """Return [N, S, 2 · document_hidden + 1]: mean state of each statement, and its words on the map."""
        observation, text, document = inputs
        of = text["from"].to(text["states"].dtype)  # [U, L, S]
        state = torch.bmm(of.mT, text["states"]) / of.sum(1).clamp(min=1).unsqueeze(2)
        grid = observation["grid"].flatten(1).long()
        shown = of.new_zeros(len(grid), len(self.words.weight)).scatter_(1, grid, 1.0)
        shown[:, PAD] = 0
        words = shown.gather(1, text["ids"].index_select(0, document).long())
        count = torch.bmm(words.unsqueeze(1), of.index_select(0, document)).mT
        return torch.cat((state.index_select(0, document), count), 2)


class Txt2PiGrounding(nn.Module):
    """FiLM² layers over a map of cells, each of which attends to the document anew (RTFM eq. 17–19).

    Args:
        channels: of the layers.
        cells, positions: channels of V0, and of X_pos, concatenated to the input of each layer.
        text_width: d_t.
        query_width: width of the document's states.
        config: for `visual_attention`, `text_modulation`, `initial_query`.
    """

    def __init__(
        self,
        channels: tuple[int, ...],
        cells: int,
        positions: int,
        text_width: int,
        query_width: int,
        config: Txt2PiConfig,
    ) -> None:
        super().__init__()
        self.skip = skips(channels)
        fits = 0 if config.match == "none" else 2  # maps: of the layer's own attention, and of the goal's
        self.project_first = config.initial_query == "project_max"
        self.initial = nn.Linear(cells + positions, query_width) if config.visual_attention else None
        last = len(channels) - 1
        self.layers = nn.ModuleList(
            FiLM2(
                text_width,
                below,
                width,
                query_width if config.visual_attention and i < last else None,
                config.text_modulation,
            )
            for i, (below, width) in enumerate(layer_widths(channels, cells, positions + fits))
        )

    def forward(
        self,
        cells: Tensor,
        positions: Tensor,
        summary: Tensor,
        inputs: Inputs,
        matching: Matching | None = None,
        shown: Tensor | None = None,
    ) -> Seen:
        """Return V [N, C, H, W] of every layer, its maxima [N, C], and the weights [N, L] of its visual attention.

        Args:
            cells, positions: V0 [N, D, H, W] and X_pos [N, P, H, W].
            summary: [N, D], the text that does not depend on the map.
            inputs: of which visual attention reads the document's `states` and `mask`.
            matching: of these inputs, with the option `match`; shown: [N, H · W], the cells that it may match.
        """
        _, text, document = inputs
        ask = query = None
        if self.initial is not None:
            ask = DocumentAttention(text["states"], text["mask"], document)
            query = self._initial_query(self.initial, torch.cat((cells, positions), 1))
        if matching is not None:
            positions = torch.cat((positions, matching(text["asked"].index_select(0, document), shown)[0]), 1)
            summary = torch.cat((summary, matching.state_of_held(text["states"])), 1)
        below = maps = cells
        found, tops = [], []
        for i, layer in enumerate(cast("Iterable[FiLM2]", self.layers)):
            heard = summary if ask is None or query is None else torch.cat((summary, ask(query)), 1)
            beside = [positions]
            if matching is not None and ask is not None:
                fit, held = matching(ask.weights[-1], shown)
                beside, heard = [positions, fit], torch.cat((heard, held), 1)
            entering = maps + below if self.skip and i == len(self.layers) - 1 else maps
            features = torch.cat((entering, *(each.to(entering.dtype) for each in beside)), 1)
            below = maps
            maps, top = layer.summed(features, heard)
            query = None if layer.query is None else layer.query(top)
            found.append(maps)
            tops.append(top)
        return Seen(found, tops, [] if ask is None else ask.weights, matching)

    def _initial_query(self, linear: nn.Linear, features: Tensor) -> Tensor:
        """u0 [N, query_width] of the cells and positions."""
        if self.project_first:
            # A 1×1 convolution is the linear map of each cell without leaving the convolutions' memory layout.
            return spatial_max(F.conv2d(features, linear.weight[:, :, None, None], linear.bias))
        return linear(spatial_max(features))


class Txt2Pi(ReasoningPolicy):
    """The txt2π policy."""

    accepts = Accepts(fields=("manual", "position", "inventory", "action_mask"), egocentric=False)

    def __init__(self, spec: EnvSpec, config: Txt2PiConfig) -> None:
        super().__init__(spec)
        self.config = config
        self.reader = Txt2PiReader(spec, config)
        self.grounding = Txt2PiGrounding(
            config.channels, config.embedding, 2, self.reader.text_width, self.reader.query_width, config
        )
        moves = spec.num_actions - self.reader.tells
        self.head = ActorCritic(config.channels[-1], config.head_width, moves, config.head)
        self.tell = self.make_tell_head(config.channels[-1])
        self.learn_reasons(config, config.embedding)

    def respond(self, inputs: Inputs, memory: Tensor | None = None) -> PolicyOutput:
        observation = inputs.observation
        grid = observation["grid"]
        cells = embed_cells(self.reader.words, grid)
        positions = distance_map(observation["position"], grid.shape[1], grid.shape[2])
        if self.config.positions == "released" and torch.is_grad_enabled():
            positions = positions.trunc()
        summary, matching = self.reader.hear(inputs)
        seen = self.grounding(cells, positions, summary, inputs, matching)
        logits, value = self.head(seen.tops[-1])
        logits = self.with_tells(logits, inputs, seen.tops[-1])
        return PolicyOutput.masked(logits, value, observation, aux=attention_to_text(seen.weights, inputs), seen=seen)


def attention_to_text(weights: Sequence[Tensor], inputs: Inputs) -> dict[str, Callable[[], Tensor]]:
    """Return WORD_ATTENTION and ATTENTION [N, S], entries of `PolicyOutput.aux`; nothing without attention.

    WORD_ATTENTION [N, 1 + K, L] is of the goal's query (`asked`) and of the K layers (none without visual attention),
    whose weights are [N, L]. ATTENTION is the mean of all of them, added up over each statement's words.
    """
    _, text, document = inputs

    def words() -> Tensor:
        goal = text["asked"].index_select(0, document) if "asked" in text else torch.zeros_like(weights[0])
        return torch.stack([goal, *weights], 1)

    def statements() -> Tensor:
        mean = words().mean(1, keepdim=True)
        return shares(torch.bmm(mean, text["from"].index_select(0, document).to(mean.dtype)).squeeze(1))

    return {WORD_ATTENTION: words, ATTENTION: statements} if weights or "asked" in text else {}


def make_txt2pi(spec: EnvSpec, *, profile: str = "paper", **options: Any) -> Txt2Pi:
    """Build a txt2π policy; options are those of `Txt2PiConfig`, on top of a profile of `PROFILES`.

    Raises:
        ConfigurationError: an unknown option or profile, or an invalid value.
    """
    return Txt2Pi(spec, configure("txt2pi", PROFILES[check_choice("profile", profile, tuple(PROFILES))], options))
