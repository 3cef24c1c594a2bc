"""A real command is killed at random moments, resumed each time, and must end as one that nothing disturbed.

`python -m tests.experiment.kill_campaign --moments 20` is the whole campaign; `make test` has a short one.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from magrounding.experiment.owner import OWNER_FILE
from magrounding.experiment.settings import read_settings
from tests.experiment.tiny_runs import timeless

ROOT = Path(__file__).parents[2]
LONGEST = 300.0
IN_A_CHAIN = 4

# A stage of two phases and others of one, evaluations within and after, a checkpoint after every update.
COMMAND = """
import os, sys, time
from dataclasses import replace
from magrounding.cli.main import main
from magrounding.experiment.presets import Promotion, rtfm
from tests.experiment.tiny_runs import IMITATION, LEARNER, TINY, phases_of

brief = {"*": Promotion(steps=150)}
phases = {**phases_of(brief, LEARNER), "s1": phases_of(brief, IMITATION, LEARNER)["*"]}
rtfm.DEMO = replace(TINY, phases=phases, evaluate_every=60, final_sets=("train", "eval"), log_every=1)
while not os.path.exists("go"):
    time.sleep(0.001)
sys.exit(main())
"""
LINE = ("train", "--env", "ma_rtfm", "--device", "cpu", "--out", "run")


class Campaign:
    """Runs of one command line, interrupted at random moments.

    Args:
        folder: for the runs, each in a folder of its own.
        seed: of the moments.
        stages, seeds: of each run, as the command takes them.
    """

    def __init__(self, folder: Path, seed: int, stages: str = "s1,s3", seeds: str = "0,1") -> None:
        self._folder, self._draw = folder, random.Random(seed)
        self._line = (*LINE, "--stages", stages, "--seeds", seeds)
        self._whole = folder / "whole"
        process = self._start(self._whole)
        wait_until_owned(self._whole, process)
        since = time.monotonic()
        assert finish(process)[::2] == (0, "")
        self._seconds = time.monotonic() - since

    def run(self, moments: int) -> Iterator[str]:
        """Interrupt so often, in several runs, and compare each with the undisturbed one; what happened, line by line.

        Raises:
            AssertionError: a run ended differently, or said something else than one sentence.
        """
        struck = chain = 0
        while struck < moments:
            folder, chain = self._folder / f"chain_{chain}", chain + 1
            for _ in range(min(IN_A_CHAIN, moments - struck)):
                told, interrupted = self._strike(folder)
                struck += interrupted
                yield f"{folder.name}: {told}"
                if not interrupted:
                    break
            self._end(folder)
            check(folder, self._whole)
            yield f"{folder.name}: ends as the undisturbed run, bit for bit ({struck} interruptions so far)"

    def _start(self, folder: Path, *, at_once: bool = True) -> subprocess.Popen[str]:
        """The command, begun or resumed; it works in `folder`, so what it writes about itself is always the same."""
        folder.mkdir(parents=True, exist_ok=True)
        if at_once:
            (folder / "go").touch()
        again = ["--resume"] if (folder / "run" / "config.json").exists() else []
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        line = [sys.executable, "-c", COMMAND, *self._line, *again]
        out = subprocess.PIPE
        return subprocess.Popen(line, env=environment, cwd=folder, stdout=out, stderr=out, text=True)

    def _strike(self, folder: Path) -> tuple[str, bool]:
        """Begin or resume a run and interrupt it; what it had done by then, and whether it was still at work."""
        blow = self._draw.choices((signal.SIGKILL, signal.SIGINT), weights=(3, 1))[0]
        after = self._draw.random() * self._seconds
        process = self._start(folder)
        wait_until_owned(folder, process)
        time.sleep(after)
        process.send_signal(blow)
        code, out, err = finish(process)
        if "report: " in out:
            return "over before it was struck", False
        as_expected = (code, err) == (-signal.SIGKILL, "")
        if blow is signal.SIGINT:
            as_expected = code == 130 and re.fullmatch(r"stopped[^\n]*\n", err)
        assert as_expected, (blow, code, err)
        files = sum(path.is_file() for path in (folder / "run").rglob("*"))
        lines = sum(len(timeless(path.parent)) for path in (folder / "run").rglob("metrics.jsonl"))
        return f"{blow.name} after {after:.2f} s, {files} files, {lines} lines of metrics", True

    def _end(self, folder: Path) -> None:
        """Resume a run twice at the same moment, and let the one that owns it end."""
        (folder / "go").unlink()
        both = [self._start(folder, at_once=False) for _ in range(2)]
        time.sleep(1.0)
        (folder / "go").touch()
        ends = sorted((finish(process) for process in both), key=lambda end: end[0])
        assert [code for code, *_ in ends] == [0, 2], ends
        assert re.fullmatch(r"error: the run in run is running \(process \d+ on [^\n]*\n", ends[1][2])


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    out, err = process.communicate(timeout=LONGEST)
    return process.returncode, out, err


def wait_until_owned(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until the process owns the run: before, it only imports and has nothing to lose."""
    path, deadline = folder / "run" / OWNER_FILE, time.monotonic() + LONGEST
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and f'"pid": {process.pid},' in path.read_text():
            return
        time.sleep(0.005)
    raise RuntimeError(f"the run did not begin: {finish(process)}")


def check(folder: Path, undisturbed: Path) -> None:
    """AssertionError, with the names of what differs, unless two finished runs say the same."""
    ours, theirs = content(folder / "run"), content(undisturbed / "run")
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    assert [name for name in theirs if ours[name] != theirs[name]] == []


def content(run: Path) -> dict[str, object]:
    """Everything that a finished run's folder says, but for what the clock told it; files of others by their names."""
    found: dict[str, object] = {}
    for path in run.rglob("*"):
        if path.is_dir() or path.parent.name == "tensorboard":
            continue
        name = str(path.relative_to(run))
        if name == "report.md":
            results, budget, repeat = re.split("^## (?:Budget|How to repeat it)$", path.read_text(), flags=re.MULTILINE)
            rows = [row.rsplit("|", 3)[0] for row in budget.splitlines() if row.startswith("|")]  # without minutes
            found[name] = results, rows, repeat
        elif path.name == "metrics.jsonl":
            found[name] = timeless(path.parent)
        elif path.suffix == ".json" or path.name.startswith("agent_"):
            found[name] = path.read_bytes()
        else:
            found[name] = "there"
    trained = [stage / f"agent_{i}.safetensors" for stage in run.rglob("s[13]") for i in range(2)]
    settings = read_settings(run)
    assert len(trained) == 2 * len(settings.stages) * len(settings.seeds)
    assert all(str(path.relative_to(run)) in found for path in trained)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for line in Campaign(Path(place), given.seed).run(given.moments):
            print(line, flush=True)
