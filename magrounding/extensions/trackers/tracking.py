"""Tracking: the lines of `metrics.jsonl` go to trackers, while a run trains or afterwards.

`metrics.jsonl` is the truth, and a resumed run cuts it back to its checkpoint. So trackers get the steps that a
checkpoint holds, and say themselves at which step they stand: no step is there twice, whatever was killed.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from traceback import format_exception_only
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from magrounding.errors import CheckpointError, ConfigurationError, MissingExtra
from magrounding.experiment.callbacks import Callback, RunState
from magrounding.experiment.checkpoint import Position, position_of
from magrounding.experiment.config import parse_config
from magrounding.experiment.metrics import read_metrics
from magrounding.extensions.trackers import DEFAULT
from magrounding.registry import load, tracker_entry
from magrounding.run_folder import RunFolder, SeedFolder
from magrounding.storage import read_json, write_json

PROJECT = "magrounding"
PATIENCE = 60.0
"""Seconds that the end of a run waits for its trackers."""

TRACKING = "tracking"
"""Entry of `config.json`: the trackers with which a run began, where they are not the default."""

_HELD, _FINISHED, _STOPPED = object(), object(), object()
"""Marks behind lines in a feed: a checkpoint holds them; nothing follows; nothing follows until the run is resumed."""


@dataclass(frozen=True)
class Tracking:
    """Trackers of a run.

    Attributes:
        trackers: their ids.
        project: under which they show the run.
    """

    trackers: tuple[str, ...] = DEFAULT
    project: str = PROJECT

    def __post_init__(self) -> None:
        for name in self.trackers:
            tracker_entry(name)  # an unknown one is refused before anything begins
        if not self.project.strip():
            raise ConfigurationError("a project has a name: leave out --project, or name one")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, as an entry of a file; nothing of the default."""
        return {} if self == Tracking() else {TRACKING: msgspec.to_builtins(self)}


def tracking_of(config: Mapping[str, Any], trackers: Sequence[str] | None, project: str | None) -> Tracking:
    """The trackers that are named, or else those in the content of a run's `config.json`, or else the default."""
    try:
        begun = msgspec.convert(config.get(TRACKING, {}), Tracking)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"{TRACKING} in the run's config.json names no trackers: {error}") from None
    return Tracking(begun.trackers if trackers is None else tuple(trackers), project or begun.project)


