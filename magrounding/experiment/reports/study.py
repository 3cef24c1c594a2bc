"""Study report: what people did with each line-up, and what they answered, from the files of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from magrounding.errors import CheckpointError, DataNotFound
from magrounding.experiment.markdown import shown
from magrounding.experiment.reports import HOW_TO_READ
from magrounding.experiment.statistics import mean_interval
from magrounding.experiment.tables import Cell, Table, page, with_interval
from magrounding.storage import read_json

FORMAT = "magrounding study 1"
_LONGEST_LIST = 6
"""Different answers to a question that are counted one by one; more are words of people's own."""

Games = list[list[dict[str, Any]]]
"""The games with one line-up, by participant."""


def read_study(folder: Path) -> list[dict[str, Any]]:
    """Read the data of all participants, by number.

    Raises:
        DataNotFound: no participant's file there.
        CheckpointError: a file that is damaged or none of a study.
    """
    paths = sorted(folder.glob("participant_*.json"), key=lambda path: (len(path.name), path.name))
    if not paths:
        raise DataNotFound(f"{folder} holds no participant's data: name the folder that was --out of the study")
    people = [read_json(path) for path in paths]
    for path, one in zip(paths, people, strict=True):
        kinds = {"games": list, "answers": dict, "order": list, "study": str, "finished": bool, "participant": int}
        if one.get("format") != FORMAT or any(not isinstance(one.get(name), kind) for name, kind in kinds.items()):
            raise CheckpointError(f"{path} is no participant's data of a study")
    return people


def study_report(people: Sequence[Mapping[str, Any]]) -> str:
    """The tables in Markdown.

    Raises:
        CheckpointError: data of several studies.
    """
    if len({one["study"] for one in people}) > 1:
        raise CheckpointError("these are data of several studies: keep each in a folder of its own")
    finished, games = sum(one["finished"] for one in people), sum(len(one["games"]) for one in people)
    return page(
        f"# {shown(people[0]['study'])}",
        f"{len(people)} participants, {finished} to the end, {games} games. {HOW_TO_READ}",
        study_table(people).markdown(),
        answers_table(people).markdown(),
    )


def study_table(people: Sequence[Mapping[str, Any]]) -> Table:
    """Line-up × means over participants."""
    games: dict[str, Games] = {name: [] for one in people for name in one["order"]}
    for name, of in games.items():
        of += filter(None, ([g for g in one["games"] if g["condition"] == name] for one in people))

    def mean(entry: str, show: Callable[[np.ndarray], Cell]) -> Callable[[str], Cell]:
        def cell(name: str) -> Cell:
            values = np.array([np.mean([float(game[entry]) for game in own]) for own in games[name]])
            return show(values) if values.size else None

        return cell

    return Table.of(
        games,
        {
            "line-up": shown,
            "participants": lambda name: len(games[name]),
            "games": lambda name: sum(map(len, games[name])),
            "wins": mean("won", lambda values: with_interval(mean_interval(values), "{:.0%}".format)),
            "score": mean("score", lambda values: f"{values.mean():.2f}"),
            "steps": mean("length", lambda values: f"{values.mean():.1f}"),
            "seconds": mean("seconds", lambda values: f"{values.mean():.0f}"),
        },
    )


def answers_table(people: Sequence[Mapping[str, Any]]) -> Table:
    """Question × how often each answer was given."""
    asked: dict[str, Counter[str]] = {}
    for one in people:
        for question, answer in one["answers"].items():
            for condition, given in (answer if isinstance(answer, dict) else {"": answer}).items():
                for name, value in (given if isinstance(given, dict) else {question: given}).items():
                    asked.setdefault(f"{name}, {condition}" if condition else name, Counter())[str(value)] += 1
    return Table.of(asked, {"question": shown, "answers": lambda question: _counted(asked[question])})


def _counted(counts: Counter[str]) -> str:
    if len(counts) > _LONGEST_LIST:
        return f"{counts.total()} answers in words of their own"
    return "; ".join(f"{shown(answer) or '(nothing)'}: {count}" for answer, count in counts.most_common())
