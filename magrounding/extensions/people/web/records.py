"""Records of a study: the file of each participant, as the server writes it and the report reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, ValidationError, convert, field

from magrounding.errors import CheckpointError
from magrounding.storage import read_json

FORMAT = "magrounding study 1"
FILES = "participant_*.json"


class PlayedGame(Struct):
    """A finished game: its line-up (`condition`), what came of it as in `SavedEpisode`, and how long it took."""

    condition: str
    seed: int
    won: bool
    score: float
    length: int
    returns: tuple[float, ...]
    timed_out: bool
    players: tuple[str, ...]
    seconds: float


class Record(Struct, kw_only=True):
    """What is kept of a participant.

    Attributes:
        study: its title.
        participant: numbered from 0.
        ticket: digest of that by which the page goes on.
        invitation: digest of the code that let this participant in, "" where it was not a personal one.
        order: names of the line-ups.
        answers: question → answer; of those asked between, line-up → question → answer.
        games: finished ones.
    """

    format: Literal["magrounding study 1"]
    study: str
    participant: int
    ticket: str = ""
    invitation: str = ""
    order: list[str]
    answers: dict[str, Any] = field(default_factory=dict)
    games: list[PlayedGame] = field(default_factory=list)
    finished: bool = False


def read_record(path: Path) -> Record:
    """Read a participant's file; CheckpointError where it is damaged, or none of a study."""
    try:
        return convert(read_json(path), Record)
    except ValidationError as error:
        raise CheckpointError(f"{path} is no participant's data of a study: {error}") from None
