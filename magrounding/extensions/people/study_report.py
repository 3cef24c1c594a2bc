"""Study report: what people did with each line-up, and what they answered, from the files of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from magrounding.errors import CheckpointError, DataNotFound
from magrounding.experiment.tables import HOW_TO_READ, Cell, Table, page, shown, with_interval
from magrounding.extensions.people.web.records import FILES, PlayedGame, Record, read_record
from magrounding.statistics import mean_interval

_LONGEST_LIST = 6
"""Different answers to a question that are counted one by one; more are words of people's own."""


def read_study(folder: Path) -> list[Record]:
    """Read the data of all participants, by number.

    Raises:
        DataNotFound: no participant's file there.
        CheckpointError: a file that is damaged or none of a study.
    """
    paths = sorted(folder.glob(FILES), key=lambda path: (len(path.name), path.name))
    if not paths:
        raise DataNotFound(f"{folder} holds no participant's data: name the folder that was --out of the study")
    return [read_record(path) for path in paths]


def study_report(people: Sequence[Record]) -> str:
    """The tables in Markdown.

    Raises:
        CheckpointError: data of several studies.
    """
    if len({one.study for one in people}) > 1:
        raise CheckpointError("these are data of several studies: keep each in a folder of its own")
    finished, games = sum(one.finished for one in people), sum(len(one.games) for one in people)
    return page(
        f"# {shown(people[0].study)}",
        f"{len(people)} participants, {finished} to the end, {games} games. {HOW_TO_READ}",
        study_table(people).markdown(),
        answers_table(people).markdown(),
    )


def study_table(people: Sequence[Record]) -> Table:
    """Line-up × means over participants."""
    games = {name: _by_participant(people, name) for one in people for name in one.order}

    def mean(of: Callable[[PlayedGame], float], show: Callable[[np.ndarray], Cell]) -> Callable[[str], Cell]:
        means = {name: np.array([np.mean(list(map(of, own))) for own in each]) for name, each in games.items()}
        return lambda name: show(means[name]) if means[name].size else None

    return Table.of(
        games,
        {
            "line-up": shown,
            "participants": lambda name: len(games[name]),
            "games": lambda name: sum(map(len, games[name])),
            "wins": mean(lambda game: game.won, lambda values: with_interval(mean_interval(values), "{:.0%}".format)),
            "score": mean(lambda game: game.score, lambda values: f"{values.mean():.2f}"),
            "steps": mean(lambda game: game.length, lambda values: f"{values.mean():.1f}"),
            "seconds": mean(lambda game: game.seconds, lambda values: f"{values.mean():.0f}"),
        },
    )


def _by_participant(people: Sequence[Record], line_up: str) -> list[list[PlayedGame]]:
    """The games with a line-up, of each participant who has played any."""
    games = ([game for game in one.games if game.condition == line_up] for one in people)
    return list(filter(None, games))


def answers_table(people: Sequence[Record]) -> Table:
    """Question × how often each answer was given."""
    asked: dict[str, Counter[str]] = {}
    for one in people:
        for question, answer in one.answers.items():
            for condition, given in (answer if isinstance(answer, dict) else {"": answer}).items():
                for name, value in (given if isinstance(given, dict) else {question: given}).items():
                    asked.setdefault(f"{name}, {condition}" if condition else name, Counter())[str(value)] += 1
    return Table.of(asked, {"question": shown, "answers": lambda question: _counted(asked[question])})


def _counted(counts: Counter[str]) -> str:
    if len(counts) > _LONGEST_LIST:
        return f"{counts.total()} answers in words of their own"
    return "; ".join(f"{shown(answer) or '(nothing)'}: {count}" for answer, count in counts.most_common())
