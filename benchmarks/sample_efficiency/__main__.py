"""Fill BabyAI's table 3: `python -m benchmarks.sample_efficiency --levels GoToRedBallGrey --jobs 2`.

For each level a sweep over numbers of demonstrations, spaced by √2, and a curve that is fitted to its success rates;
or, with `--reinforcement`, a run of PPO for each seed, and the episodes after which it solves the level. With
`--pretraining` the sweeps of table 4, with `--interactive` the rounds of table 5.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from math import log2
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.sample_efficiency.comparison import (
    INTERACTIVE,
    PAPER_INTERACTIVE,
    PAPER_PRETRAINED,
    PRETRAINING,
    Pair,
    Question,
    compared,
    compared_to_json,
    plot_compared,
)
from benchmarks.sample_efficiency.interactive import Chain, Growth, train_chains
from benchmarks.sample_efficiency.page import PAPER, Demonstrations, Episodes, Level, markdown, plot, to_json
from benchmarks.sample_efficiency.posterior import TARGET, fit
from magrounding.cli import train
from magrounding.cli.command import REPEATABLE, CommandLine, items, program
from magrounding.cli.job_arguments import JobsArguments
from magrounding.cli.train import requested
from magrounding.errors import CheckpointError, ConfigurationError, check_choice
from magrounding.experiment.config import REMAINING_STAGES, RunConfig, parse_config, read_config
from magrounding.experiment.metrics import read_metrics
from magrounding.extensions.cluster.cli import sweep
from magrounding.extensions.cluster.sweep.record import SweepFolder, measured, scores
from magrounding.run_folder import RunFolder
from magrounding.storage import read_json, write_atomic, write_json
from magrounding.teams.evaluate import GREEDY

PROG = "python -m benchmarks.sample_efficiency"
REFUSED, STOPPED = REPEATABLE, "stopped; the state is saved, and the same command goes on"
LEVELS = {
    "GoToRedBallGrey": (62, 500),
    "GoToRedBall": (62, 500),
    "GoToLocal": (125, 1_000),
    "PickupLoc": (1_000, 16_000),
    "PutNextLocal": (88, 1_000),
    "GoTo": (250, 8_000),
}
"""Level of the paper's table 3 → fewest and most demonstrations, from not enough to more than enough."""
DAGGER = ("learner.demonstrations=0", "learner.teacher_steps=0")
"""Options of learning of DAgger: the agent plays all games, and the bot labels them."""
AXIS = "learning.demonstrations"
"""Axis of the sweeps: the path as they had it before `learner.` stood for it."""
TEST = "test"


@dataclass(frozen=True)
class Arguments(JobsArguments):
    """Measure how many demonstrations, or episodes, BabyAI's levels take; what is finished is not run again."""

    levels: str | None = None
    """Levels separated by commas. (default: GoToRedBallGrey; of pretraining, all targets of the paper)"""
    reinforcement: bool = False
    """Episodes of PPO instead of demonstrations."""
    pretraining: bool = False
    """Demonstrations from scratch, and after each of the base levels that the paper has for the level (table 4)."""
    interactive: bool = False
    """Demonstrations of missions that the agent failed, added round after round (table 5)."""
    start: int | None = None
    """Demonstrations of the first round of --interactive; the paper has 1024. (default: the level's fewest
    demonstrations)"""
    growth: float = 2**0.25
    """Factor of their number from round to round."""
    rounds: int = 20
    """Rounds at most; two in a row that succeed in 99 % of missions end them."""
    demonstrations: str = ""
    """Fewest and most demonstrations, e.g. 250,8000; by default those of the level."""
    base_demonstrations: int | None = None
    """Demonstrations of base levels. (default: the preset's)"""
    octave: int = 2
    """Runs between a number of demonstrations and twice as many; the paper has 5."""
    agent: str = "viewread"
    """Id of the network."""
    preset: str = "quick"
    """Preset of learning from demonstrations."""
    seeds: str = "0"
    """Seeds separated by commas."""
    budget: float = 1.0
    """Factor for the environment steps of the level's preset, which are the same for every number of demonstrations."""
    missions: int = 1_000
    """Missions of `test` after each run; the paper has 512 of validation."""
    out: Path = Path("runs/sample_efficiency")
    """Folder of the runs, of the table and of the figure."""

    @property
    def learner(self) -> str:
        """Name of what learns, for folders."""
        return self.agent if self.preset == "quick" else f"{self.agent}-{self.preset}"


