"""Study: people play with several line-ups in counterbalanced order, and are asked before, between and after.

A study is a TOML file of the host's: see `magrounding/examples/study.toml` and docs/studies.md. Of a participant
nothing is kept but the answers, the games, how long these took, a number, and digests of the ticket and the invitation.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.play.lineup import HUMAN
from magrounding.play.saved_games import Header, SavedEpisode, to_text
from magrounding.play.web.invitations import Invitations, digest_of
from magrounding.play.web.limits import Pace
from magrounding.play.web.messages import Refusal
from magrounding.play.web.offers import Offers, Plan
from magrounding.schema import Options, load
from magrounding.storage import (
    NOTE,
    check_place,
    json_text,
    parse_toml,
    read_json,
    read_text,
    reason,
    remove_partial,
    user_path,
    write_atomic,
)

FORMAT = "magrounding study 1"
BETWEEN = "between"
"""Entry of the data for answers between line-ups."""
_RESULTS = ("seed", "won", "score", "length", "returns", "timed_out")
_LONGEST_ANSWER = 1000
_PARTICIPANTS = 10_000
_LAST_SECONDS = 5.0
"""Seconds for which a server that ends tries again; containers are killed 10 s after they are asked to end."""
_MEMORY = Path("/dev/shm")
"""A folder on Linux that a full disk leaves alone, until the machine is started anew."""
_DATA = "participant_*.json"

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question(Options):
    """A question to participants.

    Attributes:
        id: its name in the data.
        ask: the question.
        answers: the choice; none for words of one's own.
    """

    id: str
    ask: str
    answers: tuple[str, ...] = ()

    def check(self, answer: Any) -> None:
        """Raise a Refusal for what is no answer to it."""
        chosen = answer in self.answers if self.answers else isinstance(answer, str) and len(answer) <= _LONGEST_ANSWER
        if not chosen:
            raise Refusal("bad_answer", f"an answer is missing or none of those offered: {self.id}")
        try:
            answer.encode()
        except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can say and no file can hold
            raise Refusal("bad_answer", f"an answer is no text: {self.id}") from None


@dataclass(frozen=True)
class Condition(Options):
    """A line-up that participants play with.

    Attributes:
        name: in the data; participants do not see it.
        players: for each agent, by the names that `magrounding serve` offers; one is "human".
    """

    name: str
    players: tuple[str, ...]


@dataclass(frozen=True)
class Study(Options):
    """The study in a file.

    Attributes:
        title, consent: texts that participants read first; those who do not agree do not take part.
        env, options, pace: of all games.
        seeds: of the games with each line-up, the same for all line-ups.
        conditions: the line-ups.
        before, between, after: questions at the start, after the games with each line-up, and at the end.
        thanks: text at the end.
        open: participants see the other players, and what their networks take and read.
    """

    title: str
    consent: str
    env: str
    seeds: tuple[int, ...]
    conditions: tuple[Condition, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    pace: Pace = 0.0
    before: tuple[Question, ...] = ()
    between: tuple[Question, ...] = ()
    after: tuple[Question, ...] = ()
    thanks: str = "Thank you. You can close this page."
    open: bool = False

    @classmethod
    def read(cls, path: Path, offers: Offers) -> Study:
        """Read the study in a file; ConfigurationError where it makes none, or asks for what is not offered."""
        try:
            content = parse_toml(read_text(user_path(path), NOTE))
        except OSError as error:
            raise ConfigurationError(f"the study {path} cannot be read: {reason(error)}") from None
        except ValueError as error:
            raise ConfigurationError(f"the study {path} is no TOML: {error}") from None
        try:
            study = load(cls, content)
            study.check(offers)
        except (ConfigurationError, Refusal) as error:
            raise ConfigurationError(f"the study {path}: {error}") from None
        return study

    def check(self, offers: Offers) -> None:
        """Raise a ConfigurationError for names that are not distinct, and a Refusal for games that are not offered."""
        names = [condition.name for condition in self.conditions]
        if len(set(names)) < len(names) or not names or not self.seeds:
            raise ConfigurationError("it has at least one seed and one of the conditions, each with a name of its own")
        asked = [question.id for question in (*self.before, *self.between, *self.after)]
        if BETWEEN in asked:
            raise ConfigurationError(f"no question has the id {BETWEEN!r}: the data keep others by that name")
        if len(set(asked)) < len(asked):
            raise ConfigurationError("each question has an id of its own")
        for condition, seed in product(self.conditions, self.seeds):
            if len(self.plan(offers, condition, seed).people) != 1:
                raise ConfigurationError(f"one of the players of {condition.name!r} is human, got {condition.players}")

    def plan(self, offers: Offers, condition: Condition, seed: int) -> Plan:
        plan = offers.plan(self.env, self.options, list(condition.players), seed)
        if self.open:
            return plan
        names = tuple(name if name == HUMAN else "an agent" for name in plan.players)
        return replace(plan, names=names, hidden=tuple(range(len(names))))

    def order(self, participant: int) -> list[int]:
        """Return the order of line-ups for a participant, a row of a balanced Latin square.

        Williams (1949): each line-up stands at each place as often as any other, and follows each other one as often.
        With an odd number of line-ups that takes twice as many participants, every second of whom has a row backwards.
        """
        n = len(self.conditions)
        first = dict.fromkeys([0, *(k for pair in zip(range(1, n), range(n - 1, 0, -1), strict=True) for k in pair)])
        row = [(k + participant) % n for k in first]
        return row[::-1] if n % 2 and (participant // n) % 2 else row

    def about(self) -> dict[str, Any]:
        """Return the texts and questions of the page, without names of line-ups."""
        asked = {name: list(map(asdict, getattr(self, name))) for name in ("before", "between", "after")}
        return {"title": self.title, "consent": self.consent, "thanks": self.thanks, **asked}


@dataclass
class Participant:
    """A participant, numbered from 0.

    Attributes:
        ticket: digest of that by which the page goes on.
        invitation: digest of the code that let this participant in, "" where it was not a personal one.
        games: finished ones.
        answers: question → answer; of those asked between, line-up → question → answer.
        code: of the game that goes on.
        unsaved: file → content of finished games that the disk has refused so far.
        lock: held while a game is made, so that no other one is.
    """

    number: int
    ticket: str
    order: list[int]
    invitation: str = ""
    games: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    finished: bool = False
    unsaved: dict[str, str] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Participants:
    """All participants of a study, and in a folder the files of their data: `participant_<number>.json`, and games.

    A step is answered once it is on the disk. One that the disk refuses is a Refusal "not_stored", after which the
    participant stands where it stood, and may repeat it; of a game that has ended the results wait in `late`.
    A folder that cannot be written to is a CheckpointError.

    Attributes:
        late: participants of whom not all is on the disk, by number.
    """

    def __init__(self, study: Study, folder: Path, invitations: Invitations | None = None) -> None:
        check_place(folder / "participant_0.json")
        self.study, self.folder, self._invitations = study, folder, invitations
        self.late: dict[int, Participant] = {}
        self._by_ticket: dict[str, Participant] = {}
        self._invited: dict[str, Participant | None] = {}
        self._next = 0
        self._lock = RLock()

    def load(self) -> None:
        """Take up the participants in the folder, which is closed to other users; by one process that owns it.

        CheckpointError for damaged data, and those of another study. Who cannot go on, because the line-ups are others
        by now, is only counted.
        """
        self.folder.chmod(0o700)
        remove_partial(self.folder)
        line_ups = {condition.name: k for k, condition in enumerate(self.study.conditions)}
        for path in self.folder.glob(_DATA):
            data, number = read_json(path), path.stem.partition("_")[2]
            if data.get("format") != FORMAT or data.get("study") != self.study.title or not number.isdecimal():
                raise CheckpointError(f"{path} is no data of this study: name another folder with --out")
            self._next = max(self._next, int(number) + 1)
            try:
                order = [line_ups.get(name, -1) for name in data["order"]]
                one = Participant(int(number), data.get("ticket", ""), order, data.get("invitation", ""))
                one.games, one.answers, one.finished = list(data["games"]), dict(data["answers"]), data["finished"]
            except (KeyError, TypeError, ValueError):
                raise CheckpointError(f"{path} is damaged: it has not all that is known of a participant") from None
            going_on = bool(one.ticket) and sorted(order) == list(range(len(line_ups)))
            if going_on:
                self._by_ticket[one.ticket] = one
            self._invited[one.invitation] = one if going_on else None

    def enter(self, consent: bool, answers: Mapping[str, Any], invitation: str = "") -> dict[str, Any]:
        """Add a participant who agrees, with the answers to the first questions; return the ticket.

        A personal invitation that has let in a participant gives it a new ticket, with which it goes on.

        Refusal "bad_answer" without consent, or where an answer is missing or none, "no_invitation", "full" for too
        many participants, "not_stored".
        """
        if not consent:
            raise Refusal("bad_answer", "who does not agree does not take part")
        _check_answers(self.study.before, answers)
        invited = "" if self._invitations is None else self._invitations.check(invitation)
        ticket = secrets.token_urlsafe(18)
        with self._lock:
            if invited and invited in self._invited:
                participant = self._readmit(self._invited[invited], digest_of(ticket))
            else:
                participant = self._add(dict(answers), digest_of(ticket), invited)
        return {"type": "study", "ticket": ticket, **self._where(participant)}

    def _add(self, answers: dict[str, Any], ticket: str, invited: str) -> Participant:
        if self._next >= _PARTICIPANTS:
            raise Refusal("full")
        while True:  # a folder on a disk without locks may have another writer: the number is whose file is made first
            participant = Participant(self._next, ticket, self.study.order(self._next), invited, answers=answers)
            try:
                self._write(participant, self.folder, new=True)
                break
            except FileExistsError:
                self._next += 1
            except OSError as error:
                self._refuse(error)
        self._next += 1
        self._by_ticket[ticket] = self._invited[invited] = participant
        return participant

    def _readmit(self, participant: Participant | None, ticket: str) -> Participant:
        if participant is None or participant.finished:
            raise Refusal("no_invitation", "this invitation has been used, and its participant has finished")
        former, participant.ticket = participant.ticket, ticket
        try:
            self._store(participant)
        except Refusal:
            participant.ticket = former
            raise
        del self._by_ticket[former]
        self._by_ticket[ticket] = participant
        return participant

    def find(self, ticket: str) -> Participant:
        """Return the participant of a ticket; Refusal where there is none."""
        participant = self._by_ticket.get(digest_of(ticket))
        if participant is None:
            raise Refusal("no_game", "this ticket is not known")
        return participant

    def proceed(self, participant: Participant, answers: Mapping[str, Any] | None) -> Condition | None:
        """Keep answers about the last line-up, if they are due; return the next one, None at the end of all games.

        Refusal "bad_answer" where they are still to come, "not_stored" also where a game is not stored yet.
        """
        with self._lock:
            done, last = len(participant.games), self._asked_about(participant)
            if last is not None:
                _check_answers(self.study.between, answers or {})
                between = {**participant.answers.get(BETWEEN, {}), last.name: dict(answers or {})}
                self._answer(participant, {BETWEEN: between})
            elif participant.number in self.late:
                self._store(participant)
        if done == len(participant.order) * len(self.study.seeds):
            return None
        return self.study.conditions[participant.order[done // len(self.study.seeds)]]

    def _asked_about(self, participant: Participant) -> Condition | None:
        """Return the line-up whose games are over and whose questions are still to be answered."""
        done, seeds = len(participant.games), len(self.study.seeds)
        if not self.study.between or not done or done % seeds:
            return None
        last = self.study.conditions[participant.order[done // seeds - 1]]
        return None if last.name in participant.answers.get(BETWEEN, {}) else last

    def seed(self, participant: Participant) -> int:
        return self.study.seeds[len(participant.games) % len(self.study.seeds)]

    def keeper(self, participant: Participant, condition: Condition) -> Callable[[Header, SavedEpisode], None]:
        """Return the function that keeps a participant's next game when it ends."""
        place, begin = len(participant.games), time.monotonic()

        def keep(header: Header, game: SavedEpisode) -> None:
            with self._lock:
                if len(participant.games) != place:
                    return
                results = {name: getattr(game, name) for name in _RESULTS}
                took = round(time.monotonic() - begin, 1)
                participant.games.append(
                    {"condition": condition.name, **results, "players": list(header.players), "seconds": took}
                )
                participant.unsaved[f"participant_{participant.number}_game_{place}.jsonl"] = to_text(header, [game])
                with suppress(Refusal):  # it is late then, and the next step waits for it
                    self._store(participant)

        return keep

    def finish(self, participant: Participant, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the answers to the last questions, and end."""
        with self._lock:
            if len(participant.games) < len(participant.order) * len(self.study.seeds):
                raise Refusal("not_over")
            if self._asked_about(participant) is not None:
                raise Refusal("bad_answer", "the questions after the last games come first")
            _check_answers(self.study.after, answers)
            self._answer(participant, answers, finished=True)
        return {"type": "study", "end": True, "number": participant.number}

    def store_late(self) -> None:
        """Try again to store what the disk has refused; Refusal "not_stored" where it still does."""
        with self._lock:
            for participant in list(self.late.values()):
                with suppress(Refusal):
                    self._store(participant)
            if self.late:
                raise Refusal("not_stored")

    def close(self, seconds: float = _LAST_SECONDS) -> None:
        """Store what is late, and where the disk refuses it for so long, put it into a folder that the log names."""
        until = time.monotonic() + seconds
        with suppress(KeyboardInterrupt):  # Ctrl-C once more: it is not waited for
            while self.late:
                with suppress(Refusal):
                    self.store_late()
                if not self.late or time.monotonic() >= until:
                    break
                time.sleep(0.5)
        with self._lock:
            for place in (None, _MEMORY) if _MEMORY.is_dir() else (None,):
                if self.late:
                    self._store_elsewhere(place)
            if self.late:
                LOG.critical("what was not stored is lost, of participants %s", ", ".join(map(str, sorted(self.late))))

    def _store_elsewhere(self, place: Path | None) -> None:
        """Write what is late into a new folder at a place, by the names that files have in the study's folder.

        The system's place for temporary files where none is given, which is looked for: there may be none.
        """
        try:
            folder = Path(tempfile.mkdtemp(prefix="magrounding-study-", dir=place))
        except OSError as error:
            LOG.error(
                "participants' data cannot be written to %s either (%s)", place or "temporary files", reason(error)
            )
            return
        try:
            for participant in list(self.late.values()):
                self._put(participant, folder)
        except OSError as error:
            LOG.error("participants' data cannot be written to %s either (%s)", folder, reason(error))
        try:
            folder.rmdir()
        except OSError:  # it is not empty
            LOG.error(
                "participants' data that %s could not take are in %s: make room, and before the study goes on, "
                "cp -r %s/. %s",
                *(self.folder, folder, folder, self.folder),
            )

    def _where(self, participant: Participant) -> dict[str, Any]:
        return {"done": len(participant.games), "games": len(participant.order) * len(self.study.seeds)}

    def progress(self, participant: Participant, code: str) -> dict[str, Any]:
        """Return the code of the next game, or "" after the last, for the page; and whether questions come next."""
        done = len(participant.games)
        asks = bool(self.study.between) and (done + 1) % len(self.study.seeds) == 0
        return {"type": "study", "code": code, "asks": asks, **self._where(participant)}

    def _answer(self, participant: Participant, answers: Mapping[str, Any], *, finished: bool = False) -> None:
        """Store answers; where the disk refuses them they are not given."""
        former = participant.answers, participant.finished
        participant.answers, participant.finished = {**participant.answers, **answers}, finished
        try:
            self._store(participant)
        except Refusal:
            participant.answers, participant.finished = former
            raise

    def _store(self, participant: Participant) -> None:
        """Write all of a participant; Refusal "not_stored" where the disk refuses, after which it is late."""
        self.late[participant.number] = participant
        try:
            self._put(participant, self.folder)
        except OSError as error:
            self._refuse(error)

    def _put(self, participant: Participant, folder: Path) -> None:
        """Write all of a participant that is not stored into a folder, after which it is not late; or OSError."""
        for name, text in list(participant.unsaved.items()):
            write_atomic(folder / "games" / name, text, private=True)
            del participant.unsaved[name]
        self._write(participant, folder)
        self.late.pop(participant.number, None)

    def _refuse(self, error: OSError) -> NoReturn:
        LOG.error(
            "a participant's data cannot be stored in %s (%s): make room there; people are asked to wait, and what has "
            "been played is kept until it can be stored",
            self.folder,
            error.strerror or error,
        )
        raise Refusal("not_stored") from None

    def _write(self, participant: Participant, folder: Path, *, new: bool = False) -> None:
        content = {
            "format": FORMAT,
            "study": self.study.title,
            "participant": participant.number,
            "ticket": participant.ticket,
            "invitation": participant.invitation,
            "order": [self.study.conditions[k].name for k in participant.order],
            "answers": participant.answers,
            "games": participant.games,
            "finished": participant.finished,
        }
        path = folder / f"participant_{participant.number}.json"
        write_atomic(path, json_text(content, indent=2) + "\n", private=True, new=new)


def _check_answers(questions: Sequence[Question], answers: Mapping[str, Any]) -> None:
    """Raise a Refusal unless each is answered, and nothing else."""
    if answers.keys() != {question.id for question in questions}:
        raise Refusal("bad_answer", "every question is answered, and nothing that is not asked")
    for question in questions:
        question.check(answers[question.id])
