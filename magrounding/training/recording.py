"""Recording: demonstrations by a trained team, an oracle or a person, from a batch of episodes."""

from __future__ import annotations

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.machine import require_memory
from magrounding.spec import CHOICES, EnvSpec
from magrounding.teams.actor import Actor
from magrounding.teams.episodes import Episodes
from magrounding.teams.evaluate import ProgressCallback
from magrounding.training.demonstrations import DemonstrationHeader, Demonstrations
from magrounding.vector import Observation, VectorEnv

RECORDING_SEED = 2**42
"""Recorded episodes have this seed or a higher one: none is of training, of a selection or of a report."""

MEASURED_GAMES = 1_000
"""Finished episodes after which it is known how much memory all of them will take."""


class StopRecording(Exception):
    """Exception by which an actor ends a recording early: the episodes that are finished are kept."""


def record(
    vec: VectorEnv,
    actor: Actor,
    games: int,
    seed: int,
    played_by: str,
    on_progress: ProgressCallback = lambda finished: None,
) -> Demonstrations:
    """Let an actor play greedily, and keep the first episodes of every row, so that short ones are not favoured.

    An episode that a fault of its simulator ended is no demonstration: it is left out, and its row plays another.

    An actor with `best_actions` labels every state with all of them. Of any other the action taken is the label; where
    it was masked it did nothing, and every legal move is labelled: there is nothing to learn.

    Args:
        games: G.
        seed: row b plays seed + b.
        actor: its StopRecording ends the recording early.
        played_by: for the header, see `DemonstrationHeader`.
        vec, on_progress: the vector env, and see `ProgressCallback`.

    Raises:
        ConfigurationError: no finished game to keep, more of them than half of this machine's memory holds, or texts as
            of `check_texts`.
    """
    best_actions = getattr(actor, "best_actions", None)
    recorder = _DemonstrationRecorder(vec, games)
    episodes = Episodes(actor, vec, games, seed, replay=True)
    left = np.zeros((vec.num_envs, vec.num_agents), np.bool_)  # whose time ended in a game that goes on without them
    while (rows := episodes.rows).size:
        game, obs, info = episodes.numbers, episodes.obs, episodes.info
        recorder.read(game, {name: obs[name][rows] for name in recorder.texts})
        seen, alive = {name: obs[name][rows] for name in recorder.keys}, info.alive[rows]
        best = None if best_actions is None else best_actions(**episodes.which)[rows]
        try:
            actions = episodes.choose()
        except StopRecording:
            break
        taken = actions[rows]
        labels = _labels(taken, seen["action_mask"] != 0) if best is None else best
        ended, finished = episodes.play(actions)
        info, cut = episodes.info, episodes.truncated & (not vec.spec.time_limit_is_loss)
        earned = np.where(alive, episodes.rewards[rows], np.float32(0))
        recorder.write(game, seen, alive | left[rows], taken, labels & alive[..., None], earned)
        cut_off = cut[rows].any(1) & info.done[rows]
        if cut_off.any():
            places = np.searchsorted(info.final_rows, rows[cut_off])
            last = {name: info.final_observation[name][places] for name in recorder.keys}
            nothing = (np.zeros_like(part[cut_off]) for part in (taken, labels, earned))
            recorder.write(game[cut_off], last, cut[rows[cut_off]], *nothing)
        left = cut & ~info.done[:, None]
        if (lost := info.lost[rows]).any():
            recorder.forget(game[lost])
        recorder.won[finished], recorder.finished[finished] = info.won[ended], True
        if ended.size:
            if episodes.finished - ended.size < MEASURED_GAMES <= episodes.finished:
                recorder.require_memory(episodes.finished)
            on_progress(episodes.finished)
    if not episodes.finished:
        raise ConfigurationError("no game was played to its end: there is nothing to keep")
    origin = vec.id, dict(vec.options), vec.num_agents, vec.spec.vocabulary_hash, vec.spec.actions.names
    return recorder.demonstrations(DemonstrationHeader(*origin, played_by, seed, episodes.finished))


def check_texts(spec: EnvSpec) -> None:
    """Raise a ConfigurationError for texts to choose from, or that change for all agents: demonstrations hold none."""
    if any(spec[name].shared or name == CHOICES for name in spec.unshared_texts):
        raise ConfigurationError(
            "a text that all read changes within a game, or moves are texts: demonstrations hold neither, choose "
            "options without"
        )


class _DemonstrationRecorder:
    """The steps so far, in the order of time; episodes are put behind one another in the end."""

    def __init__(self, vec: VectorEnv, games: int) -> None:
        self.keys = [field.name for field in vec.spec.own_fields] + sorted(vec.spec.unshared_texts)
        self.texts = vec.spec.shared_texts
        check_texts(vec.spec)
        self.won, self.finished, self._begun = (np.zeros(games, np.bool_) for _ in range(3))
        fields = [vec.spec[name] for name in self.texts]
        self._texts = {each.name: np.zeros((games, *each.shape), each.dtype) for each in fields}
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._seen: dict[str, list[np.ndarray]] = {name: [] for name in self.keys}

    def read(self, game: np.ndarray, texts: Observation) -> None:
        """Keep the texts of episodes that have just begun."""
        new = ~self._begun[game]
        self._begun[game] = True
        for name, text in texts.items():
            self._texts[name][game[new]] = text[new]

    def write(self, game: np.ndarray, seen: Observation, *parts: np.ndarray) -> None:
        """Append a row of some episodes: alive, actions, labels, rewards."""
        self._parts.append((game, *parts))
        for name, array in seen.items():
            self._seen[name].append(array)

    def require_memory(self, finished: int) -> None:
        """Raise a ConfigurationError if all would take more than half of memory; they are there twice in the end."""
        games, texts = len(self.won), sum(text.nbytes for text in self._texts.values())
        steps = sum(array.nbytes for arrays in (*self._parts, *self._seen.values()) for array in arrays)
        what = f"{games:,} games to record take about"
        require_memory(2 * (steps * games // finished + texts), what, "record fewer, or several files")

    def forget(self, games: np.ndarray) -> None:
        """Leave out the rows of some episodes: others take their numbers."""
        self._begun[games] = False
        for game, *_ in self._parts:
            game[np.isin(game, games)] = -1

    def demonstrations(self, header: DemonstrationHeader) -> Demonstrations:
        """Return the finished episodes."""
        game, alive, actions, labels, rewards = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.argsort(game, kind="stable")
        order = order[(game[order] >= 0) & self.finished[game[order]]]
        number = (np.cumsum(self.finished) - 1).astype(np.int32)
        return Demonstrations(
            header,
            {name: np.concatenate(parts)[order] for name, parts in self._seen.items()},
            {name: text[self.finished] for name, text in self._texts.items()},
            game=number[game[order]],
            actions=actions[order],
            labels=labels[order],
            alive=alive[order],
            rewards=rewards[order],
            won=self.won[self.finished],
        )


def _labels(taken: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Return labels [..., A] bool for actions [...] and masks [..., A] of a player without `best_actions`."""
    labels = np.eye(legal.shape[-1], dtype=np.bool_)[taken] & legal
    return np.where(labels.any(-1, keepdims=True), labels, legal)