def run(arguments: Arguments, line: CommandLine) -> None:
    """Train what is missing, and write the table and the figure."""
    if sum((arguments.reinforcement, arguments.pretraining, arguments.interactive)) > 1:
        raise ConfigurationError("--reinforcement, --pretraining and --interactive are different tables: name one")
    if arguments.pretraining:
        targets = tuple(dict.fromkeys(target for _, target in PAPER_PRETRAINED))
        levels = _levels(arguments, targets, targets)
        _write_compared(arguments, _pretrained(arguments, levels), PRETRAINING, line)
        return
    if arguments.interactive:
        levels = _levels(arguments, ("GoToRedBallGrey",), tuple(PAPER_INTERACTIVE))
        _write_compared(arguments, _interactive(arguments, levels, line), INTERACTIVE, line)
        return
    levels = _levels(arguments, ("GoToRedBallGrey",), tuple(LEVELS))
    numbers = {level: numbers_of(arguments, level) for level in levels}
    found: list[Level]
    if arguments.reinforcement:
        found = [_episodes(arguments, level, "quick_rl", "reinforcement") for level in levels]
    else:
        found = [_demonstrations(arguments, level, numbers[level]) for level in levels]
    _write(arguments.out / "efficiency.md", plot(found), to_json(found), markdown(found, str(line)))


def _levels(arguments: Arguments, usual: Sequence[str], known: Sequence[str]) -> list[str]:
    """The levels that were typed, or the usual ones; ConfigurationError for others than the known."""
    typed = usual if arguments.levels is None else items(arguments.levels)
    return [check_choice("level", level, known) for level in typed]


def _write_compared(arguments: Arguments, pairs: Sequence[Pair], question: Question, line: CommandLine) -> None:
    numbers, text = compared_to_json(pairs, question), compared(pairs, question, str(line))
    _write(arguments.out / f"{question.name}.md", plot_compared(pairs, question), numbers, text)


def _write(path: Path, figure: bytes, numbers: dict[str, Any], text: str) -> None:
    """Write a page, and beside it its figure and its numbers."""
    write_atomic(path.with_suffix(".png"), figure)
    write_json(path.with_suffix(".json"), numbers)
    write_atomic(path, text)
    print(f"report: {path}")


def numbers_of(arguments: Arguments, level: str) -> list[int]:
    """Return the numbers of demonstrations, spaced evenly by their logarithms."""
    typed = items(arguments.demonstrations)
    if typed and not (len(typed) == 2 and all(word.isdecimal() for word in typed)):
        raise ConfigurationError(f"--demonstrations takes the fewest and the most, got {arguments.demonstrations!r}")
    low, high = map(int, typed) if typed else LEVELS[level]
    if not 1 <= low < high or arguments.octave < 1:
        raise ConfigurationError(f"from {low} to {high} demonstrations, {arguments.octave} an octave, is no range")
    count = round(log2(high / low) * arguments.octave)
    return sorted({round(low * (high / low) ** (k / max(count, 1))) for k in range(max(count, 1) + 1)})


def _pretrained(arguments: Arguments, targets: Sequence[str]) -> list[Pair]:
    """The sweeps of each target from scratch and from what its base levels have taught."""
    numbers = {target: numbers_of(arguments, target) for target in targets}
    scratch = {target: _demonstrations(arguments, target, numbers[target]) for target in targets}
    pairs = []
    for (bases, target), paper in PAPER_PRETRAINED.items():
        if target in targets:
            pretrained = _demonstrations(arguments, target, numbers[target], _base(arguments, bases))
            papers = scratch[target].paper, paper
            pairs.append(Pair(f"{target} after {'-'.join(bases)}", scratch[target], pretrained, papers))
    return pairs


