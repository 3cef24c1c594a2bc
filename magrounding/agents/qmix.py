"""QMIX (Rashid et al. 2018): agent networks and mixers.

An agent network is convolutions over the grid and a GRU without text, or, which neither paper has, relread's body: a
Q-network that reads, and the same network with empty texts, which shows how much reading adds.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.document_policy import Inputs
from magrounding.agents.modules import around, distance_map, embed_cells, mlp
from magrounding.agents.policy import ATTENTION, Accepts, Batch, Policy, PolicyOutput, TextEncoding, mask_logits
from magrounding.agents.relread.network import Relread, RelreadConfig
from magrounding.agents.remapping import within
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Natural, Options
from magrounding.spec import EnvSpec

PLAY_EPSILON = 0.05
"""Probability of a random action outside training: the final one of PyMARL's training, as QMIX's is by default."""


class QNetwork(Policy):
    """Action values, and the ε-greedy policy they make.

    `logits` are the log-probabilities of that policy: the most likely action is the one of the highest value, and
    sampled play is ε-greedy with `epsilon`.

    Attributes:
        looks_at: the fields of an observation that `evaluate` needs, of those that exist.
        epsilon: probability that a drawn action is any legal one. A learner raises it while it collects episodes.
        who: [n] float32, one-hot, the agent it plays for; part of the weights, so that loaded ones know it.
    """

    looks_at: ClassVar[tuple[str, ...]]

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__(spec)
        self.num_actions, self.epsilon = spec.num_actions, PLAY_EPSILON
        self.who = nn.Buffer(torch.zeros(spec.num_agents))

    def as_agent(self, i: int) -> QNetwork:
        """Return a network with the very same parameters (not copies) that plays for agent i."""
        shared: dict[int, object] = {id(parameter): parameter for parameter in self.parameters()}
        own = copy.deepcopy(self, shared)
        own.who.zero_()[i] = 1
        return own

    @abstractmethod
    def evaluate(
        self, inputs: Inputs, who: Tensor, last_action: Tensor, hidden: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return values Q [R, A] float32 of all actions in N lives of at most T steps, and hidden [N, D] after them.

        Args:
            inputs: the R real steps, time first, with the fields in `looks_at`.
            who: [R, n] one-hot, the agent's id.
            last_action: [R, A] one-hot, the action before; zeros at the start of an episode.
            hidden: [N, D] of `initial_hidden`, or returned by the call before.
            real: [T, N] bool, where the real steps are; a life that is over has no more of them.
        """

    def initial_hidden(self, num_games: int) -> Tensor:
        """Return [N, D] at the start of an episode; D = 0 for a network without memory."""
        return self.who.new_zeros(num_games, 0)

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """Return the hidden state [N, D]; None for a network without memory."""
        hidden = self.initial_hidden(num_envs)
        return hidden if hidden.shape[1] else None

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        return {}

    def forward(self, batch: Batch) -> PolicyOutput:
        """Act on T steps, one after another; `value` is that of the best action."""
        n, read = batch.restarts.shape[1], batch.texts.get("document")
        text = {} if read is None else read.encoding
        last = F.one_hot(batch.last_action.clamp(min=0), self.num_actions).to(torch.float32)
        last = last * (batch.last_action >= 0).unsqueeze(-1)
        now = torch.ones_like(batch.restarts[:1])
        fresh = self.initial_hidden(n)
        hidden, values, memories = fresh if batch.memory is None else batch.memory, [], []
        for t, restart in enumerate(batch.restarts):
            hidden = torch.where(restart.unsqueeze(1), fresh, hidden)
            seen = {name: batch.observation[name][t] for name in self.looks_at if name in batch.observation}
            document = torch.zeros_like(restart, dtype=torch.int64) if read is None else read.index[t]
            q, hidden = self.evaluate(Inputs(seen, text, document), self.who.expand(n, -1), last[t], hidden, now)
            values.append(q)
            memories.append(hidden.to(fresh.dtype))
        q = torch.stack(values)
        logits = epsilon_greedy(q, batch.observation["action_mask"], self.epsilon)
        return PolicyOutput(logits, q.amax(-1), torch.stack(memories) if fresh.shape[1] else None)


def epsilon_greedy(q: Tensor, action_mask: Tensor, epsilon: float) -> Tensor:
    """Return log-probabilities […, A] of the best action of q […, A], or with probability epsilon of any legal one."""
    legal = action_mask.to(q.dtype)
    best = F.one_hot(mask_logits(q, action_mask).argmax(-1), q.shape[-1])
    chance = (1 - epsilon) * best + epsilon * legal / legal.sum(-1, keepdim=True).clamp(min=1)
    return mask_logits(chance.clamp(min=torch.finfo(q.dtype).tiny).log(), action_mask)


