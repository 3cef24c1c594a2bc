"""Campaign: an hour of kills, damaged files, hostile clients, busy and full machines: `python -m benchmarks.campaign`.

It tries what docs/promises.md promises, at random, until its time is over: `--minutes 60 --seed 0 --out runs/campaign`.
A trial is drawn from its kind and its seed, so a failure is repeated by the line that is printed, such as
`python -m benchmarks.campaign --only kills --seed 17 --minutes 0`. A campaign that was stopped goes on in its folder,
which gets `trials.jsonl`, and in the end `campaign.json` and `campaign.md`.

Commands are forked from this process, which has imported everything: imports can lose nothing, and take longest.
"""

from __future__ import annotations

import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import matplotlib.figure  # noqa: F401  with the first report
import torch
import torch._dynamo  # with the first optimiser

from benchmarks import study_kills
from magrounding.agents.weights import versions
from magrounding.cli.command import CommandLine, run_command
from magrounding.errors import ConfigurationError, MagroundingError, check_choice
from magrounding.experiment.config import make_config
from magrounding.experiment.markdown import table
from magrounding.experiment.presets import presets_of
from magrounding.play.owner import owned
from magrounding.play.run_folder import METRICS_FILE
from magrounding.registry import ENVS, is_simulator
from magrounding.storage import json_text, parse_json, read_json, read_text, write_atomic, write_json
from tests.experiment.tiny_runs import timeless

ROOT = Path(__file__).parents[1]
PROG = "python -m benchmarks.campaign"
STEPS = 300
"""Environment steps of a training, about."""
TRAINED = "train ma_rtfm demo"
"""Job whose run others read."""
PATIENCE = 120.0
"""Seconds without work after which a command is said to wait for ever."""


@dataclass(frozen=True)
class Arguments:
    """Try what is promised, at random: kills, damaged files, hostile clients, busy and full machines."""

    minutes: float = 60.0
    """How long; a trial that has begun is ended. 0: one trial."""
    seed: int = 0
    """Of the first trial of each kind; others count from there."""
    out: Path = Path("runs/campaign")
    """Folder of the figures. A campaign that was stopped goes on there."""
    only: str = ""
    """One kind: kills, disk, busy, files, studies, clients or calls; "": all of them in turn."""


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


# Commands


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
    """Broken unless a command ended well, or with one of some codes and one sentence."""
    lines = [line for line in end.said.splitlines() if not line.startswith("warning: ")]
    if end.code != 0 and (end.code not in codes or len(lines) != 1):
        raise Broken(f"exit code {end.code}: {end.said}")


