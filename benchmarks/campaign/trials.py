"""Kinds of trials: each disturbs something at random, and returns what it did, or raises Broken."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import study_kills
from benchmarks.campaign.jobs import TRAINED, Broken, Place, Process, check_sentence, finish, go_on, jobs
from magrounding.errors import MagroundingError
from magrounding.storage import read_json, write_json

ROOT = Path(__file__).parents[2]


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
            "record": (("train", *games[:2], "--stages", "s1", "--budget", ".0001", "demonstrations=it/demos.npz"),),
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
    """Send hostile messages to a server (tests/extensions/people/web/test_hostile_clients.py)."""
    return _pytest(
        "tests/extensions/people/web/test_hostile_clients.py",
        MAGROUNDING_FUZZ_MESSAGES="600",
        MAGROUNDING_FUZZ_SEED=str(seed),
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
