"""Fill tables of the papers: `python -m benchmarks.tables endi_table2 --preset quick --seeds 0,1,2`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import tyro

from benchmarks.tables import TABLES, guide
from benchmarks.tables.layout import PRESETS, Row, Table
from benchmarks.tables.lge import GUIDE, with_guide
from benchmarks.tables.messenger import takes_corpus, with_corpus
from benchmarks.tables.page import Filled, figure, markdown, rows
from benchmarks.tables.runs import check_folder, finished_runs, in_order, jobs_of, learn
from benchmarks.tables.side_by_side import Waiting
from magrounding.cli.command import REPEATABLE, CommandLine, items, program
from magrounding.cli.job_arguments import JobsArguments
from magrounding.cli.train import seeds_of
from magrounding.envs.messenger.manual import find_corpus
from magrounding.errors import CheckpointError, ConfigurationError, DataNotFound, MissingExtra, check_choice
from magrounding.experiment.beginning import check_run
from magrounding.experiment.jobs.job import check_outcomes
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.experiment.rows import write_rows
from magrounding.progress import Display
from magrounding.schema import Count
from magrounding.storage import write_atomic
from magrounding.teams.evaluate import PLAYS
from magrounding.vector import check_count

PROG = "python -m benchmarks.tables"
REFUSED, STOPPED = REPEATABLE, "stopped; the state is saved, and the same command goes on"


@dataclass(frozen=True)
class Arguments(JobsArguments):
    """Train what is missing of tables, go on with what is unfinished, reuse what is there, and fill the tables."""

    tables: tyro.conf.Positional[tuple[str, ...]] = ()
    """Names of tables; --list shows them."""
    list: bool = False
    """Print the tables and their rows, and do nothing."""
    preset: str = "quick"
    """quick (imitation, then PPO: two CPU cores), quick_rl (PPO alone), quick_reasons (txt2π, whose teacher gives its
    reasons) or paper (a GPU)."""
    seeds: str = "0,1,2"
    """Seeds separated by commas."""
    rows: str | None = None
    """Rows to train, separated by commas. (default: all that belong to the preset)"""
    budget: float = 1.0
    """Factor for the preset's environment steps."""
    play: str | None = None
    """greedy (the most likely action) or sampled (drawn). (default: the table's own)"""
    train: bool = True
    """--no-train fills the tables with what is finished already."""
    out: Path = Path("runs/tables")
    """Folder of all runs and tables."""
    corpus: str | None = None
    """Folder of people's sentences (text_train.json, text_val.json and text_test.json): each row of the tables of
    MESSENGER is there once more, trained and tested on them. (default: none)"""
    gold: Path = Path("runs/scienceworld/gold.jsonl")
    """Gold trajectories, for the Guide of lge_table1."""
    guide: Path = Path(GUIDE)
    """Folder of the Guide of lge_table1 and lge_table3; where there is none, lge_table1 trains it."""
    device: str = "auto"
    """auto, cpu or cuda."""
    threads: Count | None = None
    """Cores of a run. (default: the cores that it may run on)"""


def run(arguments: Arguments, line: CommandLine) -> None:
    """List the tables, or fill those that are named."""
    if arguments.list:
        print_tables()
    else:
        fill(arguments, line)


def print_tables() -> None:
    """Say what there is."""
    for table in TABLES.values():
        print(f"{table.id}: {table.title}")
        for preset in PRESETS:
            if rows := [row.id for row in table.rows if preset in row.presets]:
                print(f"    {preset}: {', '.join(rows)}")
    print(f"{guide.ID}: {guide.TITLE}")


def fill(arguments: Arguments, line: CommandLine) -> None:
    """Train what is missing, and write every table."""
    check_choice("preset of tables", arguments.preset, PRESETS)
    if arguments.play is not None:
        check_choice("way to --play", arguments.play, PLAYS)
    if not arguments.tables:
        raise ConfigurationError(f"name one or more tables: {', '.join((*TABLES, guide.ID))}")
    named = [check_choice("table", name, (*TABLES, guide.ID)) for name in arguments.tables]
    chosen = _told([TABLES[name] for name in named if name != guide.ID], arguments.corpus)
    chosen = [with_guide(table, arguments.guide) for table in chosen]
    for row in items(arguments.rows or ""):
        check_choice("row of these tables", row, tuple(dict.fromkeys(row.id for table in chosen for row in table.rows)))
    if not 0 < arguments.budget < float("inf"):
        raise ConfigurationError(f"--budget is a positive part or multiple of the preset's, got {arguments.budget:g}")
    _seeds(arguments.seeds)
    if guide.ID in named:
        guide.fill(arguments.gold, arguments.guide, arguments.out, arguments.train, line)
    skipped = {table.id: _skipped(table, arguments) for table in chosen}  # all of it before anything is trained
    if arguments.train:
        wanted = [(table, row) for table in chosen for row in _wanted(table, arguments, skipped[table.id])]
        _train(wanted, arguments, str(line))
    for table in chosen:
        write_table(table, arguments, skipped[table.id], str(line))


