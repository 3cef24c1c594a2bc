"""The command is killed at random moments, resumed each time, and must end as one that nothing disturbed.

`python -m tests.experiment.kill_campaign --moments 20` is the whole campaign; `make test-full` has a short one. Every
run is a process of its own, forked from this one: what takes longest, importing, can lose nothing and is done once.
"""

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib.figure  # noqa: F401  with the first report
import torch._dynamo  # noqa: F401  with the first optimiser

from magrounding.cli import train
from magrounding.cli.command import CommandLine
from magrounding.experiment.config import read_config
from magrounding.experiment.phase import Promotion
from magrounding.experiment.presets import rtfm
from magrounding.play.run_folder import OWNER_FILE
from tests.experiment.tiny_runs import IMITATION, LEARNER, TINY, phases_of, timeless

LINE = ("--env", "ma_rtfm", "--device", "cpu", "--out", "run")
IN_A_CHAIN = 4


def tiny_preset() -> None:
    """A demo of a stage of two phases and others of one, with evaluations, and a checkpoint after every update."""
    brief = {"*": Promotion(steps=150)}
    phases = {**phases_of(brief, LEARNER), "s1": phases_of(brief, IMITATION, LEARNER)["*"]}
    evaluation = replace(TINY.evaluation, every=60, final_sets=("train", "eval"))
    rtfm.DEMO = replace(TINY, preset="demo", phases=phases, evaluation=evaluation, log_every=1)


@dataclass(frozen=True)
class Started:
    """The command at work in a folder; what it prints goes into two files there."""

    pid: int
    folder: Path

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; exit code (negative: a signal), stdout and stderr."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        out, err = ((self.folder / f"{name}.{self.pid}").read_text() for name in ("out", "err"))
        return code, out, err

    def wait_until_owner(self) -> None:
        """Until it owns its run: before, it has nothing to lose."""
        while True:
            with suppress(FileNotFoundError):
                if f'"pid": {self.pid},' in (self.folder / "run" / OWNER_FILE).read_text():
                    return
            assert not self.has_ended, self.end()
            time.sleep(0.002)

    @property
    def has_ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


class Campaign:
    """Runs of one command line, interrupted at random moments.

    Args:
        folder: for the runs, each in a folder of its own.
        seed: of the moments.
        stages, seeds: of each run, as the command takes them.
    """

    def __init__(self, folder: Path, seed: int, stages: str, seeds: str) -> None:
        self._folder, self._draw = folder, random.Random(seed)
        self._line = (*LINE, "--stages", stages, "--seeds", seeds)
        self._whole = folder / "whole"
        run = self._start(self._whole)
        run.wait_until_owner()
        since = time.monotonic()
        code, _, err = run.end()
        assert (code, err) == (0, ""), err
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
            check(folder / "run", self._whole / "run")
            yield f"{folder.name}: ends as the undisturbed run, bit for bit ({struck} interruptions so far)"

    def _start(self, folder: Path) -> Started:
        """The command, begun or resumed; it works in `folder`, so what it writes about itself is always the same."""
        folder.mkdir(parents=True, exist_ok=True)
        again = ["--resume"] if (folder / "run" / "config.json").exists() else []
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return Started(pid, folder)
        code = 1
        try:
            os.chdir(folder)
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(f"{name}.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
            code = CommandLine("magrounding train", (*self._line, *again)).run(train)
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)

    def _strike(self, folder: Path) -> tuple[str, bool]:
        """Begin or resume a run and interrupt it; what it had done by then, and whether it was still at work."""
        blows = signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP
        blow = self._draw.choices(blows, weights=(3, 1, 1, 1))[0]
        after, fresh = self._draw.random() * self._seconds, not (folder / "run").exists()
        run = self._start(folder)
        run.wait_until_owner()
        since = time.monotonic()
        while (passed := time.monotonic() - since) < after and not run.has_ended:
            time.sleep(0.002)
        if passed < after and fresh:  # the machine is faster by now: moments have to be sooner
            self._seconds = passed
        os.kill(run.pid, blow)
        code, out, err = run.end()
        if "report: " in out:
            return "over before it was struck", False
        as_expected = (code, err) == (-signal.SIGKILL, "")
        if blow is not signal.SIGKILL:
            as_expected = code == 128 + blow and re.fullmatch(r"stopped[^\n]*\n", err)
        assert as_expected, (blow, code, err)
        files = sum(path.is_file() for path in (folder / "run").rglob("*"))
        lines = sum(len(timeless(path.parent)) for path in (folder / "run").rglob("metrics.jsonl"))
        return f"{blow.name} after {after:.2f} s of {self._seconds:.2f}, {files} files, {lines} lines of metrics", True

    def _end(self, folder: Path) -> None:
        """Resume a run twice at the same moment, and let the one that owns it end."""
        both = [self._start(folder), self._start(folder)]
        ends = sorted((run.end() for run in both), key=lambda end: end[0])
        assert [code for code, *_ in ends] == [0, 2], ends
        assert re.fullmatch(r"error: the run in run is running \(process \d+ on [^\n]*\n", ends[1][2])


def check(ours: Path, theirs: Path) -> None:
    """AssertionError, with what differs, unless two finished runs say the same."""
    one, other = content(ours), content(theirs)
    assert one.keys() == other.keys(), one.keys() ^ other.keys()
    different = [name for name in other if one[name] != other[name]]
    assert different == [], {name: (one[name], other[name]) for name in different}


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
    settings = read_config(run)
    weights = [name for name in found if re.search(r"s\d/agent_\d.safetensors$", name)]
    assert len(weights) == 2 * len(settings.stages) * len(settings.seeds)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", default="s1,s3")
    parser.add_argument("--seeds", default="0,1")
    given = parser.parse_args()
    tiny_preset()
    with tempfile.TemporaryDirectory() as place:
        for line in Campaign(Path(place), given.seed, given.stages, given.seeds).run(given.moments):
            print(line, flush=True)