@dataclass(frozen=True)
class _Remembered:
    """A seed's name and project, and ids of trackers that have everything of a finished run."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{0,128}$")] = ""
    project: str = ""
    complete: tuple[str, ...] = ()


@dataclass
class Sender(Callback):
    """Sender of what each seed measures; a tracker that fails is left out, and that is said once.

    Trackers that have everything of a finished seed are not asked again.

    Args:
        tracking: where to.
        say: where sentences about failures go.
        note: where the sentence about numbers that are left out goes.
        patience: seconds that the end of a seed waits for its trackers; None: for ever.
    """

    tracking: Tracking
    say: Callable[[str], object]
    note: Callable[[str], object]
    patience: float | None = PATIENCE

    @classmethod
    def of(
        cls,
        config: Mapping[str, Any],
        trackers: Sequence[str] | None,
        project: str | None,
        say: Callable[[str], object],
    ) -> Self:
        """The sender of a run that is trained, by the content of its `config.json` so far, see `tracking_of`."""
        return cls(tracking_of(config, trackers, project), say, say)

    @property
    def begun(self) -> dict[str, Any]:
        """What `config.json` keeps of it."""
        return self.tracking.to_dict()

    @staticmethod
    def lacking(run: RunFolder) -> tuple[str, ...]:
        """Trackers of a run that do not have all of its finished seeds; TensorBoard's files are the run's own."""
        config = run.config()
        asked = [each for each in tracking_of(config, None, None).trackers if each not in DEFAULT]
        folders = run.of_seeds(parse_config(config).seeds).values()
        finished = [folder for folder in folders if folder.checkpoint.exists() and position_of(folder).finished]
        return tuple(each for each in asked if any(each not in _remembered(folder).complete for folder in finished))

    def on_start(self, run: RunState) -> None:
        tracking, known = self.tracking, _remembered(run.folder)
        self._left_out: set[str] = set()
        complete = known.complete if run.at.finished and known.project == tracking.project else ()
        self._run, self._file = run.run_folder, run.folder.trackers
        self._known = _Remembered(known.name or _new_name(self._run, run.seed), tracking.project, complete)
        missing = [each for each in tracking.trackers if each not in complete]
        self._remember(missing)
        about = tracking.project, self._known.name, {**run.settings.as_dict(), "seed": run.seed}
        self._feeds = [_Feed(each, run.folder.path / each, about) for each in missing]

    def on_line(self, run: RunState, line: Mapping[str, Any]) -> None:
        """Take a line that was written; most trackers get it once a checkpoint holds it."""
        self._left_out |= {
            name for name, x in line.items() if x is None or (isinstance(x, float) and not math.isfinite(x))
        }
        self._put(line)

    def on_checkpoint(self, run: RunState) -> None:
        self._put(_HELD)
        self._report()

    def on_end(self, run: RunState, error: BaseException | None) -> None:
        """Send the last step too where the seed is finished, and wait."""
        finished = run.at.finished
        self._put(_FINISHED if finished else _STOPPED)
        until = None if self.patience is None else time.monotonic() + self.patience
        for feed in self._feeds:
            feed.join(None if until is None else max(0.0, until - time.monotonic()))
            if feed.is_alive():
                feed.failure = f"it did not take everything within {self.patience:g} s"
        self._report()
        if self._left_out and self._feeds:
            names = ", ".join(sorted(self._left_out))
            self.note(f"trackers show finite numbers alone; NaN and infinity are left out: they were among {names}")
        if finished:
            sent = [feed.id for feed in self._feeds]
            self._known = replace(self._known, complete=(*self._known.complete, *sent))
            self._remember(sent)

    def _remember(self, trackers: Sequence[str]) -> None:
        """Write name and project down; TensorBoard needs neither, and gets its file anew each time."""
        if not set(trackers) <= set(DEFAULT):
            write_json(self._file, asdict(self._known))

    def _put(self, what: object) -> None:
        for feed in self._feeds:
            if feed.is_alive():
                feed.queue.put(what)

    def _report(self) -> None:
        for feed in [each for each in self._feeds if each.failure]:
            self._feeds.remove(feed)
            self.say(
                f"tracker {feed.id}: {feed.failure}; nothing of the run is lost, send what is missing with: "
                f"magrounding track {self._run} --tracker {feed.id}"
            )


class _Feed(Thread):
    """The thread of one tracker; it ends with the process, whatever the tracker waits for."""

    def __init__(self, id: str, folder: Path, about: tuple[str, str, Mapping[str, Any]]) -> None:
        super().__init__(name=f"tracker {id}", daemon=True)
        self.id, self.queue, self.failure = id, SimpleQueue[Any](), ""
        self._folder, self._about = folder, about
        self.start()

    def run(self) -> None:
        try:
            tracker = load(tracker_entry(self.id).tracker)(self._folder)
            stands = tracker.start(*self._about)
            for step, metrics in self._steps(at_once=stands is None):
                if stands is None or step > stands:
                    tracker.log(step, metrics)
            tracker.close()
        except MissingExtra as error:
            self.failure = str(error)
        except BaseException as error:  # a third party's, even one that wants to end the process
            self.failure = f"it failed ({format_exception_only(error)[0].splitlines()[0]})"

    def _steps(self, *, at_once: bool) -> Iterator[tuple[int, dict[str, float]]]:
        """(Step, metrics) of every step to which no line can be added any more, and which will not be taken back."""
        waiting: list[Mapping[str, Any]] = []
        at, metrics = -1, {}
        while (what := self.queue.get()) not in (_FINISHED, _STOPPED):
            if what is not _HELD:
                waiting.append(what)
            if at_once or what is _HELD:
                for line in waiting:
                    if line["total_steps"] > at and metrics:
                        yield at, metrics
                        metrics = {}
                    at = line["total_steps"]
                    metrics.update(numbers(line))
                waiting.clear()
        if metrics and (at_once or what is _FINISHED):
            yield at, metrics


def numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """Name → value of what trackers show of a line of metrics, such as "s1/reinforce/win_rate"; finite ones alone.

    The file keeps neither NaN nor infinity, so the trackers of a run that trains get none either.
    """
    place = [line["stage"], line["phase"]]
    if line["kind"] == "evaluation":
        place.append(f"{line['set']} {line['when']} {line['play']} manual {line['manual']}")
    return {
        "/".join(filter(None, (*place, name))): x
        for name, x in line.items()
        if isinstance(x, float) and math.isfinite(x)
    }


def _remembered(folder: SeedFolder) -> _Remembered:
    """Read a seed's file of trackers; CheckpointError where it is damaged."""
    if not folder.trackers.exists():
        return _Remembered()
    try:
        return msgspec.convert(read_json(folder.trackers), _Remembered)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"{folder.trackers} is damaged: {error}") from None


def _new_name(run: RunFolder, seed: int) -> str:
    """A name that no other run has, in characters that all services take."""
    begun = re.sub(r"[^\w.-]+", "-", run.path.absolute().name, flags=re.ASCII)[:80].strip("-")
    return f"{begun}-{seed}-{secrets.token_hex(4)}"


def track(run: RunFolder, tracking: Tracking, note: Callable[[str], object] = print) -> None:
    """Send what a finished or stopped run has measured, and its trackers have not; `note` gets what is left out.

    Raises:
        CheckpointError: no run, one that has measured nothing, or a tracker that does not take it.
    """
    settings = parse_config(run.config())
    failed: list[str] = []
    sender, sent = Sender(tracking, failed.append, note, patience=None), False
    for seed, folder in run.of_seeds(settings.seeds).items():
        state = RunState(settings.resolve(), run, seed, at=position_of(folder))
        # A resume takes back what its checkpoint does not hold.
        lines = read_metrics(folder.metrics, state.at.metrics_size if folder.checkpoint.exists() else None)
        if not lines or state.at == Position():
            continue
        sender.on_start(state)
        for line in lines:
            sender.on_line(state, line)
        sender.on_checkpoint(state)
        sender.on_end(state, None)
        sent = True
        if failed:
            raise CheckpointError(failed[0])
    if not sent:
        raise CheckpointError(f"{run} has measured nothing yet: there is nothing to send")
