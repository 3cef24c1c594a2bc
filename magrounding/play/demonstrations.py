"""Demonstrations: recorded episodes, in a file from which phases of imitation learn.

A file is one `.npz` without pickles. Its G episodes have T rows together, one episode behind the other. With n agents
and A actions it holds:

| array | shape and type | content |
|---|---|---|
| `header` | bytes, uint8 | JSON in UTF-8, see `DemonstrationHeader` |
| `observation/<name>` | [T, n, …] | each field that is no text, before the step |
| `text/<name>` | [G, …] | ids of each text that all agents read, one for each episode |
| `game` | [T] int32 | number of the row's episode |
| `actions` | [T, n] int64 | actions; of the dead anything |
| `labels` | [T, n, A] bool | all best moves, or the one that was taken; none where an agent did not act |
| `alive` | [T, n] bool | agents that are in the episode |
| `rewards` | [T, n] float32 | of the step |
| `won` | [G] bool | how the episodes ended |

An episode that a time limit truncated, where that is no loss, has one more row: its true last observation, without
labels. An agent that is truncated before the episode ends is `alive` in one more row, likewise without labels.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from magrounding.brief import brief
from magrounding.errors import CheckpointError, ConfigurationError, MagroundingError
from magrounding.machine import machine_memory
from magrounding.play.archive import DAMAGE, Archive, Kind
from magrounding.play.origin import EnvLike
from magrounding.registry import env_entry
from magrounding.schema import Count, Options, load
from magrounding.storage import ARRAYS, json_text, parse_json, read_bytes, reason, user_path, write_atomic
from magrounding.vector import Observation
from magrounding.version import __version__

FORMAT = 2
_OWN_CHOICE = ("max_cycles",)
"""Options in which a recording may differ from the games of a run."""
_OBSERVATION, _TEXT = "observation/", "text/"
_HEADER = "header"
_MOST_HEADER = 2**20
"""Bytes of a header at most; those of ours have a thousand."""


@dataclass(frozen=True)
class DemonstrationHeader(Options):
    """Origin of demonstrations.

    Attributes:
        env, options: of the environment.
        agents, games: n and G.
        vocabulary: hash of the words.
        action_names: A names.
        played_by: the player, in words of a report.
        seed: of the first row of the batch that was played.
        version: of the package that recorded them.
        format: of the file.
    """

    env: str
    options: dict[str, Any]
    agents: Count
    vocabulary: str
    action_names: tuple[str, ...]
    played_by: str
    seed: int
    games: int
    version: str = __version__
    format: int = FORMAT

    @property
    def stage(self) -> str:
        return _stage(self.env, self.options)

    def check_origin(self, source: Path, games: EnvLike) -> None:
        """Raise a CheckpointError for another env, vocabulary, number of agents or set of actions."""
        spec = games.spec
        if self.env != games.id:
            raise CheckpointError(f"{source} shows games of {self.env!r}, not of {games.id!r}")
        if self.agents != spec.num_agents:
            raise CheckpointError(f"{source} shows {self.agents} agents, not {spec.num_agents}")
        if self.vocabulary != spec.vocabulary_hash:
            raise CheckpointError(
                f"{source} was recorded with another vocabulary: {games.id!r} gives its words other ids now"
            )
        if self.action_names != tuple(spec.actions.names):
            raise CheckpointError(
                f"{source} has the actions {self.action_names}, {games.id!r} has {spec.actions.names}"
            )


@dataclass(frozen=True)
class Demonstrations:
    """Recorded episodes; the arrays are those of the file, see the module's docstring."""

    __repr__ = brief

    header: DemonstrationHeader
    observation: Observation
    texts: Observation
    game: np.ndarray
    actions: np.ndarray
    labels: np.ndarray
    alive: np.ndarray
    rewards: np.ndarray
    won: np.ndarray

    @property
    def acted(self) -> np.ndarray:
        """[T, n] bool, agents that acted in this row: all alive but those that were truncated just before."""
        return np.any(self.labels, axis=-1)

    @property
    def steps(self) -> int:
        """Environment steps, in which any agent acted."""
        return int(self.acted.any(1).sum())

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all; OSError where the disk refuses."""
        arrays = {name: getattr(self, name) for name in _arrays(self.header, len(self.game))}
        arrays |= {f"{_OBSERVATION}{name}": array for name, array in self.observation.items()}
        arrays |= {f"{_TEXT}{name}": array for name, array in self.texts.items()}
        header = np.frombuffer(json_text(asdict(self.header)).encode(), np.uint8)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{_HEADER: header}, **arrays)
        write_atomic(path, buffer.getvalue())

    @classmethod
    def joined(cls, parts: Sequence[Demonstrations]) -> Demonstrations:
        """Return the episodes of recordings of the same games, one recording behind the other; the first's header."""
        first, before = parts[0], np.cumsum([0, *(each.header.games for each in parts)])
        own = {name: [getattr(each, name) for each in parts] for name in _arrays(first.header, 0)}
        own["game"] = [each.game + np.int32(games) for each, games in zip(parts, before, strict=False)]
        return cls(
            replace(first.header, games=int(before[-1])),
            {name: np.concatenate([each.observation[name] for each in parts]) for name in first.observation},
            {name: np.concatenate([each.texts[name] for each in parts]) for name in first.texts},
            **{name: np.concatenate(arrays) for name, arrays in own.items()},
        )

    @classmethod
    def load(cls, path: Path) -> Demonstrations:
        """Read a file; CheckpointError where it is missing, truncated, damaged or of another format."""
        data = _read(path)
        header = _parse_header(data, path)
        try:
            fields = [field.name for field in env_entry(header.env).describe(**header.options).fields]
        except MagroundingError:  # an environment that is not known here
            fields = None
        return cls._parse(data, path, header, fields)

    @classmethod
    def _parse(
        cls, data: bytes, source: Path, header: DemonstrationHeader, fields: Collection[str] | None
    ) -> Demonstrations:
        """Parse a file; of observations and texts only `fields` (None: all) are read."""
        try:
            archive = Archive(data)
            own = _arrays(header, 0)
            kept = [name for name in archive.names if fields is None or name.partition("/")[2] in fields]
            seen, read = ([name for name in kept if name.startswith(kind)] for kind in (_OBSERVATION, _TEXT))
            kinds = {name: archive.kind(name) for name in (*own, *seen, *read) if name in archive.names}
            rows = next(iter(kinds["game"].shape), 0) if "game" in kinds else 0
            for name, (dtype, shape) in _arrays(header, rows).items():
                _check_array(kinds, name, dtype, shape, source)
            for names, shape in ((seen, (rows, header.agents)), (read, (header.games,))):
                for name in names:
                    rest = [None] * (len(kinds[name].shape) - len(shape))
                    _check_array(kinds, name, None, (*shape, *rest), source)
            size, there = sum(kind.size for kind in kinds.values()), machine_memory()
            if size > there:
                raise ValueError(f"its arrays take {size / 2**30:,.1f} GiB, this machine has {there / 2**30:,.1f}")
            arrays = {name: archive.read(name) for name in kinds}
        except DAMAGE as error:
            raise _damaged(source, error) from None
        game, labels = arrays["game"], arrays["labels"]
        new = np.diff(game, prepend=-1)
        if not len(game) or game[-1] != header.games - 1 or new[0] != 1 or not np.isin(new, (0, 1)).all():
            raise CheckpointError(
                f"{source} is damaged: steps of its games are missing or in disorder; record it again"
            )
        if not labels.any():
            raise CheckpointError(f"{source} has nothing to learn from: no step has a label")
        observation = {name.removeprefix(_OBSERVATION): arrays[name] for name in seen}
        texts = {name.removeprefix(_TEXT): arrays[name] for name in read}
        return cls(header, observation, texts, **{name: arrays[name] for name in own})

    def check(self, source: Path, games: EnvLike) -> None:
        """Raise a CheckpointError for other options than the run's, or arrays that no network could read."""
        for name, default in env_entry(games.id).options.items():
            shown, expected = self.header.options.get(name, default), games.options.get(name, default)
            if name not in _OWN_CHOICE and shown != expected:
                raise CheckpointError(f"{source} was recorded with {name} {shown!r}, the run has {expected!r}")
        arrays = {**self.observation, **self.texts}
        for field in games.spec.fields:
            each = 1 if field.name in self.texts else 2  # axes of games, or of rows and agents
            array = arrays.get(field.name)
            if array is None or array.shape[each:] != field.shape or array.dtype != field.dtype:
                raise CheckpointError(
                    f"{source} has no {field.name} of {'×'.join(map(str, field.shape))} {field.dtype}, "
                    f"as {games.id!r} shows it: record it again with the options of the run"
                )
            if array.min() < field.low or array.max() > field.high:
                raise CheckpointError(f"{source} is damaged: {field.name} lies outside [{field.low}, {field.high}]")
        if (self.labels & (self.observation["action_mask"] == 0)).any():
            raise CheckpointError(f"{source} is damaged: it labels actions that are masked; record it again")


