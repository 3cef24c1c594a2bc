"""Evaluation: play a fixed number of games, the same for every team, and collect the results.

Games are chosen before they are played, since the first games to end in a batch would be a biased sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from magrounding.brief import brief
from magrounding.capabilities import HasFacts, find_capability
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError, check_choice
from magrounding.registry import env_entry
from magrounding.teams.actor import Actor, begin_memory
from magrounding.teams.diagnosis import Diagnosis
from magrounding.teams.episodes import Episodes
from magrounding.vector import Observation, VectorEnv, check_count

REPORT_SEED = 2**40
"""Seed of the first row in reported evaluations; training never comes near it."""
SELECTION_SEED = 2**41
"""Seed of the first row where a phase's best weights are selected: other games, so that reports are not biased.

Worlds with a list of scenes, routes or variations draw from it with replacement, so there both have some in common."""

GREEDY, SAMPLED = PLAYS = ("greedy", "sampled")
"""Ways of playing, as metrics and reports call them: the most likely action, or one drawn from the policy."""
TRUE_MANUAL, REASSIGNED, OTHER_GAME = "true", "reassigned", "of another game"
LINES = OTHER_LINES, MUTED = "another game's lines", "muted"
MANUALS = TRUE_MANUAL, REASSIGNED, OTHER_GAME, *LINES
"""Manuals that agents read: the true one, one of the same words with other assignments, or another game's. Where agents
tell what they read, LINES are what others hear: statements of another game, or none."""
_CHANGED = {REASSIGNED: {"manual": "reassigned"}, OTHER_LINES: {"heard": "another"}, MUTED: {"heard": "none"}}
"""Options of games with such a manual."""

FAULTS = "faults"
"""Entry of summaries, if not 0: number of games that a fault of their simulator ended."""

ProgressCallback = Callable[[int], object]
"""Callback that gets the number of finished games each time that it grows."""


@dataclass(frozen=True)
class Evaluation:
    """Results of E games, ordered by row and, within a row, by time.

    Attributes:
        won: [E] bool.
        length: [E] int32 steps.
        returns: [E, n] float32 undiscounted sums of rewards.
        score: [E] float32.
        timed_out: [E] bool, ended by the time limit.
        diagnosis: metrics of how they were played, see `Diagnosis.metrics`; empty without `diagnose`.
        fact_accuracy: share of the facts in the texts of each row's first game that the team reads correctly; None
            where the world or the team reports no facts.
        faults: number of the E games that ended because their simulator died or hung; they count as not won.
    """

    __repr__ = brief

    won: np.ndarray
    length: np.ndarray
    returns: np.ndarray
    score: np.ndarray
    timed_out: np.ndarray
    diagnosis: dict[str, float] = field(default_factory=dict)
    fact_accuracy: float | None = None
    faults: int = 0

    def summary(self) -> dict[str, float]:
        """Plain numbers for logs and tables.

        `steps_to_win` is there only if a game was won, FAULTS if there were faults, and `score_std`, the standard
        deviation over games, if there are two.
        """
        return {
            "games": len(self.won),
            "win_rate": float(self.won.mean()),
            "length": float(self.length.mean()),
            "return": float(self.returns.mean()),
            "score": float(self.score.mean()),
            **({"score_std": float(self.score.std(ddof=1))} if len(self.score) > 1 else {}),
            "timed_out": float(self.timed_out.mean()),
            **({} if self.fact_accuracy is None else {"fact_accuracy": self.fact_accuracy}),
            **self.diagnosis,
            **({FAULTS: self.faults} if self.faults else {}),
            **({"steps_to_win": float(self.length[self.won].mean())} if self.won.any() else {}),
        }


def evaluate(
    team: Actor | Callable[[VectorEnv], Actor],
    env: str | Game,
    options: Mapping[str, Any],
    episodes: int,
    seed: int = REPORT_SEED,
    num_envs: int | None = None,
    greedy: bool = True,
    manual: str = TRUE_MANUAL,
    num_threads: int = 1,
    workers: int | str = 0,
    diagnose: bool = False,
    on_progress: ProgressCallback = lambda finished: None,
) -> Evaluation:
    """Let a team play, and return the results of a fixed number of games of every row.

    Short games end sooner, so the first E games to end of a batch are too short and, where losing is quick, too often
    lost. Here row b plays a quota of games fixed beforehand. With a row for each game (the default) every team meets
    the very same games.

    Args:
        team: the players; or a function that makes them of the vector env (an oracle reads the world's state).
        env, options: environment id and its options; or games, and what is different in their options.
        episodes: E.
        seed: row b plays seed + b.
        num_envs: rows; by default one for each game, but no more than `EvaluationPlan.max_envs`.
        greedy: most likely actions instead of drawn ones; draws are decided by the team's own seed.
        manual: one of MANUALS. A team that wins as often with a wrong manual does not read.
        num_threads, workers: threads or processes of the simulator.
        diagnose: also collect the metrics of `Diagnosis`, which takes longer.
        on_progress: see `ProgressCallback`.

    Raises:
        ConfigurationError: fewer than one game, an unknown manual, bad options, or what is no team.
    """
    check_choice("manual", manual, MANUALS)
    if not callable(on_progress):
        raise ConfigurationError(f"on_progress is a function of a number of games, got {on_progress!r}")
    episodes = check_count("the number of games to evaluate", episodes, 1)
    num_envs = None if num_envs is None else check_count("num_envs", num_envs, 1)
    games = env.but(**options) if isinstance(env, Game) else Game.of(env, options)
    plan = env_entry(games.id).evaluation
    rows = min(num_envs or plan.max_envs or episodes, episodes)
    games = games.but(**_CHANGED.get(manual, {}))
    with closing(games.make_vec(rows, num_threads=num_threads, workers=workers)) as vec:
        actor = team(vec) if callable(team) else team
        actor = getattr(actor, "for_games", lambda games: actor)(vec)
        if not callable(getattr(actor, "act", None)):
            raise ConfigurationError(f"a team has a method `act`, or is a function that makes one, got {actor!r}")
        actor = ShuffledManuals(actor, plan.rules_text) if manual == OTHER_GAME else actor
        return play(actor, vec, episodes, seed, greedy, Diagnosis(vec, actor) if diagnose else None, on_progress)


def play(
    team: Actor,
    vec: VectorEnv,
    episodes: int,
    seed: int,
    greedy: bool = True,
    diagnosis: Diagnosis | None = None,
    on_progress: ProgressCallback = lambda finished: None,
) -> Evaluation:
    """Play `episodes` games on a vector env, the first rows taking one more where they do not divide evenly."""
    won, timed_out = np.zeros(episodes, np.bool_), np.zeros(episodes, np.bool_)
    length, score = np.zeros(episodes, np.int32), np.zeros(episodes, np.float32)
    returns = np.zeros((episodes, vec.num_agents), np.float32)
    faults = 0
    games = Episodes(team, vec, episodes, seed, greedy, explain=diagnosis is not None)
    accuracy = fact_accuracy(team, vec, games.obs)
    while (open_rows := games.rows).size:
        actions = games.choose()
        if diagnosis is not None:
            diagnosis.chosen(open_rows, games.obs, games.info.alive, actions, games.memory)
        ended, at = games.play(actions)
        info = games.info
        if diagnosis is not None:
            diagnosis.played(open_rows, games.obs, info)
        won[at], length[at], returns[at] = info.won[ended], info.length[ended], info.returns[ended]
        score[at] = info.score[ended]
        timed_out[at] = games.truncated[ended].any(axis=1)
        faults += int(info.lost[ended].sum())
        if ended.size:
            on_progress(games.finished)
    metrics = {} if diagnosis is None else diagnosis.metrics()
    return Evaluation(won, length, returns, score, timed_out, metrics, accuracy, faults)


def fact_accuracy(team: Actor, vec: VectorEnv, obs: Observation) -> float | None:
    """Return the share of the facts in observed texts that a team reads correctly; None where either reports none."""
    relate = getattr(team, "relate_words", None)
    if relate is None:
        return None
    games = find_capability(vec, HasFacts)
    return None if games is None else games.fact_accuracy(partial(relate, obs))


_ODD = 0x1E37_79B9_7F4A_7C15
_POSITIVE = np.iinfo(np.int64).max


def other_document(keys: np.ndarray, manuals: np.ndarray) -> np.ndarray:
    """Return keys [B] of documents that have the manuals of others, given their own keys and the others' [B].

    They are not negative, as those of any text; sums wrap around. A change of one of the two always changes them, since
    _ODD is odd.
    """
    return (keys * _ODD + manuals) & _POSITIVE


class ShuffledManuals:
    """A team to which game b of a vector env shows the rules of game b + 1 (the last one those of the first).

    Everything else is the game's own. By chance the other text may agree with the game. It changes when the other game
    restarts, even in the middle of an episode. `text` is the field that states the rules.
    """

    draws = True

    def __init__(self, team: Actor, text: str = "manual") -> None:
        self._team, self._text = team, text
        self.accepts_rows = bool(getattr(team, "accepts_rows", False))

    def initial_memory(self, num_envs: int, seed: int = 0) -> Any:
        return begin_memory(self._team, num_envs, seed)

    def act(
        self,
        obs: Mapping[str, Any],
        memory: Any,
        info: Mapping[str, Any] | None = None,
        greedy: bool = True,
        *,
        rows: np.ndarray | None = None,
    ) -> tuple[Any, Any]:
        """Let the team act, as `Team.act` of a vector env.

        A single env, or a vector env of one game, is a ConfigurationError: there is no other manual.
        """
        rules = obs.get(self._text) if isinstance(obs, Mapping) else None
        if not isinstance(rules, np.ndarray) or not rules.ndim or len(rules) < 2:
            raise ConfigurationError(
                f"texts can be exchanged among two games of a vector env or more, not in one game or one without "
                f"{self._text or 'rules'}"
            )
        shown = {**obs, self._text: np.roll(rules, -1, axis=0)}
        if isinstance(info, Mapping) and isinstance(key := info.get("document"), np.ndarray):
            info = {**info, "document": other_document(key, np.roll(key, -1))}
        return self._team.act(shown, memory, info, greedy, **({} if rows is None else {"rows": rows}))
