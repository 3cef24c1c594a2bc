"""Host: all games of a server, their visitors, and the answers to messages."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from magrounding.errors import MagroundingError
from magrounding.play.saved_games import EpisodeWriter, Header, SavedEpisode
from magrounding.play.web.frames import Sprites
from magrounding.play.web.limits import LONGEST_PACE, Bucket, Limits
from magrounding.play.web.messages import Create, Enter, Finish, Join, Leave, Message, Move, Proceed, Refusal, Restart
from magrounding.play.web.offers import Offers, Plan
from magrounding.play.web.replays import replay
from magrounding.play.web.room import Keep, Room
from magrounding.play.web.study import Participants
from magrounding.play.web.worker import Worker
from magrounding.storage import check_place, digest, json_text

_CODE_BYTES = 9
_WAITING_REPLAYS = 8

LOG = logging.getLogger(__name__)


class Guest:
    """A connection, as the host sees it; `send` puts a text into its queue."""

    def __init__(self, limits: Limits, send: Callable[[str], None]) -> None:
        self.room: Room | None = None
        self.new_games = Bucket(limits.new_games_per_second, limits.new_games_burst)
        self.send = send


class Keeper:
    """Writes games into a folder, a file for each environment, options and players; None keeps nothing.

    A folder in which no file can be written is a CheckpointError.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = Lock()
        self._writers: dict[str, EpisodeWriter] = {}
        if folder is not None:
            check_place(folder / "games.jsonl")

    def keep(self, header: Header, game: SavedEpisode) -> None:
        """Append a game; errors of the disk go to the log, and the players do not lose their game by them."""
        if self.folder is None:
            return
        kind = digest(asdict(header))
        path = self.folder / f"{header.env}-{kind[:8]}.jsonl"
        with self._lock:
            # A writer reads all games of its file when it begins: once for each file, not once for each game.
            writer = self._writers.pop(kind, None)
            try:
                if writer is None or not path.exists():
                    writer = EpisodeWriter(path, header)
                writer.write([game])
            except (OSError, MagroundingError) as error:  # a new writer will take away what was half written
                LOG.error("a game of %s is not kept: %s", header.env, error)
                return
            writer.episodes.clear()  # they are in the file
            self._writers[kind] = writer


class Host:
    """All games that go on. If a study is held, it has participants, and no other games are made.

    Attributes:
        rooms: by code.
    """

    def __init__(self, offers: Offers, keeper: Keeper | None = None, participants: Participants | None = None) -> None:
        self.offers, self.limits, self.sprites = offers, offers.limits, Sprites()
        self.rooms: dict[str, Room] = {}
        self._keeper, self.participants = keeper or Keeper(None), participants
        self._opening = 0
        self._replays = Worker(self.limits.patience)
        self._replaying = 0

    async def answer(self, guest: Guest, message: Message) -> dict[str, Any] | None:
        """Obey a message, and return the answer to its sender alone; Refusal if it is not obeyed."""
        if isinstance(message, Enter | Proceed | Finish):
            return await self._study(guest, message)
        if isinstance(message, Create):
            if self.participants is not None:
                raise Refusal("bad_game", "a study is held here: its games are made by it")
            if not guest.new_games.take():
                raise Refusal("too_fast")
            seed = secrets.randbelow(10_000) if message.seed is None else message.seed
            plan = self.offers.plan(message.env, message.options, message.players, seed)
            return {"type": "created", "code": await self.open(plan, message.pace, self._keeper.keep)}
        if isinstance(message, Join):
            self._join(guest, message)
            return None
        if isinstance(message, Leave):
            self.part(guest, for_good=True)
            return {"type": "left"}
        if guest.room is None:
            raise Refusal("not_joined")
        if isinstance(message, Move):
            guest.room.move(guest, message.agent, message.step, message.action)
        elif isinstance(message, Restart):
            guest.room.restart(guest, message.seed)
        else:
            guest.room.start(guest)
        return {"type": "taken"} if message.ref is not None else None

    async def open(self, plan: Plan, pace: float, keep: Keep, *, once: bool = False) -> str:
        """Make a planned game; its code. Refusal: "full", or "bad_game"."""
        if len(self.rooms) + self._opening >= self.limits.games:
            raise Refusal("full")
        code = secrets.token_urlsafe(_CODE_BYTES)
        room = Room(code, plan, pace, self.limits, self.sprites, keep, once=once)
        self._opening += 1
        try:
            await room.open()
        finally:
            self._opening -= 1
        self.rooms[code] = room
        return code

    def room(self, code: str) -> Room:
        """The game of a code; Refusal where there is none."""
        if code not in self.rooms:
            raise Refusal("no_game")
        return self.rooms[code]

    def part(self, guest: Guest, *, for_good: bool) -> None:
        room, guest.room = guest.room, None
        if room is not None:
            room.leave(guest, for_good=for_good)

    async def replay(self, data: bytes, number: int) -> str:
        """Replay one file after another, in a thread of their own (`replays.replay`)."""
        if self._replaying >= _WAITING_REPLAYS:
            raise Refusal("busy")
        self._replaying += 1
        try:
            return await self._replays.do(lambda: replay(data, number, self.offers, self.sprites))
        except Refusal as refusal:
            if refusal.code == "lost":
                self._replays = Worker(self.limits.patience)
            raise
        finally:
            self._replaying -= 1

    async def sweep(self, every: float = 20.0) -> None:
        """For ever: close games that have had no client for long."""
        while True:
            await asyncio.sleep(every)
            self.sweep_once()

    def sweep_once(self) -> None:
        before = time.monotonic() - self.limits.idle_seconds
        for code, room in list(self.rooms.items()):
            if not room.visitors and (room.lost or room.quiet_since <= before):
                del self.rooms[code]
                room.close()

    def close(self) -> None:
        for room in self.rooms.values():
            room.close()
        self.rooms.clear()
        self._replays.end()

    def offered(self) -> str:
        return json_text({"worlds": self.offers.listed(), "most_pace": LONGEST_PACE})

    async def _study(self, guest: Guest, message: Enter | Proceed | Finish) -> dict[str, Any]:
        participants = self.participants
        if participants is None:
            raise Refusal("unknown_type", "no study is held here")
        if isinstance(message, Enter):
            if not guest.new_games.take():
                raise Refusal("too_fast")
            return participants.enter(message.consent, message.answers)
        participant = participants.find(message.ticket)
        if isinstance(message, Finish):
            return participants.finish(participant, message.answers)
        async with participant.lock:
            condition = participants.proceed(participant, message.answers)
            going_on = participant.code in self.rooms and not self.rooms[participant.code].ended
            if condition is not None and not going_on:
                if not guest.new_games.take():
                    raise Refusal("too_fast")
                plan = participants.study.plan(self.offers, condition, participants.seed(participant))
                keep = participants.keeper(participant, condition)
                participant.code = await self.open(plan, participants.study.pace, keep, once=True)
        return participants.progress(participant, "" if condition is None else participant.code)

    def _join(self, guest: Guest, message: Join) -> None:
        room = self.room(message.code)
        if guest.room is not room:
            self.part(guest, for_good=False)
        answer = room.join(guest, message.agent, message.token)
        guest.room = room
        guest.send(json_text(answer))
        room.welcome(guest)
