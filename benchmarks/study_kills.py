"""A study whose server is killed again and again: `python -m benchmarks.study_kills --json study_kills.json`.

A process takes participants through a study, with games that are over at once, and says of each step that it was
answered. It is killed (SIGKILL) at random steps, and another one goes on. A second server asks for the same folder each
time. Now and then the disk refuses: the system stops writing a file after some bytes. In the end every step that was
answered has to be in the files, and every file has to be whole.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from magrounding.cli.command import CommandLine, program
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.extensions.people.web.limits import OncePerKind
from magrounding.extensions.people.web.messages import Refusal
from magrounding.extensions.people.web.participants import Participants
from magrounding.extensions.people.web.records import FILES, read_record
from magrounding.extensions.people.web.study import BETWEEN, Condition, Question, Study, digest_of
from magrounding.owner import RunOwner
from magrounding.run_folder import RunFolder
from magrounding.storage import json_text, write_json
from magrounding.teams.saved_games import Header, SavedEpisode, read_episodes

if TYPE_CHECKING:
    from collections.abc import Iterator

STUDY = Study(
    title="kills",
    consent="",
    env="ma_rtfm",
    seeds=(0,),
    conditions=(Condition("one", ("human", "oracle")), Condition("other", ("human", "random"))),
    between=(Question("helpful", "Was it?", ("yes", "no")),),
)
STEPS = 6
"""Steps of a participant: entering, two games, two answers, finishing."""
AT_ONCE = 40
"""Participants who take part at the same time."""
FULL_EVERY, FULL_FOR, FULL_BYTES = 150, 15, 90
"""The disk is full after so many steps, for so many, and takes so many bytes of a file then."""
HEADER = Header("ma_rtfm", {"agents": 2}, 2, "words", ("stay",), ("human", "oracle"), "greedy")
GAME = SavedEpisode(0, ((0, 0),), ("seen",), won=True, score=1.0, length=1, returns=(1.0, 1.0), timed_out=False)


@dataclass(frozen=True)
class Arguments:
    """Kill the server of a study again and again, and look for what was lost."""

    participants: int = 10_000
    """Number of participants."""
    kills: int = 20
    """Number of times that the server is killed."""
    seed: int = 0
    """Seed of the moments at which it is killed."""
    folder: Path | None = None
    """Folder for the data. (default: a temporary one)"""
    json: Path | None = None
    """File for the numbers. (default: none)"""


def campaign(folder: Path, participants: int, kills: int, seed: int = 0) -> Counter[str]:
    """Return counts of what has happened, and of what was lost: "lost steps", "broken files"."""
    rng, counts, known = random.Random(seed), Counter[str](), dict[str, int]()
    every = participants * STEPS // (kills + 3)  # the last kill comes before the last participant has finished
    for round_ in range(kills + 1):
        until = every + rng.randint(-every // 4, every // 4) if round_ < kills else sys.maxsize
        counts["servers"] += 1
        most = until + every // 4  # answers, then it waits for its end: it may be far ahead on a busy machine
        counts += _life(folder, participants, known, until, most, rng.random())
    people = [read_record(path) for path in folder.glob(FILES)]
    taken = {one.ticket: 1 + len(one.games) + len(one.answers.get(BETWEEN, {})) + one.finished for one in people}
    counts["participants thanked"] = sum(steps == STEPS for steps in taken.values())
    counts["participants in the files"] = len(people)
    counts["lost steps"] = sum(max(0, steps - taken.get(digest_of(ticket), 0)) for ticket, steps in known.items())
    counts["games"] = sum(len(read_episodes(path)[1]) for path in (folder / "games").iterdir())
    counts["files of unknown kind"] = sum(path.suffix not in (".json", ".jsonl") for path in folder.rglob("*.*"))
    return counts


def _life(folder: Path, participants: int, known: dict[str, int], until: int, most: int, seed: float) -> Counter[str]:
    """Let a server live until it is known to have answered so many steps; what it has answered goes into `known`."""
    counts, asked, rest = Counter[str](), False, b""
    hears, says = os.pipe()
    server = os.fork()
    if not server:
        os.close(hears)
        _in_child(lambda: _serve(folder, participants, dict(known), says, most, random.Random(seed)))
    os.close(says)
    while data := os.read(hears, 2**16):
        *lines, rest = (rest + data).split(b"\n")
        for what, ticket, steps in (line.decode().split() for line in lines):
            counts[what] += 1
            if what == "answered":
                known[ticket] = int(steps)
        if not asked:
            asked = True
            counts["second servers refused"] += _is_refused(folder)
        if counts["answered"] >= until:
            os.kill(server, signal.SIGKILL)
            until = sys.maxsize
            counts["kills"] += 1
    os.close(hears)
    status = os.waitpid(server, 0)[1]
    if status not in (0, signal.SIGKILL):
        raise ConfigurationError("a server ended by itself; what it said stands above")
    return counts


def _serve(folder: Path, participants: int, known: dict[str, int], says: int, most: int, rng: random.Random) -> None:
    """In a process: take everybody through the study, but for answers beyond the most."""
    left = most

    def say(what: str, ticket: str = "-", steps: int = 0) -> None:
        os.write(says, f"{what} {ticket} {steps}\n".encode())

    handler = logging.StreamHandler()
    handler.addFilter(OncePerKind())
    logging.basicConfig(handlers=[handler], force=True)
    with RunOwner(RunFolder(folder), "the server"):
        people = Participants(STUDY, folder)
        people.load()
        there = len(list(folder.glob(FILES)))
        waiting = [ticket for ticket, steps in known.items() if steps < STEPS]
        while True:
            for full in (False, True):
                with _disk(full=full):
                    for _ in range(FULL_FOR if full else FULL_EVERY):
                        entering = there < participants and len(waiting) < AT_ONCE
                        if not waiting and not entering:
                            if people.late and full:
                                break
                            return people.store_late()
                        try:
                            if entering:
                                ticket, steps = people.enter(True, {})["ticket"], 0
                                there += 1
                                waiting.append(ticket)
                            else:
                                ticket = rng.choice(waiting)
                                steps = known[ticket]
                                _take(people, ticket, steps)
                        except Refusal as refusal:
                            say(refusal.code)
                            continue
                        known[ticket] = steps + 1
                        if steps + 1 == STEPS:
                            waiting.remove(ticket)
                        say("answered", ticket, steps + 1)
                        left -= 1
                        if not left:
                            signal.pause()


def _take(people: Participants, ticket: str, steps: int) -> None:
    """Take a participant's next step; Refusal where it is not answered."""
    one = people.find(ticket)
    if steps == STEPS - 1:
        people.finish(one, {})
    elif steps % 2 == 0:
        people.proceed(one, {"helpful": "yes"})
    elif len(one.record.games) > steps // 2:  # it was over before; only its answer did not come
        people.store_late()
    else:
        condition = people.proceed(one, None)
        assert condition is not None
        people.keeper(one, condition)(HEADER, GAME)
        people.store_late()


