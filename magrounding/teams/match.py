"""Match: several line-ups play the same games; who wins more, and by how much more than chance would have it."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import torch

from magrounding.brief import brief
from magrounding.envs.make import make_vec
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.owner import owned
from magrounding.progress import Display
from magrounding.registry import env_entry
from magrounding.simulators.faults import SimulatorError
from magrounding.spec import SCORE
from magrounding.statistics import Interval, resampled
from magrounding.teams.actor import NoReply
from magrounding.teams.episodes import Episodes
from magrounding.teams.evaluate import GREEDY, SAMPLED
from magrounding.teams.events import count_events
from magrounding.teams.lineup import CALLS_FILE, Lineup, keep_calls
from magrounding.teams.saved_games import EpisodeWriter, Header, Recorder, SavedEpisode
from magrounding.vector import VectorEnv, check_count

MATCH_SEED = 2**43
"""Games of matches have this seed or a higher one: none is a game of training, of a selection or of a report."""
ROWS = 256
TRIES = 3
"""Attempts at a batch in which simulators die or hang."""
_ELO = 400 / np.log(10)
_PRIOR = 0.5
"""Games that each pair of line-ups is taken to have drawn, so that a rating is finite where one always wins."""


@dataclass(frozen=True)
class Results:
    """Games of a match: the k-th of every line-up has the same seed.

    Attributes:
        env, options: what was played.
        games: line-up → its games.
        measure: "won" or "score", what the world goes by.
        events: line-up → "kills" and "items" of its games, [G, n], as far as the world has them (see `count_events`).
        calls: line-up with language models → what was asked.
    """

    __repr__ = brief

    env: str
    options: dict[str, Any]
    games: dict[str, list[SavedEpisode]]
    measure: str
    events: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    def outcomes(self, name: str) -> np.ndarray:
        """[G] float64 of a line-up: 1 or 0 for a game won or lost, or its score."""
        return np.array([getattr(game, self.measure) for game in self.games[name]], np.float64)


def play_match(
    env: str,
    options: Mapping[str, Any],
    lineups: Sequence[Lineup],
    games: int,
    folder: Path,
    seed: int = MATCH_SEED,
    greedy: bool = True,
    workers: int | str = 0,
    display: Display | None = None,
) -> Results:
    """Let line-ups play the games of seeds `seed`, `seed` + 1, …; every game is saved, and what is there is kept.

    The folder gets a file of saved games for each line-up, and one of the calls of language models. With `greedy`
    actions are the most likely ones, not drawn.

    Raises:
        ConfigurationError: a seed out of bounds, a line-up named twice, or one that cannot play.
        CheckpointError: a folder with other games, or in which another process plays; no trained team where one was
            named.
    """
    names = [lineup.name for lineup in lineups]
    if any(lineup.people for lineup in lineups):
        raise ConfigurationError("a match has no person at it: people play with `magrounding play`")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"each line-up plays once, got {'; '.join(names)}")
    found = {}
    rows = min(games, env_entry(env).evaluation.max_envs or ROWS)
    paths = [folder / f"games_{number}.jsonl" for number in range(len(lineups))]
    with owned(folder, "the match"), closing(make_vec(env, rows, workers=workers, **options)) as vec:
        check_count("the seed of a match", seed, 0, 2**62 // vec.num_agents - games - rows)  # what games and teams take
        for lineup, path in zip(lineups, paths, strict=True):
            if not path.exists():
                lineup.build_actor(vec, seed)  # who cannot play is refused before anything is written
        keep_calls((player for lineup in lineups for player in lineup.players), folder / CALLS_FILE)
        for lineup, path in zip(lineups, paths, strict=True):
            players = list(map(str, lineup.players))
            file = EpisodeWriter(path, Header.of(vec, players, GREEDY if greedy else SAMPLED))
            if [episode.seed for episode in file.episodes] != list(range(seed, seed + len(file.episodes))):
                raise CheckpointError(f"{folder} holds games of other seeds: name another folder with --out")
            with (display or Display(quiet=True)).games(lineup.name, games) as advance:
                if lineup.asked:
                    left = range(seed + len(file.episodes), seed + games)
                    with closing(play_apart(lineup, env, options, left, greedy, rows)) as played:
                        for episode in played:
                            file.write([episode])
                            advance(len(file.episodes))
                while len(file.episodes) < games:
                    # A batch begins at a multiple of its rows, so a match that was stopped goes on as it began.
                    first = len(file.episodes) // rows * rows
                    batch = play_batch(lineup, vec, seed + first, greedy)[len(file.episodes) - first : games - first]
                    file.write(batch)
                    advance(len(file.episodes))
            found[lineup.name] = file.episodes[:games]
        measure = "score" if vec.spec.outcome == SCORE else "won"
    events = {name: count_events(env, options, played) for name, played in found.items()}
    totals = {each.name: each.call_totals() for each in lineups if each.asked}
    return Results(env, dict(options), found, measure, events, totals)


def play_batch(lineup: Lineup, vec: VectorEnv, seed: int, greedy: bool = True) -> list[SavedEpisode]:
    """The first episodes of all rows; row b plays seed + b.

    Raises:
        SimulatorError: simulators that died or hung in each of TRIES attempts. A game that a fault ended is not what
            its players did: a file of it could not be played again.
    """
    lost = np.zeros(0, np.int64)
    for _ in range(TRIES):
        recorder = _play_once(lineup, vec, seed, greedy)
        lost = np.flatnonzero(recorder.lost)
        if not lost.size:
            return [recorder.episode(row, seed + row) for row in range(vec.num_envs)]
    seeds = ", ".join(str(seed + row) for row in lost)
    raise SimulatorError(f"simulators died or hung {TRIES} times before these games had ended: seed {seeds}")


def play_apart(
    lineup: Lineup, env: str, options: Mapping[str, Any], seeds: Sequence[int], greedy: bool = True, most: int = ROWS
) -> Generator[SavedEpisode, None, None]:
    """Play games at once, each in a batch of its own, and yield them in the order of their seeds.

    A game waits for the replies of its own language models alone. There are as many games at once as calls may be under
    way, `most` at most. Where a model gives no reply its game ends with the reason (`SavedEpisode.ended_by`); any other
    error ends all.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    ended: SimpleQueue[tuple[int, SavedEpisode | BaseException]] = SimpleQueue()
    for seed in seeds:
        waiting.put(seed)

    def play() -> None:
        torch.set_num_threads(1)  # OpenMP counts threads for each thread that calls it
        own, seed = replace(lineup, ends_games=True), -1  # teams think for one game at a time
        try:
            with closing(make_vec(env, 1, **options)) as vec:
                while not any(player.models.stopped for player in own.language_models):
                    seed = waiting.get_nowait()
                    ended.put((seed, play_batch(own, vec, seed, greedy)[0]))
        except Empty:
            pass
        except BaseException as error:
            ended.put((seed, error))

    for _ in range(min(len(seeds), most, max(player.models.parallel for player in lineup.language_models))):
        threading.Thread(target=play, daemon=True).start()
    found: dict[int, SavedEpisode] = {}
    try:
        for seed in seeds:
            while seed not in found:
                which, result = ended.get()
                if isinstance(result, BaseException):
                    raise result
                found[which] = result
            yield found.pop(seed)
    except BaseException:
        for player in lineup.language_models:
            player.models.stopped = True
        raise