@dataclass(frozen=True)
class QmixAgentConfig(Options):
    """Options of the agent network.

    Ding et al. (2023), whose language-free baseline this is, gives no sizes. Width of the recurrent part and its
    inputs are those of the paper's appendix; what looks at the grid is ours, as its agents observe vectors.

    Attributes:
        embedding: width of a word, on the grid or in the inventory.
        maps: channels of both convolutions.
        hidden: units of every layer behind them, and of the GRU.
        reach: look at the square of cells that are so far away or nearer, whatever the map's size, as that paper's
            agents observe what is around them; 0: at the map, and how far away each of its cells is.
    """

    embedding: Count = 16
    maps: Count = 32
    hidden: Count = 64
    reach: Natural = 0


class GridEncoder(nn.Module):
    """Two 3 × 3 convolutions over the summed embeddings of cells and `extra` channels, and a layer on the flat maps."""

    def __init__(
        self, shape: tuple[int, ...], vocabulary_size: int, embedding: int, extra: int, maps: int, out: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary_size, embedding, padding_idx=0)
        self.first = nn.Conv2d(embedding + extra, maps, 3, padding=1)
        self.second = nn.Conv2d(maps, maps, 3, padding=1)
        self.flat = nn.Linear(maps * shape[0] * shape[1], out)

    def forward(self, grid: Tensor, extra: Tensor | None = None) -> Tensor:
        """Return [N, out] of grid [N, H, W, K] and extra [N, E, H, W]."""
        maps = embed_cells(self.words, grid)
        if extra is not None:
            maps = torch.cat((maps, extra), 1)
        maps = F.relu(self.second(F.relu(self.first(maps))))
        return F.relu(self.flat(maps.flatten(1)))


