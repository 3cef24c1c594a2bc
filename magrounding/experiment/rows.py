"""`*.rows.json`: the numbers of a report, a row each, and what they are numbers of; pages quote them (`tools.results`).

`{"about": {…}, "rows": [{…}, …]}`: `about` holds for all rows. `pandas.DataFrame(found["rows"])` is a tidy table.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from magrounding.agents.policy import REASONS
from magrounding.agents.weights import versions
from magrounding.experiment.config import RunConfig
from magrounding.experiment.plan import Segment
from magrounding.experiment.results import TEXT, RunResults
from magrounding.experiment.tables import NUMBERS, Summary
from magrounding.registry import is_simulator
from magrounding.statistics import mean_interval
from magrounding.storage import json_text, write_atomic
from magrounding.teams.match import Results

ENDING = ".rows.json"
"""Ends the name of a file of rows, which is its report's otherwise."""
_BESIDE = (
    "length",
    "fact_accuracy",
    "lines_told",
    "needed_told",
    "subgoal_conflicts",
    "mask_coverage",
    "mask_conflicts",
)
"""Metrics of a run that have rows beside the stage's measure; all others are in `metrics.jsonl`."""

Row = Mapping[str, Any]


def write_rows(report: Path, rows: Iterable[Row], **about: Any) -> None:
    """Write the rows of a report beside it, a line each.

    Args:
        report: path of the report.
        rows: what was measured; entries that are None are left out.
        about: what holds for all rows: command, env, what `learns` says of it …
    """
    made = {**about, "commit": _commit(), "machine": processor(), "versions": versions()}
    lines = (json_text({name: _short(value) for name, value in row.items() if value not in (None, "")}) for row in rows)
    content = f'{{"about": {json_text(made)},\n"rows": [\n' + ",\n".join(lines) + "\n]}\n"
    write_atomic(report.with_name(report.stem + ENDING), content)


def learns(settings: RunConfig) -> dict[str, Any]:
    """What a run trains, and a digest of it without its seeds: where it is another today, its rows are stale."""
    team = {"env": settings.env, "agents": settings.agents, "agent": settings.agent, "preset": settings.preset}
    return {**team, "digest": replace(settings, seeds=(0,)).digest}


def conditions(run: RunResults, segment: Segment) -> dict[str, Any]:
    """The entries of a row that say how the weights after a phase came about."""
    place = segment.stage.name, segment.phase.name
    until = run.plan.segments[: run.plan.segments.index(segment) + 1]
    taught = next(filter(None, (each.phase.learner.teaching for each in reversed(until))), None)
    teacher = taught and (taught.oracle or ("oracle" if run.plan.entry.oracle else "expert"))
    steps, seconds = run.took(*place, "total_steps"), run.took(*place, "training_seconds")
    known = "learnt" if run.network.depends_on_names else "by identity"
    return {
        "learnt by": segment.learnt_by,
        "teacher": f"{teacher}, with reasons" if taught and REASONS & run.network.needs else teacher or "none",
        "words": "dealt" if run.settings.network.get("names") == "dealt" else known,
        "sentences": run.config.get(TEXT) or ("the simulator's" if is_simulator(run.plan.games.config) else "ours"),
        "steps": steps and round(steps.mean),
        "minutes": seconds and round(seconds.mean / 60, 1),
    }


def run_rows(run: RunResults) -> Iterator[dict[str, Any]]:
    """Rows of a run: its teams after each phase, and other players."""
    told = {(each.stage.name, each.phase.name): conditions(run, each) for each in run.plan.segments}
    for row in summary_rows(run.evaluated, *(stage.measure for stage in run.plan.stages.values())):
        yield {**row, **told.get((row["stage"], row["phase"]), {})}


def summary_rows(found: Summary, *measures: str) -> Iterator[dict[str, Any]]:
    """Rows of a summary, of these metrics and of some beside them."""
    table = found.table()
    for values in table.rows:
        row = dict(zip(table.heads, values, strict=True))
        if row["metric"] in (*measures, *_BESIDE):
            of_seeds = [each.value for each in found.rows(*values[: -len(NUMBERS)])]
            yield {**row, "value": row.pop("mean"), "values": of_seeds}


def match_rows(results: Results) -> Iterator[dict[str, Any]]:
    """What each line-up of a match reached, a row each."""
    for name, games in results.games.items():
        own = {"lineup": name, "metric": results.measure, "games": len(games)}
        yield {**own, **mean_interval(results.outcomes(name))._asdict()}


def processor() -> str:
    """The name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _short(value: Any) -> Any:
    return [*map(_short, value)] if isinstance(value, list) else round(value, 6) if isinstance(value, float) else value


def _commit() -> str | None:
    """The commit of the checkout that this package is in; None where it is installed otherwise."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
