"""Registry of environments, agents, algorithms, presets and trackers, by id. It has no entries of its own.

Extensions (`magrounding/extensions`) enter here what the core must not import: the core has places for a `Part`, looks
up what is there by name, and does without where nothing is.

Those of the package are registered by `magrounding.builtin`; those of other packages by `register_env` and its sisters,
called by functions that run before the first look-up: the entry points of installed packages in the group
`magrounding`, and what the environment variable MAGROUNDING_REGISTER names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import gymnasium
import pettingzoo

from magrounding.brief import brief
from magrounding.errors import ConfigurationError, MagroundingError, RegistrationError, check_choice, did_you_mean
from magrounding.evaluation_plan import EvaluationPlan
from magrounding.plain import plain
from magrounding.schema import Option, known_name, options_of
from magrounding.spec import EnvSpec

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv
    from typing_extensions import TypeIs

_ID = re.compile(r"\w[\w .-]*", re.ASCII)
GROUP = "magrounding"
"""Group of the entry points by which installed packages register what they have."""
VARIABLE = "MAGROUNDING_REGISTER"
"""Environment variable with more entry points, "my_game:register", separated by commas: of files not installed."""


def load(entry_point: str) -> Any:
    """The object that `package.module:name` points at; RegistrationError where it points at nothing."""
    try:
        module, name = entry_point.split(":")
        return getattr(import_module(module), name)
    except MagroundingError:  # an extra that is missing says so itself
        raise
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise RegistrationError(f"{entry_point!r} is no 'package.module:name' that can be loaded: {error}") from error


class Described(Protocol):
    """The options of an environment, chosen and checked."""

    def describe(self) -> EnvSpec:
        """Describe the environment; nothing is started for it."""
        ...


class WorldConfig(Described, Protocol):
    """The options of a world that simulates batches."""

    def make_world(self, num_envs: int, num_threads: int, /) -> Any:
        """B games: an `envs.world.BatchedWorld`, which only layers above know."""
        ...


class SimulatorConfig(Described, Protocol):
    """The options of a simulator of one game."""

    def make_env(self, render_mode: str | None, /) -> ParallelEnv:
        """One game, as a PettingZoo env."""
        ...


EnvConfig = WorldConfig | SimulatorConfig
"""Configuration that an environment's options make: any object that has the methods of one of the two."""


def is_simulator(config: EnvConfig) -> TypeIs[SimulatorConfig]:
    """Return whether it plays one game at a time, so that processes make it faster."""
    return not hasattr(config, "make_world")


def describe(config: EnvConfig) -> EnvSpec:
    """Describe the environment; nothing is started. A simulator need not show a mask: then every action counts."""
    spec = config.describe()
    if not isinstance(spec, EnvSpec):
        raise ConfigurationError(f"describe() of {type(config).__name__} returns an EnvSpec, got {spec!r}")
    return spec.with_mask() if is_simulator(config) else spec


@dataclass(frozen=True)
class EnvEntry:
    """One environment id.

    Attributes:
        id: what `make` takes.
        game: entry point of a function or a frozen dataclass whose keyword arguments, with defaults, are the options of
            the environment, and which makes an `EnvConfig`.
        stage_option: the option that names a stage or task; "" where there is none.
        stages: its values.
        curriculum: the stages a curriculum goes through by default, in order.
        oracle: entry point of a scripted team that reads the world's state: the ceiling of reports.
        other_oracles: name → entry point of more such teams, better and slower ones, for who asks for them.
        multi_agent: whether it takes `agents`; the others are for one agent, and Gymnasium knows them too.
        layouts: values of its option `layout`, in which the same manual's statements lie in other rows; in the first
            each has one of its own.
        text_view: entry point of a `text_view.TextView` that puts its observations into better words than the spec has;
            "": those of the spec.
        evaluation: in which of its games agents are judged; by default in those that it makes without options.
        version: of its id in other registries, "<id>-v0"; a change of dynamics, texts, rewards or masks raises it.
    """

    __repr__ = brief

    id: str
    game: str
    stage_option: str = ""
    stages: tuple[str, ...] = ("",)
    curriculum: tuple[str, ...] = ("",)
    oracle: str | None = None
    other_oracles: Mapping[str, str] = field(default_factory=dict)
    multi_agent: bool = False
    layouts: tuple[str, ...] = ()
    text_view: str = ""
    evaluation: EvaluationPlan = field(default_factory=EvaluationPlan)
    version: int = 0

    @property
    def versioned_id(self) -> str:
        """Id in PettingZoo and Gymnasium, behind the namespace."""
        return f"{self.id}-v{self.version}"

    def in_layouts(self) -> tuple[dict[str, str], ...]:
        """The options that make each of its layouts; no option where it has one only."""
        return tuple({"layout": layout} for layout in self.layouts) or ({},)

    @cached_property
    def factory(self) -> Callable[..., EnvConfig]:
        return load(self.game)

    @cached_property
    def schema(self) -> Mapping[str, Option]:
        """Name → option."""
        return options_of(self.factory)

    @cached_property
    def options(self) -> dict[str, Any]:
        """Option → default."""
        return {name: option.default for name, option in self.schema.items()}

    def configure(self, **options: Any) -> EnvConfig:
        """The configuration with these options; ConfigurationError for an option that does not exist or cannot be."""
        config = self.factory(**self.check_options(options))
        if not hasattr(config, "describe") or not (hasattr(config, "make_env") or hasattr(config, "make_world")):
            raise ConfigurationError(
                f"{self.game!r}, the game of {self.id}, makes a {type(config).__name__} without describe() and "
                "make_env(): add describe(), which returns an EnvSpec, and make_env(render_mode), which returns one "
                "game (docs/your_game.md)"
            )
        return config

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """These options as files can hold them (`plain`); ConfigurationError for no mapping, or an unknown name."""
        if not isinstance(options, Mapping):
            raise ConfigurationError(f"the options of {self.id} are a dict, got {options!r}")
        return plain({known_name(self.factory, name, self.id): value for name, value in options.items()})

    def describe(self, **options: Any) -> EnvSpec:
        """Describe the environment with these options; nothing is started for it. Errors as of `configure`."""
        return describe(self.configure(**options))

    def with_stage(self, stage: str) -> dict[str, Any]:
        """The option that chooses a stage."""
        return {self.stage_option: stage} if self.stage_option else {}


