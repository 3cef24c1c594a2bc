"""Amendments: a run that diverged goes on from its last checkpoint with other options of its learners, and says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from magrounding.errors import CheckpointError, Diverged
from magrounding.experiment.checkpoint import load_checkpoint
from magrounding.experiment.config import RunConfig, parse_config
from magrounding.play.run_folder import RunFolder, entry_of
from magrounding.schema import diff

DIVERGED, AMENDMENTS = "diverged", "amendments"
"""Entries of `config.json`, beside the settings."""

_LEARNER = re.compile(r"phases\.(?P<stage>.+)\.(?P<phase>\d+)\.learner\.(?P<option>\w+)(\.\w+)?")


@dataclass(frozen=True)
class Amendment:
    """A change of a run's settings on its way.

    Attributes:
        begins: seed → environment steps of its checkpoint, after which the options hold; 0: from its beginning on.
        changed: path in the settings → value before and after.
        before: digest of the settings before (`RunConfig.digest`), which the checkpoints of until then have.
    """

    begins: dict[str, int]
    changed: dict[str, tuple[Any, Any]]
    before: str

    def __str__(self) -> str:
        """Return what holds from when on, for reports."""
        changed = ", ".join(f"{path} {after} instead of {before}" for path, (before, after) in self.changed.items())
        since = ", ".join(f"{steps:,} steps of seed {seed}" for seed, steps in self.begins.items())
        return f"{changed}, after {since}"


def divergences(config: Mapping[str, Any]) -> list[str]:
    """Return a run's divergences, oldest first, by the content of its `config.json`; CheckpointError for damage."""
    return entry_of(config, DIVERGED, list[str])


def amendments(config: Mapping[str, Any]) -> list[Amendment]:
    """The amendments of a run, oldest first, by the content of its `config.json`; CheckpointError for damage."""
    return entry_of(config, AMENDMENTS, list[Amendment])


def note_divergence(run: RunFolder, seed: int, error: Diverged) -> None:
    """Write into `config.json` that a run diverged; a disk that refuses hides nothing of the error itself."""
    with suppress(OSError):
        config, sentence = run.config(), f"seed {seed}: {error}"
        if sentence not in (known := divergences(config)):
            run.write_config({**config, DIVERGED: [*known, sentence]})


def may_amend(run: RunFolder, before: RunConfig, after: RunConfig) -> bool:
    """Return whether a run may go on with other settings: it diverged, and only learners have other options.

    Options that a checkpoint depends on stay (`AlgorithmConfig.kept`).
    """
    return bool(divergences(run.config())) and all(_can_change(after, path) for path in _changed(before, after))


def amend(run: RunFolder, settings: RunConfig, command: str) -> None:
    """Go on with other settings, which `config.json` has from now on, and the amendment with the values of before.

    Args:
        run: that diverged; this process owns it.
        settings: those to go on with.
        command: the command line, which is added to the run's.

    Raises:
        CheckpointError: settings that a run cannot change on its way, or no seed has anything left to learn.
    """
    config = run.config()
    before = parse_config(config)
    if before.digest == settings.digest:
        if before.unlearnt != settings.unlearnt:
            run.write_config({**config, "unlearnt": settings.unlearnt})
        return
    if not may_amend(run, before, settings):
        raise CheckpointError(
            f"the run in {run} has other settings: resume it with its own (read_config); one that diverged takes "
            "other options of its learners"
        )
    origin = before.resolve().origin
    positions: dict[str, dict[str, Any]] = {}  # nothing of a seed without a checkpoint
    for seed, folder in run.of_seeds(before.seeds).items():
        path = folder.checkpoint
        positions[str(seed)] = load_checkpoint(path, **origin)[0].get("position", {}) if path.exists() else {}
    if all(position.get("finished") for position in positions.values()):
        raise CheckpointError(f"the run in {run} is finished: no other options can be learnt with")
    begins = {seed: position.get("total_steps", 0) for seed, position in positions.items()}
    made = Amendment(begins, _changed(before, settings), before.digest)
    commands = "; ".join(filter(None, (config.get("command"), command)))
    known = [msgspec.to_builtins(each) for each in (*amendments(config), made)]
    run.write_config({**config, **settings.as_dict(), "command": commands, AMENDMENTS: known})


def facts_of(config: Mapping[str, Any]) -> dict[str, Iterable[str]]:
    """Return the facts of a report about the run's divergences and amendments."""
    return {DIVERGED: divergences(config), "amended": [str(each) for each in amendments(config)]}


def _changed(before: RunConfig, after: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Path → values, of all in which two settings differ but the number of processes, on which nothing depends."""
    return diff(replace(before, workers=after.workers, unlearnt=after.unlearnt), after)


def _can_change(settings: RunConfig, path: str) -> bool:
    found = _LEARNER.fullmatch(path)
    if found is None or found["stage"] not in settings.phases:
        return False
    return found["option"] not in settings.phases[found["stage"]][int(found["phase"])].learner.kept
