"""Frames: a moment of a game as JSON, from which the page draws."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from magrounding.envs.drawing.sprites import AGENT_COLOURS, sprite
from magrounding.envs.render import Figure, Scene
from magrounding.spec import SCORES, TextChoices
from magrounding.teams.diagnosis import NOTHING, pursued
from magrounding.teams.session import Session, View
from magrounding.text_view import joined

_DIGITS = 3
_SIDE = 96
_MOST = 8192


class Sprites:
    """Drawings of figures as small PNGs: key → the figure. Only figures that games have shown can be asked for."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str, str]] = {}

    def key(self, figure: Figure) -> str:
        """Return the name of a figure's picture: a digest, which reveals no paths to a client."""
        drawn = figure.kind, figure.name, "" if figure.kind == "agent" else figure.quality
        key = _digest(drawn)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = drawn
        return key

    def png(self, key: str) -> bytes | None:
        """Return a picture; None for a name that no game has shown."""
        drawn = self._known.get(key)
        return None if drawn is None else _png(*drawn)


def about_game(
    session: Session, options: Mapping[str, Any], players: Sequence[str], people: Collection[int]
) -> dict[str, Any]:
    """Return the facts of a whole game, with the options and the names of players that the page may show."""
    spec = session.vec.spec
    words = isinstance(spec.actions, TextChoices)
    return {
        "env": session.header.env,
        "options": dict(options),
        "seed": session.seed,
        "players": list(players),
        "people": sorted(people),
        "actions": None if words else list(spec.actions.names),
        "tells": spec.tells,
        "max_cycles": spec.max_cycles,
        "scored": SCORES in spec.capabilities,
        "colours": list(AGENT_COLOURS),
    }


def frame(view: View, sprites: Sprites, hidden: Collection[int]) -> dict[str, Any]:
    """Return a moment of a game, without attention and claims of the networks of `hidden` agents."""
    scene = view.scene
    content: dict[str, Any] = {
        "step": view.step,
        "over": view.over,
        "won": view.won,
        "score": round(view.score, _DIGITS),
        "last": list(view.last),
        "reads": {
            agent: [round(weight, _DIGITS) for weight in weights]
            for agent, weights in view.attention.items()
            if weights is not None and agent not in hidden
        },
    }
    if scene is None:
        return {**content, "text": text_of(view)}
    split = len(set(view.statements.values())) > 1
    return {
        **content,
        "goal": scene.goal,
        "split": split,
        "manual": view.statements if split else {0: view.statements.get(0, ())},
        "said": dict(scene.said),
        "holds": [held if alive else None for held, alive in zip(scene.inventories, scene.alive, strict=True)],
        "walls": ["".join(row) for row in _cells(scene).tolist()],
        "figures": [_figure(each, sprites) for each in scene.figures],
        "claims": {
            agent: [
                k for k, each in enumerate(scene.figures) if each.kind != "agent" and marks[each.row, each.column] == 1
            ]
            for agent, marks in view.claims.items()
            if agent not in hidden
        },
    }


def _cells(scene: Scene) -> np.ndarray:
    """Return signs [H, W] of what cells are: "#" wall, "." floor, "?" out of sight."""
    cells = np.where(scene.walls, "#", ".")
    return cells if scene.unseen is None else np.where(scene.unseen, "?", cells)


def text_of(view: View) -> str:
    """Return what agents see, in words: one after the other, where there are several."""
    if len(view.words) == 1:
        return joined(view.words[0])
    return "\n\n".join(f"AGENT {agent}\n\n{joined(sections)}" for agent, sections in view.words.items())


def history(session: Session, sprites: Sprites, hidden: Collection[int] = ()) -> list[dict[str, Any]]:
    """Return all moments of a game, each with the figures that its agents pursue next; arguments as of `frame`."""
    shown = [frame(view, sprites, hidden) for view in session.views]
    for moment, (view, following) in zip(shown, pairwise(session.views), strict=False):
        moment["pursues"] = pursuits(view.scene, following.scene)
    return shown


def moves(session: Session, agents: Collection[int]) -> dict[int, list[Any]]:
    """Return agent → its legal actions: numbers, or pairs of a number and a text where they are texts."""
    words = isinstance(session.vec.spec.actions, TextChoices)
    return {
        agent: [[move.action, move.name] if words else move.action for move in session.moves(agent)]
        for agent in agents
        if agent in session.living
    }


def pursuits(before: Scene | None, after: Scene | None) -> dict[str, int]:
    """Return agent → the figure of the moment before that it pursues, see `diagnosis.pursued`."""
    if before is None or after is None:
        return {}
    things = [k for k, each in enumerate(before.figures) if each.kind != "agent"]
    if not things:
        return {}
    places = np.array([[[before.figures[k].row, before.figures[k].column] for k in things]], np.float32)
    goals = pursued(_agents(before), _agents(after), places)[0]
    return {str(agent): things[goal] for agent, goal in enumerate(goals.tolist()) if goal != NOTHING}


def _agents(scene: Scene) -> np.ndarray:
    """Return the places of agents [1, n, 2], −1 for those that are gone."""
    places = np.full((1, len(scene.alive), 2), -1, np.float32)
    for each in scene.figures:
        if each.kind == "agent":
            places[0, int(each.name)] = each.row, each.column
    return places


def _figure(figure: Figure, sprites: Sprites) -> dict[str, Any]:
    """Return a figure without its kind, which in some environments people have to find out by reading."""
    shown = {"at": [figure.row, figure.column], "sprite": sprites.key(figure), "name": figure.name}
    if figure.kind == "agent":
        shown["agent"] = int(figure.name)
    return {**shown, "quality": figure.quality} if figure.quality else shown


@lru_cache(maxsize=4096)
def _digest(drawn: tuple[str, str, str]) -> str:
    return hashlib.sha256("\0".join(drawn).encode()).hexdigest()[:16]


@lru_cache(maxsize=1024)
def _png(kind: str, name: str, quality: str) -> bytes:
    with io.BytesIO() as file:
        sprite(kind, name, quality, _SIDE).save(file, "png")
        return file.getvalue()