class QmixAgent(QNetwork):
    """A recurrent Q-network over its own observation, last action and agent id, without text."""

    defaults = QmixAgentConfig()
    looks_at = ("grid", "position", "inventory", "action_mask")
    reads: Mapping[str, tuple[str, ...]] = {}
    accepts = Accepts(fields=("position", "inventory", "action_mask"), egocentric=False)

    def __init__(self, spec: EnvSpec, config: QmixAgentConfig) -> None:
        super().__init__(spec)
        self.config = config
        shape, extra, side = spec.grid.shape, 2, 2 * config.reach + 1
        if config.reach:
            shape, extra = (side, side, shape[2]), 0
        else:
            self.grid_shape = shape
        self.look = GridEncoder(shape, spec.vocabulary_size, config.embedding, extra, config.maps, config.hidden)
        seen = config.hidden + config.embedding + spec.num_actions + spec.num_agents
        self.think = nn.Linear(seen, config.hidden)
        self.memory = nn.GRU(config.hidden, config.hidden)
        self.q = nn.Linear(config.hidden, spec.num_actions)

    def initial_hidden(self, num_games: int) -> Tensor:
        return self.who.new_zeros(num_games, self.config.hidden)

    def evaluate(
        self, inputs: Inputs, who: Tensor, last_action: Tensor, hidden: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        observation = inputs.observation
        looked = self._look(observation["grid"], observation["position"])
        held = self.look.words(observation["inventory"].long()).sum(1)
        seen = F.relu(self.think(torch.cat((looked, held, last_action, who), 1)))
        t, life = real.nonzero_static(size=len(seen)).unbind(1)  # of a known number: no wait for a GPU
        lives = seen.new_zeros(*real.shape, seen.shape[1])
        lives[t, life] = seen
        states, hidden = self.memory(lives, hidden.unsqueeze(0))
        return mask_logits(self.q(states[t, life]).float(), observation["action_mask"]), hidden[0]

    def _look(self, grid: Tensor, position: Tensor) -> Tensor:
        if not self.config.reach:
            return self.look(grid, distance_map(position, *grid.shape[1:3]))
        square = around(grid.permute(0, 3, 1, 2), position, 2 * self.config.reach + 1)
        return self.look(square.permute(0, 2, 3, 1))


@dataclass(frozen=True)
class QmixRelreadConfig(RelreadConfig):
    """Options of relread, and one more.

    Attributes:
        blind: every text is empty to it.
    """

    blind: bool = False


class QmixRelread(QNetwork):
    """Action values by the body of relread, without memory; things are known by their own words, too.

    Its two heads become those of a dueling network (Wang et al. 2016, eq. 9): Q = V + A − mean A.

    Raises:
        ConfigurationError: an environment that it is not made for, or the option motion, which takes a memory.
    """

    defaults = QmixRelreadConfig()
    looks_at = ("grid", "position", "inventory", "action_mask", "teammates")
    accepts = Relread.accepts

    def __init__(self, spec: EnvSpec, config: QmixRelreadConfig) -> None:
        super().__init__(spec)
        if config.motion:
            raise ConfigurationError("qmix_relread remembers nothing, so it sees no motion: set its option motion to 0")
        self.config = config = config.for_world(spec)
        self.reader = Relread(spec, config)
        self.words = nn.Embedding(spec.vocabulary_size, config.features, padding_idx=0)
        self.words.weight.data.mul_(0.01)  # words unseen in training stay near 0
        rows = within("reader", self.reader.word_rows) if len(spec.words) == spec.vocabulary_size else None
        self.word_rows = None if rows is None else {**rows, "words.weight": spec.words}
        self.agent = nn.Linear(spec.num_agents + config.features, config.hidden, bias=False)

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        if self.config.blind:
            ids = {field: torch.zeros_like(text) for field, text in ids.items()}
        return self.reader.encode(name, ids)

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor:
        return self.reader.relate_words(text, subjects, names)

    def forward(self, batch: Batch) -> PolicyOutput:
        """Act, see `QNetwork.forward`; `aux` has ATTENTION."""
        output, shape = super().forward(batch), batch.restarts.shape
        seen = {name: batch.observation[name].flatten(0, 1) for name in self.looks_at if name in batch.observation}
        read = batch.texts["document"]

        def attention() -> Tensor:
            things = self.reader.find(seen)
            return self.reader.attention(things, read.encoding, read.index.flatten()).unflatten(0, shape)

        return output._replace(aux={ATTENTION: attention})

    def evaluate(
        self, inputs: Inputs, who: Tensor, last_action: Tensor, hidden: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        observation, text, document = inputs
        things = self.reader.find(observation)
        known = self.words(things.words.clamp(min=0).long()).sum(2)  # the dead hold −1
        features = self.reader.relate(things, text, document) + known[:, :-1] * things.exists.unsqueeze(2)
        beside = self.agent(torch.cat((who, known[:, -1]), 1))
        advantage, value = self.reader.decide(inputs, things, features, beside)
        q = value.unsqueeze(1) + advantage - advantage.mean(1, keepdim=True)
        return mask_logits(q.float(), observation["action_mask"]), hidden


StateLayout = Mapping[str, tuple[slice, tuple[int, ...]]]

_ROW, _COLUMN, _INVENTORY = 0, 1, 3
"""Columns of an agent's place in a state and, from the last on, of its inventory."""
_EMBEDDING, _UNITS = 16, 128
"""Widths of a word, and of what is seen on the grid."""


class StateEncoder(nn.Module):
    """Encoder of states (`EnvSpec.state_layout`) to s [N, 128 + 16 n].

    It has convolutions over the grid with each agent marked, and every agent's inventory.
    """

    def __init__(self, spec: EnvSpec, layout: StateLayout, maps: int) -> None:
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
        hypernetwork: units of the hidden ReLU layer between a state and both weights, 64 in PyMARL (`hypernet_layers` 2
            and `hypernet_embed` of its qmix.yaml); 0: one linear map, as in the paper's section on architecture.
    """

    def __init__(self, encoder: StateEncoder, num_agents: int, hypernetwork: int = 64) -> None:
        super().__init__()
        self.encoder, self.num_agents, hidden = encoder, num_agents, 32  # units of the mixing network
        self.first_weight = _hypernetwork(encoder.width, hypernetwork, hidden * num_agents)
        self.first_bias = nn.Linear(encoder.width, hidden)
        self.second_weight = _hypernetwork(encoder.width, hypernetwork, hidden)
        self.second_bias = mlp(encoder.width, hidden, 1)

    def forward(self, q: Tensor, state: Tensor) -> Tensor:
        """Return Q_tot [N] from the agents' values q [N, n] and states [N, S]."""
        s = self.encoder(state)
        weight = self.first_weight(s).abs().view(len(q), self.num_agents, -1)  # [N, n, hidden]
        mixed = F.elu(torch.bmm(q.unsqueeze(1), weight).squeeze(1) + self.first_bias(s))
        return (mixed * self.second_weight(s).abs()).sum(1) + self.second_bias(s).squeeze(1)


def _hypernetwork(state: int, hidden: int, out: int) -> nn.Module:
    """Weights [N, out] of states [N, state], by one layer or two."""
    return mlp(state, hidden, out) if hidden else nn.Linear(state, out)
