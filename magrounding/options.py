"""Options of environments: what they have in common, and how they name the world or simulator that they are for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import Any, ClassVar

from pettingzoo import ParallelEnv

from magrounding.errors import MissingExtra
from magrounding.registry import load
from magrounding.schema import Options
from magrounding.spec import EnvSpec


class EnvOptions(Options, ABC):
    """Options of an environment.

    Attributes:
        implementation: entry point of what plays it: a question about the environment imports nothing of it.
        adjustable: numbers among the options that `WorldVectorEnv.adjust` may change between episodes; no observation
            changes its shape with them.
    """

    implementation: ClassVar[str]
    adjustable: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def describe(self) -> EnvSpec:
        """Describe the environment; nothing is started for it."""


class WorldOptions(EnvOptions):
    """Options of a world that simulates batches; its class takes (num_envs, options, num_threads)."""

    def make_world(self, num_envs: int, num_threads: int = 1) -> Any:
        """A batch of this world's episodes, an `envs.world.BatchedWorld`."""
        return load(self.implementation)(num_envs, self, num_threads)


class SimulatorOptions(EnvOptions):
    """Options of a simulator of one episode; its class takes (options, render_mode).

    Attributes:
        package: module that has to be installed; "": none.
        extra: of this package, which installs it.
    """

    package: ClassVar[str] = ""
    extra: ClassVar[str] = ""

    def require(self) -> None:
        """Raise MissingExtra where the simulator's package is not installed."""
        if self.package and find_spec(self.package) is None:
            raise MissingExtra(type(self).__name__, self.extra)

    def make_env(self, render_mode: str | None = None) -> ParallelEnv:
        """A PettingZoo env of one agent, with a render mode of its metadata.

        Raises:
            MissingExtra: the simulator is not installed.
            DataNotFound: the simulator's data are not where the options say.
            ConfigurationError: an unknown render mode.
        """
        self.require()
        return load(self.implementation)(self, render_mode)
