"""AlgorithmConfig: options and needs of a learning algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from magrounding.registry import algorithm_entry, load
from magrounding.schema import Count, NonNegative, OneOf, Options

if TYPE_CHECKING:
    from magrounding.agents.policy import Policy
    from magrounding.spec import EnvSpec
    from magrounding.training.learner import Learner

IMITATE, REINFORCE = "imitate", "reinforce"
"""Kinds of learning; no report mixes the two."""

AtLeastOne = Annotated[float, Meta(ge=1)]


def falling(first: float, last: float, over: float, steps: int) -> float:
    """Interpolate linearly from `first` to `last`, which is reached after `over` steps, at `steps`."""
    return first + (last - first) * min(1.0, steps / max(1.0, over))


def end_of_fall(first: float, last: float | None, usual: float) -> float:
    """Return the end of a fall from `first`: `last`, or by default the usual one, but never more than `first`."""
    return min(first, usual) if last is None else last


@dataclass(frozen=True)
class Teaching:
    """Requests of an algorithm to the expert whose LABELS it learns from.

    Attributes:
        oracle: which of the environment's oracles teaches (`EnvEntry.other_oracles`); "": its own.
        noise: probability that an agent that the expert leads takes any action instead.
        demonstrations: games of the expert to record before the phase and to learn from; 0: the expert labels the games
            of the phase itself.
        carry_memory: demonstrations are shown whole, one after another, and memory goes on from unroll to unroll.
        costs_to_go: it also learns from what each move costs (`agents.policy.COSTS_TO_GO`), where the expert can tell.
    """

    oracle: str = ""
    noise: float = 0.0
    demonstrations: int = 0
    carry_memory: bool = False
    costs_to_go: bool = False


@dataclass(frozen=True)
class AlgorithmConfig(Options):
    """Options of a learning algorithm; one file has them and the learner they name.

    Attributes:
        algorithm: its id in the registry and in config files.
        kind: IMITATE or REINFORCE.
        needs: quantities that its learner takes beyond its own trajectory (`agents.policy`).
        scaled: options that count environment steps, which a budget scales.
        joint: one learner for the whole team: it sees all trajectories side by side, and one network plays for all.
        unroll: T, steps between two updates.
        schedule: "stage": rate and all else that depends on steps start anew with every phase; "run": one schedule for
            the whole curriculum.
        bf16: compute networks in bfloat16 (losses and weights stay float32), on processors
            with instructions for it.
        weights: of what networks learn beside actions and values (`Policy.losses`), by name, where they differ from the
            networks' own (`Policy.loss_weights`).
    """

    tag: ClassVar[str] = "algorithm"
    algorithm: ClassVar[str]
    kind: ClassVar[str] = REINFORCE
    needs: ClassVar[frozenset[str]] = frozenset()
    scaled: ClassVar[tuple[str, ...]] = ()
    joint: ClassVar[bool] = False

    unroll: Count = 16
    schedule: Annotated[str, OneOf(("stage", "run"))] = "stage"
    bf16: bool = False
    weights: Mapping[str, NonNegative] = field(default_factory=dict)

    @classmethod
    def owner(cls) -> str:
        return f"algorithm {cls.algorithm}"

    @classmethod
    def variant(cls, name: Any) -> type[AlgorithmConfig]:
        return load(algorithm_entry(name).config)

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> Learner:
        """Make the learner of a network that is on its device, for B games; `seed` is that of the weights."""
        raise NotImplementedError

    def require(self) -> None:
        """Raise a MissingExtra where a package is missing, before anything is written."""

    @property
    def teaching(self) -> Teaching | None:
        """Requests to an expert or demonstrations; None of an algorithm that needs no LABELS."""
        from magrounding.agents.policy import LABELS  # torch, which the names of presets do without

        return Teaching() if LABELS in self.needs else None

    def beta(self, steps: float) -> float:
        """Share of the games that an expert leads after so many environment steps: β of DAgger (Ross et al. 2011)."""
        return 0.0

    def with_budget(self, factor: float) -> AlgorithmConfig:
        """Return these options for so many times the environment steps.

        Warm-up is not `scaled`: an optimiser takes as long to know its gradients, however little is learnt after it.
        """
        counts = {name: getattr(self, name) for name in self.scaled}
        return replace(self, **{name: factor * steps for name, steps in counts.items() if steps is not None})
