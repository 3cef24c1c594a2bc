"""The agent network of QMIX (Rashid et al. 2018): convolutions over the grid and a GRU. It reads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.modules import distance_map, embed_cells
from magrounding.agents.policy import TextEncoding, check_config, configure, mask_logits
from magrounding.agents.q_network import QNetwork
from magrounding.errors import ConfigurationError
from magrounding.observation import ObservationSpec


@dataclass(frozen=True)
class QmixAgentConfig:
    """Options of the agent network.

    EnDi (Ding et al. 2023), whose language-free baseline this is, gives no sizes. Width of the recurrent part and its
    inputs are those of the paper's appendix; what looks at the grid is ours, as its agents observe vectors.

    Attributes:
        embedding: width of a word, on the grid or in the inventory.
        maps: channels of both convolutions.
        hidden: units of every layer behind them, and of the GRU.
    """

    embedding: int = 16
    maps: int = 32
    hidden: int = 64

    def __post_init__(self) -> None:
        check_config(self)


class GridEncoder(nn.Module):
    """Two 3 × 3 convolutions over the summed embeddings of what cells show, and a layer on the flat maps.

    Args:
        spec: whose grid it is.
        embedding: width of a word.
        extra: E, channels beside the embeddings.
        maps: channels of the convolutions.
        out: units of the last layer.
    """

    def __init__(self, spec: ObservationSpec, embedding: int, extra: int, maps: int, out: int) -> None:
        super().__init__()
        self.grid_shape = spec["grid"].shape
        self.words = nn.Embedding(spec.vocabulary_size, embedding, padding_idx=0)
        self.first = nn.Conv2d(embedding + extra, maps, 3, padding=1)
        self.second = nn.Conv2d(maps, maps, 3, padding=1)
        self.flat = nn.Linear(maps * self.grid_shape[0] * self.grid_shape[1], out)

    def forward(self, grid: Tensor, extra: Tensor) -> Tensor:
        """[N, out] from grid [N, H, W, K] ids and extra [N, E, H, W]; ConfigurationError for a map of another size."""
        if grid.shape[1:] != self.grid_shape:
            made, got = (" × ".join(map(str, shape)) for shape in (self.grid_shape, grid.shape[1:]))
            raise ConfigurationError(f"this network is made for a grid of {made} and cannot look at one of {got}")
        maps = torch.cat((embed_cells(self.words, grid), extra), 1)
        maps = F.relu(self.second(F.relu(self.first(maps))))
        return F.relu(self.flat(maps.flatten(1)))


class QmixAgent(QNetwork):
    """A recurrent Q-network that sees its own observation, its last action and who it is, and no text.

    Args:
        spec: what the agents observe.
        config: options.
    """

    reads = ("grid", "position", "inventory", "action_mask")

    def __init__(self, spec: ObservationSpec, config: QmixAgentConfig) -> None:
        super().__init__(spec)
        self.config = config
        self.look = GridEncoder(spec, config.embedding, 2, config.maps, config.hidden)
        seen = config.hidden + config.embedding + spec.num_actions + spec.num_agents
        self.think = nn.Linear(seen, config.hidden)
        self.memory = nn.GRU(config.hidden, config.hidden)
        self.q = nn.Linear(config.hidden, spec.num_actions)

    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Nothing: it does not read."""
        return {}

    def initial_hidden(self, num_games: int) -> Tensor:
        return self.who.new_zeros(num_games, self.config.hidden)

    def evaluate(
        self,
        observation: dict[str, Tensor],
        text: TextEncoding,
        document: Tensor,
        who: Tensor,
        last_action: Tensor,
        hidden: Tensor,
        real: Tensor,
    ) -> tuple[Tensor, Tensor]:
        grid = observation["grid"]
        looked = self.look(grid, distance_map(observation["position"], grid.shape[1], grid.shape[2]))
        held = self.look.words(observation["inventory"].long()).sum(1)
        inputs = F.relu(self.think(torch.cat((looked, held, last_action, who), 1)))
        lives = inputs.new_zeros(*real.shape, inputs.shape[1])
        lives[real] = inputs
        states, hidden = self.memory(lives, hidden.unsqueeze(0))
        return mask_logits(self.q(states[real]).float(), observation["action_mask"]), hidden[0]


def make_qmix(spec: ObservationSpec, **options: Any) -> QmixAgent:
    """The agent network for what `spec` shows; options are those of `QmixAgentConfig`."""
    return QmixAgent(spec, configure("qmix", QmixAgentConfig(), options))
