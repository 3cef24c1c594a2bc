"""Metrics of a Guide: ranks of gold actions and recall of relevant ones (LGE section 4.1, table 1).

They are computed for each step of gold trajectories, over the valid actions, and averaged over steps. Relevant in a
step are the actions of the whole gold trajectory that are valid there. A rank counts from 1, the best; equal scores
share the mean of their ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from magrounding.brief import brief
from magrounding.single.scienceworld.trajectories import Trajectory

Scorer = Callable[[str, Sequence[str]], np.ndarray]
"""(task, C actions) → [C] scores."""


class Step(NamedTuple):
    """A step of a gold trajectory."""

    valid: np.ndarray  # [C] places of the valid actions among all of the trajectory
    relevant: np.ndarray  # [C] bool
    gold: int | None  # place of the gold action among the valid ones, or None where the trajectory pauses


@dataclass(frozen=True)
class GuideMetrics:
    """Means over the steps of gold trajectories, with standard deviations where LGE gives them."""

    __repr__ = brief

    steps: int  # number of steps
    rsr: dict[int, float]  # k → RSR@k
    map: float  # mean average precision
    # (mean, standard deviation); None for a set, which has no ranks
    gar: tuple[float, float] | None  # rank of the gold action
    gar_percent: tuple[float, float] | None  # in percent of the valid actions
    garr: tuple[float, float] | None  # inverse
    by_task: dict[str, float]  # kind of task → RSR at the first k


def ranks(scores: np.ndarray) -> np.ndarray:
    """Return the ranks [C] of scores [C], 1 for the highest; equal scores have the mean of theirs."""
    from scipy.stats import rankdata  # takes half a second to import

    return rankdata(-scores)


def top_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Return [C] bool, the k highest of scores [C], all where there are fewer; of equal ones the first."""
    chosen = np.zeros(len(scores), np.bool_)
    chosen[np.argsort(-scores, kind="stable")[:k]] = True
    return chosen


def recall(chosen: np.ndarray, relevant: np.ndarray) -> float:
    """Return the part of the relevant [C] bool that is chosen [C] bool; nan where nothing is relevant."""
    count = relevant.sum()
    return float((chosen & relevant).sum() / count) if count else float("nan")


def average_precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    """Return the mean over relevant actions of the precision at their rank; nan where nothing is relevant.

    Precision is a rank among the relevant actions divided by the rank among all, each a mean rank where scores are
    equal. Without equal scores it is the average precision of information retrieval.
    """
    if not relevant.any():
        return float("nan")
    return float((ranks(scores[relevant]) / ranks(scores)[relevant]).mean())


def steps_of(trajectory: Trajectory) -> Iterator[Step]:
    """Yield the steps of a trajectory, over the places of its `valid`."""
    actions = list(trajectory.valid)
    shown = np.zeros((len(trajectory.commands), len(actions)), np.bool_)
    for place, spans in enumerate(trajectory.valid.values()):
        for first, behind in zip(spans[::2], spans[1::2], strict=True):
            shown[first:behind, place] = True
    gold = np.array([action in trajectory.gold for action in actions], np.bool_)
    places = {action: place for place, action in enumerate(actions)}
    for step, (command, meant) in enumerate(zip(trajectory.commands, trajectory.meant, strict=True)):
        valid = np.flatnonzero(shown[step])
        at = places.get(command) if meant else None
        found = None if at is None or not shown[step, at] else int(np.searchsorted(valid, at))
        yield Step(valid, gold[valid], found)


def guide_metrics(score: Scorer, trajectories: Iterable[Trajectory], ks: Sequence[int] = (50, 20, 10)) -> GuideMetrics:
    """Evaluate a Guide by the scores of all actions valid along each trajectory, of which it selects `ks`."""
    select = {k: partial(top_k, k=k) for k in ks}
    return evaluate(lambda each: score(each.text, list(each.valid)), trajectories, select, ranked=True)


def evaluate(
    score: Callable[[Trajectory], ArrayLike],
    trajectories: Iterable[Trajectory],
    select: Mapping[int, Callable[[np.ndarray], np.ndarray]],
    *,
    ranked: bool,
) -> GuideMetrics:
    """Return the metrics of scores; `select`: k → selected actions [C] bool by scores [C]; `ranked`: with ranks."""
    recalls: dict[int, list[float]] = {k: [] for k in select}
    precisions, gars, counts = [], [], []
    by_task: dict[str, list[float]] = {}
    for trajectory in trajectories:
        scores = np.asarray(score(trajectory), np.float64)
        for step in steps_of(trajectory):
            here = scores[step.valid]
            for k, selected in select.items():
                recalls[k].append(recall(selected(here), step.relevant))
            by_task.setdefault(trajectory.task, []).append(recalls[next(iter(select))][-1])
            precisions.append(average_precision(here, step.relevant))
            if ranked and step.gold is not None:
                gars.append(ranks(here)[step.gold])
                counts.append(len(here))
    gar, among = np.array(gars), np.array(counts)
    return GuideMetrics(
        len(precisions),
        {k: _mean(found) for k, found in recalls.items()},
        _mean(precisions),
        *((_spread(gar), _spread(100 * gar / among), _spread(1 / gar)) if ranked else (None, None, None)),
        {task: _mean(found) for task, found in by_task.items()},
    )


def _mean(values: Sequence[float]) -> float:
    known = np.array(values, np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else float("nan")


def _spread(values: np.ndarray) -> tuple[float, float]:
    return (float(values.mean()), float(values.std())) if len(values) else (float("nan"), float("nan"))
