"""Policy: what learners, teams and evaluation ask of an agent's network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.errors import ConfigurationError, choose
from magrounding.registry import agent_entry, load
from magrounding.spec import EnvSpec, FixedActions, Grid

TextEncoding = dict[str, Tensor]
"""What a policy keeps of U distinct texts: every tensor has U as its first dimension.

The second may differ from call to call, as the longest text decides it; zeros at its end are padding.
"""

LABELS, OTHERS, STATE = "labels", "others", "state"
"""What a policy or an algorithm can need beyond its own column, by name (`Policy.needs`, `AlgorithmConfig.needs`).

labels: [T, B, A] bool, the actions that an expert holds to be best; none where the agent does not act.
others: [T, B, n − 1] int64, what the other agents did in the same step, in agent order; −1 for one that did not act.
state: [T, B, S] int16, the whole games.
"""

MARKS = "marks"
"""What networks tell of a step that costs next to nothing: [T, B, H, W] int8, 1 for the cells that the agent claims, 0
for those that it leaves to others, −1 where there is nothing."""

CONTRAST = "contrast"
"""The loss that grounds symbols without rewards or labels: what is on a board is what its own manual speaks of.

InfoNCE (van den Oord et al. 2018) over the first boards of U episodes and their U manuals, both ways. The score of a
board and a manual is the sum, over the board's entities, of the log of the sum of how well each statement fits.
"""

Config = TypeVar("Config")

StepDiagnostics = Callable[[Sequence[Mapping[str, np.ndarray]], np.ndarray, np.ndarray], dict[str, np.ndarray]]
"""(what each agent's network `told` [R, …], actions [R, n], acted [R, n] bool) → name → [R, n], nan: nothing."""


@dataclass(frozen=True)
class Reading:
    """What a batch shows of one kind of text.

    Attributes:
        encoding: of U distinct texts.
        index: [T, B] int64, which of them each observation shows; [T, B, C] for texts to choose from.
        ids: their word ids [U, …] by field, for losses that read them once more; None while acting.
    """

    encoding: TextEncoding
    index: Tensor
    ids: dict[str, Tensor] | None = None


class Batch(NamedTuple):
    """T steps of B games as one agent saw them. Acting is T = 1.

    Attributes:
        observation: [T, B, …] for each of the agent's fields that is no text, as the world wrote them.
        texts: by the names in `Policy.reads`.
        memory: [B, …] before the first step, or None for a policy that does not remember.
        restarts: [T, B] bool, the observation is the first of an episode: memory starts afresh there.
        last_action: [T, B] int64, what the agent did in the step before; −1 at the start of an episode.
        record: [T, B, …] by name, what the policy wanted to be replayed (`Policy.draw_record`, `PolicyOutput.record`);
            empty in play without exploration inside the network.
    """

    observation: dict[str, Tensor]
    texts: dict[str, Reading]
    memory: Tensor | None
    restarts: Tensor
    last_action: Tensor
    record: Mapping[str, Tensor] = MappingProxyType({})


class PolicyOutput(NamedTuple):
    """What a network makes of a batch.

    Attributes:
        logits: [T, B, A], masked actions at the dtype's minimum.
        value: [T, B].
        memory: [T, B, …] after each step, or None.
        record: [T, B, …] by name, what has to be there again when the step is replayed.
        told: by name, what can be shown of the step (MARKS, guesses), as functions that compute [T, B, …] when it is
            asked for; never learnt from.
        seen: intermediate results of this pass that the network's own `losses` use.
    """

    logits: Tensor
    value: Tensor
    memory: Tensor | None = None
    record: Mapping[str, Tensor] = MappingProxyType({})
    told: Mapping[str, Callable[[], Tensor]] = MappingProxyType({})
    seen: Any = None


class Learnt(NamedTuple):
    """What a network learns beside actions and values.

    Attributes:
        losses: name → [T, B], of which learners descend the mean over living steps, or a scalar for the whole batch.
        facts: name → [T, B] for the log, nan where there is nothing to say.
    """

    losses: Mapping[str, Tensor] = MappingProxyType({})
    facts: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class Accepts:
    """What a network can be built for; all else is refused in a sentence, never learnt over.

    Attributes:
        actions: kinds of ActionSpec.
        grid: whether it looks at a map.
        fields: what else it has to be shown.
        egocentric: True: only maps that turn with the agent; False: only maps that do not; None: either.
    """

    actions: tuple[type, ...] = (FixedActions,)
    grid: bool = True
    fields: tuple[str, ...] = ()
    egocentric: bool | None = None

    def check(self, who: str, spec: EnvSpec) -> None:
        """Raise a ConfigurationError where a network cannot be built for `spec`."""
        if not isinstance(spec.actions, self.actions):
            known = " or ".join(kind.__name__ for kind in self.actions)
            raise ConfigurationError(
                f"{who} chooses from {known}, this world offers {type(spec.actions).__name__}: choose another agent"
            )
        missing = [name for name in self.fields if name not in spec]
        grids = [each for each in spec.fields if isinstance(each, Grid)]
        if missing or (self.grid and not grids):
            what = ", ".join(missing or ["grid"])
            raise ConfigurationError(f"{who} looks at {what}, which this world does not show: choose another agent")
        if self.egocentric is not None and grids and grids[0].egocentric != self.egocentric:
            here, there = ("turns with the agent", "lies still")[:: 1 if grids[0].egocentric else -1]
            raise ConfigurationError(f"the map of this world {here}, {who} is made for one that {there}")


class Policy(nn.Module, ABC):
    """One agent's network; `config` holds its options.

    Text is encoded once for each distinct text; `forward` gathers what it needs by index, so a step never reads a text
    again.

    Args:
        spec: of the world.

    Raises:
        ConfigurationError: a world that the network is not made for.

    Attributes:
        accepts: the worlds it is made for.
        reads: name → the text fields that it reads together, as one text. Fields that a world lacks are empty.
        needs: of LABELS, OTHERS, STATE, what its `losses` take.
        loss_weights: default weights of its `losses`, by name; a learner's options change them, 0 is left out.
        diagnostics: what can be counted over the steps of a team of such networks, from what they `told`.
    """

    accepts: ClassVar[Accepts] = Accepts()
    reads: Mapping[str, tuple[str, ...]] = MappingProxyType({"document": ("manual", "goal")})
    needs: frozenset[str] = frozenset()
    loss_weights: ClassVar[Mapping[str, float]] = MappingProxyType({})
    diagnostics: ClassVar[StepDiagnostics | None] = None
    config: Any

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        self.accepts.check(type(self).__name__.lower(), spec)

    @abstractmethod
    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Encode U distinct texts.

        Args:
            name: one of `reads`.
            ids: [U, …] integer word ids of each of its fields, 0 is padding; [U, 0] of a field that the world lacks.
        """

    @abstractmethod
    def forward(self, batch: Batch) -> PolicyOutput:
        """Act on T steps of B games."""

    def losses(
        self, batch: Batch, output: PolicyOutput, extras: Mapping[str, Tensor], wanted: Collection[str]
    ) -> Learnt:
        """What is learnt beside actions and values.

        Args:
            batch, output: what `forward` was given and made of it.
            extras: [T, B, …] of each of `needs` that is known.
            wanted: names of losses that a learner weighs with more than 0, for those that are costly.
        """
        return Learnt()

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """Memory [N, …] at the start of an episode; None for a policy without one."""
        return None

    def draw_record(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Random numbers [*shape, …] by name, on the CPU, behind so many forward passes in training."""
        return {}


class DocumentPolicy(Policy):
    """A policy that reads one document for each game and responds to each observation by itself.

    Where it remembers, its memory either follows from what it saw (`memories`, so that all steps are replayed at once)
    or is recurrent (`unroll`).
    """

    @abstractmethod
    def encode_text(self, manual: Tensor, goal: Tensor) -> TextEncoding:
        """Encode U distinct documents: manual [U, S, L], goal [U, G], integer ids, 0 is padding."""

    @abstractmethod
    def respond(
        self,
        observation: dict[str, Tensor],
        text: TextEncoding,
        document: Tensor,
        memory: Tensor | None = None,
    ) -> PolicyOutput:
        """Act on N observations; the output has N where that of `forward` has [T, B].

        Args:
            observation: one agent's fields: `grid` [N, H, W, K], `position` [N, 2], `inventory` [N, I],
                `action_mask` [N, A], `teammates` [N, n-1, 2+I] (several agents only), integer tensors as the world
                wrote them; and what `draw_record` gave.
            text: encoding of U documents.
            document: [N] int64, which of the U documents each observation reads.
            memory: [N, …] for policies that remember.
        """

    def auxiliary(
        self,
        observation: dict[str, Tensor],
        text: TextEncoding,
        document: Tensor,
        output: PolicyOutput,
        others: Tensor | None,
    ) -> Learnt:
        """What is learnt beside actions and values, of N observations (losses [N]).

        Args:
            observation, text, document: as in `respond`.
            output: what `respond` made of them.
            others: [N, n − 1], see OTHERS; None where it is not known.
        """
        return Learnt()

    def contrast(self, observation: dict[str, Tensor], text: TextEncoding) -> Tensor:
        """The scalar loss CONTRAST.

        Args:
            observation: U observations, as in `respond`.
            text: encoding of the U documents that they belong to, in order.

        Raises:
            ConfigurationError: a network that has no such loss.
        """
        raise ConfigurationError(f"{type(self).__name__.lower()} has no contrastive loss: set `contrast` to 0")

    def memories(self, memory: Tensor, observation: dict[str, Tensor], restarts: Tensor) -> Tensor | None:
        """The memory before each of T steps, where it follows from what was seen.

        Args:
            memory: [B, …] before the first step.
            observation: [T, B, …] for each key.
            restarts: [T, B] bool.

        Returns:
            [T, B, …]; None for a recurrent policy.
        """
        return None

    def unroll(
        self, observation: dict[str, Tensor], text: TextEncoding, document: Tensor, memory: Tensor, restarts: Tensor
    ) -> PolicyOutput:
        """Act on T steps of B games one after another, as a recurrent policy has to.

        A policy of which only a part is recurrent overrides this and computes the rest for all steps at once.

        Args:
            observation, text, document: as in `respond`, with N = T · B rows, time first.
            memory: [B, …] before the first step.
            restarts: [T, B] bool.
        """
        batch = restarts.shape[1]
        outputs = []
        for t, restart in enumerate(restarts):
            rows = slice(t * batch, (t + 1) * batch)
            memory = self._begin(memory, restart)
            seen = {name: tensor[rows] for name, tensor in observation.items()}
            output = self.respond(seen, text, document[rows], memory)
            memory = memory if output.memory is None else output.memory
            outputs.append((output.logits, output.value, memory))
        logits, values, memories = (torch.cat(parts) for parts in zip(*outputs, strict=True))
        return PolicyOutput(logits, values, memories)

    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        return self.encode_text(ids["manual"], ids["goal"])

    def forward(self, batch: Batch) -> PolicyOutput:
        shape = batch.restarts.shape
        observation, text, document = self._flat(batch)
        memory = batch.memory
        if memory is not None and shape[0] == 1:
            memory = self._begin(memory, batch.restarts[0])
        elif memory is not None:
            before = self.memories(memory, batch.observation, batch.restarts)
            if before is None:
                return _unflatten(self.unroll(observation, text, document, memory, batch.restarts), shape)
            memory = before.flatten(0, 1)
        return _unflatten(self.respond(observation, text, document, memory), shape)

    def losses(
        self, batch: Batch, output: PolicyOutput, extras: Mapping[str, Tensor], wanted: Collection[str]
    ) -> Learnt:
        shape = batch.restarts.shape
        observation, text, document = self._flat(batch)
        others = extras[OTHERS].flatten(0, 1) if OTHERS in extras else None
        flat, facts = self.auxiliary(observation, text, document, output, others)
        losses, facts = ({name: each.unflatten(0, shape) for name, each in part.items()} for part in (flat, facts))
        if CONTRAST in wanted:
            losses[CONTRAST] = self._contrast(observation, batch.texts["document"])
        return Learnt(losses, facts)

    def _contrast(self, observation: dict[str, Tensor], reading: Reading) -> Tensor:
        """The contrastive loss of the first board and the document of each episode."""
        if reading.ids is None:
            raise TypeError("the contrastive loss reads its documents: give the batch their ids")
        _, first = np.unique(reading.index.cpu().numpy(), return_index=True)
        rows = torch.from_numpy(first).to(reading.index.device)
        with torch.autocast(reading.index.device.type, enabled=False):
            boards = {name: array.index_select(0, rows) for name, array in observation.items()}
            return self.contrast(boards, self.encode("document", reading.ids))

    def _flat(self, batch: Batch) -> tuple[dict[str, Tensor], TextEncoding, Tensor]:
        """What `respond` takes, [T · B, …]."""
        read = batch.texts["document"]
        seen = {name: tensor.flatten(0, 1) for name, tensor in {**batch.observation, **batch.record}.items()}
        return seen, read.encoding, read.index.flatten()

    def _begin(self, memory: Tensor, restart: Tensor) -> Tensor:
        """Memory [B, …] with a fresh start where an episode begins [B]."""
        fresh = self.initial_memory(len(restart))
        if fresh is None:
            raise TypeError("only a policy with a memory is given one")
        return torch.where(restart.view(-1, *[1] * (memory.dim() - 1)), fresh.to(memory.device), memory)


def _unflatten(output: PolicyOutput, shape: torch.Size) -> PolicyOutput:
    """[T, B, …] of an output's [T · B, …]; what the network itself goes on from stays as it is."""
    return PolicyOutput(
        output.logits.unflatten(0, shape),
        output.value.unflatten(0, shape),
        None if output.memory is None else output.memory.unflatten(0, shape),
        {name: each.unflatten(0, shape) for name, each in output.record.items()},
        {name: lambda each=each: each().unflatten(0, shape) for name, each in output.told.items()},
        output.seen,
    )


def info_nce(scores: Tensor) -> Tensor:
    """InfoNCE both ways: scores [U, U] of every board with every manual, those that belong together on the diagonal."""
    own = torch.arange(len(scores), device=scores.device)
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.t(), own)) / 2


