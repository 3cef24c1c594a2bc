"""Study: people play with several line-ups in counterbalanced order, and are asked before, between and after.

A study is a TOML file of the host's: see `magrounding/examples/study.toml` and docs/play.md. Of a participant nothing
is kept but the answers, the games, how long these took, and a number.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any

from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.play.lineup import HUMAN
from magrounding.play.saved_games import Header, SavedEpisode, to_text
from magrounding.play.web.limits import Pace
from magrounding.play.web.messages import Refusal
from magrounding.play.web.offers import Offers, Plan
from magrounding.schema import Options, load
from magrounding.storage import check_place, read_text, user_path, write_atomic, write_json

FORMAT = "magrounding study 1"
BETWEEN = "between"
"""Entry of the data for answers between line-ups."""
_RESULTS = ("seed", "won", "score", "length", "returns", "timed_out")
_LONGEST_ANSWER = 1000
_PARTICIPANTS = 10_000


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
            content = tomllib.loads(read_text(user_path(path)))
        except OSError as error:
            raise ConfigurationError(f"the study {path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
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
        ticket: by which the page goes on; not in the data.
        games: finished ones.
        answers: question → answer; of those asked between, line-up → question → answer.
        code: of the game that goes on.
        lock: held while a game is made, so that no other one is.
    """

    number: int
    ticket: str
    order: list[int]
    games: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    finished: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Participants:
    """All participants of a study, and in a folder the files of their data: `participant_<number>.json`, and games.

    A folder that cannot be written to is a CheckpointError.
    """

    def __init__(self, study: Study, folder: Path) -> None:
        check_place(folder / "participant_0.json")
        self.study, self._folder = study, folder
        self._participants: dict[str, Participant] = {}
        self._lock = Lock()

    def enter(self, consent: bool, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Add a participant who agrees, with the answers to the first questions; return the ticket.

        Refusal "bad_answer" without consent, or where an answer is missing or none, "full" for too many participants.
        """
        if not consent:
            raise Refusal("bad_answer", "who does not agree does not take part")
        _check_answers(self.study.before, answers)
        if len(self._participants) >= _PARTICIPANTS:
            raise Refusal("full")
        with self._lock:
            numbers = (path.stem.partition("_")[2] for path in self._folder.glob("participant_*.json"))
            number = max((int(each) for each in numbers if each.isdecimal()), default=-1) + 1
            participant = Participant(number, secrets.token_urlsafe(18), self.study.order(number))
            participant.answers |= answers
            self._participants[participant.ticket] = participant
            self._write(participant)
        return {"type": "study", "ticket": participant.ticket, **self._where(participant)}

    def find(self, ticket: str) -> Participant:
        """Return the participant of a ticket; Refusal where there is none."""
        for known, participant in self._participants.items():
            if hmac.compare_digest(known.encode(), ticket.encode("utf-8", "surrogatepass")):
                return participant
        raise Refusal("no_game", "this ticket is not known: the server was started anew")

    def proceed(self, participant: Participant, answers: Mapping[str, Any] | None) -> Condition | None:
        """Keep answers about the last line-up, if they are due; return the next one, None at the end of all games.

        Refusal "bad_answer" where they are still to come.
        """
        done, last = len(participant.games), self._asked_about(participant)
        if last is not None:
            _check_answers(self.study.between, answers or {})
            participant.answers.setdefault(BETWEEN, {})[last.name] = dict(answers or {})
            with self._lock:
                self._write(participant)
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
                name = f"participant_{participant.number}_game_{place}.jsonl"
                write_atomic(self._folder / "games" / name, to_text(header, [game]))
                self._write(participant)

        return keep

    def finish(self, participant: Participant, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the answers to the last questions, and end."""
        if len(participant.games) < len(participant.order) * len(self.study.seeds):
            raise Refusal("not_over")
        if self._asked_about(participant) is not None:
            raise Refusal("bad_answer", "the questions after the last games come first")
        _check_answers(self.study.after, answers)
        with self._lock:
            participant.answers |= answers
            participant.finished = True
            self._write(participant)
        return {"type": "study", "end": True, "number": participant.number}

    def _where(self, participant: Participant) -> dict[str, Any]:
        return {"done": len(participant.games), "games": len(participant.order) * len(self.study.seeds)}

    def progress(self, participant: Participant, code: str) -> dict[str, Any]:
        """Return the code of the next game, or "" after the last, for the page; and whether questions come next."""
        done = len(participant.games)
        asks = bool(self.study.between) and (done + 1) % len(self.study.seeds) == 0
        return {"type": "study", "code": code, "asks": asks, **self._where(participant)}

    def _write(self, participant: Participant) -> None:
        content = {
            "format": FORMAT,
            "study": self.study.title,
            "participant": participant.number,
            "order": [self.study.conditions[k].name for k in participant.order],
            "answers": participant.answers,
            "games": participant.games,
            "finished": participant.finished,
        }
        try:
            write_json(self._folder / f"participant_{participant.number}.json", content)
        except OSError as error:
            raise CheckpointError(f"the data of a participant cannot be written: {error}") from None


def _check_answers(questions: Sequence[Question], answers: Mapping[str, Any]) -> None:
    """Raise a Refusal unless each is answered, and nothing else."""
    if answers.keys() != {question.id for question in questions}:
        raise Refusal("bad_answer", "every question is answered, and nothing that is not asked")
    for question in questions:
        question.check(answers[question.id])
