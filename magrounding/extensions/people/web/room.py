"""Room: one game and its clock; agents stand in for people who leave."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from magrounding.errors import InvalidAction, MagroundingError
from magrounding.extensions.people.web.assignments import Assignments, Visitor
from magrounding.extensions.people.web.frames import Sprites, about_game, frame, history, moves
from magrounding.extensions.people.web.limits import Limits
from magrounding.extensions.people.web.messages import CODES, Refusal, require
from magrounding.extensions.people.web.offers import Plan
from magrounding.extensions.people.web.worker import Worker
from magrounding.storage import json_text
from magrounding.teams.lineup import HUMAN
from magrounding.teams.saved_games import Header, SavedEpisode, to_text
from magrounding.teams.session import Session

AMONG_THEMSELVES = 0.5
"""Seconds between two steps in which no person moves."""
_NOTICE_AFTER = 0.2
"""Seconds of thinking after which people are notified of it."""

Keep = Callable[[Header, SavedEpisode], None]

LOG = logging.getLogger(__name__)


class Room:
    """One game and its visitors. All methods are called in the event loop; the game itself lives in a thread.

    Args:
        code: by which it is joined; hard to guess.
        plan, limits, sprites: the game, and what the server has.
        pace: seconds that people have for a move, after which their stand-ins move; 0: the game waits for all. Where
            only agents play, the seconds between two steps.
        maker: address whose share of games it belongs to.
        keep: called with every game that has ended, in the game's thread.
        once: the game is played once, and cannot be begun again.

    Attributes:
        lost: the simulator or an agent gave no answer: nothing goes on here.
        quiet_since: when the last visitor left.
    """

    def __init__(
        self,
        code: str,
        plan: Plan,
        pace: float,
        limits: Limits,
        sprites: Sprites,
        keep: Keep,
        *,
        maker: str,
        once: bool,
    ) -> None:
        self.code, self.plan, self.pace, self.maker = code, plan, pace, maker
        self.lost, self.quiet_since = False, time.monotonic()
        self._limits, self._sprites, self._keep, self._once = limits, sprites, keep, once
        self._worker = Worker(limits.patience)
        self._session: Session | None = None
        self._assignments = Assignments(plan.people, limits.hold_seconds)
        self._begun, self._busy, self._over = not plan.people, True, False
        self._stood_in: set[int] = set()
        self._step, self._frame, self._about = 0, {}, {}
        self._saved = ""
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0

    async def open(self) -> None:
        """Make the game; Refusal where none comes of it."""

        def make() -> None:
            self._session = self.plan.make()
            self._look()

        await self._worker.do(make)
        self._busy = False

    @property
    def session(self) -> Session:
        assert self._session is not None, "the room is open"
        return self._session

    @property
    def ended(self) -> bool:
        return self._over or self.lost

    @property
    def spare(self) -> bool:
        """True where no step was played yet, or none can be any more and nothing of it be saved."""
        return self.lost or (self._once and self._over) or not (self._step or self._busy)

    @property
    def visitors(self) -> list[Visitor]:
        return self._assignments.visitors

    @property
    def present(self) -> list[int]:
        return self._assignments.present

    def join(self, visitor: Visitor, agent: int | None, token: str | None) -> dict[str, Any]:
        """Assign an agent to a visitor and return the answer; Refusal "lost", or as of `Assignments.assign`."""
        require(not self.lost, "lost")
        agent, token, displaced = self._assignments.assign(visitor, agent, token)
        if displaced is not None:
            displaced.send(_text({"type": "displaced"}))
        self._begun = self._begun or self._assignments.complete
        mine = self._assignments.of(visitor)
        answer = {"type": "joined", "code": self.code, "agent": agent, "token": token, "mine": mine}
        return answer | {"game": self._about, "pace": self.pace, "standin": self.plan.standin}

    def welcome(self, visitor: Visitor) -> None:
        """Show the game to a visitor that has just joined, and send the others its news."""
        self._show(visitor)
        if self._saved:
            visitor.send(_text({"type": "saved"}))
        self._send_status()
        self._go_on()

    def leave(self, visitor: Visitor, *, for_good: bool) -> None:
        """Remove a visitor: its agents are free at once if it left for good, else kept for a while."""
        for agent in self._assignments.leave(visitor, for_good=for_good):
            if not self._busy:
                self.session.chosen.pop(agent, None)
        if not self.visitors:
            self.quiet_since = time.monotonic()
            self._stop_clock()
        self._send_status()
        self._go_on()

    def move(self, visitor: Visitor, agent: int, step: int, action: int) -> None:
        """Set the action of a person's agent; Refusal where the agent is another's, or not now."""
        require(agent in self._assignments.of(visitor), "not_your_agent")
        require(not self.lost, "lost")
        require(self._begun, "not_begun")
        require(not self._over, "game_over")
        require(step == self._step, "stale")
        require(not self._busy, "thinking")
        self.session.people = tuple(self.present)
        try:
            self.session.choose(agent, action)
        except InvalidAction as error:
            raise Refusal("illegal_move", str(error)) from None
        if not self._go_on():
            self._send_status()

    def start(self, visitor: Visitor) -> None:
        """Begin without those who are not here yet; their stand-ins play."""
        self._require_player(visitor)
        self._begun = True
        self._send_status()
        self._go_on()

    def restart(self, visitor: Visitor, seed: str) -> None:
        """Begin the same game again, or that of the next seed; while it goes on, only for a person who plays alone."""
        self._require_player(visitor)
        require(not self._once, "game_over" if self._over else "not_over", "this game is played once")
        require(self._over or self._assignments.of(visitor) == sorted(self.present), "not_over")
        require(not self._busy, "thinking")
        self._run(lambda: self._begin(self.session.seed + (seed == "next")))

    async def history(self) -> str:
        require(not self.lost, "lost")
        require(self._over or not self._frame.get("split"), "not_over", "all lines are shown after the game")
        return await self._worker.do(
            lambda: _text({"game": self._about, "frames": history(self.session, self._sprites, self.plan.hidden)})
        )

    def saved(self) -> str:
        """Return the content of a file of the game; Refusal before its end, or in a study."""
        require(not self._once, "no_page")
        require(self._saved, "not_over")
        return self._saved

    def close(self, code: str = "no_game") -> None:
        """End it all; visitors who are still here are given the reason."""
        self._stop_clock()
        if self._task is not None:
            self._task.cancel()
        self._broadcast({"type": "closed", "code": code, "sentence": CODES[code]})
        self._assignments.clear()
        self._worker.submit(self._close_session)  # also of a game that is made too late
        self._worker.end()

    def _close_session(self) -> None:
        """Let go of the game's simulator, if there is one; in the thread."""
        if self._session is not None:
            self._session.close()

    def _require_player(self, visitor: Visitor) -> None:
        require(not self.lost, "lost")
        require(self._assignments.of(visitor), "not_your_agent", "only those who play may do this")

    def _go_on(self) -> bool:
        """Let the game move if nothing keeps it waiting; return whether it does."""
        if self._busy or self.lost or self._over or not self._begun or not self.visitors:
            return False
        session, present = self.session, self.present
        if self.plan.people and not present:  # no person plays: it waits for one
            return False
        session.people = tuple(present)
        if session.waiting:
            self._start_clock(self.pace, self._move_on)
            return False
        if not session.chosen and not set(present) & set(session.living):
            self._start_clock(AMONG_THEMSELVES if self.plan.people else self.pace or AMONG_THEMSELVES, self._move_on)
            return False
        self._move_on()
        return True

    def _move_on(self) -> None:
        """Play a step; stand-ins move for people who have not chosen."""
        self._stop_clock()
        if not self._busy and not self._over and self.visitors:
            people = self.session.people = tuple(self.session.chosen)
            self._stood_in |= set(self.plan.people) & set(self.session.living) - set(people)
            self._run(self._advance)

    def _run(self, change: Callable[[], object]) -> None:
        """Change the game in its thread, then show it."""
        self._stop_clock()
        self._busy = True
        self._task = asyncio.get_running_loop().create_task(self._change(change))

    async def _change(self, change: Callable[[], object]) -> None:
        notice = asyncio.get_running_loop().call_later(_NOTICE_AFTER, self._send_status)
        try:
            await self._worker.do(change)
        except Exception as error:
            expected = isinstance(error, Refusal | MagroundingError)
            LOG.error("the game of %s is lost: %s", self.plan.env, error, exc_info=None if expected else error)
            self.lost = True
            self._broadcast({"type": "closed", "code": "lost", "sentence": CODES["lost"]})
            return
        finally:
            notice.cancel()
        self._busy = False
        for visitor in self.visitors:
            self._show(visitor)
        if self._over:
            self._broadcast({"type": "saved"})
        if not self._go_on():
            self._send_status()

    def _advance(self) -> None:
        """Play a step, in the thread."""
        if self.session.advance():
            self._look()

    def _begin(self, seed: int) -> None:
        """Begin a game, in the thread."""
        self._stood_in, self._saved = set(), ""
        self.session.begin(seed)
        self._look()

    def _look(self) -> None:
        """Write down what is to be shown, and keep a game that is over; in the thread."""
        session, view = self.session, self.session.now
        if not view.step:
            self._about = about_game(session, self.plan.shown, self.plan.names, self.plan.people)
        shown = {"type": "frame", "seed": session.seed, "moves": moves(session, self.plan.people)}
        self._frame = shown | frame(view, self._sprites, self.plan.hidden)
        self._step, self._over = view.step, view.over
        if view.over:
            header = replace(session.header, players=tuple(map(self._played_by, range(len(self.plan.players)))))
            game = session.saved()
            self._saved = to_text(header, [game])
            self._keep(header, game)

    def _show(self, visitor: Visitor) -> None:
        """Send a visitor the moment; until the end a split manual's own lines alone, which a study's watcher lacks."""
        shown, mine = self._frame, self._assignments.of(visitor)
        if (mine or self._once) and not self._over and shown.get("split"):
            shown = shown | {"manual": {agent: shown["manual"][agent] for agent in mine}}
        visitor.send(_text(shown))

    def _played_by(self, agent: int) -> str:
        """Return the name of an agent's player; a person's together with the stand-in's."""
        name = self.plan.players[agent]
        return f"{name}+{self.plan.standin}" if name == HUMAN and agent in self._stood_in else name

    def _send_status(self) -> None:
        """Send all visitors the people who are here, the agents that have chosen, and the clock."""
        left = round(max(0.0, self._deadline - time.monotonic()), 2) if self._timer is not None and self.pace else None
        self._broadcast(
            {
                "type": "status",
                "present": self.present,
                "chosen": [] if self._busy else sorted(self.session.chosen),
                "begun": self._begun,
                "thinking": self._busy,
                "clock": left,
                "watching": len(self._assignments.watchers),
            }
        )

    def _broadcast(self, message: dict[str, Any]) -> None:
        text = _text(message)
        for visitor in self.visitors:
            visitor.send(text)

    def _start_clock(self, seconds: float, then: Callable[[], None]) -> None:
        if seconds and self._timer is None:
            self._deadline = time.monotonic() + seconds
            self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _text(message: dict[str, Any]) -> str:
    return json_text(message, compact=True)
