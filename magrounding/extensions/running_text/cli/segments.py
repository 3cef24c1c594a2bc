"""Give a trained team a reader of running text: `magrounding segments --run … --out runs/s5`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from magrounding.agents.building import build_policy
from magrounding.agents.relread.statements import EDGES, LEARNT, ROWS
from magrounding.agents.weights import fit_weights, save_weights
from magrounding.cli.command import CommandLine
from magrounding.cli.options import chosen_team
from magrounding.errors import CheckpointError, ConfigurationError, check_choice
from magrounding.experiment.config import RunConfig, read_config
from magrounding.experiment.plan import Stage
from magrounding.experiment.presets import find_preset
from magrounding.experiment.tables import percent, table
from magrounding.extensions.running_text.assumptions import parse_assumptions
from magrounding.extensions.running_text.edges import Edges
from magrounding.extensions.running_text.segmenting import (
    check_known,
    facts_found,
    first_game,
    learn_segments_of,
    renderings_of,
    segmenters_of,
    statements_found,
)
from magrounding.extensions.running_text.segments import SEGMENTS, Delexicalised, Segmenter
from magrounding.extensions.running_text.shared_runs import NAMES, Reading, read_by_overlap
from magrounding.owner import owned
from magrounding.progress import duration
from magrounding.run_folder import CONFIG_FILE, RunFolder
from magrounding.schema import Natural
from magrounding.storage import check_place
from magrounding.teams.loading import load_team
from magrounding.threads import ThreadPlan, using

OPTION = "segments"
"""Option of networks that read by relread."""
_FOUND = ("segments.", "reader.segments.")
"""Prefixes of the weights that find statements; those of the trained team are replaced."""


@dataclass(frozen=True)
class Arguments:
    """Write a new run folder: the trained team, its policy weights unchanged, with another reader of running text."""

    run: str
    """Run folder (or pretrained:<name>) of a team whose networks have the option segments."""
    out: Path
    """Folder of the new run."""
    by: str = LEARNT
    """Method of finding statements. learnt: a segmenter, trained on manuals of the stage's training games, cuts them;
    edges: a network, trained on the same manuals in two versions, scores which words share a fact; stops: cut at full
    stops; rows: each row is a statement."""
    stage: str | None = None
    """Stage whose weights and manuals are used. (default: the run's last)"""
    reads: str | None = None
    """Stage whose manuals are read, if another; it becomes the stage of the new run. (default: the same)"""
    trained_seed: int | None = None
    """Seed of the run whose team is read. (default: the first)"""
    statements: str = ROWS
    """Source of the training labels. rows: manuals with one statement a row; stops: the sentences of paragraphs."""
    assume: str = "none"
    """With --by edges: assumptions about language, joined by +, as further training texts. parallel: two lists in one
    sentence correspond in order; override: the last statement about a word holds, and one about some words overrides
    one about all; english: general English, the sentences of example:english.json."""
    seed: Natural = 0
    """Seed of the reader's weights and of the games whose manuals it is trained on."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Learn to cut, say how well, and write the team down."""
    check_place(arguments.out / CONFIG_FILE)
    with owned(arguments.out, "the run"), using(ThreadPlan()):
        _run(arguments, line)


def _run(arguments: Arguments, line: CommandLine) -> None:
    check_choice("way to find statements --by", arguments.by, SEGMENTS)
    assume = parse_assumptions(arguments.assume)
    if assume and arguments.by != EDGES:
        raise ConfigurationError(f"--assume is what readers of edges assume: add --by {EDGES}, or leave it out")
    run, out = RunFolder.find(arguments.run), RunFolder(arguments.out)
    if out.holds_run:
        raise CheckpointError(f"{arguments.out} holds a run already: remove it first, or choose another --out")
    settings, config = read_config(run.path), run.config()
    check_known(settings.env, arguments.statements)
    seed, stage = chosen_team(settings, arguments.trained_seed, arguments.stage)
    if not hasattr(getattr(settings.make_network(), "config", None), OPTION):
        raise ConfigurationError(f"agent {settings.agent!r} has no option {OPTION}: choose a team on relread")
    team, reads = load_team(arguments.run, seed, stage), arguments.reads or stage
    changed = _reading(replace(settings, network={**settings.network, OPTION: arguments.by}), seed, stage, reads)
    read = changed.resolve().stages[reads]
    spec = read.games.spec
    policies = [build_policy(settings.agent, spec, changed.network, 0) for _ in team.policies]
    for policy, trained in zip(policies, team.policies, strict=True):
        state = policy.state_dict()
        kept = {k: v for k, v in trained.state_dict().items() if k in state and not k.startswith(_FOUND)}
        fit_weights(policy, {**state, **kept}, arguments.run)
    finders = segmenters_of(policies)
    if finders:
        start = time.monotonic()
        seed_of_games = first_game(arguments.seed)
        learnt = learn_segments_of(type(finders[0]), read, seed_of_games, arguments.statements, assume)
        print(f"learnt to read the manuals of {reads} in {duration(time.monotonic() - start)}", flush=True)
        _show(learnt, read)
        if isinstance(learnt, Edges):
            learnt_from = renderings_of(read, seed_of_games, arguments.statements, assume)
            _show_overlap(read_by_overlap(read, learnt, learnt_from))
        for each in finders:
            each.load_state_dict(learnt.state_dict())
    state = run.seed(seed, len(settings.seeds)).state(stage)
    record = {**state, "stage": reads, "vocabulary": spec.vocabulary_hash}
    save_weights(arguments.out / reads, [policy.state_dict() for policy in policies], record)
    about = {"command": str(line), "team": arguments.run}
    out.write_config({**config, **changed.as_dict(), **about})  # last: it is a run
    print(f"{arguments.out}: a run like any other, e.g. magrounding evaluate --run {arguments.out}")


def _reading(settings: RunConfig, seed: int, stage: str, reads: str) -> RunConfig:
    """The settings of the new run: up to the stage, or of the one that is read instead, in the preset's own phases."""
    check_choice(f"stage of {settings.env} to read", reads, settings.entry.stages)
    if reads == stage:
        return replace(settings, seeds=(seed,), stages=settings.stages[: settings.stages.index(stage) + 1])
    phases = {
        reads: settings.of_stage(stage),
        **find_preset(settings.preset, settings.env, settings.agent).phases,
        **settings.phases,
    }
    return replace(settings, phases=phases, seeds=(seed,), stages=(reads,))


def _show(learnt: Delexicalised, stage: Stage) -> None:
    """Say how much of held-out manuals is divided as their statements are, or put together as their facts are."""
    if isinstance(learnt, Segmenter):
        what, found = "manuals divided as their statements are", statements_found(stage, learnt)
    else:
        what, found = "facts put together rightly", facts_found(stage, learnt)
    if found:
        heads = [what, *next(iter(found.values()))]
        print(table(heads, [[name, *map(percent, row.values())] for name, row in found.items()]))


def _show_overlap(readings: Mapping[str, Reading]) -> None:
    """Say how the facts of sentences are read by the longest run of words that each shares with a text of training."""
    rows = []
    for name, (longest, read) in readings.items():
        facts = [f"{percent(read[each][1])} of {read[each][0]:,}" if each in read else "–" for each in NAMES]
        rows.append([name, str(longest), *facts])
    if rows:
        print("\nfacts by the longest run of words that their sentence shares with a text of training")
        print(table(["set", "longest", *(f"{each} words" for each in NAMES)], rows))
