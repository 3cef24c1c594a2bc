"""Ablation of the reader of running text: `python -m benchmarks.reading --run runs/s6 --out FOLDER`.

The run is a team behind a reader of edges (`magrounding segments --by edges --reads s6`). For each variant and seed a
reader learns anew, is tried on the manuals of every evaluation set, and takes the place of the team's in games of some.
Written after each reader: `reading.json` with all numbers, `reading.md` with means over seeds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, pstdev
from tempfile import TemporaryDirectory
from typing import Any

from magrounding.cli.command import CommandLine, items, program
from magrounding.errors import check_choice
from magrounding.experiment.config import read_config
from magrounding.experiment.tables import percent, table
from magrounding.extensions.running_text.assumptions import ENGLISH
from magrounding.extensions.running_text.edges import USUAL_SHAPE, Edges, Shape
from magrounding.extensions.running_text.edges_learning import (
    ENGLISH_RECIPE,
    ENGLISH_STEPS,
    STEPS,
    USUAL_RECIPE,
    Recipe,
    learn_edges,
)
from magrounding.extensions.running_text.segmenting import ENGLISH_FILE, first_game, renderings_of
from magrounding.extensions.running_text.segmenting import GAMES as MANUALS
from magrounding.extensions.running_text.shared_runs import NAMES, read_by_overlap
from magrounding.pretrained import find_run
from magrounding.storage import read_json, user_path, write_atomic, write_json
from magrounding.teams.evaluate import OTHER_GAME, REASSIGNED, TRUE_MANUAL, evaluate
from magrounding.teams.loading import load_team

PROG = "python -m benchmarks.reading"
ALL_SETS = "eval", "eval_new", "eval_minimal", "eval_paraphrase", "eval_construction"
HELD_OUT = ALL_SETS[3:]
WRONG = tuple(f"eval: {manual}" for manual in (REASSIGNED, OTHER_GAME))
GAMES_SEED = 3 * 2**40


@dataclass(frozen=True)
class Variant:
    """A reader that lacks a part, or has a smaller one."""

    about: str
    shape: Shape = USUAL_SHAPE
    recipe: Recipe = USUAL_RECIPE
    english: float = 1.0  # part of the sentences of ENGLISH_FILE, evenly of each list
    steps: int = STEPS
    one_unknown: bool = False  # words of no training text have one vector, in place of one each


VARIANTS = {
    "whole": Variant("the reader as it is", recipe=ENGLISH_RECIPE, steps=ENGLISH_STEPS),
    "uninterrupted": Variant(
        "the reader as it is, no interruptions", recipe=ENGLISH_RECIPE._replace(interrupted=0), steps=ENGLISH_STEPS
    ),
    "before": Variant("the reader before: excerpts in 70 % of batches, known words, 450 steps"),
    "narrow": Variant("the reader before, a quarter to a half of all widths", Shape(24, 32, 32, 16)),
    "products": Variant("the reader before, one product of width 1 instead of four of 16", Shape(heads=1, head=1)),
    "vectors": Variant("the reader before, one vector for all words of no training text", one_unknown=True),
    "excerpts": Variant("the reader before, no excerpts: whole manuals", recipe=Recipe(excerpts=0)),
    "fewer": Variant("the reader before, half as many excerpts", recipe=Recipe(excerpts=0.35)),
    "half": Variant("the reader before, every other sentence of English", english=0.5),
    "english": Variant("the reader before, no English: sentences of the stage alone", english=0),
}


@dataclass(frozen=True)
class Arguments:
    """Measure what the parts of the reader of running text are worth: readers without them, on every evaluation set."""

    run: str
    """Run of a team behind a reader of edges, or pretrained:NAME."""
    out: Path
    """Folder of reading.json and reading.md."""
    variants: str = ",".join(VARIANTS)
    """Readers separated by commas."""
    seeds: int = 3
    """Seeds 0, 1, … of each reader."""
    games: int = 200
    """Games of each reader on each set."""
    all_sets: bool = False
    """Play every set, and both wrong manuals, instead of the held-out sets alone."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Write down every reader's numbers, each as soon as it is known."""
    variants = [check_choice("variant", name, VARIANTS) for name in items(arguments.variants)]
    sets = [*ALL_SETS, *WRONG] if arguments.all_sets else HELD_OUT
    found: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        for name in variants:
            with TemporaryDirectory() as folder:
                edges, numbers = learn(arguments.run, VARIANTS[name], seed, Path(folder))
            wins = win_rates(arguments.run, edges, sets, arguments.games)
            found.append({"variant": name, "seed": seed, "load": os.getloadavg()[0], **numbers, "wins": wins})
            print(name, seed, {key: round(value, 3) for key, value in wins.items()}, flush=True)
            about = {"command": str(line), "run": arguments.run, "games": arguments.games, "manuals": MANUALS}
            write_json(arguments.out / "reading.json", {**about, "readers": found})
            write_atomic(arguments.out / "reading.md", page(found, arguments.games))


