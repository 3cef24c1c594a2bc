"""Policy: the interface of an agent's network towards learners, teams and evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from textwrap import shorten
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.weights import fit_weights
from magrounding.brief import brief
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec, FixedActions, Grid

TextEncoding = dict[str, Tensor]
"""Encoding of U distinct texts: every tensor has U as its first dimension.

The second is the length of the longest text of the call; zeros at its end are padding.
"""

LABELS, COSTS_TO_GO, OTHERS, STATE = "labels", "costs_to_go", "others", "state"
TARGETS, SUBGOALS, STATEMENTS = "targets", "subgoals", "statements"
REASONS = frozenset({TARGETS, SUBGOALS, STATEMENTS})
"""Data beyond an agent's own trajectory, by name (`Policy.needs`, `AlgorithmConfig.needs`).

labels: [T, B, A] bool, the best actions by an expert's judgement; none where the agent does not act.
costs_to_go: [T, B, A] float32 in [0, 1], the loss of winning probability of each action; only of some experts.
others: [T, B, n − 1] int64, actions of the other agents in the same step, in agent order; −1 for one that did not act.
state: [T, B, S] int16, the full states.
targets, subgoals: [T, B, H, W] bool, and statements: [T, B, S] bool, an expert's reasons (`capabilities.Reasons`).
"""

MARKS = "marks"
"""Key of `PolicyOutput.aux`, [T, B, H, W] int8: 1 for the cells that the agent claims, 0 for those left to others, −1
elsewhere.
"""

ATTENTION = "attention"
"""Key of `PolicyOutput.aux`, [T, B, S]: the attention to each of the S rows of the manual.

It is not negative and sums up to 1 (0 where nothing in sight asks): the mean over all queries. It tells where a network
looks, not the effect on its actions.
"""

WORD_ATTENTION = "word_attention"
"""Key of `PolicyOutput.aux`, [T, B, 1 + K, L]: the attention of the goal's query, and of each of K layers, to words.

The words are those of the manual, row after row; behind them stands the terminator. A row is not negative and sums up
to 1; the first is 0 in networks whose goal asks nothing.
"""

CONTRAST = "contrast"
"""Name of the loss that grounds symbols without rewards or labels, from entities on the map and their manual.

