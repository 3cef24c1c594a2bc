"""Mixers of agents' values into the team's: QMIX's monotonic mixer, and the sum of VDN."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.qmix.network import GridEncoder
from magrounding.errors import check_choice
from magrounding.spec import EnvSpec

MIXERS = ("monotonic", "sum")

StateLayout = Mapping[str, tuple[slice, tuple[int, ...]]]

_ROW, _COLUMN, _INVENTORY = 0, 1, 3
"""Columns of an agent's place in a state and, from the last on, of its inventory."""
_EMBEDDING, _UNITS = 16, 128
"""Widths of a word, and of what is seen on the grid."""


class StateEncoder(nn.Module):
    """Encoder of states (`EnvSpec.state_layout`) to s [N, 128 + 16 n].

    It has convolutions over the grid with each agent marked, and every agent's inventory.
    """

    def __init__(self, spec: EnvSpec, layout: StateLayout, maps: int = 32) -> None:
        super().__init__()
        self.layout = dict(layout)
        self.look = GridEncoder(spec.grid.shape, spec.vocabulary_size, _EMBEDDING, spec.num_agents, maps, _UNITS)
        self.width = _UNITS + spec.num_agents * _EMBEDDING

    def forward(self, state: Tensor) -> Tensor:
        """Return [N, Sd] from states [N, S]."""
        parts = {name: state[:, place].unflatten(1, shape) for name, (place, shape) in self.layout.items()}
        grid, agents = parts["grid"], parts["agents"].long()
        height, width = grid.shape[1:3]
        cell = agents[:, :, _ROW] * width + agents[:, :, _COLUMN]  # negative for the dead, who are nowhere
        marks = (cell.unsqueeze(2) == torch.arange(height * width, device=state.device)).float()
        held = self.look.words(agents[:, :, _INVENTORY:]).sum(2).flatten(1)
        return torch.cat((self.look(grid, marks.view(*marks.shape[:2], height, width)), held), 1)


class MonotonicMixer(nn.Module):
    """Q_tot by a network of weights that depend on the state and are not negative (Rashid et al. 2018, eq. 4–6).

    So Q_tot never falls where an agent's value rises, and each agent's own best action is part of the best joint one.

    Args:
        encoder: of states.
        num_agents: n.
        hidden: units of the mixing network.
        hypernetwork: units of the hidden ReLU layer between a state and both weights, 64 in PyMARL (`hypernet_layers` 2
            and `hypernet_embed` of its qmix.yaml); 0: one linear map, as in the paper's section on architecture.
    """

    def __init__(self, encoder: StateEncoder, num_agents: int, hidden: int = 32, hypernetwork: int = 64) -> None:
        super().__init__()
        self.encoder, self.num_agents = encoder, num_agents
        self.first_weight = _hypernetwork(encoder.width, hypernetwork, hidden * num_agents)
        self.first_bias = nn.Linear(encoder.width, hidden)
        self.second_weight = _hypernetwork(encoder.width, hypernetwork, hidden)
        self.second_bias = nn.Sequential(nn.Linear(encoder.width, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, q: Tensor, state: Tensor) -> Tensor:
        """Return Q_tot [N] from the agents' values q [N, n] and states [N, S]."""
        s = self.encoder(state)
        weight = self.first_weight(s).abs().view(len(q), self.num_agents, -1)  # [N, n, hidden]
        mixed = F.elu(torch.bmm(q.unsqueeze(1), weight).squeeze(1) + self.first_bias(s))
        return (mixed * self.second_weight(s).abs()).sum(1) + self.second_bias(s).squeeze(1)


def _hypernetwork(state: int, hidden: int, out: int) -> nn.Module:
    """Weights [N, out] of states [N, state], by one layer or two."""
    if not hidden:
        return nn.Linear(state, out)
    return nn.Sequential(nn.Linear(state, hidden), nn.ReLU(), nn.Linear(hidden, out))


class SumMixer(nn.Module):
    """Q_tot = Σ q: value decomposition networks (Sunehag et al. 2018). The state is ignored."""

    def forward(self, q: Tensor, state: Tensor) -> Tensor:
        """Return Q_tot [N] from the agents' values q [N, n]."""
        return q.sum(1)


def make_mixer(kind: str, spec: EnvSpec, layout: StateLayout, maps: int, hypernetwork: int = 64) -> nn.Module:
    """Build a mixer of MIXERS for states laid out as `layout`; `maps` as of `StateEncoder`."""
    if check_choice("mixer", kind, MIXERS) == "sum":
        return SumMixer()
    return MonotonicMixer(StateEncoder(spec, layout, maps=maps), spec.num_agents, hypernetwork=hypernetwork)