def mask_logits(logits: Tensor, action_mask: Tensor) -> Tensor:
    """logits […, A], those of masked actions at the dtype's minimum: probability exactly 0 and no infinity."""
    return torch.where(action_mask.bool(), logits, torch.finfo(logits.dtype).min)


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


def make_policy(id: str, spec: EnvSpec, **options: Any) -> Policy:
    """Make the untrained network of an agent.

    Args:
        id: agent id, e.g. "txt2pi".
        spec: of the world.
        options: options of its policy, JSON values.

    Raises:
        ConfigurationError: an unknown id or option, an option that the id itself decides, a value that cannot be, or a
            world that the network is not made for.
    """
    entry = agent_entry(id)
    for name in options:
        if name in entry.options:
            raise ConfigurationError(f"agent {id!r} itself sets {name} to {entry.options[name]!r}: leave it out")
    return load(entry.policy)(spec, **entry.options, **options)


def build_policy(agent: str, spec: EnvSpec, options: Mapping[str, Any], seed: int) -> Policy:
    """A fresh network of an agent id, its weights drawn from `seed`; torch's own random state is left as it was."""
    entry = agent_entry(agent)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load(entry.policy)(spec, **{**entry.options, **options})


def configure(agent: str, defaults: Config, options: Mapping[str, Any]) -> Config:
    """The defaults (a frozen dataclass) with some options changed; lists become tuples, as JSON has none."""
    known = tuple(each.name for each in fields(defaults))  # type: ignore[arg-type]
    changes = {
        choose(f"option of {agent}", name, known): tuple(value) if isinstance(value, list) else value
        for name, value in options.items()
    }
    return replace(defaults, **changes)  # type: ignore[type-var]


def check_config(config: Any) -> None:
    """Raise a ConfigurationError unless flags are flags and sizes positive integers (or a default of 0)."""
    for each in fields(config):
        value = getattr(config, each.name)
        if isinstance(each.default, bool):
            if not isinstance(value, bool):
                raise ConfigurationError(f"{each.name} is true or false, not {value!r}")
        elif isinstance(each.default, int | tuple):
            many = isinstance(each.default, tuple)
            sizes = value if many else (value,)
            least = 0 if each.default == 0 else 1
            if not isinstance(sizes, tuple) or not sizes or any(type(n) is not int or n < least for n in sizes):
                what = "a list of positive integers" if many else "a positive integer" if least else "0 or positive"
                raise ConfigurationError(f"{each.name} is {what}, not {value!r}")