InfoNCE (van den Oord et al. 2018) over the first observations of U episodes and their U manuals, both ways. The score
of an observation and a manual is the sum over entities of the log-sum-exp over statements of how well each fits.
"""

StepDiagnostics = Callable[[Sequence[Mapping[str, np.ndarray]], np.ndarray, np.ndarray], dict[str, np.ndarray]]
"""(`PolicyOutput.aux` of each agent [R, …], actions [R, n], acted [R, n] bool) → name → [R, n], nan: nothing."""


@dataclass(frozen=True)
class Reading:
    """Texts of one kind in a batch.

    Attributes:
        encoding: of U distinct texts.
        index: [T, B] int64, the text of each observation; [T, B, C] for texts to choose from.
        ids: their word ids [U, …] by field, for losses that encode them again; None while acting.
    """

    __repr__ = brief

    encoding: TextEncoding
    index: Tensor
    ids: dict[str, Tensor] | None = None


class Batch(NamedTuple):
    """T steps of B episodes of one agent. Acting is T = 1.

    Attributes:
        observation: [T, B, …] for each of the agent's fields that is no text, as the environment wrote them.
        texts: by the names in `Policy.reads`.
        memory: [B, …] before the first step, or None for a policy without memory.
        restarts: [T, B] bool, first observation of an episode: memory is reset there.
        last_action: [T, B] int64, the agent's previous action; −1 at the start of an episode.
        record: [T, B, …] by name, recorded random numbers and intermediate results (`Policy.draw_record`,
            `PolicyOutput.record`); empty in play without exploration inside the network.
    """

    __repr__ = brief

    observation: dict[str, Tensor]
    texts: dict[str, Reading]
    memory: Tensor | None
    restarts: Tensor
    last_action: Tensor
    record: Mapping[str, Tensor] = MappingProxyType({})


def beside(batches: Sequence[Batch]) -> Batch:
    """Batches of several agents, who read the same texts and have no memory, as one [T, n · B]."""

    def joined(*parts: Any) -> Any:
        """Tensors, or mappings of them by name."""
        if isinstance(parts[0], Tensor):
            return torch.cat(parts, 1)
        return {name: joined(*(part[name] for part in parts)) for name in parts[0]}

    index = joined(*({name: each.index for name, each in batch.texts.items()} for batch in batches))
    texts = {name: replace(each, index=index[name]) for name, each in batches[-1].texts.items()}
    names = "observation", "restarts", "last_action", "record"
    return batches[-1]._replace(
        texts=texts, **{name: joined(*(getattr(batch, name) for batch in batches)) for name in names}
    )


class PolicyOutput(NamedTuple):
    """Output of a network for a batch.

    Attributes:
        logits: [T, B, A], masked actions at the dtype's minimum.
        value: [T, B].
        memory: [T, B, …] after each step, or None.
        record: [T, B, …] by name, needed again when the step is re-evaluated.
        aux: outputs [T, B, …] for display by name (MARKS, ATTENTION, WORD_ATTENTION, guesses), computed when
            called; without a loss.
        seen: intermediate results for the network's own `losses`.
    """

    __repr__ = brief

    logits: Tensor
    value: Tensor
    memory: Tensor | None = None
    record: Mapping[str, Tensor] = MappingProxyType({})
    aux: Mapping[str, Callable[[], Tensor]] = MappingProxyType({})
    seen: Any = None

    @classmethod
    def masked(cls, logits: Tensor, value: Tensor, observation: Mapping[str, Tensor], *rest: Any, **more: Any) -> Self:
        """Return an output in float32 of logits that know no `action_mask` yet; the rest are further attributes."""
        return cls(mask_logits(logits.float(), observation["action_mask"]), value.float(), *rest, **more)


Pass = tuple[Batch, PolicyOutput]
"""What a network was shown, and what it put out, gradients included."""


class Auxiliary(NamedTuple):
    """Auxiliary losses and metrics of a network.

    Attributes:
        losses: name → [T, B], averaged by learners over living steps, or a scalar for the whole batch.
        metrics: name → [T, B] for the log, nan where undefined.
    """

    __repr__ = brief

    losses: Mapping[str, Tensor] = MappingProxyType({})
    metrics: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class Accepts:
    """Requirements of a network on an environment; others are refused with an error.

    Attributes:
        actions: kinds of ActionSpec.
        grid: a map is needed.
        fields: other fields that are needed.
        also: fields that are used where they exist, beside texts (`Policy.reads`); None: all.
        egocentric: True: only maps that turn with the agent; False: only maps that do not; None: either.
    """

    __repr__ = brief

    actions: tuple[type, ...] = (FixedActions,)
    grid: bool = True
    fields: tuple[str, ...] = ()
    also: tuple[str, ...] | None = ()
    egocentric: bool | None = None

    def check(self, who: str, spec: EnvSpec) -> None:
        """Raise a ConfigurationError where a network cannot be built for `spec`."""
        grids = [each for each in spec.fields if isinstance(each, Grid)]
        missing = [name for name in self.fields if name not in spec]
        missing += ["grid"] if self.grid and not grids and not missing else []
        if not isinstance(spec.actions, self.actions):
            known = " or ".join(kind.__name__ for kind in self.actions)
            lacking = f"chooses from {known}, this world offers {type(spec.actions).__name__}"
        elif missing:
            lacking = f"looks at {', '.join(missing)}, which this world does not show"
        elif self.egocentric is not None and grids and grids[0].egocentric != self.egocentric:
            lacking = f"is made for a map that {'turns with the agent' if self.egocentric else 'lies still'}"
        else:
            return
        raise ConfigurationError(f"{who} {lacking}: choose another agent")


class Policy(nn.Module, ABC):
    """One agent's network; `config` holds its options.

    Each distinct text is encoded once; `forward` gathers encodings by index.

    Raises:
        ConfigurationError: an environment that the network is not made for.

    Attributes:
        defaults: its options, a frozen dataclass, where the registry names the class itself and no function.
        accepts: requirements on the environment.
        reads: name → the text fields that are encoded together, as one text. Fields that do not exist are empty.
        depends_on_names: its choices change where names of things are permuted. They do not in networks to which a word
            is nothing but the statements it stands in.
        word_rows: parameters with a row for each word, or piece of a word: name → the spelling of each row. For another
            vocabulary the network is built anew as `type(self)(spec, self.config)`, and rows are copied by spelling
            (`agents.remapping`). Empty: no parameter is about a word. None: it is bound to its vocabulary.
        grid_shape: (H, W, K) of the only grids that it takes, teams refuse others; None: any.
        needs: of LABELS, OTHERS, STATE, REASONS, the inputs of its `losses`.
        divisible: several threads may compute the episodes of a minibatch; False for batch normalisation, and for many
            small operations one after another, which gain nothing.
        by_batch: in training mode its outputs depend on the other episodes of a step (batch normalisation). A learner's
            games are all played at once then, in training mode; everybody else plays in evaluation mode (`evaluating`).
        loss_weights: default weights of its `losses`, by name; a learner's options change them, 0 is left out.
        diagnostics: function that computes metrics of a step from the `aux` of a team of such networks.
        grounding_module: the network that it stands on, whose weights it can begin with (`begin_with`).
    """

    defaults: ClassVar[Any] = None
    accepts: ClassVar[Accepts] = Accepts()
    reads: Mapping[str, tuple[str, ...]] = MappingProxyType({"document": ("manual", "goal")})
    depends_on_names: bool = True
    word_rows: Mapping[str, Sequence[str]] | None = None
    grid_shape: tuple[int, ...] | None = None
    needs: frozenset[str] = frozenset()
    divisible: ClassVar[bool] = True
    by_batch: ClassVar[bool] = False
    loss_weights: ClassVar[Mapping[str, float]] = MappingProxyType({})
    diagnostics: ClassVar[StepDiagnostics | None] = None
    grounding_module: ClassVar[type[Policy] | None] = None
    config: Any

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        self.accepts.check(type(self).__name__.lower(), spec)

    def begin_with(self, policy: Policy, source: str) -> None:
        """Take the weights of a policy from `source`: of its own kind, or its grounding module, learnt alone.

        Raises:
            CheckpointError: a network of other parameters.
        """
        fit_weights(self, policy.state_dict(), source)

    def __repr__(self) -> str:
        """Return one line instead of torch's list of modules."""
        count = sum(parameter.numel() for parameter in self.parameters())
        parts = ", ".join(name for name, _ in self.named_children())
        return f"{type(self).__name__}({count:,} parameters: {shorten(parts, 160, placeholder=' …')})"

    @abstractmethod
    def encode(self, name: str, ids: Mapping[str, Tensor]) -> TextEncoding:
        """Encode U distinct texts.

        Args:
            name: one of `reads`.
            ids: [U, …] integer word ids of each of its fields, 0 is padding; [U, 0] of a missing field.
        """

    def encode_batch(self, inputs: Batch) -> Batch:
        """Return the same inputs with their texts encoded."""
        texts = {name: replace(each, encoding=self.encode(name, each.ids or {})) for name, each in inputs.texts.items()}
        return inputs._replace(texts=texts)

    @abstractmethod
    def forward(self, batch: Batch) -> PolicyOutput:
        """Act on T steps of B episodes."""

    def losses(
        self, batch: Batch, output: PolicyOutput, extras: Mapping[str, Tensor], names: Collection[str]
    ) -> Auxiliary:
        """Return the auxiliary losses.

        Args:
            batch, output: input and output of `forward`.
            extras: [T, B, …] of each of `needs` that is known.
            names: losses with a weight above 0, for those that are costly.
        """
        return Auxiliary()

    def uses_all(self, spec: EnvSpec) -> bool:
        """Return True if it uses every field of an environment that it accepts."""
        accepts = self.accepts
        if accepts.also is None:
            return True
        known = {*accepts.fields, *accepts.also, *(name for names in self.reads.values() for name in names)}
        return all(each.name in known or (accepts.grid and isinstance(each, Grid)) for each in spec.fields)

    @property
    def contrasts(self) -> bool:
        """True if it has the contrastive loss CONTRAST."""
        return False

    def contrast_games(self, batch: Batch) -> Tensor:
        """Return the loss CONTRAST of all episodes of a batch with the ids of its texts, a scalar."""
        raise NotImplementedError

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor | None:
        """Return how much U texts relate words to names [U, M, N], for diagnosis only; None where undefined.

        Args:
            text: encoding of texts with `manual` among their fields.
            subjects: [M] ids.
            names: [N, W] ids of the words of each name, 0 is padding.
        """
        return None

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """Return the memory [N, …] at the start of an episode; None for a policy without one."""
        return None

    def draw_record(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Draw random numbers [*shape, …] by name, on the CPU, for forward passes in training; they are recorded."""
        return {}


def common_diagnostics(policies: Iterable[Policy]) -> StepDiagnostics | None:
    """Return the `diagnostics` that all policies of a team share, or None."""
    counted = {type(policy).diagnostics for policy in policies}
    return counted.pop() if len(counted) == 1 else None


@contextmanager
def evaluating(*networks: nn.Module) -> Iterator[None]:
    """Put networks into evaluation mode within; what was in training mode is so again afterwards."""
    training = [module for network in networks if network.training for module in network.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def mask_logits(logits: Tensor, action_mask: Tensor) -> Tensor:
    """Set the logits […, A] of masked actions to the dtype's minimum: probability exactly 0 and no infinity."""
    return torch.where(action_mask.bool(), logits, torch.finfo(logits.dtype).min)


def shares(weights: Tensor) -> Tensor:
    """Divide weights […, S], which are not negative, by their sum; zeros where that is 0."""
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
