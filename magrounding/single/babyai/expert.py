"""Expert: minigrid's bot, made safe to ask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.utils.baby_ai_bot import BabyAIBot

from magrounding.single.babyai.options import ACTIONS

MAX_SUBGOALS = 200
"""Subgoals that the bot may add to its plan in one step; where it works it adds ten at most."""

MAX_PLAN = 500
"""Subgoals of a plan: each costs time in every step."""

_DONE = ACTIONS.index("done")
_Cell = tuple[int, int]
Remember = Callable[[np.ndarray], None]
"""Marks in an array [columns, rows] bool what the agent sees now."""


class PlanOverflow(Exception):
    """The bot plans in circles."""


class Plan(list):
    """The bot's stack of subgoals, which refuses to be added to without end.

    A question that never returns adds subgoals for ever, as whatever only takes them away comes to an end. So a limit
    on what is added ends every question, after the same subgoal each time.

    Attributes:
        added: subgoals added since the last question.
    """

    added = 0

    def append(self, subgoal: Any) -> None:
        """Add a subgoal; PlanOverflow past a limit."""
        self.added += 1
        if self.added > MAX_SUBGOALS or len(self) >= MAX_PLAN:
            raise PlanOverflow(f"{self.added} subgoals added in one step to a plan that has {len(self)} now")
        super().append(subgoal)


class SwiftBot(BabyAIBot):
    """The bot with the view that has been computed already, and a search over a queue: the same answers, sooner."""

    def __init__(self, game: RoomGridLevel, remember: Remember) -> None:
        self._remember = remember
        super().__init__(game)

    def _process_obs(self) -> None:
        self._remember(self.vis_mask)

    def _breadth_first_search(
        self, initial_states: list[Any], accept_fn: Callable[[_Cell, Any], Any], ignore_blockers: bool
    ) -> Any:
        """Minigrid's search: the states in the same order, less those that it would skip."""
        self.bfs_counter += 1
        grid, known = self.mission.unwrapped.grid, self.vis_mask.tolist()
        cells, width = grid.grid, grid.width
        queue: deque[Any] = deque((*map(int, state), None) for state in initial_states)
        reached: dict[_Cell, _Cell | None] = {}
        while queue:
            i, j, di, dj, origin = queue.popleft()
            here = (i, j)
            if here in reached:
                continue
            self.bfs_step_counter += 1
            cell = cells[j * width + i]
            reached[here] = origin
            if accept_fn(here, cell):
                path, back = [], here
                while back:
                    path.append(back)
                    back = reached[back]
                return path, here, reached
            if not known[i][j]:
                continue
            if cell:
                if cell.type == "wall":
                    continue
                if cell.type == "door":
                    if not cell.is_open:
                        continue
                elif not ignore_blockers:
                    continue
            for k, m in ((di, dj), (dj, di), (-dj, -di), (-di, -dj)):
                following = (i + k, j + m)
                if following not in reached:
                    queue.append((*following, k, m, here))
        return None, None, reached


class Expert:
    """The bot's advice in one episode.

    It has failed, and says nothing any more, once its plan grows without end, it breaks (its assumptions are Python
    assertions, and it knows no way after a box has been opened), or it believes to be done while the game goes on. An
    expert that goes round in circles from step to step is stopped by the game's limit.

    Args:
        game: as it stands; what has been done of the mission before is not known to the bot.
        remember: what it sees; None: the bot computes everything by itself.

    Attributes:
        failed: whether it has.
    """

    def __init__(self, game: RoomGridLevel, remember: Remember | None) -> None:
        self.failed = False
        self._bot = BabyAIBot(game) if remember is None else SwiftBot(game, remember)
        self._bot.stack = self._plan = Plan(self._bot.stack)
        self._action = _DONE
        self.follow(None)

    def follow(self, action: int | None) -> None:
        """Plan anew after `action` has been played; None: at first."""
        if self.failed:
            return
        self._plan.added = 0
        try:
            planned: Any = self._bot.replan(action)
            self._action = int(planned)
        except Exception:  # the bot breaks in many ways, none of which is the player's fault
            self.failed = True
        else:
            self.failed = self._action == _DONE

    def labels(self) -> np.ndarray:
        """[1, 7] bool: the action to play; all of them once it has failed, from which there is nothing to learn."""
        labels = np.full((1, len(ACTIONS)), self.failed)
        if not self.failed:
            labels[0, self._action] = True
        return labels
