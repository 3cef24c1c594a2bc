"""Host: all games of a server, their visitors, and the answers to messages."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from magrounding.errors import MagroundingError
from magrounding.extensions.people.web.addresses import Quota
from magrounding.extensions.people.web.frames import Sprites, about_game, history
from magrounding.extensions.people.web.limits import LONGEST_PACE
from magrounding.extensions.people.web.messages import (
    Create,
    Enter,
    Finish,
    Join,
    Leave,
    Message,
    Move,
    Proceed,
    Refusal,
    Restart,
    require,
)
from magrounding.extensions.people.web.offers import Offers, Plan
from magrounding.extensions.people.web.participants import Participants
from magrounding.extensions.people.web.room import Keep, Room
from magrounding.extensions.people.web.worker import Worker
from magrounding.owner import RunOwner
from magrounding.run_folder import RunFolder
from magrounding.storage import check_place, digest, json_text
from magrounding.teams.saved_games import EpisodeWriter, Header, SavedEpisode, parse_episodes
from magrounding.teams.session import Session

_CODE_BYTES = 9
_WAITING_REPLAYS = 8
_SWEEP_SECONDS = 20.0

_OTHERWISE = "the game goes another way now than when it was saved"
_NONSENSE = (TypeError, ValueError, ArithmeticError, LookupError)
"""Errors of impossible numbers that no check of an environment has refused."""

LOG = logging.getLogger(__name__)
T = TypeVar("T")


class Guest:
    """A connection, as the host sees it, with the quota of its address; `send` puts a text into its queue."""

    def __init__(self, quota: Quota, send: Callable[[str], None]) -> None:
        self.room: Room | None = None
        self.quota, self.send = quota, send

    def take_new_game(self) -> None:
        require(self.quota.new_games.take(), "too_fast")


class Keeper:
    """Writer of games into a folder, a file for each environment, options and players; None keeps nothing.

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
        self._replays, self._disk = Worker(self.limits.patience), Worker(self.limits.patience)
        self._replaying = 0
        self._owned = ExitStack()

    def open(self) -> None:
        """Take the folder into which is written; CheckpointError where another process has it, or its data are none."""
        folder = self._keeper.folder if self.participants is None else self.participants.folder
        if folder is not None:
            self._owned.enter_context(RunOwner(RunFolder(folder), "the server of the games"))
        if self.participants is not None:
            try:
                self.participants.load()
            except BaseException:  # a study that cannot go on gives its folder back
                self._owned.close()
                raise

    async def answer(self, guest: Guest, message: Message) -> dict[str, Any] | None:
        """Obey a message, and return the answer to its sender alone; Refusal if it is not obeyed."""
        if isinstance(message, Enter | Proceed | Finish):
            return await self._study(guest, message)
        if isinstance(message, Create):
            studied = self.participants is not None
            require(not studied, "bad_game", "a study is held here: its games are made by it")
            guest.take_new_game()
            seed = secrets.randbelow(10_000) if message.seed is None else message.seed
            plan = self.offers.plan(message.env, message.options, message.players, seed)
            code = await self.make(plan, message.pace, self._keeper.keep, guest.quota)
            return {"type": "created", "code": code}
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

    async def make(self, plan: Plan, pace: float, keep: Keep, quota: Quota, *, once: bool = False) -> str:
        """Make a planned game for an address; its code. Refusal: "quota", "full", or "bad_game".

        Where there is no room for one more, the oldest game without a move and without visitors gives way.
        """
        maker = quota.address
        own = [room for room in self.rooms.values() if room.maker == maker]
        require(len(own) < self.limits.address_people or self._drop_empty(own), "quota")
        require(len(self.rooms) < self.limits.games or self._drop_empty(self.rooms.values()), "full")
        code = secrets.token_urlsafe(_CODE_BYTES)
        room = Room(code, plan, pace, self.limits, self.sprites, keep, maker=maker, once=once)
        self.rooms[code] = room
        try:
            async with quota.making:
                await room.open()
        except BaseException:
            self._drop(room)
            raise
        return code

    def _drop_empty(self, rooms: Iterable[Room]) -> bool:
        """Close the oldest of these games without a move and without visitors; return False where there is none."""
        empty = [room for room in rooms if room.spare and not room.visitors]
        if not empty:
            return False
        self._drop(min(empty, key=lambda room: room.quiet_since))
        return True

    def _drop(self, room: Room) -> None:
        self.rooms.pop(room.code, None)
        room.close()

    def room(self, code: str) -> Room:
        """The game of a code; Refusal where there is none."""
        require(code in self.rooms, "no_game")
        return self.rooms[code]

    def part(self, guest: Guest, *, for_good: bool) -> None:
        room, guest.room = guest.room, None
        if room is not None:
            room.leave(guest, for_good=for_good)

    async def replay(self, data: bytes, number: int) -> str:
        """Replay one file after another, in a thread of their own (`replay`)."""
        require(self._replaying < _WAITING_REPLAYS, "busy")
        self._replaying += 1
        try:
            return await self._replays.do(lambda: replay(data, number, self.offers, self.sprites))
        except Refusal as refusal:
            if refusal.code == "lost":
                self._replays = Worker(self.limits.patience)
            raise
        finally:
            self._replaying -= 1

    async def sweep(self) -> None:
        """For ever: close games that have had no client for long, and store what the disk has refused."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.sweep_once()
            if self.participants is not None and self.participants.late:
                with suppress(Refusal):
                    await self._stored(self.participants.store_late)

    def sweep_once(self) -> None:
        before = time.monotonic() - self.limits.idle_seconds
        for room in list(self.rooms.values()):
            if not room.visitors and (room.lost or room.quiet_since <= before):
                self._drop(room)

    def close(self) -> None:
        for room in self.rooms.values():
            room.close()
        self.rooms.clear()
        self._replays.end()
        self._disk.end()
        if self.participants is not None:
            self.participants.close()
        self._owned.close()

    def offered(self) -> str:
        return json_text({"worlds": self.offers.listed(), "most_pace": LONGEST_PACE})

    async def _study(self, guest: Guest, message: Enter | Proceed | Finish) -> dict[str, Any]:
        participants = self.participants
        if participants is None:
            raise Refusal("unknown_type", "no study is held here")
        if isinstance(message, Enter):
            guest.take_new_game()
            require(guest.quota.participants.take(), "quota")
            try:
                return await self._stored(
                    partial(participants.enter, message.consent, message.answers, message.invitation)
                )
            except Refusal:
                guest.quota.participants.give_back()
                raise
        participant, answers = participants.find(message.ticket), message.answers
        if isinstance(message, Finish):
            return await self._stored(lambda: participants.finish(participant, answers or {}))
        async with participant.lock:
            condition = await self._stored(lambda: participants.proceed(participant, answers))
            going_on = participant.code in self.rooms and not self.rooms[participant.code].ended
            if condition is not None and not going_on:
                guest.take_new_game()
                plan = participants.study.plan(self.offers, condition, participants.seed(participant))
                keep = participants.keeper(participant, condition)
                pace = participants.study.pace
                participant.code = await self.make(plan, pace, keep, guest.quota, once=True)
        return participants.progress(participant, "" if condition is None else participant.code)

    async def _stored(self, step: Callable[[], T]) -> T:
        """Call what writes to the disk in a thread of its own: games do not wait for a disk that is slow."""
        try:
            return await self._disk.do(step)
        except Refusal as refusal:
            raise Refusal("not_stored") if refusal.code == "lost" else refusal from None

    def _join(self, guest: Guest, message: Join) -> None:
        room = self.room(message.code)
        if guest.room is not room:
            self.part(guest, for_good=False)
        answer = room.join(guest, message.agent, message.token)
        guest.room = room
        guest.send(json_text(answer))
        room.welcome(guest)


def replay(data: bytes, number: int, offers: Offers, sprites: Sprites) -> str:
    """Play a saved game that a client uploads again, move for move; return its frames as JSON. It counts from 0.

    Refusal "bad_file" for a file that is damaged or altered, and a game that goes another way now or is not offered.
    """
    try:
        header, games = parse_episodes(data, "the upload")
    except MagroundingError as error:
        raise Refusal("bad_file", str(error)) from None
    require(0 <= number < len(games), "bad_file", f"it has {len(games)} games, counted from 0")
    game, most = games[number], offers.limits.steps
    require(len(game.actions) <= most, "bad_file", f"a game of more than {most} steps is not shown")
    try:
        session = offers.replay(header, game.seed).make()
    except Refusal as refusal:
        raise Refusal("bad_file", str(refusal)) from None
    with closing(session):
        same = all(
            getattr(header, name) == getattr(session.header, name) for name in ("vocabulary", "agents", "actions")
        )
        require(same, "bad_file", "it had other words, moves or another number of agents than this world has now")
        require(_play(session, game) == game, "bad_file", _OTHERWISE)
        about = {**about_game(session, {}, header.players, ()), "games": len(games), "game": number}
        return json_text({"game": about, "frames": history(session, sprites)}, compact=True)


def _play(session: Session, game: SavedEpisode) -> SavedEpisode:
    try:
        for actions in game.actions:
            if session.now.over:
                break
            # Not by `choose`: agents may have made moves that were not legal, which do nothing.
            session.chosen = {agent: actions[agent] for agent in session.living}
            session.advance()
    except (MagroundingError, *_NONSENSE) as error:
        raise Refusal("bad_file", f"its moves cannot be played: {error}") from None
    require(session.now.over, "bad_file", _OTHERWISE)
    return session.saved()