def _play_once(lineup: Lineup, vec: VectorEnv, seed: int, greedy: bool) -> Recorder:
    """Record the first episodes of all rows; one in a row of its own ends where a language model gives no reply."""
    episodes = Episodes(lineup.build_actor(vec, seed), vec, vec.num_envs, seed, greedy, draw_seed=seed)
    recorder = Recorder(vec.num_envs, vec.spec)
    while episodes.rows.size:
        try:
            actions = np.where(episodes.info.alive, episodes.choose(), 0)
        except NoReply as failed:
            if vec.num_envs > 1:
                raise
            recorder.stop(0, episodes.info, str(failed))
            break
        recorder.observe(episodes.obs, episodes.info)
        episodes.play(actions)
        recorder.record(actions, episodes.truncated, episodes.info)
    return recorder


def ratings(results: Results) -> dict[str, Interval]:
    """Bradley–Terry ratings on the Elo scale, their mean being 0.

    In each game the line-up with the better outcome has beaten the other; equal outcomes count half for both. Intervals
    are of a bootstrap over games, of which it takes two. A line-up alone has no rating.
    """
    names = list(results.games)
    if len(names) < 2:
        return {}
    outcomes = np.stack([results.outcomes(name) for name in names])
    beaten = (1 - np.eye(len(names)))[..., None] * (np.sign(outcomes[:, None] - outcomes) + 1) / 2
    whole = _bradley_terry(beaten.sum(-1))
    if outcomes.shape[1] < 2:
        return {name: Interval(float(value), None, None) for name, value in zip(names, whole, strict=True)}
    drawn = np.stack([_bradley_terry(beaten[..., rows].sum(-1)) for rows in resampled(outcomes.shape[1], 200)])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return {name: Interval(*map(float, each)) for name, *each in zip(names, whole, low, high, strict=True)}


def _bradley_terry(wins: np.ndarray) -> np.ndarray:
    """Ratings [K] of wins [K, K] of line-up i over j, by Hunter's algorithm (2004, section 2)."""
    wins = wins + _PRIOR * (1 - np.eye(len(wins)))
    strength = np.ones(len(wins))
    for _ in range(1000):
        games = (wins + wins.T) / (strength[:, None] + strength)
        np.fill_diagonal(games, 0.0)
        new = wins.sum(1) / games.sum(1)
        new /= np.exp(np.log(new).mean())
        if np.abs(new - strength).max() < 1e-9:
            break
        strength = new
    return _ELO * np.log(strength)
