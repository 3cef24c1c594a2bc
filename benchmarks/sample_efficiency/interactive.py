"""Interactive imitation (BabyAI, section 4.4): an agent gets demonstrations of missions that the one before failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.sample_efficiency.posterior import FEWEST, LOWEST, TARGET
from magrounding.cli import train
from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import RunConfig, read_config
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.jobs.job import Job, Outcome, check_outcomes
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.experiment.jobs.seeds import seed_jobs, unfinished
from magrounding.experiment.results import find_results
from magrounding.extensions.cluster.sweep.record import scores
from magrounding.progress import Display
from magrounding.run_folder import RunFolder
from magrounding.teams.actor import make_expert
from magrounding.teams.evaluate import GREEDY, play
from magrounding.teams.loading import load_team
from magrounding.threads import plan_threads, using
from magrounding.training.demonstrations import Demonstrations
from magrounding.training.recording import RECORDING_SEED, record
from magrounding.vector import VectorEnv

ROWS = 64
"""Missions that are played at once."""
SURE = 2
"""Rounds in a row that reach the target, after which a level is solved."""
_BOT = "the simulator's bot"
_MOST_MISSIONS = 2**22
"""Missions of a round; the next ones are those of the next round."""
_MOST_ROUNDS = 2**6


@dataclass(frozen=True)
class Growth:
    """Growth of a set of demonstrations from round to round.

    Attributes:
        start: demonstrations of the first round.
        factor: of their number from round to round.
        rounds: at most.
    """

    start: int
    factor: float
    rounds: int

    def __post_init__(self) -> None:
        if self.start < 1 or not 1 <= self.factor < float("inf") or not 1 <= self.rounds <= _MOST_ROUNDS:
            raise ConfigurationError(
                f"a set of {self.start} demonstrations, {self.factor:g} times as many each round, does not grow in "
                f"{self.rounds} rounds: --start and --growth are 1 or more, --rounds 1 to {_MOST_ROUNDS}"
            )

    def after(self, size: int) -> int:
        """Number of demonstrations of the round after one with `size` of them: one more at least."""
        return max(size + 1, round(self.factor * size))

    def over(self, points: Sequence[tuple[int, float]]) -> bool:
        """Return whether the last of these rounds, of (demonstrations, success rate), is the last one.

        SURE of them have to reach the target, and as many the lowest rate as a curve is fitted to.
        """
        rates = [rate for _, rate in points]
        solved = len(rates) >= SURE and min(rates[-SURE:]) >= TARGET
        return len(rates) >= self.rounds or (solved and sum(rate >= LOWEST for rate in rates) >= FEWEST)


def first_mission(seed: int, number: int) -> int:
    """Seed of the first mission of a round; no two rounds have one in common, nor has an evaluation or a selection."""
    return RECORDING_SEED + (seed * _MOST_ROUNDS + number) * _MOST_MISSIONS


def failed_missions(won: Callable[[int], np.ndarray], first: int, wanted: int) -> list[int]:
    """Return the seeds of the first missions that an agent fails.

    An agent that fails less than half as many as one that just reaches the target is not played any further.

    Args:
        won: seed of a mission → [B] bool, whether the agent won it and the next ones.
        first: seed of the first mission.
        wanted: how many.
    """
    found, seed = [], first
    while len(found) < wanted and seed - first < 2 * wanted / (1 - TARGET):
        result = won(seed)
        found += (seed + np.flatnonzero(~result)).tolist()
        seed += len(result)
    return found[:wanted]


class Chain:
    """The rounds of one level and seed, in a folder.

    Args:
        asked: options of every round's run, which has this level as its only stage, and this seed.
        growth: of the set.
        folder: gets a file of demonstrations and a run for each round.
    """

    def __init__(self, asked: train.Arguments, growth: Growth, folder: Path) -> None:
        self.growth, self.folder, self._asked = growth, folder.absolute(), asked
        self.config: RunConfig = train.requested(asked)

    def run(self, number: int) -> RunFolder:
        """The run of a round."""
        return RunFolder(self.folder / f"round_{number}")

    def file(self, number: int) -> Path:
        """The demonstrations of a round."""
        return self.folder / f"round_{number}.npz"

    def points(self) -> list[tuple[int, float]]:
        """Demonstrations, and success in `test`, of each round that is finished."""
        found: list[tuple[int, float]] = []
        while (run := self.run(len(found))).holds_run and not unfinished(read_config(run.path), run):
            results = find_results(run)
            [score] = [] if results is None else scores(results, "test", GREEDY)
            found.append((Demonstrations.load(self.file(len(found))).header.games, score.value))
        return found

    def jobs(self, line: CommandLine) -> list[Job]:
        """The training of the next round, which may have begun; none after the last one."""
        points = self.points()
        if self.growth.over(points):
            return []
        number = len(points)
        run, file = self.run(number), self.file(number)
        if not file.exists():
            with StopRequest() as stop, stop.immediate(), using(plan_threads(1, ROWS)):
                self._demonstrate(number).save(file)
        if not run.holds_run:
            paths = (*self._asked.paths, f"demonstrations={file}")
            train.run(replace(self._asked, paths=paths, out=run.path, prepare=True, quiet=True), line)
        jobs = seed_jobs(read_config(run.path), run, train.words_of_job(self._asked))
        return [replace(job, name=f"{self.config.stages[0]} round {number}, {job.name}") for job in jobs]

    def _demonstrate(self, number: int) -> Demonstrations:
        """Record the demonstrations of a round: those of the round before, and of missions that its agent failed."""
        first = first_mission(self.config.seeds[0], number)
        if not number:
            with self._games(min(ROWS, self.growth.start)) as vec:
                return record(vec, make_expert(vec), self.growth.start, first, _BOT)
        before = Demonstrations.load(self.file(number - 1))
        wanted = self.growth.after(before.header.games) - before.header.games
        team = load_team(self.run(number - 1).path)
        with self._games(ROWS) as vec:
            failed = failed_missions(lambda seed: play(team, vec, ROWS, seed).won, first, wanted)
        with self._games(1) as vec:
            bot = make_expert(vec)
            shown = [record(vec, bot, 1, seed, _BOT) for seed in failed]
        return Demonstrations.joined([before, *(each for each in shown if each.won.all())])

    @contextmanager
    def _games(self, rows: int) -> Iterator[VectorEnv]:
        """Games as those that the agent learns from: of `train`, never of an evaluation."""
        with closing(self.config.resolve().segments[0].games.make_vec(rows)) as vec:
            yield vec


def train_chains(chains: Sequence[Chain], arguments: train.Arguments, line: CommandLine) -> None:
    """Train what is left of all chains, side by side as far as `arguments` have places; JobsFailed where some fail."""
    of_job: dict[str, Chain] = {}

    def following(chain: Chain) -> list[Job]:
        jobs = chain.jobs(line)
        of_job.update((job.name, chain) for job in jobs)
        return jobs

    def ended(outcome: Outcome) -> list[Job]:
        return [] if outcome.failed else following(of_job[outcome.job.name])

    shared = chains[0].folder.parent
    jobs = (job for chain in chains for job in following(chain))
    display = Display(quiet=arguments.quiet)
    check_outcomes(run_jobs(jobs, arguments.places(shared, arguments.threads), display, ended=ended))
