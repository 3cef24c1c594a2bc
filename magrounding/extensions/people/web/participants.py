"""Participants of a study: what each of them has done, on the disk before it is confirmed.

Of a participant nothing is kept but the answers, the games, how long these took, a number, and digests of the ticket
and the invitation.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

from msgspec import to_builtins
from msgspec.structs import replace

from magrounding.errors import CheckpointError
from magrounding.extensions.people.web.messages import Refusal, require
from magrounding.extensions.people.web.records import FILES, FORMAT, PlayedGame, Record, read_record
from magrounding.extensions.people.web.study import BETWEEN, Condition, Invitations, Study, check_answers, digest_of
from magrounding.storage import check_place, json_text, reason, remove_partial, write_atomic
from magrounding.teams.saved_games import Header, SavedEpisode, to_text

_PARTICIPANTS = 10_000
_LAST_SECONDS = 5.0
"""Seconds for which a server that ends tries again; containers are killed 10 s after they are asked to end."""
_MEMORY = Path("/dev/shm")
"""A folder on Linux that a full disk leaves alone, until the machine is started anew."""

LOG = logging.getLogger(__name__)


@dataclass
class Participant:
    """A participant, as the server knows it.

    Attributes:
        record: all that is kept.
        code: of the game that goes on.
        unsaved: file → content of finished games that the disk has refused so far.
        lock: held while a game is made, so that no other one is.
    """

    record: Record
    code: str = ""
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
        self._conditions = {condition.name: condition for condition in study.conditions}
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
        for path in self.folder.glob(FILES):
            record = read_record(path)
            if record.study != self.study.title:
                raise CheckpointError(f"{path} is no data of this study: name another folder with --out")
            self._next = max(self._next, record.participant + 1)
            going_on = record.ticket and sorted(record.order) == sorted(self._conditions)
            self._invited[record.invitation] = participant = Participant(record) if going_on else None
            if participant is not None:
                self._by_ticket[record.ticket] = participant

    def enter(self, consent: bool, answers: Mapping[str, Any], invitation: str = "") -> dict[str, Any]:
        """Add a participant who agrees, with the answers to the first questions; return the ticket.

        A personal invitation that has let in a participant gives it a new ticket, with which it goes on.

        Refusal "bad_answer" without consent, or where an answer is missing or none, "no_invitation", "full" for too
        many participants, "not_stored".
        """
        require(consent, "bad_answer", "who does not agree does not take part")
        check_answers(self.study.before, answers)
        invited = "" if self._invitations is None else self._invitations.check(invitation)
        ticket = secrets.token_urlsafe(18)
        with self._lock:
            if invited and invited in self._invited:
                participant = self._readmit(self._invited[invited], digest_of(ticket))
            else:
                participant = self._add(dict(answers), digest_of(ticket), invited)
        return {"type": "study", "ticket": ticket, **self._where(participant)}

    def _add(self, answers: dict[str, Any], ticket: str, invited: str) -> Participant:
        require(self._next < _PARTICIPANTS, "full")
        while True:  # a folder on a disk without locks may have another writer: the number is whose file is made first
            record = Record(
                format=FORMAT,
                study=self.study.title,
                participant=self._next,
                ticket=ticket,
                invitation=invited,
                order=[self.study.conditions[k].name for k in self.study.order(self._next)],
                answers=answers,
            )
            try:
                _write(record, self.folder, new=True)
                break
            except FileExistsError:
                self._next += 1
            except OSError as error:
                self._refuse(error)
        self._next += 1
        self._by_ticket[ticket] = self._invited[invited] = participant = Participant(record)
        return participant

    def _readmit(self, participant: Participant | None, ticket: str) -> Participant:
        if participant is None or participant.record.finished:
            raise Refusal("no_invitation", "this invitation has been used, and its participant has finished")
        former = participant.record.ticket
        self._store(participant, ticket=ticket)
        self._by_ticket[ticket] = self._by_ticket.pop(former)
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
            done, last = len(participant.record.games), self._asked_about(participant)
            if last is not None:
                check_answers(self.study.between, answers or {})
                given = participant.record.answers
                between = {**given.get(BETWEEN, {}), last: dict(answers or {})}
                self._store(participant, answers={**given, BETWEEN: between})
            elif participant.record.participant in self.late:
                self._store(participant)
        if done == self._most_games:
            return None
        return self._conditions[participant.record.order[done // len(self.study.seeds)]]

    @property
    def _most_games(self) -> int:
        return len(self._conditions) * len(self.study.seeds)

    def _asked_about(self, participant: Participant) -> str | None:
        """Return the name of the line-up whose games are over and whose questions are still to be answered."""
        record, seeds = participant.record, len(self.study.seeds)
        done = len(record.games)
        if not self.study.between or not done or done % seeds:
            return None
        last = record.order[done // seeds - 1]
        return None if last in record.answers.get(BETWEEN, {}) else last

    def seed(self, participant: Participant) -> int:
        return self.study.seeds[len(participant.record.games) % len(self.study.seeds)]

    def keeper(self, participant: Participant, condition: Condition) -> Callable[[Header, SavedEpisode], None]:
        """Return the function that keeps a participant's next game when it ends."""
        place, begin = len(participant.record.games), time.monotonic()

        def keep(header: Header, game: SavedEpisode) -> None:
            with self._lock:
                record = participant.record
                if len(record.games) != place:
                    return
                took = round(time.monotonic() - begin, 1)
                ended = game.won, game.score, game.length, game.returns, game.timed_out
                record.games.append(PlayedGame(condition.name, game.seed, *ended, header.players, took))
                name = f"participant_{record.participant}_game_{place}.jsonl"
                participant.unsaved[name] = to_text(header, [game])
                with suppress(Refusal):  # it is late then, and the next step waits for it
                    self._store(participant)

        return keep

    def finish(self, participant: Participant, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the answers to the last questions, and end."""
        with self._lock:
            require(len(participant.record.games) == self._most_games, "not_over")
            asked = self._asked_about(participant)
            require(asked is None, "bad_answer", "the questions after the last games come first")
            check_answers(self.study.after, answers)
            self._store(participant, answers={**participant.record.answers, **answers}, finished=True)
        return {"type": "study", "end": True, "number": participant.record.participant}

    def store_late(self) -> None:
        """Try again to store what the disk has refused; Refusal "not_stored" where it still does."""
        with self._lock:
            for participant in list(self.late.values()):
                with suppress(Refusal):
                    self._store(participant)
            require(not self.late, "not_stored")

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
                self._put(participant, folder, participant.record)
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
        return {"done": len(participant.record.games), "games": self._most_games}

    def progress(self, participant: Participant, code: str) -> dict[str, Any]:
        """Return the code of the next game, or "" after the last, for the page; and whether questions come next."""
        done = len(participant.record.games)
        asks = bool(self.study.between) and (done + 1) % len(self.study.seeds) == 0
        return {"type": "study", "code": code, "asks": asks, **self._where(participant)}

    def _store(self, participant: Participant, **changes: Any) -> None:
        """Write all of a participant, with what a step changes in its record.

        Refusal "not_stored" where the disk refuses: the participant is late then, and stands where it stood.
        """
        self.late[participant.record.participant] = participant
        try:
            self._put(participant, self.folder, replace(participant.record, **changes))
        except OSError as error:
            self._refuse(error)

    def _put(self, participant: Participant, folder: Path, record: Record) -> None:
        """Write a participant's unsaved games and new record into a folder, after which it is not late; or OSError."""
        for name, text in list(participant.unsaved.items()):
            write_atomic(folder / "games" / name, text, private=True)
            del participant.unsaved[name]
        _write(record, folder)
        participant.record = record
        self.late.pop(record.participant, None)

    def _refuse(self, error: OSError) -> NoReturn:
        LOG.error(
            "a participant's data cannot be stored in %s (%s): make room there; people are asked to wait, and what has "
            "been played is kept until it can be stored",
            self.folder,
            error.strerror or error,
        )
        raise Refusal("not_stored") from None


def _write(record: Record, folder: Path, *, new: bool = False) -> None:
    path = folder / f"participant_{record.participant}.json"
    write_atomic(path, json_text(to_builtins(record), indent=2) + "\n", private=True, new=new)