def train(env: str, preset: str) -> Job:
    """A training of a few hundred steps in the first stage."""
    config = make_config(env, None, None, preset)
    stage = config.stages[0]
    steps = max((phase.until.steps or 0) for phase in config.of_stage(stage)) or 10**6
    small = "--set", "phases.*.*.num_envs=4", "--set", "save_every=0", "--set", "evaluation.selection_games=4"
    line = ("train", "--env", env, "--preset", preset, "--budget", f"{min(1.0, STEPS / steps):.3g}", "--out", "run")
    return Job(
        f"train {env} {preset}",
        (*line, "--stages", stage, "--games", "4", "--device", "cpu", "--threads", "1", "--quiet", *small),
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


# Kinds of trials: each returns what it did, or raises Broken


def kills(draw: random.Random, seed: int, place: Place) -> str:
    """Kill a command up to four times at random moments, and let it go on."""
    job = draw.choice(jobs())
    seconds, told = place.whole(job)[2], []
    with place.trial(job) as folder:
        for _ in range(draw.randint(1, 4)):
            if place.is_done(job, folder):  # killed after its last file
                break
            blow = draw.choices((signal.SIGKILL, signal.SIGINT, signal.SIGTERM), (3, 1, 1))[0]
            after = draw.random() * seconds
            process = go_on(job, folder)
            ended = process.wait(after)
            while not ended and blow is not signal.SIGKILL and not process.owns(folder):
                ended = process.wait(0.01)  # before, no command has said how it ends
            if not ended:
                process.strike(blow)
            end = process.end()
            if end.code not in (-blow, 0):
                check_sentence(end, (128 + blow,))  # as a shell has it
            told.append(f"{blow.name} after {after:.2f} s" if end.code else "over before")
            if not end.code:
                break
        else:
            finish(job, folder, place)
        if job.made(folder) != place.whole(job)[1]:
            raise Broken(f"{job.name} ends differently after {', '.join(told)}")
    return f"{job.name}: {', '.join(told)}"


def disk(draw: random.Random, seed: int, place: Place) -> str:
    """Let the disk refuse files that become too large; then there is room."""
    job, limit = draw.choice(jobs()), int(2 ** draw.uniform(8, 22))
    with place.trial(job) as folder:
        check_sentence(end := go_on(job, folder, limit).end(), (2,))
        if end.code:
            finish(job, folder, place)
    return f"{job.name}: files of {limit:,} bytes at most, exit code {end.code}"


def busy(draw: random.Random, seed: int, place: Place) -> str:
    """Run a command beside processes that compute for nothing: it makes the same."""
    job, number = draw.choice(jobs()), draw.randint(1, 3) * (os.cpu_count() or 1)
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        with place.trial(job) as folder:
            finish(job._replace(again=job.words), folder, place)
    finally:
        for process in beside:
            process.kill()
            process.wait()
    return f"{job.name}: beside {number} busy processes"


def files(draw: random.Random, seed: int, place: Place) -> str:
    """Damage a file, and let a command read it: it ends well, or in one sentence, and does not wait."""
    games, made = ("--env", "ma_rtfm", "--stage", "s1"), {job.name: job for job in jobs()}
    used = draw.choice((TRAINED, "match", "record"))
    with place.trial() as folder:
        shutil.copytree(place.whole(made[used])[0], folder / "it")
        readers = {
            TRAINED: (
                ("evaluate", "--run", "it/run", "--episodes", "2", "--out", "out"),
                (*made[used].again[:2], "it/run", *made[used].again[3:]),
                made["compare"].words,
                made["publish"].words,
                ("match", *games, "--players", "run:it/run", "--games", "2", "--out", "out"),
            ),
            "match": (("replay", "it/out/games_0.jsonl"), (*made[used].words[:-2], "it/out", "--quiet")),
            "record": (
                ("train", *games[:2], "--stages", "s1", "--demonstrations", "it/demos.npz", "--budget", ".0001"),
            ),
        }[used]
        words = draw.choice(readers)
        target = draw.choice([path for path in sorted((folder / "it").rglob("*")) if path.is_file()])
        name = draw.choice(list(DAMAGE))
        DAMAGE[name](target, draw)
        check_sentence(Process(words, folder).end(), (2,))
    return f"{target.name}: {name}; {words[0]}"


def _bytes(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def _flip(path: Path, draw: random.Random) -> None:
    data = bytearray(path.read_bytes() or b"\0")
    for _ in range(draw.choice((1, 1, 30))):
        data[draw.randrange(min(len(data), 4096))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def _instead(path: Path, make: Callable[[], object]) -> None:
    path.unlink()
    make()


def _listed(path: Path, draw: random.Random) -> None:
    """Put a list where something else belongs in a sealed file, and seal it again."""
    try:
        content = read_json(path)
    except MagroundingError:
        return _flip(path, draw)
    name = draw.choice(list(content))
    write_json(path, {**content, name: draw.choice(([], [content[name]], [["x"]], 10**7, "x", None))}, sealed=True)
    return None


def _sparse(path: Path, draw: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(2**32)


DAMAGE: dict[str, Callable[[Path, random.Random], object]] = {
    "bits flipped": _flip,
    "cut": lambda path, draw: _bytes(path, lambda data: data[: draw.randrange(len(data) + 1)]),
    "empty": lambda path, draw: path.write_bytes(b""),
    "zeros": lambda path, draw: _bytes(path, lambda data: bytes(len(data))),
    "more behind": lambda path, draw: _bytes(path, lambda data: data + draw.randbytes(100)),
    "twice": lambda path, draw: _bytes(path, lambda data: data * 2),
    "nested": lambda path, draw: path.write_bytes(b"[" * 5000 + b"]" * 5000),
    "a pipe": lambda path, draw: _instead(path, lambda: os.mkfifo(path)),
    "a device": lambda path, draw: _instead(path, lambda: path.symlink_to("/dev/zero")),
    "a folder": lambda path, draw: _instead(path, path.mkdir),
    "gone": lambda path, draw: path.unlink(),
    "four gigabytes": _sparse,
    "a list, sealed": _listed,
}
"""Name → what damages a file."""


def studies(draw: random.Random, seed: int, place: Place) -> str:
    """Kill the server of a study at random steps; its disk is full now and then (benchmarks/study_kills.py)."""
    people, blows = draw.randint(10, 100), draw.randint(1, 5)
    with place.trial() as folder:
        counts = study_kills.campaign(folder, people, blows, seed)
    told = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
    right = {"lost steps": 0, "files of unknown kind": 0, "participants in the files": people}
    if any(counts[what] != number for what, number in right.items()):
        raise Broken(told)
    return told


def clients(draw: random.Random, seed: int, place: Place) -> str:
    """Send hostile messages to a server (tests/play/web/test_hostile_clients.py)."""
    return _pytest(
        "tests/play/web/test_hostile_clients.py", MAGROUNDING_FUZZ_MESSAGES="600", MAGROUNDING_FUZZ_SEED=str(seed)
    )


def calls(draw: random.Random, seed: int, place: Place) -> str:
    """Call what is public with wrong arguments, and play envs that answer wrongly (tests/test_fuzz.py and others)."""
    file = draw.choice(("tests/test_fuzz.py", "tests/simulators/test_foreign_fuzz.py"))
    return _pytest(file, f"--hypothesis-seed={seed}", MAGROUNDING_FUZZ_DRAWS="300")


def _pytest(file: str, *more: str, **variables: str) -> str:
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file, *more]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"{file}: {done.stdout[-2000:]}{done.stderr[-1000:]}")
    return f"{file}: {done.stdout.strip().splitlines()[-1]}"


KINDS: dict[str, Callable[[random.Random, int, Place], str]] = {
    each.__name__: each for each in (kills, files, disk, busy, studies, clients, calls)
}


# The campaign


@dataclass(frozen=True)
class Trial:
    """A trial: its kind, seed and seconds, what was done, and what did not hold, if anything."""

    kind: str
    seed: int
    seconds: float
    told: str
    broken: str = ""

    @property
    def again(self) -> str:
        return f"{PROG} --only {self.kind} --seed {self.seed} --minutes 0"


def play(kind: str, seed: int, place: Place) -> Trial:
    """Play one trial."""
    since, told, broken = time.monotonic(), "", ""
    try:
        told = KINDS[kind](random.Random(f"{kind} {seed}"), seed, place)
    except Broken as error:
        broken = str(error)
    except Exception:  # the campaign goes on
        broken = traceback.format_exc()
    return Trial(kind, seed, round(time.monotonic() - since, 2), told, broken)


def run(arguments: Arguments) -> None:
    """Play trials until the time is over, and write the figures; ConfigurationError where a promise did not hold."""
    if not 0 <= arguments.minutes < math.inf or arguments.seed < 0:
        raise ConfigurationError("--minutes and --seed are 0 or more")
    kinds = (check_choice("kind of trial", arguments.only, KINDS),) if arguments.only else tuple(KINDS)
    with owned(arguments.out, "the campaign"):
        kept = arguments.out / "trials.jsonl"
        done = [] if not kept.exists() or not arguments.minutes else _read(kept)
        left = 60 * arguments.minutes - sum(trial.seconds for trial in done)
        with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
            place, until = Place(Path(folder)), time.monotonic() + left
            while not done or time.monotonic() < until:
                kind = kinds[len(done) % len(kinds)]
                trial = play(kind, arguments.seed + len(done) // len(kinds), place)
                done.append(trial)
                print(f"{kind} {trial.seed}: {trial.broken or trial.told}", flush=True)
                if trial.broken:
                    print(f"again: {trial.again}", flush=True)
                write_atomic(kept, "".join(json_text(asdict(each)) + "\n" for each in done))
        write_json(arguments.out / "campaign.json", {"versions": versions(), "trials": [asdict(each) for each in done]})
        write_atomic(arguments.out / "campaign.md", page(done))
    print(f"report: {arguments.out / 'campaign.md'}")
    if failed := sum(bool(trial.broken) for trial in done):
        raise ConfigurationError(f"{failed} of {len(done)} trials broke a promise: {arguments.out / 'campaign.md'}")


def _read(path: Path) -> list[Trial]:
    try:
        return [Trial(**parse_json(line)) for line in read_text(path).splitlines()]
    except (ValueError, TypeError):
        raise ConfigurationError(f"{path} is damaged: remove it, or name another folder with --out") from None


def page(trials: list[Trial]) -> str:
    """Return the page of figures."""
    rows = []
    for kind in KINDS:
        own = [trial for trial in trials if trial.kind == kind]
        broken = sum(bool(trial.broken) for trial in own)
        rows.append([kind, str(len(own)), str(broken), f"{sum(trial.seconds for trial in own) / 60:.1f}"])
    parts = ["# Campaign", "", table(["kind", "trials", "broken promises", "minutes"], rows), ""]
    for trial in trials:
        if trial.broken:
            parts += [f"- {trial.kind} {trial.seed}: `{trial.again}`", "", "```text", trial.broken.strip(), "```", ""]
    parts += ["", "What was tried:", "", *(f"- {each.kind} {each.seed}: {each.told or 'broken'}" for each in trials)]
    return "\n".join(parts) + "\n"


def main() -> int:
    """Run the campaign, and return the exit code."""
    arguments = CommandLine.of_process(PROG).parse(Arguments)
    return run_command(lambda: run(arguments), lambda: "stopped; the same command goes on with the campaign")


if __name__ == "__main__":
    sys.exit(main())
