"""Speed-up of a run's seeds that are trained side by side: `python -m benchmarks.jobs --jobs 2`.

Three runs of the same seeds, one after the other: by one process that has all cores, by one process with one thread,
and by `--jobs`. Processor seconds of all of their processes are counted too, as they change little with what else the
machine does. The weights of all have to be the same, bit for bit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from magrounding.cli.command import CommandLine, program
from magrounding.errors import MagroundingError
from magrounding.threads import available_cores


@dataclass(frozen=True)
class Arguments:
    """Train a run's seeds one after another and side by side."""

    env: str = "ma_rtfm"
    """Environment id."""
    agents: int = 3
    """Number of agents."""
    preset: str = "demo"
    """Algorithm, network and budget."""
    budget: float = 0.2
    """Factor for the preset's environment steps."""
    stages: str = "s1"
    """Stages in order, separated by commas."""
    seeds: str = "0,1,2,3"
    """Seeds separated by commas."""
    jobs: int = 2
    """Processes side by side."""


class OtherWeights(MagroundingError):
    """Two ways of training the same seeds came to different weights."""


def train(folder: Path, *words: str) -> None:
    """Run the command; CalledProcessError where it fails."""
    line = [sys.executable, "-m", "magrounding.cli.main", "train", "--out", str(folder), *words]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def seconds(folder: Path, *words: str) -> tuple[float, float]:
    """Train a run that has begun: seconds by the clock, and of processors."""
    before, start = os.times(), time.perf_counter()
    train(folder, "--resume", *words)
    after = os.times()
    computed = after.children_user - before.children_user + after.children_system - before.children_system
    return time.perf_counter() - start, computed


def weights(run: Path) -> dict[str, bytes]:
    """The content of all files of weights of a run."""
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("agent_*.safetensors"))}


def run(arguments: Arguments, line: CommandLine) -> None:
    """Print a line for each way of training; OtherWeights where they differ."""
    words = ["--env", arguments.env, "--agents", str(arguments.agents), "--preset", arguments.preset]
    words += ["--budget", f"{arguments.budget:g}", "--stages", arguments.stages, "--seeds", arguments.seeds]
    ways = {
        "--jobs 1": (),
        "--jobs 1 --threads 1": ("--threads", "1"),
        f"--jobs {arguments.jobs}": ("--jobs", str(arguments.jobs)),
    }
    print(f"{available_cores()} cores; {' '.join(words)}", flush=True)
    found: dict[str, bytes] | None = None
    first = None
    with tempfile.TemporaryDirectory() as place:
        for way, own in ways.items():
            folder = Path(place) / way.replace("-", "").replace(" ", "")
            train(folder, *words, "--prepare", "--device", "cpu")
            load = os.getloadavg()[0]
            wall, computed = seconds(folder, "--device", "cpu", *own)
            first = first or wall
            print(
                f"{way}: {wall:.1f} s by the clock ({first / wall:.2f} times as fast as the first), {computed:.1f} s "
                f"of processors; load before {load:.1f}, after {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            if found not in (None, learnt := weights(folder)):
                raise OtherWeights(f"{way} came to other weights than --jobs 1")
            found = learnt
    print("the weights are the same, bit for bit")


main = program("python -m benchmarks.jobs", __name__)

if __name__ == "__main__":
    sys.exit(main())
