"""Policy: what learners, teams and evaluation ask of an agent's network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.errors import ConfigurationError, choose
from magrounding.observation import ObservationSpec
from magrounding.registry import agent_entry, load

if TYPE_CHECKING:
    from magrounding.endi.division import Division

TextEncoding = dict[str, Tensor]
"""What a policy keeps of U distinct documents: every tensor has U as its first dimension.

The second may differ from call to call, as the longest document decides it; zeros at its end are padding.
"""

Config = TypeVar("Config")


class PolicyOutput(NamedTuple):
    """What a network makes of N observations.

    Attributes:
        logits: [N, A], masked actions at the dtype's minimum.
        value: [N].
        memory: [N, …] or None.
        division: how it divided the entities between itself and others, where it does.
        seen: whatever of this pass the network's own `auxiliary` goes on from.
    """

    logits: Tensor
    value: Tensor
    memory: Tensor | None = None
    division: Division | None = None
    seen: Any = None


class Others(NamedTuple):
    """What the other agents did in the same step, in agent order.

    Attributes:
        action: [N, n − 1] int64.
        acted: [N, n − 1] bool, false for the dead and where nobody knows.
    """

    action: Tensor
    acted: Tensor


class Auxiliary(NamedTuple):
    """What a network learns beside actions and values, of N observations; learners weigh it.

    Attributes:
        modelling: [N], loss of foreseeing what others do, or how things move, or None.
        division: [N], loss of dividing entities badly, or None.
        facts: name → [N] for the log, nan where there is nothing to tell.
    """

    modelling: Tensor | None
    division: Tensor | None
    facts: dict[str, Tensor]


class Policy(nn.Module, ABC):
    """One agent's network; `config` holds its options.

    Text is encoded once for each distinct document; `forward` gathers what it needs by index, so a step never reads a
    document again.

    Attributes:
        config: options.
        models_others: it is to be told, after the event, what the other agents did.
    """

    config: Any
    models_others: bool = False

    @abstractmethod
    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U distinct documents: manual [U, S, L], goal [U, G], integer ids, 0 is padding."""

    @abstractmethod
    def forward(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, memory: Tensor | None = None
    ) -> PolicyOutput:
        """Act on N observations.

        Args:
            observation: one agent's keys: `grid` [N, H, W, K], `position` [N, 2], `inventory` [N, I],
                `action_mask` [N, A], `teammates` [N, n-1, 2+I] (several agents only); integer tensors as the world
                wrote them. While training also `noise` [N, …], where `draw_noise` gave any.
            text: encoding of U documents.
            document: [N] int64, which of the U documents each observation reads.
            memory: [N, …] for policies that remember.
        """

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        """A loss that grounds symbols without rewards or labels: what is on a board is what its own manual speaks of.

        InfoNCE (van den Oord et al. 2018) over U boards and their U manuals, both ways. The score of a board and a
        manual is the sum, over the board's entities, of the log of the sum of how well each statement fits.

        Args:
            observation: U observations, as in `forward`.
            text: encoding of the U documents that they belong to, in order.

        Raises:
            ConfigurationError: a network that has no such loss.
        """
        raise ConfigurationError(f"{type(self).__name__.lower()} has no contrastive loss: set `contrast` to 0")

    def draw_noise(self, num_envs: int, generator: torch.Generator | None = None) -> Tensor | None:
        """Random numbers [N, …], on the CPU, for N forward passes in training; learners replay them. None: no need."""
        return None

    def auxiliary(
        self,
        observation: dict[str, Tensor],
        text: TextEncoding,
        document: Tensor,
        output: PolicyOutput,
        others: Others | None,
    ) -> Auxiliary | None:
        """What is learnt beside actions and values; None: nothing.

        Args:
            observation, text, document: as in `forward`.
            output: what `forward` made of them.
            others: what the other agents then did; None where nobody says.
        """
        return None

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """Memory at the start of an episode; None for a policy without one."""
        return None

    def remember(self, memory: Tensor, action: Tensor) -> Tensor:
        """The memory [N, …] that `forward` gave, once it is known which actions [N] were taken: the same by default."""
        return memory

    def memories(self, memory: Tensor, observation: dict[str, Tensor], restarts: Tensor) -> Tensor | None:
        """The memory before each of T steps, where it follows from what was seen: learners then replay all at once.

        Args:
            memory: [B, …] before the first step.
            observation: [T, B, …] for each key.
            restarts: [T, B] bool, the observation is the first of an episode.

        Returns:
            [T, B, …]; None for a recurrent policy, whose memory takes a step to know (see `unroll`).
        """
        return None

    def unroll(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, memory: Tensor, restarts: Tensor
    ) -> PolicyOutput:
        """Act on T steps of B games one after another, as a recurrent policy has to; learners replay with it.

        A policy of which only a part is recurrent overrides this and computes the rest for all steps at once.

        Args:
            observation, text, document: as in `forward`, with N = T · B rows, time first.
            memory: [B, …] before the first step.
            restarts: [T, B] bool, the observation is the first of an episode.

        Returns:
            The outputs of all N rows; `memory` is that after each.
        """
        batch = restarts.shape[1]
        fresh = self.initial_memory(batch)
        if fresh is None:
            raise TypeError("only a recurrent policy is unrolled step by step")
        fresh, outputs = fresh.to(memory.device), []
        for t, restart in enumerate(restarts):
            rows = slice(t * batch, (t + 1) * batch)
            memory = torch.where(restart.view(-1, *[1] * (memory.dim() - 1)), fresh, memory)
            seen = {name: tensor[rows] for name, tensor in observation.items()}
            output = self(seen, text, document[rows], memory)
            memory = memory if output.memory is None else output.memory
            outputs.append(PolicyOutput(output.logits, output.value, memory))
        logits, value, memories, *_ = zip(*outputs, strict=True)
        return PolicyOutput(torch.cat(logits), torch.cat(value), torch.cat(memories))