def digests(paths: Iterable[str]) -> dict[str, str]:
    """Return path → SHA-256 of files, as a run's settings name them; CheckpointError where one is missing."""
    return {path: hashlib.sha256(_read(user_path(path))).hexdigest() for path in paths}


def find_demonstrations(files: Mapping[str, str], games: EnvLike) -> tuple[Path, Demonstrations]:
    """Find the file of the stage of the learners' `games` among `files`, path → SHA-256; return its path and content.

    Raises:
        CheckpointError: a file that is missing, changed, damaged, or of other games.
        ConfigurationError: no file shows this stage, or two do.
    """
    stage = _stage(games.id, games.options)
    found: dict[str, tuple[Path, bytes, DemonstrationHeader]] = {}
    for name, digest in files.items():
        path = user_path(name)
        data = _read(path)
        if hashlib.sha256(data).hexdigest() != digest:
            raise CheckpointError(f"{path} is not the file that the run began with: restore it, or start another run")
        header = _parse_header(data, path)
        header.check_origin(path, games)
        if header.stage not in env_entry(games.id).stages:
            raise CheckpointError(f"{path} shows {header.stage!r}, which is no stage of {games.id!r}: record it again")
        if header.stage in found:
            raise ConfigurationError(f"{found[header.stage][0]} and {path} both show {header.stage}: name one of them")
        found[header.stage] = path, data, header
    if stage not in found:
        shown = ",".join(each for each in env_entry(games.id).stages if each in found)
        raise ConfigurationError(f"no demonstrations show {stage} of {games.id}: record some, or pass --stages {shown}")
    path, data, header = found[stage]
    demonstrations = Demonstrations._parse(data, path, header, [field.name for field in games.spec.fields])
    demonstrations.check(path, games)
    return path, demonstrations


