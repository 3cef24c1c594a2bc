"""Session: one episode that people and agents play together, independent of its display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from magrounding.agents.policy import ATTENTION, MARKS
from magrounding.brief import brief
from magrounding.envs.make import make, make_vec
from magrounding.envs.render import Scene
from magrounding.errors import InvalidAction
from magrounding.spec import SCENE, Directions
from magrounding.teams.episodes import Episodes
from magrounding.teams.evaluate import GREEDY, SAMPLED
from magrounding.teams.lineup import Lineup
from magrounding.teams.saved_games import Header, Recorder, SavedEpisode, SavedLineup
from magrounding.text_view import MANUAL, MOVES, TOLD_BY, Sections, action_name, find_text_view
from magrounding.vector import Observation, observation_of
from magrounding.vocabulary import plain_text


class Move(NamedTuple):
    """A legal action: its number, and its name as of `text_view.action_name`."""

    action: int
    name: str


class Statement(NamedTuple):
    """A statement that an agent reads: its row of the manual, its words, and where it is from, see `TOLD_BY`."""

    row: int
    words: str
    told_by: int


@dataclass(frozen=True)
class View:
    """An episode at one moment, as people see it.

    Attributes:
        step: number of steps that have been played.
        words: agent → the sections of what it sees, see `text_view.TextView`, without what has happened and the names
            of its moves; at the end, of the last that it saw.
        last: each agent's action in the step before, and its effect.
        over, won: whether the episode has ended, and how.
        score: of the episode so far.
        statements: agent → those of its manual, in their order; none without a manual.
        attention: agent → its network's weights of the statements in the coming choice, see `agents.policy.ATTENTION`;
            None for an agent that does not act, or whose player does not report them.
        scene: facts for drawing; None where there are none.
        claims: agent → [H, W] int8, see `agents.policy.MARKS`; for living agents whose networks divide.
    """

    __repr__ = brief

    step: int
    words: Mapping[int, Sections]
    last: tuple[str, ...]
    over: bool
    won: bool
    score: float
    statements: Mapping[int, tuple[Statement, ...]]
    attention: Mapping[int, tuple[float, ...] | None]
    scene: Scene | None = None
    claims: Mapping[int, np.ndarray] = field(default_factory=dict)


class Session:
    """An episode of people and actors; it moves when all have chosen.

    Args:
        env, options: environment id and its options.
        lineup: the players; people choose by `choose`.
        seed: of the episode.
        greedy: trained agents take the most likely action instead of drawing one.

    Attributes:
        views: all moments of the episode, the last being the present.
        header: of the files that keep its episodes.
        people: agents that people move; may change at any time, the line-up's actors move the others.
        chosen: agent → its person's action for the coming step.

    Raises:
        ConfigurationError: options of no environment, or a player that cannot act in it.
        CheckpointError: no trained team where one was named, or a saved episode that goes another way now.
    """

    def __init__(
        self, env: str, options: Mapping[str, Any], lineup: Lineup | SavedLineup, seed: int = 0, greedy: bool = True
    ) -> None:
        self.vec = make_vec(env, 1, **options)
        # The batch begins anew in the step that ends a game; a single env of the same seed still shows the end.
        self._shown: Any = make(env, **options)
        self.lineup, self.seed = lineup, seed
        self.people = lineup.people
        self._greedy = greedy
        self.header = Header.of(self.vec, list(map(str, lineup.players)), GREEDY if greedy else SAMPLED)
        self.views: list[View] = []
        self.chosen: dict[int, int] = {}
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Start the episode of a seed; the one before goes on if a player refuses, with the errors of the class."""
        self._actor: Any = self.lineup.build_actor(self.vec, seed)
        self.seed, self.chosen = seed, {}
        self._recorder = Recorder(1, self.vec.spec)
        self._game = Episodes(self._actor, self.vec, 1, seed, self._greedy, draw_seed=seed, explain=True)
        self._shown.reset(seed=seed)
        self.views = []
        self._think()
        self.views.append(self._look(()))

    @property
    def now(self) -> View:
        """The present."""
        return self.views[-1]

    @property
    def _over(self) -> bool:
        return not self._game.rows.size

    @property
    def living(self) -> list[int]:
        """Agents that act in the coming step; none at the end."""
        return [] if self._over else np.flatnonzero(self._game.info.alive[0]).tolist()

    @property
    def waiting(self) -> list[int]:
        """Agents whose people have not chosen yet."""
        return [agent for agent in self.living if agent in self.people and agent not in self.chosen]

    def moves(self, agent: int) -> list[Move]:
        """Return the legal actions of an agent."""
        legal = np.flatnonzero(self._game.obs["action_mask"][0, agent]).tolist()
        return [Move(action, self._name(agent, action)) for action in legal]

    def choose(self, agent: int, action: int) -> None:
        """Set a person's action, which can be changed until the episode moves.

        An agent that is no person's or does not act, or a move that is not legal, is an InvalidAction.
        """
        if agent not in self.people or agent not in self.living:
            waiting = ", ".join(map(self._called, self.waiting)) or "no player"
            raise InvalidAction(f"{self._called(agent)} is not for a person to move now; waiting: {waiting}")
        able = {move.action: repr(move.name) for move in self.moves(agent)}
        if action not in able:
            what = self._name(agent, action) if 0 <= action < self.vec.spec.num_actions else action
            raise InvalidAction(f"{self._called(agent)} cannot do {what!r} now; it can do {', '.join(able.values())}")
        self.chosen[agent] = action

    def advance(self) -> bool:
        """Play a step if all people have chosen; return whether it did."""
        if self._over or self.waiting:
            return False
        self._recorder.observe(self._game.obs, self._game.info)
        actions = np.where(self._game.info.alive, self._planned, 0)
        for agent, action in self.chosen.items():
            actions[0, agent] = action
        living, self.chosen = self.living, {}
        done = [f"agent {agent}: {self._name(agent, int(actions[0, agent]))}" for agent in living]
        self._shown.step({self._shown.possible_agents[agent]: int(actions[0, agent]) for agent in living})
        self._game.play(actions)
        if hasattr(self._actor, "set_last_actions"):  # people may have done something else than their stand-ins thought
            self._actor.set_last_actions(self._game.memory, actions)
        rewards, info = self._game.rewards, self._game.info
        self._recorder.record(actions, self._game.truncated, info)
        for k, agent in enumerate(living):
            done[k] += ", which it could not" if info.illegal[0, agent] else ""
            done[k] += f", reward {rewards[0, agent]:+.2f}" if rewards[0, agent] else ""
        self._think()
        self.views.append(self._look(tuple(done)))
        return True

    def saved(self) -> SavedEpisode:
        """Return the episode for a file; call it when it is over."""
        return self._recorder.episode(0, self.seed)

    def close(self) -> None:
        """Close the envs."""
        self.vec.close()
        self._shown.close()

    def _think(self) -> None:
        """Let the actors choose for the coming step before people do, so that their attention can be shown."""
        if not self._over:
            self._planned = self._game.choose()

    def _look(self, last: tuple[str, ...]) -> View:
        info, shown = self._game.info, self._shown
        explains = getattr(self._actor, "explains", False) and not self._over
        reports = self._actor.aux(self._game.memory) if explains else [{}] * self.vec.num_agents
        claims = {agent: reports[agent][MARKS][0] for agent in self.living if MARKS in reports[agent]}
        won, score = bool(info.won[0]) and self._over, float(info.score[0])
        statements, attention = self._attend(reports)
        scene = None
        if SCENE in shown.spec.capabilities:
            scene = shown.scene()
        return View(len(self.views), self._say(), last, self._over, won, score, statements, attention, scene, claims)

    def _say(self) -> dict[int, Sections]:
        """Return what each agent sees, in words; of a game that is over, from the last observations."""
        spec = self.vec.spec
        view = find_text_view(self.vec.id, spec)
        words = {}
        for agent in range(self.vec.num_agents):
            words[agent] = view.sections(self._seen(agent))
            if not isinstance(spec.actions, Directions):  # whose names do not say where they lead
                del words[agent][MOVES]
        return words

    def _attend(
        self, reports: Sequence[Mapping[str, np.ndarray]]
    ) -> tuple[dict[int, tuple[Statement, ...]], dict[int, tuple[float, ...] | None]]:
        spec, statements = self.vec.spec, dict[int, tuple[Statement, ...]]()
        attention = dict[int, tuple[float, ...] | None].fromkeys(range(self.vec.num_agents))
        if MANUAL not in spec or len(spec[MANUAL].shape) < 2:
            return statements, attention
        for agent in attention:
            seen = self._seen(agent)
            rows = seen[MANUAL]
            told_by = seen.get(TOLD_BY, np.zeros(len(rows), int)).tolist()
            written = np.flatnonzero(rows.any(1)).tolist()
            words = [plain_text(spec.words, rows[k].tolist()) for k in written]
            statements[agent] = tuple(map(Statement, written, words, (told_by[k] for k in written)))
            if ATTENTION in reports[agent] and agent in self.living:
                attention[agent] = tuple(reports[agent][ATTENTION][0][written].tolist())
        return statements, attention

    def _seen(self, agent: int) -> Observation:
        """Return what an agent sees; of a game that is over, the last that it saw: the batch has begun anew."""
        seen = self._game.info.final_observation if self._over else self._game.obs
        return observation_of(self.vec.spec, seen, 0, agent)

    def _called(self, agent: int) -> str:
        """Return the name of an agent as people read it; the number of one that there is not."""
        names = self._shown.possible_agents
        return str(names[agent]).replace("_", " ") if 0 <= agent < len(names) else f"agent {agent}"

    def _name(self, agent: int, action: int) -> str:
        return action_name(self.vec.spec, self._seen(agent), action)