def info_nce(scores: Tensor) -> Tensor:
    """InfoNCE both ways: scores [U, U] of every board with every manual, those that belong together on the diagonal."""
    own = torch.arange(len(scores), device=scores.device)
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.t(), own)) / 2


def mask_logits(logits: Tensor, action_mask: Tensor) -> Tensor:
    """logits [N, A], those of masked actions at the dtype's minimum: probability exactly 0 and no infinity."""
    return torch.where(action_mask.bool(), logits, torch.finfo(logits.dtype).min)


def overwrite_documents(kept: TextEncoding, rows: Tensor, new: TextEncoding) -> TextEncoding:
    """Write the documents of `new` [R, …] over those at `rows` [R] int64 of `kept`, in place where they fit.

    Where a new document is longer than all that were kept, the kept ones are padded with zeros first: use the returned
    encoding. For encodings without gradients.
    """
    return {
        name: _pad_to(tensor, new[name].shape).index_copy_(0, rows, _pad_to(new[name], tensor.shape))
        for name, tensor in kept.items()
    }


def _pad_to(tensor: Tensor, shape: torch.Size) -> Tensor:
    """The tensor with zeros behind each axis but the first that is shorter than in `shape`."""
    missing = [max(want - have, 0) for want, have in zip(shape[1:], tensor.shape[1:], strict=True)]
    return F.pad(tensor, [side for size in reversed(missing) for side in (0, size)]) if any(missing) else tensor


def freeze(policy: Policy, names: Sequence[str]) -> None:
    """Keep all parameters from learning whose names begin with one of `names`; ConfigurationError where none does."""
    for name in names:
        found = [parameter for known, parameter in policy.named_parameters() if known.startswith(name)]
        if not found:
            raise ConfigurationError(
                f"{type(policy).__name__.lower()} has no parameter whose name begins with {name!r}"
            )
        for parameter in found:
            parameter.requires_grad_(False)


def make_policy(id: str, spec: ObservationSpec, **options: Any) -> Policy:
    """Make the untrained network of an agent.

    Args:
        id: agent id, e.g. "txt2pi".
        spec: what it observes.
        options: options of its policy, JSON values.

    Raises:
        ConfigurationError: an unknown id or option, an option that the id itself decides, or a value that cannot be.
    """
    entry = agent_entry(id)
    for name in options:
        if name in entry.options:
            raise ConfigurationError(f"agent {id!r} itself sets {name} to {entry.options[name]!r}: leave it out")
    return load(entry.policy)(spec, **entry.options, **options)


def configure(agent: str, defaults: Config, options: Mapping[str, Any]) -> Config:
    """The defaults (a frozen dataclass) with some options changed; lists become tuples, as JSON has none."""
    known = tuple(field.name for field in fields(defaults))  # type: ignore[arg-type]
    changes = {
        choose(f"option of {agent}", name, known): tuple(value) if isinstance(value, list) else value
        for name, value in options.items()
    }
    return replace(defaults, **changes)  # type: ignore[type-var]


def check_config(config: Any) -> None:
    """Raise a ConfigurationError unless flags are flags and sizes positive integers (or a default of 0)."""
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(field.default, bool):
            if not isinstance(value, bool):
                raise ConfigurationError(f"{field.name} is true or false, not {value!r}")
        elif isinstance(field.default, int | tuple):
            many = isinstance(field.default, tuple)
            sizes = value if many else (value,)
            least = 0 if field.default == 0 else 1
            if not isinstance(sizes, tuple) or not sizes or any(type(n) is not int or n < least for n in sizes):
                what = "a list of positive integers" if many else "a positive integer" if least else "0 or positive"
                raise ConfigurationError(f"{field.name} is {what}, not {value!r}")
