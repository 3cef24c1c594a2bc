"""Base of worlds whose rules are kernels over rows: bookkeeping of the batch, and kernels that they share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from magrounding.envs.world import BatchedWorld, StepBuffers
from magrounding.errors import ConfigurationError, check_choice
from magrounding.jit import FixedTypes, inner_njit
from magrounding.options import WorldOptions
from magrounding.seeding import NUM_STREAMS, below, hash64
from magrounding.spec import EnvSpec
from magrounding.threads import RowThreads

SEED, EPISODE, STEP, DRAWS = range(4)
"""The first columns of any world's `games.scalars` [B, …] int64."""
RUNNING, WON, LOST, TIMED_OUT = range(4)
"""Outcomes of a game, in a column that each world has of its own."""
OUTCOME_NAMES = ("", "won", "lost", "lost")
"""Names of the outcomes in a `Scene`."""

Config = TypeVar("Config", bound=WorldOptions)


class Games(NamedTuple):
    """State of B rows: keys [B, 5] uint64 (one for each random stream), scalars and entities (columns: `arrays`)."""

    keys: np.ndarray
    scalars: np.ndarray
    entities: np.ndarray


class CompiledWorld(BatchedWorld, Generic[Config]):
    """B environments in flat arrays, played by kernels.

    A subclass takes (num_envs, game, num_threads), builds what its kernels read and calls this constructor.

    Args:
        num_envs: B.
        game: options of the environment, kept for pickling.
        num_threads: threads that share the rows; episodes do not depend on it.
        kernels: module with `start_rows(first, last, slots, rules, tables, games, views, results)`, which starts the
            episode that the seed and episode number of each row name that is done, and shows it; `step_rows(first,
            last, actions, auto_reset, slots, rules, tables, games, views, finals, results)`, which plays a step of rows
            `first` … `last - 1` and shows it (with `auto_reset`, an episode that ends shows its end in a row of
            `finals`, from row `first` on, and is ready for `start_rows`); and `write_states(rules, tables, games,
            states)`. Two, so that generating episodes is compiled once.
        arrays: module with NUM_SCALARS and NUM_COLUMNS of `Games`, and `Views`, a NamedTuple of observations [B, …], by
            the names of fields; `grid` is flattened to [B, n, H * W * K].
        rules, tables: what they read.
        slots: rows of `Games.entities`.
    """

    def __init__(
        self,
        num_envs: int,
        game: Config,
        num_threads: int,
        kernels: Any,
        arrays: Any,
        rules: Any,
        tables: Any,
        slots: int,
    ) -> None:
        self.num_envs, self.game, self.num_threads = num_envs, game, num_threads
        self.spec: EnvSpec = game.describe()
        self.num_agents = self.spec.num_agents
        self.observation = self.spec.allocate(num_envs)
        self.final_observation = self.spec.allocate(num_envs)
        self.final_rows = np.zeros(0, np.int64)
        self.out = StepBuffers.allocate(num_envs, self.num_agents)
        self._rules, self._tables = rules, tables
        self._games = Games(
            np.zeros((num_envs, NUM_STREAMS), np.uint64),
            np.zeros((num_envs, arrays.NUM_SCALARS), np.int64),
            np.zeros((num_envs, slots, arrays.NUM_COLUMNS), np.int16),
        )
        self._start_rows, self._step_rows = FixedTypes(kernels.start_rows), FixedTypes(kernels.step_rows)
        self._write_states = FixedTypes(kernels.write_states)
        self._views = self._view(arrays.Views, self.observation)
        self._finals = self._view(arrays.Views, self.final_observation)
        self._slots = np.zeros(num_envs, np.int64)
        self._state = np.zeros((num_envs, self.spec.state_size), np.int16)
        self._threads = RowThreads(num_envs, num_threads)

    def _view(self, views: Any, observation: dict[str, np.ndarray]) -> Any:
        """Return batch buffers as the kernels take them; one agent has no teammates."""
        grid = observation["grid"].reshape(self.num_envs, self.num_agents, -1)
        shown = {"teammates": np.zeros((self.num_envs, 1, 0, 0), np.int16), **observation, "grid": grid}
        return views(**{name: shown[name] for name in views._fields})

    def reset(self, seeds: np.ndarray | None = None) -> None:
        scalars = self._games.scalars
        if seeds is None:
            scalars[:, EPISODE] += 1
        else:
            scalars[:, SEED] = seeds
            scalars[:, EPISODE] = 0
        self.final_rows = self.final_rows[:0]
        for array in self.out:
            array[:] = 0
        self.out.done[:] = True
        self._start()
        self.out.done[:] = False

    def step(self, actions: np.ndarray, auto_reset: bool) -> None:
        actions = np.ascontiguousarray(actions, np.int64)  # compiled code trusts that it gets these, see `FixedTypes`
        arrays = self._rules, self._tables, self._games, self._views, self._finals, self.out
        self._threads.run(self._step_rows, actions, auto_reset, self._slots, *arrays)
        if auto_reset:
            self.final_rows = np.flatnonzero(self.out.done)
            if len(self.final_rows):
                self._start()
                self._compact_finals()

    def adjust(self, **options: float) -> None:
        for name in options:
            check_choice("adjustable option", name, self.game.adjustable)
        self.game = replace(self.game, **options)
        self._rules = self._rules._replace(**{name: float(getattr(self.game, name)) for name in options})

    def _start(self) -> None:
        """Start the episode that each row's seed and episode number name, where a row is done."""
        arrays = self._slots, self._rules, self._tables, self._games, self._views, self.out
        self._threads.run(self._start_rows, *arrays)

    def _compact_finals(self) -> None:
        """Each chunk of rows wrote its final observations from its own first row on: put them behind one another."""
        end = np.searchsorted(self.final_rows, self._threads.chunks[0][1])
        for first, last in self._threads.chunks[1:]:
            count = np.searchsorted(self.final_rows, last) - end
            for array in self.final_observation.values():
                array[end : end + count] = array[first : first + count]
            end += count

    def state(self) -> np.ndarray:
        self._write_states(self._rules, self._tables, self._games, self._state)
        return self._state

    def text(self, row: int) -> dict[str, str | list[str]]:
        decode = self.spec.vocabulary.decode
        manual = [decode(line) for line in self._views.manual[row].tolist()]
        goal = decode(self.observation["goal"][row].tolist()) if "goal" in self.observation else ""
        return {"manual": manual, "goal": goal}

    def snapshot(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._memory().items()}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        memory = self._memory()
        kinds = {name: (array.shape, array.dtype) for name, array in memory.items()}
        found = snapshot if isinstance(snapshot, Mapping) else {}
        if kinds != {name: (getattr(v, "shape", ()), getattr(v, "dtype", None)) for name, v in found.items()}:
            raise ConfigurationError("the snapshot belongs to a world of another configuration")
        for name, array in memory.items():
            array[:] = snapshot[name]
        self.final_rows = self.final_rows[:0]

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": (self.num_envs, self.game, self.num_threads), "snapshot": self.snapshot()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*state["arguments"])  # pyright: ignore[reportCallIssue]  the subclass takes these three
        self.restore(state["snapshot"])

    def _memory(self) -> dict[str, np.ndarray]:
        parts = {"games": self._games._asdict(), "out": self.out._asdict(), "observation": self.observation}
        return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}


