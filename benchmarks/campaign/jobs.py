"""Jobs of a campaign: commands that write something, forked, disturbed, and compared with undisturbed ones.

Commands are forked from this process, which has imported everything: imports can lose nothing, and take longest.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import matplotlib.figure  # noqa: F401  with the first report
import torch
import torch._dynamo  # with the first optimiser

from magrounding.cli.command import CommandLine
from magrounding.experiment.config import make_config
from magrounding.experiment.presets import presets_of
from magrounding.registry import ENVS, is_simulator
from magrounding.run_folder import METRICS_FILE
from magrounding.storage import parse_json
from tests.experiment.tiny_runs import timeless

STEPS = 300
"""Environment steps of a training, about."""
TRAINED = "train ma_rtfm demo"
"""Job whose run others read."""
PATIENCE = 120.0
"""Seconds without work after which a command is said to wait for ever."""


class Job(NamedTuple):
    """A command that writes something: where, how it goes on, and what it has made in the end.

    Attributes:
        again: words behind those of the first attempt, once its folder holds something.
        made: folder of the job → what has to be equal, whatever happened on the way.
        of: name of the job whose folder is there as "it".
        once: it refuses what is there already.
    """

    name: str
    words: tuple[str, ...]
    again: tuple[str, ...]
    made: Callable[[Path], object]
    of: str = ""
    once: bool = False


class End(NamedTuple):
    """The end of a command: exit code (negative: a signal), and what it printed to stderr."""

    code: int
    said: str


class Broken(Exception):
    """A promise that did not hold."""


class Process:
    """A command of the package in a folder, forked; `limit` bounds the bytes of a file that it writes."""

    def __init__(self, words: tuple[str, ...], folder: Path, limit: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        self._words = words
        self._said = Path(tempfile.mkstemp(dir=folder.parent)[1])
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        self._pid = os.fork()
        if self._pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            return
        code = 1
        try:
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.dup2(os.open(self._said, os.O_WRONLY), 2)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            command, *arguments = words
            module = import_module(f"magrounding.cli.{command}")
            code = CommandLine(f"magrounding {command}", tuple(arguments)).run(module)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def wait(self, seconds: float) -> bool:
        """Wait so long; return whether it has ended."""
        until = time.monotonic() + seconds
        try:
            while os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                if time.monotonic() > until:
                    return False
                time.sleep(0.002)
        except BaseException:  # the campaign is stopped
            self.strike(signal.SIGKILL)
            raise
        return True

    def strike(self, blow: signal.Signals) -> None:
        os.kill(self._pid, blow)

    def owns(self, folder: Path) -> bool:
        """It has taken something below a folder; who was killed before may have left a record too."""
        with suppress(FileNotFoundError, ValueError):
            records = [path.read_text() for path in folder.rglob("*owner*")]
            return any(parse_json(record)["pid"] == self._pid for record in records if record)
        return False

    def end(self) -> End:
        """Wait for its end; Broken where that does not come."""
        before, in_time = -1, False
        while not in_time and (used := _cpu(self._pid)) != before:  # on a busy machine it may take long
            before, in_time = used, self.wait(PATIENCE)
        if not in_time:
            self.strike(signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        said = self._said.read_text(errors="replace")
        self._said.unlink()
        if not in_time:
            raise Broken(f"{' '.join(self._words)} did nothing for {PATIENCE:g} s: {said}")
        return End(code, said)


def _cpu(pid: int) -> int:
    """Clock ticks that a process has computed for; 0 where that cannot be seen."""
    try:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    except OSError:
        return 0


def check_sentence(end: End, codes: tuple[int, ...]) -> None:
    """Raise Broken unless a command ended well, or with one of some codes and one sentence."""
    lines = [line for line in end.said.splitlines() if not line.startswith("warning: ")]
    if end.code != 0 and (end.code not in codes or len(lines) != 1):
        raise Broken(f"exit code {end.code}: {end.said}")


def train(env: str, preset: str) -> Job:
    """A training of a few hundred steps in the first stage."""
    config = make_config(env, None, None, preset)
    stage = config.stages[0]
    steps = max((phase.until.steps or 0) for phase in config.of_stage(stage)) or 10**6
    small = "phases.*.*.num_envs=4", "save_every=0", "evaluation.selection_games=4", "evaluation.games=4"
    line = ("train", "--env", env, "--preset", preset, "--budget", f"{min(1.0, STEPS / steps):.3g}", "--out", "run")
    return Job(
        f"train {env} {preset}",
        (*line, "--stages", stage, "--device", "cpu", "--threads", "1", "--quiet", *small),
        ("train", "--out", "run", "--resume", "--device", "cpu", "--threads", "1", "--quiet"),
        _learnt,
    )


@cache
def jobs() -> tuple[Job, ...]:
    """Every command that writes, and every preset of the worlds that take no other package."""
    torch.set_num_threads(1)  # presets make networks: threads of torch's pool are lost in a fork, and waited for
    light = [id for id, entry in ENVS.items() if not is_simulator(entry.configure())]
    games = "--env", "ma_rtfm", "--stage", "s1"
    evaluate = "evaluate", "--pretrained", "ma_rtfm-s1-2agents", "--episodes", "60", "--out", "out", "--device", "cpu"
    match = "match", *games, "--players", "oracle", "random", "--games", "300", "--out", "out", "--quiet"
    record = "record", *games, "--games", "200", "--out", "demos.npz", "--quiet"
    pieces = "pieces", *games[:2], "--stages", "s1", "s2", "--pieces", "1000", "--out", "pieces.json"
    segments = "segments", "--run", "pretrained:ma_rtfm-s6-2agents", "--by", "stops", "--out", "out"
    compare = "compare", "--runs", "it/run", "it/run", "--names", "one", "other", "--out", "out"
    publish = "publish", "--run", "it/run", "--name", "team", "--to", "to"
    return (
        *(train(env, preset) for env in light for preset in presets_of(env)),
        Job("match", match, match, lambda folder: _files(folder / "out", "games_*.jsonl")),
        Job("record", record, record, lambda folder: _files(folder, "demos.npz"), once=True),
        Job("evaluate", evaluate, evaluate, lambda folder: _files(folder / "out", "zero_shot.md")),
        Job("pieces", pieces, pieces, lambda folder: _files(folder, "pieces.json"), once=True),
        Job("segments", segments, segments, lambda folder: _team(folder / "out"), once=True),
        Job("compare", compare, compare, lambda folder: _files(folder / "out", "comparison.*"), of=TRAINED),
        Job("publish", publish, publish, lambda folder: _team(folder / "to" / "team"), of=TRAINED, once=True),
    )


def _files(folder: Path, pattern: str) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob(pattern))}


def _team(folder: Path) -> object:
    """Weights, where the folder is a run's or team's: its config comes last, or it is moved there whole."""
    return _files(folder, "agent_*.safetensors") if (folder / "config.json").exists() else None


def _learnt(folder: Path) -> object:
    """Weights, and lines of metrics but for what the clock decides; Ctrl-C divides one of training where it stops."""
    found = [line for path in sorted((folder / "run").rglob(METRICS_FILE)) for line in timeless(path.parent)]
    lines = [line for line in found if line["kind"] != "train"]
    return _files(folder / "run", "agent_*.safetensors"), lines


class Place:
    """Folders of a campaign, in a temporary one: undisturbed jobs, made once, and one for each trial."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[Path, object, float]] = {}

    def whole(self, job: Job) -> tuple[Path, object, float]:
        """The folder of an undisturbed job, what it made, and its seconds."""
        if job.name not in self._known:
            folder = self._folder / job.name.replace(" ", "-")
            shutil.rmtree(folder, ignore_errors=True)  # of an attempt that failed
            self._prepare(job, folder)
            since = time.monotonic()
            if (end := Process(job.words, folder).end()).code:
                raise Broken(f"{job.name}, undisturbed: {end.said}")
            self._known[job.name] = folder, job.made(folder), time.monotonic() - since
        return self._known[job.name]

    @contextmanager
    def trial(self, job: Job | None = None) -> Iterator[Path]:
        """A folder, with what the job reads, removed afterwards."""
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
            if job is not None:
                self._prepare(job, Path(folder))
            yield Path(folder)

    def _prepare(self, job: Job, folder: Path) -> None:
        if job.of:
            source = next(each for each in jobs() if each.name == job.of)
            shutil.copytree(self.whole(source)[0], folder / "it")

    def is_done(self, job: Job, folder: Path) -> bool:
        """A job that is not done twice has made all."""
        return job.once and job.made(folder) == self.whole(job)[1]


def go_on(job: Job, folder: Path, limit: int | None = None) -> Process:
    """Begin a job, or go on with it once it has begun."""
    begun = (folder / "run" / "config.json").exists() if job.words[0] == "train" else True
    return Process(job.again if begun else job.words, folder, limit)


def finish(job: Job, folder: Path, place: Place) -> None:
    """Let a job end that was disturbed; Broken unless it makes what it makes undisturbed."""
    if not place.is_done(job, folder) and (end := go_on(job, folder).end()).code:
        raise Broken(f"{job.name} does not go on: {end.said}")
    if job.made(folder) != place.whole(job)[1]:
        raise Broken(f"{job.name} ends differently")