@dataclass(frozen=True)
class AgentEntry:
    """One agent id.

    Attributes:
        id: what `--agent` takes.
        policy: entry point of a function `(spec, **options) -> Policy`.
        options: what this id sets among the policy's options.
        env_options: what it needs of the environment.
        built_on: id of the agent whose network it extends: a preset's options of that network are for this one too.
        part: name, in this agent's network for a team, of the part that is the network it is built on: what a preset
            freezes of that is frozen here too; "": nothing is.
        algorithm: the only one that trains it; None: any that trains policies.
    """

    __repr__ = brief

    id: str
    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    env_options: Mapping[str, Any] = field(default_factory=dict)
    built_on: str | None = None
    part: str = ""
    algorithm: str | None = None


@dataclass(frozen=True)
class AlgorithmEntry:
    """One learning algorithm.

    Attributes:
        id: what a config file calls it.
        config: entry point of its options (`training.algorithm.AlgorithmConfig`), which name its learner.
        own_agents: it trains only agents that name it.
    """

    id: str
    config: str
    own_agents: bool = False


@dataclass(frozen=True)
class PresetEntry:
    """One way to run a curriculum in one environment.

    Attributes:
        name: what `--preset` takes.
        env: environment id.
        preset: entry point of the `RunConfig`.
        agents: ids of agents that it is for, with its own network options; none: for every agent that no other entry of
            the same name and environment is for.
    """

    name: str
    env: str
    preset: str
    agents: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return " with ".join((f"{self.name} for {self.env}", *self.agents[:1]))


@dataclass(frozen=True)
class TrackerEntry:
    """One service that shows curves of runs.

    Attributes:
        id: what `--tracker` takes; its folder within a seed's has this name.
        tracker: entry point of an `extensions.trackers.Tracker`.
    """

    id: str
    tracker: str


@dataclass(frozen=True)
class CommandEntry:
    """One command of the program `magrounding`.

    Attributes:
        id: its name.
        about: what it does, a line of the help of `magrounding`.
        module: has its `Arguments` and `run`.
        behind: the command behind which `--help` lists it.
        starting: what is said before it is imported, where its reader waits for an answer.
    """

    id: str
    about: str
    module: str
    behind: str = ""
    starting: str = ""


@dataclass(frozen=True)
class Part:
    """What an extension puts where the core has a place for it.

    Attributes:
        id: its name there.
        code: entry point of it; what that is, is said of the place.
    """

    id: str
    code: str


Entry = TypeVar("Entry", EnvEntry, AgentEntry, AlgorithmEntry, PresetEntry, TrackerEntry, Part)