def salt_of(kind: Any, names: str, *options: Any) -> int:
    """56 bits that distinguish documents of configurations: a cache of encodings may see several of one seed."""
    # Batches sort texts by them, which orders sums of floats: a new option, at its default, must not move them.
    shown = ", ".join(f"{name}={getattr(kind, name)!r}" for name in names.split())
    written = f"({type(kind).__name__}({shown}), {(*options, *added(kind, names))!r})"
    return int.from_bytes(hashlib.sha256(written.encode()).digest()[:7], "big")


def added(settings: Any, names: str) -> tuple[tuple[str, Any], ...]:
    """(name, value) of the fields of a dataclass that are not among `names` and not at their default."""
    others = (each for each in fields(settings) if each.name not in names.split())
    return tuple((each.name, value) for each in others if (value := getattr(settings, each.name)) != each.default)


@inner_njit
def document_key(text_key, redrawn, salt):
    """A positive int64 that names the text on show: its stream, the step it was redrawn in, and the configuration."""
    return np.int64(hash64(hash64(text_key, salt), redrawn) >> np.uint64(1))


@inner_njit
def shuffled_place(key, k, count):
    """Return the rank of the k-th draw among those of all `count` (equal draws keep their order)."""
    mine = hash64(key, k)
    rank = 0
    for other in range(count):
        theirs = hash64(key, other)
        if theirs < mine or (theirs == mine and other < k):
            rank += 1
    return rank


@inner_njit
def draw_turns(position, first, last, column, key, scalars, entities):
    """Slots first … last-1 come in a random order, which a column of entities has from row `position` on."""
    for k in range(last - first):
        entities[position + k, column] = first + k
    for k in range(last - first - 1, 0, -1):
        scalars[DRAWS] += 1
        i, j = position + k, position + below(key, scalars[DRAWS], k + 1)
        entities[i, column], entities[j, column] = entities[j, column], entities[i, column]


@inner_njit
def show_teammates(slot, views):
    """Show each agent where the others are, and what they hold."""
    n, others = views.teammates.shape[1:3]
    for a in range(n):
        for k in range(others):
            other = k if k < a else k + 1
            for i in range(2):
                views.teammates[slot, a, k, i] = views.position[slot, other, i]
            for i in range(views.inventory.shape[2]):
                views.teammates[slot, a, k, 2 + i] = views.inventory[slot, other, i]


@inner_njit
def copy_document(source, b, target, slot):
    """target[slot] = source[b] of manuals [B, S, L]: by index, as views of lines take longer than copying."""
    for line in range(source.shape[1]):
        for i in range(source.shape[2]):
            target[slot, line, i] = source[b, line, i]


@inner_njit
def copy_row(source, target):
    """target[: len(source)] = source, then zeros (a plain loop compiles to vector instructions, a slice does not)."""
    for i in range(source.shape[0]):
        target[i] = source[i]
    for i in range(source.shape[0], target.shape[0]):
        target[i] = 0