def _stage(env: str, options: Mapping[str, Any]) -> str:
    entry = env_entry(env)
    return options.get(entry.stage_option, entry.options.get(entry.stage_option, ""))


def _arrays(header: DemonstrationHeader, rows: int) -> dict[str, tuple[type | None, tuple[int | None, ...]]]:
    """Return dtype (None: any) and shape (None: any) of every array of a file but `header` and the observations."""
    each = rows, header.agents
    return {
        "game": (np.int32, (rows,)),
        "actions": (np.int64, each),
        "labels": (np.bool_, (*each, len(header.action_names))),
        "alive": (np.bool_, each),
        "rewards": (np.float32, each),
        "won": (np.bool_, (header.games,)),
    }


def _check_array(arrays: Mapping[str, Kind], name: str, dtype: type | None, shape: tuple, source: Path) -> None:
    """Refuse an array that is missing, or of another type or shape; None stands for any."""
    if name not in arrays:
        raise CheckpointError(f"{source} is damaged: it has no {name}; record it again")
    array = arrays[name]
    fits = len(array.shape) == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
    if not fits or (dtype is not None and array.dtype != dtype):
        expected = "×".join("any" if b is None else str(b) for b in shape)
        raise CheckpointError(
            f"{source} is damaged: {name} has shape {'×'.join(map(str, array.shape))} and type {array.dtype}, "
            f"expected {expected}{'' if dtype is None else f' of {np.dtype(dtype)}'}; record it again"
        )


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, ARRAYS)
    except OSError as error:
        raise CheckpointError(
            f"the demonstrations {path} cannot be read ({reason(error)}); record some with magrounding record"
        ) from None


def _parse_header(data: bytes, source: Path) -> DemonstrationHeader:
    try:
        archive = Archive(data)
        if archive.kind(_HEADER).size > _MOST_HEADER:
            raise ValueError(f"its header is larger than {_MOST_HEADER:,} bytes")
        content = parse_json(archive.read(_HEADER).tobytes())
        if content["format"] != FORMAT:
            raise CheckpointError(
                f"{source} is of format {content['format']}, this version reads format {FORMAT}: record it again"
            )
        header = load(DemonstrationHeader, content)
        if header.games < 1:
            raise CheckpointError(f"{source} holds no games: record some")
    except (ConfigurationError, *DAMAGE) as error:
        raise _damaged(source, error) from None
    return header


def _damaged(source: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{source} is truncated, damaged or no demonstrations ({error}); restore it, or record it again"
    )