def learn(run: str, variant: Variant, seed: int, folder: Path) -> tuple[Edges, dict[str, Any]]:
    """Return a reader, and how it reads the manuals of each set."""
    stage = read_config(find_run(run)).resolve().stages["s6"]
    assume, english = (ENGLISH,) if variant.english else (), ENGLISH_FILE
    if 0 < variant.english < 1:
        english = str(folder / "english.json")
        write_json(Path(english), thinned(read_json(user_path(ENGLISH_FILE)), variant.english))
    start = time.process_time()
    renderings = renderings_of(stage, first_game(seed), assume=assume, english=english)
    edges = learn_edges(stage.games.spec, renderings, seed, variant.steps, assume, variant.recipe, variant.shape)
    seconds = time.process_time() - start
    if variant.one_unknown:
        known = {renderings.words[i] for rows in renderings.reworded for i in set(rows.ravel().tolist())}
        edges.spelling = [word if word in known else "" for word in edges.spelling]
        edges.forget()
    readings = read_by_overlap(stage, edges, renderings)
    return edges, {"seconds": seconds, "read": {name: reading._asdict() for name, reading in readings.items()}}


def thinned(content: dict[str, Any], part: float) -> dict[str, Any]:
    """Return sentences of a file with this part of each list of sentences."""
    every = round(1 / part)
    lists = {
        construction: {kind: sentences[::every] for kind, sentences in kinds.items()}
        for construction, kinds in content["train"].items()
    }
    return {**content, "train": lists}


def win_rates(run: str, edges: Edges, sets: Sequence[str], games: int) -> dict[str, float]:
    """Return the part of greedy games that a team wins with another reader, by set and manual."""
    team = load_team(run)
    for policy in team.policies:
        policy.segments = edges
    found = {}
    for name in sets:
        split, _, manual = name.partition(": ")
        options = {**team.origin.options, "stage": "s6", "split": split}
        played = evaluate(team, "ma_rtfm", options, games, seed=GAMES_SEED, manual=manual or TRUE_MANUAL)
        found[name] = float(played.won.mean())
    return found


def page(found: Sequence[dict[str, Any]], games: int) -> str:
    """Return tables of means and standard deviations over seeds."""
    names = list(dict.fromkeys(each["variant"] for each in found))
    of = {name: [each for each in found if each["variant"] == name] for name in names}
    sets = list(dict.fromkeys(name for each in found for name in each["wins"]))
    rows = [
        [
            f"{name}: {VARIANTS[name].about}",
            str(len(of[name])),
            *(spread(of[name], lambda r, s=s: r["wins"].get(s)) for s in sets),
        ]
        for name in names
    ]
    text = f"# Readers of running text, without parts\n\nWins, greedy, {games} games a reader\n\n"
    text += table(["reader", "seeds", *sets], rows)
    read = list(found[0]["read"])
    rows = [[name, *(spread(of[name], lambda r, s=s: facts_of(r, s)) for s in read)] for name in names]
    text += f"\n\nFacts read, {MANUALS} manuals a reader, each text in a row\n\n" + table(["reader", *read], rows)
    text += (
        "\n\nFacts read, by the words of the longest run that their sentence shares with training (part of the facts)"
    )
    rows = [
        [name, s, str(max(r["read"][s]["longest"] for r in of[name])), *(in_class(of[name], s, key) for key in NAMES)]
        for name in names
        for s in read
        if s in HELD_OUT
    ]
    return text + "\n\n" + table(["reader", "set", "longest", *NAMES], rows) + "\n"


def facts_of(reader: dict[str, Any], name: str) -> float:
    """Return the part of all facts of a set that a reader reads."""
    classes = [*reader["read"][name]["classes"].values()]
    return sum(count * part for count, part in classes) / sum(count for count, _ in classes)


def in_class(readers: Sequence[dict[str, Any]], name: str, key: str) -> str:
    """Return what readers read of a class of sentences, and how many of the facts are in it."""
    found = [reader["read"][name]["classes"] for reader in readers]
    there = [each[key] for each in found if key in each]
    if not there:
        return "–"
    whole = sum(count for each in found for count, _ in each.values())
    return f"{percent(mean(part for _, part in there))} ({percent(sum(count for count, _ in there) / whole)})"


def spread(readers: Sequence[dict[str, Any]], number: Callable[[dict[str, Any]], float | None]) -> str:
    """Return mean and standard deviation of a number of some readers."""
    numbers = [each for each in map(number, readers) if each is not None]
    return f"{percent(mean(numbers))} ± {100 * pstdev(numbers):.1f}" if numbers else "–"


main = program(PROG, __name__)

if __name__ == "__main__":
    sys.exit(main())