def _is_refused(folder: Path) -> bool:
    """A second server, while the first one lives, is not let into the folder."""
    second = os.fork()
    if not second:
        _in_child(lambda: _ask_in_vain(folder))
    return os.waitpid(second, 0)[1] == 0


def _ask_in_vain(folder: Path) -> None:
    try:
        with RunOwner(RunFolder(folder), "the server"):
            raise SystemExit(1)
    except CheckpointError:
        pass


def _in_child(what: Any) -> None:
    """Do something, and end this process without what its parent would do at its end."""
    try:
        what()
        os._exit(0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(1)


@contextmanager
def _disk(*, full: bool) -> Iterator[None]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES if full else soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run(arguments: Arguments, line: CommandLine) -> None:
    """Kill, look, print."""
    if not hasattr(os, "fork"):
        raise ConfigurationError("this system has no fork, by which servers are made here")
    if arguments.participants < 1 or arguments.kills < 0:
        raise ConfigurationError("--participants is 1 or more, --kills 0 or more")
    with tempfile.TemporaryDirectory() as temporary:
        counts = campaign(arguments.folder or Path(temporary), arguments.participants, arguments.kills, arguments.seed)
    asked = {name: str(each) if isinstance(each, Path) else each for name, each in asdict(arguments).items()}
    result = {"command": str(line), "asked": asked, **counts}
    result["load_average"] = [round(each, 2) for each in os.getloadavg()]
    print(json_text(result, indent=2))
    if arguments.json is not None:
        write_json(arguments.json, result)


main = program("python -m benchmarks.study_kills", __name__)

if __name__ == "__main__":
    sys.exit(main())