def _base(arguments: Arguments, levels: tuple[str, ...]) -> RunFolder:
    """The run of one seed that has learnt the levels one after another, each from where the one before ended."""
    paths = [f"initial={_base(arguments, levels[:-1])}"] if levels[1:] else []
    if arguments.base_demonstrations is not None:
        paths.append(f"learner.demonstrations={arguments.base_demonstrations}")
    first = replace(arguments, seeds=items(arguments.seeds)[0])
    return _run(first, levels[-1], arguments.preset, f"bases/{'-'.join(levels)}-{arguments.learner}", *paths)


def _interactive(arguments: Arguments, levels: Sequence[str], line: CommandLine) -> list[Pair]:
    """The rounds of each level, with DAgger and, where it was run, the sweep of table 3 beside."""
    computed = _where(arguments)
    if not arguments.side_by_side:
        computed["jobs"] = 1
    swept = {level: _swept(arguments, level) for level in levels}  # a folder of other options is refused at once
    chains: dict[str, list[Chain]] = {}
    for level in levels:
        start = LEVELS[level][0] if arguments.start is None else arguments.start
        growth = Growth(start, arguments.growth, arguments.rounds)
        for seed in items(arguments.seeds):
            options = _options(replace(arguments, seeds=seed), level, arguments.preset)
            folder = arguments.out / f"{level}-{arguments.learner}-interactive" / f"seed_{seed}"
            chain = Chain(train.Arguments(**options, **computed), growth, folder)
            _check_chain(chain, str(line))
            chains.setdefault(level, []).append(chain)
    train_chains([each for of_level in chains.values() for each in of_level], train.Arguments(**computed), line)
    pairs = []
    for level, of_level in chains.items():
        found = fitted(level, [point for chain in of_level for point in chain.points()])
        paper = PAPER[level][0], PAPER_INTERACTIVE[level]
        dagger = _episodes(arguments, level, arguments.preset, "dagger", *DAGGER)
        pairs.append(Pair(level, swept[level], found, paper, dagger))
    return pairs


def _check_chain(chain: Chain, command: str) -> None:
    """Write down what decides a chain's rounds but their number; CheckpointError where it began with other options."""
    file, growth = chain.folder / "interactive.json", {"start": chain.growth.start, "factor": chain.growth.factor}
    if not file.exists():
        write_json(file, {**growth, "config": chain.config.as_dict(), "command": command})
    begun = read_json(file)
    alike = {name: begun.get(name) for name in growth} == growth
    check_begun(chain.folder, parse_config(begun["config"]), chain.config, begun["command"], alike=alike)


def _swept(arguments: Arguments, level: str) -> Demonstrations | None:
    """The sweep of table 3, of whatever numbers of demonstrations and seeds; None where there is none."""
    folder = SweepFolder(arguments.out / f"{level}-{arguments.learner}")
    if not folder.file.exists():
        return None
    record = folder.read()
    own = replace(arguments, seeds=",".join(map(str, record.config.seeds)))
    _check(folder, sweep.Arguments(over=record.over, **_options(own, level, arguments.preset)))
    return fitted(level, _sweep_points(folder))


def _demonstrations(
    arguments: Arguments, level: str, numbers: list[int], base: RunFolder | None = None
) -> Demonstrations:
    """The success rates of a level's sweep, and their curve; with a base, each run begins with its weights."""
    name = f"{level}-{arguments.learner}"
    folder = SweepFolder(arguments.out / (name if base is None else f"{name}-after-{base.path.name}"))
    over = (f"{AXIS}={','.join(map(str, numbers))}",)
    asked = _options(arguments, level, arguments.preset, *([] if base is None else [f"initial={base}"]))
    if folder.file.exists():
        _check(folder, sweep.Arguments(over=over, **asked))
    _train(sweep, arguments, folder.path, folder.file.exists(), over=over, **asked)
    return fitted(level, _sweep_points(folder))


