"""Policy: what learners, teams and evaluation ask of an agent's network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.brief import brief
from magrounding.errors import ConfigurationError
from magrounding.spec import EnvSpec, FixedActions, Grid

TextEncoding = dict[str, Tensor]
"""What a policy keeps of U distinct texts: every tensor has U as its first dimension.

The second may differ from call to call, as the longest text decides it; zeros at its end are padding.
"""

LABELS, REGRETS, OTHERS, STATE = "labels", "regrets", "others", "state"
"""What a policy or an algorithm can need beyond its own column, by name (`Policy.needs`, `AlgorithmConfig.needs`).

labels: [T, B, A] bool, the actions that an expert holds to be best; none where the agent does not act.
regrets: [T, B, A] float32 in [0, 1], which share of the chances to win each action loses, as the expert judges;
    only from experts who can tell.
others: [T, B, n − 1] int64, what the other agents did in the same step, in agent order; −1 for one that did not act.
state: [T, B, S] int16, the whole games.
"""

MARKS = "marks"
"""What networks tell of a step that costs next to nothing: [T, B, H, W] int8, 1 for the cells that the agent claims, 0
for those that it leaves to others, −1 where there is nothing."""

RELIANCE = "reliance"
"""What networks that attend to statements tell of a step: [T, B, S], how much they rely on each of the S rows of the
manual, not negative, with a sum of 1 (0 where nothing in sight asks). It is their own attention, or kinship, averaged
over all that asks: it says what was read, not what that changed."""

CONTRAST = "contrast"
"""The loss that grounds symbols without rewards or labels: what is on a board is what its own manual speaks of.

InfoNCE (van den Oord et al. 2018) over the first boards of U episodes and their U manuals, both ways. The score of a
board and a manual is the sum, over the board's entities, of the log of the sum of how well each statement fits.
"""

StepDiagnostics = Callable[[Sequence[Mapping[str, np.ndarray]], np.ndarray, np.ndarray], dict[str, np.ndarray]]
"""(`PolicyOutput.aux` of each agent [R, …], actions [R, n], acted [R, n] bool) → name → [R, n], nan: nothing."""


@dataclass(frozen=True)
class Reading:
    """What a batch shows of one kind of text.

    Attributes:
        encoding: of U distinct texts.
        index: [T, B] int64, which of them each observation shows; [T, B, C] for texts to choose from.
        ids: their word ids [U, …] by field, for losses that read them once more; None while acting.
    """

    __repr__ = brief

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

    __repr__ = brief

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
        aux: auxiliary outputs by name, what can be shown of the step (MARKS, guesses), as functions that compute
            [T, B, …] when it is asked for; never learnt from.
        seen: intermediate results of this pass that the network's own `losses` use.
    """

    __repr__ = brief

    logits: Tensor
    value: Tensor
    memory: Tensor | None = None
    record: Mapping[str, Tensor] = MappingProxyType({})
    aux: Mapping[str, Callable[[], Tensor]] = MappingProxyType({})
    seen: Any = None


