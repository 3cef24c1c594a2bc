"""Study: people play with several line-ups in counterbalanced order, and are asked before, between and after.

A study is a TOML file of the host's: see `magrounding/examples/study.toml` and docs/studies.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from magrounding.errors import ConfigurationError
from magrounding.extensions.people.web.limits import Pace
from magrounding.extensions.people.web.messages import Refusal, require
from magrounding.extensions.people.web.offers import Offers, Plan
from magrounding.schema import Options, load
from magrounding.storage import NOTE, parse_toml, require_bytes, text_of, user_path
from magrounding.teams.lineup import HUMAN

BETWEEN = "between"
"""Entry of the data for answers between line-ups."""
_LONGEST_ANSWER = 1000
_CODE = re.compile(r"[A-Za-z0-9_-]{8,64}")


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
        require(chosen, "bad_answer", f"an answer is missing or none of those offered: {self.id}")


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
        data = require_bytes(user_path(path), NOTE, refused=ConfigurationError)
        try:
            study = load(cls, parse_toml(text_of(data)))
            study.check(offers)
        except (ValueError, Refusal) as error:  # also where it is no TOML, or no text
            raise ConfigurationError(f"the study {path}: {error}") from None
        return study

    def check(self, offers: Offers) -> None:
        """Raise a ConfigurationError for names that are not distinct, and a Refusal for games that are not offered."""
        names = [condition.name for condition in self.conditions]
        if len(set(names)) < len(names) or not names or not self.seeds:
            raise ConfigurationError("it has at least one seed and one of the conditions, each with a name of its own")
        asked = [BETWEEN, *(question.id for question in (*self.before, *self.between, *self.after))]
        if len(set(asked)) < len(asked):
            raise ConfigurationError(f"each question has an id of its own, and none the id {BETWEEN!r}")
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


@dataclass(frozen=True)
class Invitations:
    """Codes that links carry, of which a participant has one.

    Attributes:
        digests: of the codes (`digest_of`).
        personal: each code is one participant's, not one for all.
    """

    digests: frozenset[str]
    personal: bool

    @classmethod
    def of(cls, codes: Iterable[str], *, personal: bool) -> Invitations:
        """Make the invitations of some codes; ConfigurationError where there are none, or one is none or twice there.

        Codes are 8 to 64 of the letters a to z, digits, - and _.
        """
        codes = list(codes)
        if wrong := [code for code in codes if not _CODE.fullmatch(code)]:
            raise ConfigurationError(
                f"an invitation code is 8 to 64 of the letters a to z, digits, - and _, got {wrong[0]!r}"
            )
        if not codes or len(set(codes)) < len(codes):
            raise ConfigurationError("invitations are one code a line, and none of them twice")
        return cls(frozenset(map(digest_of, codes)), personal)

    @classmethod
    def read(cls, path: Path) -> Invitations:
        """Read the codes of single participants in a file; errors as of `of`, and where it cannot be read."""
        data = require_bytes(path, refused=ConfigurationError)
        return cls.of(data.decode("utf-8-sig", "replace").split(), personal=True)

    def check(self, code: str) -> str:
        """Return the digest of a code, "" of one for all; Refusal where it is none of these."""
        found = digest_of(code)
        require(found in self.digests, "no_invitation")
        return found if self.personal else ""


def digest_of(secret: str) -> str:
    """SHA-256 of a code or ticket, as the data of a study has it: a reader of them cannot take part with it."""
    return sha256(secret.encode()).hexdigest()


def check_answers(questions: Sequence[Question], answers: Mapping[str, Any]) -> None:
    """Raise a Refusal unless each is answered, and nothing else."""
    asked = {question.id for question in questions}
    require(answers.keys() == asked, "bad_answer", "every question is answered, and nothing that is not asked")
    for question in questions:
        question.check(answers[question.id])