class Registry(Mapping[str, Entry], Generic[Entry]):
    """id → entry, in the order of registration; what installed packages have is found at the first look-up."""

    def __init__(self, kind: str, entries: type[Entry]) -> None:
        self.kind = kind
        self._class = entries
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Register an entry; ConfigurationError for what is none, or where another one has its id."""
        if not (isinstance(entry, self._class) and isinstance(entry.id, str) and _ID.fullmatch(entry.id)):
            raise ConfigurationError(
                f"what is registered here is of class {self._class.__name__}, with an id of letters, digits, and "
                f"_ - . and blanks between them, got {entry!r}"
            )
        if self._entries.setdefault(entry.id, entry) != entry:
            raise ConfigurationError(f"there is another {self.kind} {entry.id!r} already: choose another id")

    def find(self, id: str) -> Entry:
        """The entry of an id; RegistrationError for an unknown one."""
        known = tuple(self)
        try:
            return self._entries[check_choice(self.kind, id, known)]
        except ConfigurationError as error:
            own = f"; one of another package: install that, or set {VARIABLE}=module:function, which registers it"
            raise RegistrationError(f"{error}{'' if did_you_mean(id, known) else own}") from None

    def __getitem__(self, id: str) -> Entry:
        _discover()
        return self._entries[id]

    def __iter__(self) -> Iterator[str]:
        _discover()
        return iter(self._entries)

    def __len__(self) -> int:
        _discover()
        return len(self._entries)


ENVS: Registry[EnvEntry] = Registry("env", EnvEntry)
AGENTS: Registry[AgentEntry] = Registry("agent", AgentEntry)
ALGORITHMS: Registry[AlgorithmEntry] = Registry("algorithm", AlgorithmEntry)
PRESETS: Registry[PresetEntry] = Registry("preset", PresetEntry)
TRACKERS: Registry[TrackerEntry] = Registry("tracker", TrackerEntry)
COMMANDS: dict[str, CommandEntry] = {}
"""Name → command of an extension; no registry, so that help looks for no other packages."""
PLAYERS: Registry[Part] = Registry("kind of player", Part)
"""Kinds of players that line-ups name as KIND:SOURCE: a class as `teams.lineup.AskedPlayers`."""
SEGMENTS: Registry[Part] = Registry("way to find statements", Part)
"""What finds the statements of relread's manuals: (EnvSpec) → `agents.relread.statements.Statements`."""
PREPARATIONS: Registry[Part] = Registry("preparation", Part)
"""What is learnt before the first phase of each stage: a function of an `experiment.stage.StageSession`."""
WORKERS: Registry[Part] = Registry("kind of workers", Part)
"""Workers of simulators that are named KIND:NUMBER: a class that does as `simulators.local_workers.LocalWorkers`; its
`check(workers)` raises what stands in the way of starting some."""
TEAMS: Registry[Part] = Registry("trained team", Part)
"""Teams that come with an extension: the path of the folder."""
SERVICES: Registry[Part] = Registry("extension's part", Part)
"""What the core asks for by name: "cluster", "keyboard", "terminal" and "tracking", each said where it is used."""


env_entry, agent_entry, algorithm_entry, tracker_entry = ENVS.find, AGENTS.find, ALGORITHMS.find, TRACKERS.find
register_agent, register_algorithm, register_preset = AGENTS.add, ALGORITHMS.add, PRESETS.add
register_tracker = TRACKERS.add


def service(name: str) -> Any:
    """The part of an extension by its name in SERVICES; RegistrationError where no extension has it."""
    return load(SERVICES.find(name).code)


def register_env(entry: EnvEntry) -> None:
    """Make an environment known by its id, and to PettingZoo and Gymnasium as `magrounding/<id>-v<version>`.

    Nothing of it is imported. Gymnasium's is for one agent; asked for a game of several, it says what to call instead.

    Raises:
        ConfigurationError: no EnvEntry, or another environment has the id.
    """
    ENVS.add(entry)
    name = f"magrounding/{entry.versioned_id}"
    if hasattr(pettingzoo, "parallel_registry") and name not in pettingzoo.parallel_registry:  # 1.26 has no registry
        pettingzoo.register("parallel", name, "magrounding.envs.make:make", kwargs={"id": entry.id})
    if name not in gymnasium.registry:
        gymnasium.register(
            name,
            "magrounding.envs.single_agent:make_single_agent",
            vector_entry_point="magrounding.envs.gymnasium_vector:make_gymnasium_vec",
            kwargs={"env": entry.id},
        )


_DISCOVERED = False
_FAILED: RegistrationError | None = None
"""Error of the first package that could not register itself."""


def _discover() -> None:
    """Load the entry points of installed packages and of the variable, once: each registers what its package has.

    Raises:
        RegistrationError: one that cannot be loaded; those after it are loaded, and every look-up raises this again.
    """
    global _DISCOVERED, _FAILED
    if not _DISCOVERED:
        _DISCOVERED = True  # what is loaded looks things up itself, and is not to fail with what was loaded before it
        failed = None
        named = filter(None, (name.strip() for name in os.environ.get(VARIABLE, "").split(",")))
        for point in (*entry_points(group=GROUP), *(EntryPoint(name, name, GROUP) for name in named)):
            try:
                point.load()()
            except Exception as error:
                if failed is None:
                    failed = RegistrationError(
                        f"the package {point.dist.name if point.dist else point.value!r} registers itself with "
                        f"magrounding by {point.value!r}, which failed ({type(error).__name__}: {error}): mend or "
                        "remove it"
                    )
                    failed.__cause__ = error
        _FAILED = failed
    if _FAILED is not None:
        raise _FAILED