class Auxiliary(NamedTuple):
    """Auxiliary losses, which a network has beside those of actions and values, and metrics.

    Attributes:
        losses: name → [T, B], of which learners descend the mean over living steps, or a scalar for the whole batch.
        metrics: name → [T, B] for the log, nan where there is nothing to say.
    """

    __repr__ = brief

    losses: Mapping[str, Tensor] = MappingProxyType({})
    metrics: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class Accepts:
    """What a network can be built for; all else is refused in a sentence, never learnt over.

    Attributes:
        actions: kinds of ActionSpec.
        grid: whether it looks at a map.
        fields: what else it has to be shown.
        also: what else it looks at where it is shown, beside texts (`Policy.reads`); None: at everything.
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
        depends_on_names: whether its choices change where every name of a thing is exchanged for another one. They do
            not where a word is nothing to a network but the statements it stands in.
        word_rows: its parameters that have a row for each word, or piece of a word: name → the spelling of each row.
            For games with other words it is made anew as `type(self)(spec, self.config)`, and rows go with the
            spelling (`agents.respelling`). Empty: no parameter is about a word. None: it reads none but its own.
        grid_shape: (H, W, K) of the only grids that it can look at; None: of any.
        needs: of LABELS, OTHERS, STATE, what its `losses` take.
        divisible: whether several threads may compute the games of a minibatch; False for batch normalisation, and
            where it gains nothing, as of many small operations one after another.
        loss_weights: default weights of its `losses`, by name; a learner's options change them, 0 is left out.
        diagnostics: what can be counted over the steps of a team of such networks, from their `aux`.
    """

    accepts: ClassVar[Accepts] = Accepts()
    reads: Mapping[str, tuple[str, ...]] = MappingProxyType({"document": ("manual", "goal")})
    depends_on_names: bool = True
    word_rows: Mapping[str, Sequence[str]] | None = None
    grid_shape: tuple[int, ...] | None = None
    needs: frozenset[str] = frozenset()
    divisible: ClassVar[bool] = True
    loss_weights: ClassVar[Mapping[str, float]] = MappingProxyType({})
    diagnostics: ClassVar[StepDiagnostics | None] = None
    config: Any

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        self.accepts.check(type(self).__name__.lower(), spec)

    def __repr__(self) -> str:
        """In a line; `named_children` are the modules, which torch would list."""
        count = sum(parameter.numel() for parameter in self.parameters())
        parts = ", ".join(name for name, _ in self.named_children())
        return f"{type(self).__name__}({count:,} parameters: {shorten(parts, 160, placeholder=' …')})"

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
    ) -> Auxiliary:
        """What is learnt beside actions and values.

        Args:
            batch, output: what `forward` was given and made of it.
            extras: [T, B, …] of each of `needs` that is known.
            wanted: names of losses that a learner weighs with more than 0, for those that are costly.
        """
        return Auxiliary()

    def uses_all(self, spec: EnvSpec) -> bool:
        """Whether it makes use of every field of a world that it is made for."""
        accepts = self.accepts
        if accepts.also is None:
            return True
        known = {*accepts.fields, *accepts.also, *(name for names in self.reads.values() for name in names)}
        return all(each.name in known or (accepts.grid and isinstance(each, Grid)) for each in spec.fields)

    @property
    def contrasts(self) -> bool:
        """Whether it has a contrastive loss, CONTRAST."""
        return False

    def contrast_games(self, batch: Batch) -> Tensor:
        """The loss CONTRAST, a scalar: it compares all games of a batch with one another.

        Args:
            batch: whose texts have ids; they need no encoding.

        Raises:
            ConfigurationError: a network that has no such loss.
        """
        raise ConfigurationError(f"{type(self).__name__.lower()} has no contrastive loss: set `contrast` to 0")

    def relate_words(self, text: TextEncoding, subjects: Tensor, names: Tensor) -> Tensor | None:
        """How much U texts relate each of some words to each of some names: for diagnosis; no action depends on it.

        Args:
            text: encoding of what has `manual` among its fields.
            subjects: [M] ids.
            names: [N, W] ids of the words of each name, 0 is padding.

        Returns:
            [U, M, N], or None for a network that cannot tell.
        """
        return None

    def initial_memory(self, num_envs: int) -> Tensor | None:
        """Memory [N, …] at the start of an episode; None for a policy without one."""
        return None

    def draw_record(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Random numbers [*shape, …] by name, on the CPU, for so many forward passes in training; they are replayed."""
        return {}


def common_diagnostics(policies: Iterable[Policy]) -> StepDiagnostics | None:
    """What can be counted over the steps of a team of these networks; None where they differ in what they count."""
    counted = {type(policy).diagnostics for policy in policies}
    return counted.pop() if len(counted) == 1 else None


def mask_logits(logits: Tensor, action_mask: Tensor) -> Tensor:
    """logits […, A], those of masked actions at the dtype's minimum: probability exactly 0 and no infinity."""
    return torch.where(action_mask.bool(), logits, torch.finfo(logits.dtype).min)


def check_grid(made: tuple[int, ...] | None, grid: Tensor) -> None:
    """Raise a ConfigurationError where grids [N, H, W, K] are not of a network's `grid_shape`."""
    if made is not None and grid.shape[1:] != made:
        own, got = (" × ".join(map(str, shape)) for shape in (made, grid.shape[1:]))
        raise ConfigurationError(f"this network is made for a grid of {own} and cannot look at one of {got}")


def shares(weights: Tensor) -> Tensor:
    """Weights […, S] that are not negative, divided by their sum; zeros where that is 0."""
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