def _told(tables: list[Table], corpus: str | None) -> list[Table]:
    """Tables with rows for a corpus, where they can have some."""
    if corpus is None:
        return tables
    if not any(map(takes_corpus, tables)):
        able = ", ".join(table.id for table in TABLES.values() if takes_corpus(table))
        raise ConfigurationError(f"--corpus is for tables of MESSENGER: {able}")
    find_corpus(corpus)  # what is missing or damaged is reported before anything is trained
    return [with_corpus(table, corpus) if takes_corpus(table) else table for table in tables]


def write_table(table: Table, arguments: Arguments, skipped: Mapping[str, str], command: str) -> None:
    """Read what is finished and write the table; a row whose runs are of other settings says so."""
    seeds, runs, skipped = _seeds(arguments.seeds), {}, dict(skipped)
    for row in table.rows:
        if row.id in skipped:
            continue
        try:
            for job in jobs_of(table, row, arguments.preset, arguments.budget):
                if (found := finished_runs(job, seeds, arguments.out)) is not None:
                    runs[job.preset, job.training] = found
        except CheckpointError as error:
            skipped[row.id] = str(error)
    play = arguments.play or table.play
    filled = Filled(table, runs, skipped, seeds, arguments.preset, arguments.budget, play, command)
    budget = "" if arguments.budget == 1 else f"-x{arguments.budget:g}"
    name, picture = f"{table.id}-{arguments.preset}{budget}", figure(filled)
    if picture is not None:
        write_atomic(arguments.out / f"{name}.png", picture)
    about = {"env": table.env, "agents": table.agents, "preset": arguments.preset, "budget": arguments.budget}
    write_rows(arguments.out / f"{name}.md", rows(filled), table=table.id, command=command, **about)
    write_atomic(arguments.out / f"{name}.md", markdown(filled, f"{name}.png" if picture else None))
    print(f"table: {arguments.out / name}.md")


def _train(wanted: Sequence[tuple[Table, Row]], arguments: Arguments, command: str) -> None:
    """Train the runs of rows, those that others begin with first."""
    seeds = _seeds(arguments.seeds)
    jobs = in_order(job for table, row in wanted for job in jobs_of(table, row, arguments.preset, arguments.budget))
    for job, seed in product(jobs, seeds):  # before anything is trained
        check_folder(job.folder(arguments.out, seed), job.settings(seed))
    for job in jobs:
        check_run(job.settings(seeds[0]))
    if arguments.side_by_side:
        threads = arguments.threads_of_job(arguments.threads)
        waiting = Waiting(jobs, seeds, arguments.out, arguments.device, command, threads)
        places = arguments.places(arguments.out, arguments.threads)
        check_outcomes(run_jobs(waiting.ready(), places, Display(), ended=waiting.ended))
        return
    for i, job in enumerate(jobs, 1):
        for seed in seeds:
            print(f"run {i} of {len(jobs)}, seed {seed}: {job.name}", flush=True)
            if not learn(job, seed, arguments.out, arguments.device, command, threads=arguments.threads):
                print("    is finished already", flush=True)


def _wanted(table: Table, arguments: Arguments, skipped: Mapping[str, str]) -> list[Row]:
    if arguments.rows is not None:
        asked = items(arguments.rows)
        return [row for row in table.rows if row.id in asked]
    return [row for row in table.rows if arguments.preset in row.presets and row.id not in skipped]


def _skipped(table: Table, arguments: Arguments) -> dict[str, str]:
    """Row → why it cannot be trained here; an error if it was asked for by name."""
    skipped = {}
    for row in table.rows:
        try:
            jobs = jobs_of(table, row, arguments.preset, arguments.budget)
            settings = [job.settings(seed) for job in jobs for seed in _seeds(arguments.seeds)]
            settings[0].make_network()
        except (ConfigurationError, DataNotFound, MissingExtra) as error:
            if row.id in items(arguments.rows or ""):
                raise
            own = arguments.preset in row.presets
            skipped[row.id] = str(error) if own else f"not a row of preset `{arguments.preset}`"
    return skipped


def _seeds(text: str) -> tuple[int, ...]:
    seeds = seeds_of(text)
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigurationError(f"--seeds takes one seed or more, each once, got {text!r}")
    for seed in seeds:
        check_count("seed", seed, 0)
    return seeds


main = program(PROG, __name__)

if __name__ == "__main__":
    sys.exit(main())
