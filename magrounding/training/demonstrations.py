"""Demonstrations: recorded episodes, in a file from which phases of imitation learn.

A file is one `.npz` without pickles. Its G episodes have T rows together, one episode behind the other. With n agents
and A actions it holds:

| array | shape and type | content |
|---|---|---|
| `header` | bytes, uint8 | JSON in UTF-8, see `DemonstrationHeader` |
| `observation/<name>` | [T, n, …] | each field but the following, before the step |
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
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile

from magrounding.brief import brief
from magrounding.errors import CheckpointError, ConfigurationError, MagroundingError
from magrounding.machine import machine_memory
from magrounding.registry import env_entry
from magrounding.schema import Count, Options, load
from magrounding.storage import ARRAYS, json_text, parse_json, read_bytes, reason, user_path, write_atomic
from magrounding.teams.origin import EnvLike
from magrounding.vector import Observation
from magrounding.version import __version__

FORMAT = 2
_OWN_CHOICE = ("max_cycles",)
"""Options in which a recording may differ from the games of a run."""
_OBSERVATION, _TEXT = "observation/", "text/"
_HEADER = "header"
_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, EOFError, OverflowError, RuntimeError, MemoryError)
_DAMAGE += (zipfile.BadZipFile, zlib.error)
"""Errors of reading a damaged file."""


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
    games: Count
    version: str = __version__
    format: int = FORMAT

    @property
    def stage(self) -> str:
        return _stage(self.env, self.options)

    def check_origin(self, source: Path, games: EnvLike) -> None:
        """Raise a CheckpointError for another env, vocabulary, number of agents or set of actions."""
        spec = games.spec
        own = {"env": games.id, "agents": spec.num_agents, "vocabulary": spec.vocabulary_hash}
        own["action_names"] = tuple(spec.actions.names)
        _require_alike(source, vars(self), own)


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
        own = _arrays(header, 0)
        with _opened(data, source) as archive:
            kept = [name for name in archive.files if fields is None or name.partition("/")[2] in fields]
            seen, read = ([name for name in kept if name.startswith(kind)] for kind in (_OBSERVATION, _TEXT))
            names = {name for name in (*own, *seen, *read) if name in archive.files}
            assert archive.zip is not None  # it is open
            sizes = [info.file_size for info in archive.zip.infolist() if info.filename.removesuffix(".npy") in names]
            if sum(sizes) > machine_memory():
                raise ValueError("its arrays are larger than this machine's memory")
            arrays = {name: np.asarray(archive[name]) for name in names}
        rows = len(arrays["game"]) if "game" in arrays and arrays["game"].ndim else 0
        expected = dict.fromkeys(seen, (None, (rows, header.agents))) | dict.fromkeys(read, (None, (header.games,)))
        for name, (dtype, shape) in (_arrays(header, rows) | expected).items():
            array = arrays.get(name)
            fits = array is not None and array.shape[: len(shape)] == shape
            if array is None or not fits or (dtype is not None and (array.dtype, array.ndim) != (dtype, len(shape))):
                found = "missing" if array is None else f"{array.dtype} of shape {array.shape}"
                raise CheckpointError(
                    f"{source} is damaged: {name} is {found}, not of shape {shape}, as its header says; record it again"
                )
        game, labels = arrays["game"], arrays["labels"]
        new = np.diff(game, prepend=-1)
        whole = len(game) and game[-1] == header.games - 1 and new[0] == 1 and np.isin(new, (0, 1)).all()
        if not whole or not labels.any():
            raise CheckpointError(
                f"{source} is damaged: steps or labels of its games are missing or in disorder; record it again"
            )
        observation = {name.removeprefix(_OBSERVATION): arrays[name] for name in seen}
        texts = {name.removeprefix(_TEXT): arrays[name] for name in read}
        return cls(header, observation, texts, **{name: arrays[name] for name in own})

    def check(self, source: Path, games: EnvLike) -> None:
        """Raise a CheckpointError for other options than the run's, or arrays that no network could read."""
        usual = {name: value for name, value in env_entry(games.id).options.items() if name not in _OWN_CHOICE}
        own = {name: games.options.get(name, value) for name, value in usual.items()}
        _require_alike(source, {**usual, **self.header.options}, own)
        arrays, wrong = {**self.observation, **self.texts}, []
        for field in games.spec.fields:
            each = 1 if field.name in self.texts else 2  # axes of games, or of rows and agents
            array = arrays.get(field.name)
            if array is None or array.shape[each:] != field.shape or array.dtype != field.dtype:
                raise CheckpointError(
                    f"{source} has no {field.name} of {'×'.join(map(str, field.shape))} {field.dtype}, "
                    f"as {games.id!r} shows it: record it again with the options of the run"
                )
            if array.min() < field.low or array.max() > field.high:
                wrong.append(field.name)
        if (self.labels & (self.observation["action_mask"] == 0)).any():
            wrong.append("labels")
        if wrong:
            raise CheckpointError(
                f"{source} is damaged: {games.id!r} has no such values of {', '.join(wrong)}; record it again"
            )


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


def _require_alike(source: Path, shown: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise a CheckpointError where what a recording has is not what a run has, by the names in `own`."""
    for name, expected in own.items():
        if shown[name] != expected:
            raise CheckpointError(f"{source} was recorded with {name} {shown[name]!r}, the run has {expected!r}")


def _arrays(header: DemonstrationHeader, rows: int) -> dict[str, tuple[type | None, tuple[int, ...]]]:
    """Return dtype and shape of every array of a file but `header` and the observations."""
    each = rows, header.agents
    return {
        "game": (np.int32, (rows,)),
        "actions": (np.int64, each),
        "labels": (np.bool_, (*each, len(header.action_names))),
        "alive": (np.bool_, each),
        "rewards": (np.float32, each),
        "won": (np.bool_, (header.games,)),
    }


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, ARRAYS)
    except OSError as error:
        raise CheckpointError(
            f"the demonstrations {path} cannot be read ({reason(error)}); record some with magrounding record"
        ) from None


@contextmanager
def _opened(data: bytes, source: Path) -> Iterator[NpzFile]:
    """Open a file; CheckpointError where it is damaged, or what is read within."""
    try:
        with NpzFile(io.BytesIO(data)) as archive:
            yield archive
    except (ConfigurationError, *_DAMAGE) as error:
        raise CheckpointError(
            f"{source} is truncated, damaged or no demonstrations ({error}); restore it, or record it again"
        ) from None


def _parse_header(data: bytes, source: Path) -> DemonstrationHeader:
    with _opened(data, source) as archive:
        content = parse_json(archive[_HEADER].tobytes())
        if content["format"] != FORMAT:
            raise ValueError(f"it is of format {content['format']}, this version reads format {FORMAT}")
        return load(DemonstrationHeader, content)