def _sweep_points(folder: SweepFolder) -> list[tuple[int, float]]:
    return [
        (int(point.values[AXIS]), score.value)
        for number, point in enumerate(folder.read().points)
        if (results := folder.results(number)) is not None
        for score in scores(results, TEST, GREEDY)
    ]


def fitted(level: str, points: list[tuple[int, float]]) -> Demonstrations:
    """Points with the curve that is fitted to them, or why there is none."""
    try:
        return Demonstrations(level, points, fit([number for number, _ in points], [rate for _, rate in points]))
    except ConfigurationError as error:
        return Demonstrations(level, points, None, str(error))


def _episodes(arguments: Arguments, level: str, preset: str, kind: str, *paths: str) -> Episodes:
    """The episodes after which a run solves a level, and ends, a number for each seed; None where it does not."""
    phases = requested(train.Arguments(**_options(arguments, level, preset))).phases
    stage = level if level in phases else REMAINING_STAGES
    until = f"phases.{stage}.{len(phases[stage]) - 1}.until.win_rate={TARGET}"
    run = _run(arguments, level, preset, f"{level}-{arguments.learner}-{kind}", *paths, "log_every=1", until)
    window, found = parse_config(run.config()).of_stage(level)[-1].until.window, []
    for folder in run.of_seeds([int(seed) for seed in items(arguments.seeds)]).values():
        lines = [line for line in read_metrics(folder.metrics) if line["kind"] == "train"]
        episodes = accumulate(line["games"] for line in lines)
        wins = [line.get("window_win_rate", 0.0) for line in lines]
        solved = (n for n, won in zip(episodes, wins, strict=True) if won >= TARGET and n >= window)
        found.append(next(solved, None))
    return Episodes(level, found)


def _run(arguments: Arguments, level: str, preset: str, name: str, *paths: str) -> RunFolder:
    """The folder of a level's run, trained to its end."""
    run = RunFolder((arguments.out / name).absolute())  # runs that begin with its weights name it
    asked = _options(arguments, level, preset, *paths)
    if run.holds_run:
        config = requested(train.Arguments(**asked))
        check_begun(run.path, read_config(run.path), config, run.config().get("command", ""))
    if not run.report.exists():
        _train(train, arguments, run.path, run.holds_run, **asked)
    return run


def _check(folder: SweepFolder, asked: sweep.Arguments) -> None:
    """Raise a CheckpointError where a sweep began with other options than those asked for."""
    record = folder.read()
    config, command = measured(requested(asked)), record.command
    check_begun(folder.path, record.config, config, command, alike=record.over == asked.over)


def check_begun(path: Path, begun: RunConfig, asked: RunConfig, command: str, *, alike: bool = True) -> None:
    """Raise a CheckpointError where a folder was begun with another configuration, or the rest is not `alike`."""
    if not alike or replace(asked, workers=begun.workers) != begun:
        raise CheckpointError(
            f"{path} was begun with other numbers or options: name another folder with --out, or repeat those of: "
            f"{command}"
        )


def _options(arguments: Arguments, level: str, preset: str, *paths: str) -> dict[str, Any]:
    """Arguments of a level's runs, with more options by their paths."""
    own = {"env": "babyai", "agent": arguments.agent, "preset": preset, "stages": level, "seeds": arguments.seeds}
    return {**own, "budget": arguments.budget, "paths": (f"evaluation.games={arguments.missions}", *paths)}


def _where(arguments: Arguments) -> dict[str, Any]:
    """Options that say where a level's runs are computed."""
    return {each.name: getattr(arguments, each.name) for each in fields(JobsArguments)}


def _train(command: ModuleType, arguments: Arguments, out: Path, begun: bool, **asked: Any) -> None:
    """Run a command of magrounding, or go on with it."""
    words = command.Arguments(out=out, resume=begun, **_where(arguments), **({} if begun else asked))
    command.run(words, CommandLine.of_process(PROG))


main = program(PROG, __name__)

if __name__ == "__main__":
    sys.exit(main())
