"""Study report: what people did with each line-up, and what they answered, from the files of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from magrounding.errors import CheckpointError, DataNotFound
from magrounding.experiment.markdown import shown, table
from magrounding.experiment.statistics import mean_interval
from magrounding.storage import read_json

FORMAT = "magrounding study 1"
_LONGEST_LIST = 6
"""Different answers to a question that are counted one by one; more are words of people's own."""


def read_study(folder: Path) -> list[dict[str, Any]]:
    """What all participants did, by number.

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
    """The table in Markdown: line-ups, with means over participants and 95 % intervals; and the answers.

    Raises:
        CheckpointError: data of several studies, or without the entries of a game.
    """
    if len({one["study"] for one in people}) > 1:
        raise CheckpointError("these are data of several studies: keep each in a folder of its own")
    finished = sum(one["finished"] for one in people)
    games = [game for one in people for game in one["games"]]
    lines = [
        f"# {shown(people[0]['study'])}",
        "",
        f"{len(people)} participants, {finished} to the end, {len(games)} games.",
    ]
    lines += ["Brackets are 95 % bootstrap intervals over participants, of whom each counts once.", ""]
    try:
        rows = [
            _row(name, [[g for g in one["games"] if g["condition"] == name] for one in people])
            for name in dict.fromkeys(name for one in people for name in one["order"])
        ]
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"a game in these data is damaged: {error}") from None
    lines += [table(("line-up", "participants", "games", "wins", "score", "steps", "seconds"), rows)]
    asked: dict[str, Counter[str]] = {}
    for one in people:
        for question, answer in one["answers"].items():
            each = answer if isinstance(answer, dict) else {"": answer}
            for condition, given in each.items():
                pairs = given.items() if isinstance(given, dict) else [(question, given)]
                for name, said in pairs:
                    asked.setdefault(f"{name}, {condition}" if condition else name, Counter())[str(said)] += 1
    answers = [(shown(question), _counted(counts)) for question, counts in asked.items()]
    lines += ["", table(("question", "answers"), answers)] if asked else []
    return "\n".join(lines) + "\n"


def _row(name: str, games: list[list[dict[str, Any]]]) -> tuple[str, ...]:
    played = [each for each in games if each]

    def mean(entry: str) -> np.ndarray:
        return np.array([np.mean([float(game[entry]) for game in each]) for each in played])

    if not played:
        return (shown(name), "0", "0", *["–"] * 4)
    wins = mean("won")
    rate = mean_interval(wins)
    known = "" if rate.low is None or rate.high is None else f" [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"
    numbers = f"{mean('score').mean():.2f}", f"{mean('length').mean():.1f}", f"{mean('seconds').mean():.0f}"
    return (shown(name), str(len(played)), str(sum(map(len, played))), f"{rate.value:.0%}{known}", *numbers)


def _counted(counts: Counter[str]) -> str:
    if len(counts) > _LONGEST_LIST:
        return f"{counts.total()} answers in words of their own"
    return "; ".join(f"{shown(answer) or '(nothing)'}: {count}" for answer, count in counts.most_common())
