"""Session: one game that people and agents play together, whatever shows it to the people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from magrounding.agents.policy import MARKS, RELIANCE
from magrounding.brief import brief
from magrounding.envs.make import make, make_vec
from magrounding.envs.parallel import WorldEnv
from magrounding.envs.render import Scene
from magrounding.errors import ConfigurationError, InvalidAction
from magrounding.play.action_names import action_name
from magrounding.play.episodes import Episodes
from magrounding.play.evaluate import GREEDY, SAMPLED
from magrounding.play.lineup import Lineup
from magrounding.play.saved_games import Header, SavedGame, SavedLineup, Tape
from magrounding.single.tokenizer import plain_text
from magrounding.spec import SCENE

MANUAL = "manual"
"""The field whose rows are statements."""


@dataclass(frozen=True)
class Move:
    """What an agent can do now.

    Attributes:
        action: its number.
        name: its name, or the words of the choice.
    """

    __repr__ = brief

    action: int
    name: str


@dataclass(frozen=True)
class View:
    """A game at one moment, as people see it.

    Attributes:
        step: how many steps have been played.
        picture: the game as text.
        last: what each agent did in the step before, and what came of it.
        over, won: whether the game has ended, and how.
        score: of the episode so far.
        statements: what the manual says, statement by statement, in the order in which the picture has them; none in a
            world without a manual.
        reliance: agent → how much its network relies on each of the statements in the choice that it is about to make,
            numbers that are not negative and add up to 1, or are all 0 where nothing in sight asks (see
            `agents.policy.RELIANCE`). None for an agent whose network has none to tell, that no network plays, or that
            does not act.
        scene: the game as facts, for who draws it; None in a world that offers none.
        claims: agent → [H, W] int8, the cells that it takes for itself (1) and leaves to others (0), −1 where nothing
            is; for living agents whose networks divide (see `agents.policy.MARKS`).
    """

    __repr__ = brief

    step: int
    picture: str
    last: tuple[str, ...]
    over: bool
    won: bool
    score: float
    statements: tuple[str, ...]
    reliance: Mapping[int, tuple[float, ...] | None]
    scene: Scene | None = None
    claims: Mapping[int, np.ndarray] = field(default_factory=dict)


class Session:
    """A game with people in some seats and actors in the others; it moves when all have chosen.

    Args:
        env, options: environment id and its options.
        lineup: who plays; its people choose by `choose`. Those of a file of saved games do again what they did.
        seed: of the game.
        greedy: trained agents take the most likely action instead of drawing one.

    Attributes:
        views: all moments of the game, the last being the present.
        header: of the files that keep its games.
        people: agents whom people move; may change while the game goes on, the line-up's actors move the others.
        chosen: agent → what its person has chosen for the step to come.

    Raises:
        ConfigurationError: options that make no game, or a player that cannot play it.
    """

    def __init__(
        self,
        env: str,
        options: Mapping[str, Any],
        lineup: Lineup | SavedLineup,
        seed: int = 0,
        greedy: bool = True,
    ) -> None:
        self.vec = make_vec(env, 1, **options)
        # The batch begins anew in the step that ends a game; a single env of the same seed still shows the end.
        self._shown: Any = make(env, render_mode="ansi", **options)
        self.lineup, self.seed = lineup, seed
        self.people = lineup.people
        self._greedy = greedy
        self.header = Header.of(self.vec, [str(seat) for seat in lineup.seats], GREEDY if greedy else SAMPLED)
        self.views: list[View] = []
        self.chosen: dict[int, int] = {}
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Start the game of a seed afresh; the game goes on where it was if a player refuses."""
        self._actor: Any = self.lineup.sit(self.vec, seed)
        self.seed, self.chosen = seed, {}
        self._tape = Tape(1, self.vec.spec)
        self._game = Episodes(self._actor, self.vec, 1, seed, self._greedy, draw_seed=seed, explain=True)
        self._shown.reset(seed=seed)
        self.views = []
        self._think()
        self.views.append(self._look(()))

    @property
    def now(self) -> View:
        return self.views[-1]

    @property
    def _over(self) -> bool:
        return not self._game.rows.size

    @property
    def living(self) -> list[int]:
        """Agents that act in the step to come; none once the game is over."""
        return [] if self._over else np.flatnonzero(self._game.info.alive[0]).tolist()

    @property
    def waiting(self) -> list[int]:
        """Agents whose people have not chosen yet."""
        return [agent for agent in self.living if agent in self.people and agent not in self.chosen]

    def moves(self, agent: int) -> list[Move]:
        """What an agent can do now, by number."""
        mask = self._game.obs["action_mask"][0, agent]
        return [Move(int(action), self._name(agent, int(action))) for action in np.flatnonzero(mask)]

    def choose(self, agent: int, action: int) -> None:
        """What a person's agent shall do; it can be changed until the game moves.

        Raises:
            InvalidAction: an agent that is no person's or does not act, or a move that is not legal.
        """
        if agent not in self.people or agent not in self.living:
            waiting = ", ".join(map(self._called, self.waiting)) or "nobody"
            raise InvalidAction(f"{self._called(agent)} is not for a person to move now; waiting: {waiting}")
        legal = self._game.obs["action_mask"][0, agent]
        if not 0 <= action < len(legal) or not legal[action]:
            what = repr(self._name(agent, action)) if 0 <= action < len(legal) else repr(action)
            able = ", ".join(repr(move.name) for move in self.moves(agent))
            raise InvalidAction(f"{self._called(agent)} cannot do {what} now; it can do {able}")
        self.chosen[agent] = action

    def advance(self) -> bool:
        """Play a step if all people have chosen; whether it did."""
        if self._over or self.waiting:
            return False
        self._tape.see(self._game.obs, self._game.info)
        actions = np.where(self._game.info.alive, self._planned, 0)
        for agent, action in self.chosen.items():
            actions[0, agent] = action
        done = [f"agent {agent}: {self._name(agent, int(actions[0, agent]))}" for agent in self.living]
        living, self.chosen = self.living, {}
        self._shown.step({self._shown.possible_agents[agent]: int(actions[0, agent]) for agent in living})
        self._game.play(actions)
        if hasattr(self._actor, "set_last_actions"):  # people may have done something else than their stand-ins thought
            self._actor.set_last_actions(self._game.memory, actions)
        rewards, info = self._game.rewards, self._game.info
        self._tape.played(actions, self._game.truncated, info)
        for k, agent in enumerate(living):
            blocked = ", which it could not" if info.illegal[0, agent] else ""
            paid = f", reward {rewards[0, agent]:+.2f}" if rewards[0, agent] else ""
            done[k] += blocked + paid
        self._think()
        self.views.append(self._look(tuple(done)))
        return True

    def saved(self) -> SavedGame:
        """The game as a file keeps it; ConfigurationError before its end."""
        if not self._over:
            raise ConfigurationError("a game is saved when it is over")
        return self._tape.game(0, self.seed)

    def close(self) -> None:
        """Let the game go."""
        self.vec.close()
        self._shown.close()

    def _think(self) -> None:
        """Let the actors choose for the step to come, before people do: so it can be shown what they rely on."""
        if not self._over:
            self._planned = self._game.choose()

    def _look(self, last: tuple[str, ...]) -> View:
        """The present."""
        won, score = bool(self._game.info.won[0]) and self._over, float(self._game.info.score[0])
        aux, (statements, reliance) = [] if self._over else self._aux(), self._rely()
        claims = {agent: aux[agent][MARKS][0] for agent in self.living if MARKS in aux[agent]}
        shows_claims = claims and isinstance(self._shown, WorldEnv)
        picture = self._shown.render(marks=self._claimed(claims)) if shows_claims else self._shown.render()
        return View(
            len(self.views), str(picture), last, self._over, won, score, statements, reliance, self._scene(), claims
        )

    def _claimed(self, claims: Mapping[int, np.ndarray]) -> np.ndarray:
        """[n, H, W] int8 of `View.claims`; who has none claims nothing."""
        nothing = np.full_like(next(iter(claims.values())), -1)
        return np.stack([claims.get(agent, nothing) for agent in range(self.vec.num_agents)])

    def _scene(self) -> Scene | None:
        """The present as facts; a simulator of one game shows its own, a world that of its only row."""
        if SCENE not in self._shown.spec.capabilities:
            return None
        world = getattr(self._shown, "world", None)
        return self._shown.scene() if world is None else world.scene(0)

    def _aux(self) -> list[dict[str, np.ndarray]]:
        """What each agent's network reports of the choice to come."""
        explains = getattr(self._actor, "explains", False)
        return self._actor.aux(self._game.memory) if explains else [{}] * self.vec.num_agents

    def _rely(self) -> tuple[tuple[str, ...], dict[int, tuple[float, ...] | None]]:
        """`View.statements` and `View.reliance` of the present."""
        agents = range(self.vec.num_agents)
        spec = self.vec.spec
        if MANUAL not in spec.shared_texts or spec[MANUAL].shape[1:] == () or self._over:
            # The batch has begun anew where the game is over: it still says what the game's last moment did.
            return self.views[-1].statements if self.views else (), dict.fromkeys(agents)
        rows = self._game.obs[MANUAL][0]
        written = rows.any(1)
        aux = self._aux()
        reliance = {
            agent: tuple(aux[agent][RELIANCE][0][written].tolist())
            if agent in self.living and RELIANCE in aux[agent]
            else None
            for agent in agents
        }
        return tuple(plain_text(spec.words, row.tolist()) for row in rows[written]), reliance

    def _called(self, agent: int) -> str:
        """What the game calls an agent, as people read it; the number of one that there is not."""
        names = self._shown.possible_agents
        return str(names[agent]).replace("_", " ") if 0 <= agent < len(names) else f"agent {agent}"

    def _name(self, agent: int, action: int) -> str:
        return action_name(self.vec.spec, self._game.obs, 0, agent, action)
