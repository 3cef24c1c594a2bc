"""babyai_small, babyai_large: the networks of BabyAI (Chevalier-Boisvert et al. 2019, sec. 4, app. A), as released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.language import TextEncoder, Words
from magrounding.agents.modules import attend_once, mlp
from magrounding.agents.policy import Accepts, Batch, Policy, PolicyOutput, TextEncoding
from magrounding.errors import ConfigurationError
from magrounding.schema import Count, Options
from magrounding.single.babyai.words import VIEW, VOCABULARY, WORD_TO_COLOUR, WORD_TO_STATE, WORD_TO_TYPE
from magrounding.spec import EnvSpec

_WORDS = 100
"""Rows of the word table, as released; the vocabulary of BabyAI has fewer."""

_BLOCKS = 2


@dataclass(frozen=True)
class BabyAIConfig(Options):
    """Sizes of the networks of BabyAI.

    Attributes:
        words: width of a word's embedding and of what is known of the instruction.
        channels: of the convolutions.
        memory: units of the LSTM.
        head: width of the hidden layer of actor and critic.
        attention: the instruction is read both ways, and before each step the memory looks up its words; without, it is
            read once, to its last word.
    """

    words: Count = 128
    channels: Count = 128
    memory: Count = 128
    head: Count = 64
    attention: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attention and self.words % 2:
            raise ConfigurationError(f"words is even where attention reads both ways, not {self.words}")


class FiLM(nn.Module):
    """Two convolutions, of which the instruction scales and shifts the second (Perez et al. 2018); no residual."""

    def __init__(self, text_width: int, channels: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU())
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.scale, self.shift = nn.Linear(text_width, channels), nn.Linear(text_width, channels)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, features: Tensor, text: Tensor) -> Tensor:
        """Return [N, C, H, W] of features [N, C, H, W] and text [N, text_width]."""
        scale, shift = self.scale(text)[:, :, None, None], self.shift(text)[:, :, None, None]
        return F.relu(self.norm(torch.addcmul(shift, scale, self.second(self.first(features)))))


class BabyAINetwork(Policy):
    """Convolutions modulated by the instruction, and an LSTM.

    The image is minigrid's raw numbers of type, colour and state. Every step is computed by itself, as in the released
    program, where batch normalisation takes the statistics of the B episodes of one step: in training mode, while games
    are collected as well as in learning, or the policy that acts is not the one that learns. In evaluation mode it
    takes running statistics.

    Raises:
        ConfigurationError: an environment that is not BabyAI.
    """

    defaults = BabyAIConfig()
    accepts = Accepts(fields=("goal", "action_mask"), egocentric=True)
    divisible = False
    by_batch = True
    reads = {"mission": ("goal",)}  # noqa: RUF012  the base class declares it

    def __init__(self, spec: EnvSpec, config: BabyAIConfig) -> None:
        super().__init__(spec)
        if spec.words != VOCABULARY.words or spec.grid.shape != (VIEW, VIEW, 3):
            raise ConfigurationError(
                "the networks of BabyAI see numbers of its cells, which this world has not: choose viewread"
            )
        self.config = config
        width, channels, memory = config.words, config.channels, config.memory
        planes = torch.stack([torch.from_numpy(t).float() for t in (WORD_TO_TYPE, WORD_TO_COLOUR, WORD_TO_STATE)])
        self.planes = nn.Buffer(planes, persistent=False)  # [3, V], minigrid's numbers by word id
        self.words = nn.Embedding(_WORDS, width)
        self.reader = TextEncoder(width, width // 2, "gru") if config.attention else nn.GRU(width, width)
        self.key = nn.Linear(2 * memory, width) if config.attention else None
        self.stem = nn.Sequential(
            *(nn.Conv2d(3, channels, 2, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2)),
        )
        self.blocks = nn.ModuleList(FiLM(width, channels) for _ in range(_BLOCKS))
        self.memory = nn.LSTMCell(channels, memory)
        self.actor = mlp(memory, config.head, spec.num_actions, nn.Tanh)
        self.critic = mlp(memory, config.head, 1, nn.Tanh)
        self.apply(_unit_rows)
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]  norms and pools take half the time

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Return `states` [U, L, words] and `spoken` [U, L] with attention, else the last state `last` [U, words]."""
        goal = ids["goal"].flatten(1).long()
        length = (goal > 0).sum(1)  # words come first, padding last
        goal = goal[:, : max(1, int(length.max()))]
        if isinstance(self.reader, TextEncoder):
            states, spoken = self.reader(self.words, Words(goal, length))
            return {"states": states * spoken.unsqueeze(2), "spoken": spoken}
        states, _ = self.reader(self.words(goal.t()))
        return {"last": states[(length - 1).clamp(min=0), torch.arange(len(goal), device=goal.device)]}

    def initial_memory(self, num_envs: int) -> Tensor:
        """Return [N, 2, memory]: hidden state and cell of the LSTM."""
        return self.planes.new_zeros(num_envs, 2, self.config.memory)

    def forward(self, batch: Batch) -> PolicyOutput:
        reading, shape = batch.texts["mission"], batch.restarts.shape
        text, memory = reading.encoding, batch.memory
        memory = self.initial_memory(shape[1]) if memory is None else memory
        keep = (~batch.restarts).to(memory.dtype).view(*shape, 1, 1)
        images = self.image(batch.observation["grid"].flatten(0, 1)).split(shape[1])
        memories = []
        for t, image in enumerate(images):
            memory = memory * keep[t]
            if self.key:
                now, key = reading.index[t], self.key(memory.flatten(1))
                mission, _ = attend_once(text["states"][now], text["spoken"][now], key)
            else:
                mission = text["last"][reading.index[t]]
            seen = self.look(self.stem(image), mission)
            memory = torch.stack(self.memory(seen, (memory[:, 0], memory[:, 1])), 1)
            memories.append(memory)
        after = torch.stack(memories)
        logits, value = self.actor(after[:, :, 0]), self.critic(after[:, :, 0]).squeeze(-1)
        return PolicyOutput.masked(logits, value, batch.observation, after)

    def image(self, grid: Tensor) -> Tensor:
        """Return minigrid's image [N, 3, 7, 7] float32, column before row, of grid [N, 7, 7, 3]."""
        planes = [table[words] for table, words in zip(self.planes, grid.long().unbind(3), strict=True)]
        return torch.stack(planes, 3).permute(0, 3, 2, 1).contiguous(memory_format=torch.channels_last)

    def look(self, maps: Tensor, text: Tensor) -> Tensor:
        """Return features [N, channels] of maps [N, channels, 2, 2] and the encoded instruction [N, words]."""
        for block in self.blocks:
            maps = block(maps, text)
        return F.relu(F.max_pool2d(maps, 2)).flatten(1)


class BabyAILarge(BabyAINetwork):
    """The large network (20,348,552 parameters; the small one has 1,068,168)."""

    defaults = BabyAIConfig(words=256, memory=2048, attention=True)


def _unit_rows(module: nn.Module) -> None:
    """Draw the rows of a linear map from a normal, scale them to norm 1, and start without bias (as released)."""
    if isinstance(module, nn.Linear):
        with torch.no_grad():
            module.weight.normal_()
            module.weight.div_(module.weight.norm(dim=1, keepdim=True))
            module.bias.zero_()
