"""Campaign: an hour of kills, damaged files, hostile clients, busy and full machines: `python -m benchmarks.campaign`.

It tries what docs/promises.md promises, at random, until its time is over: `--minutes 60 --seed 0 --out runs/campaign`.
A trial is drawn from its kind and its seed, so a failure is repeated by the line that is printed, such as
`python -m benchmarks.campaign --only kills --seed 17 --minutes 0`. A campaign that was stopped goes on in its folder,
which gets `trials.jsonl`, and in the end `campaign.json` and `campaign.md`.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.campaign.jobs import Broken, Place
from benchmarks.campaign.trials import KINDS
from magrounding.agents.weights import versions
from magrounding.cli.command import CommandLine, program
from magrounding.errors import ConfigurationError, check_choice
from magrounding.experiment.tables import table
from magrounding.owner import owned
from magrounding.storage import json_text, parse_json, read_text, write_atomic, write_json

PROG = "python -m benchmarks.campaign"
STOPPED = "stopped; the same command goes on with the campaign"


@dataclass(frozen=True)
class Arguments:
    """Try what is promised, at random: kills, damaged files, hostile clients, busy and full machines."""

    minutes: float = 60.0
    """Minutes to go on; a trial that has begun is ended. 0: one trial."""
    seed: int = 0
    """Seed of the first trial of each kind; others count from there."""
    out: Path = Path("runs/campaign")
    """Folder of the figures. A campaign that was stopped goes on there."""
    only: str = ""
    """Kind of trials: kills, disk, busy, files, studies, clients or calls; "": all of them in turn."""


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


def run(arguments: Arguments, line: CommandLine) -> None:
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


main = program(PROG, __name__)

if __name__ == "__main__":
    sys.exit(main())
