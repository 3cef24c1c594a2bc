"""Replays: a saved game that a client uploads, played again move for move, with the reports of trained players."""

from __future__ import annotations

from contextlib import closing

from magrounding.errors import MagroundingError
from magrounding.play.saved_games import SavedEpisode, parse_episodes
from magrounding.play.session import Session
from magrounding.play.web.frames import Sprites, about_game, history
from magrounding.play.web.messages import Refusal
from magrounding.play.web.offers import Offers
from magrounding.storage import json_text

_NAME = "the upload"
_OTHERWISE = "the game goes another way now than when it was saved"
_NONSENSE = (TypeError, ValueError, ArithmeticError, LookupError)
"""Errors of impossible numbers that no check of an environment has refused."""


def replay(data: bytes, number: int, offers: Offers, sprites: Sprites) -> str:
    """Return the frames of a game in the content of a file, as JSON; its number counts from 0.

    Refusal "bad_file" for a file that is damaged or altered, and a game that goes another way now or is not offered.
    """
    try:
        header, games = parse_episodes(data, _NAME)
    except MagroundingError as error:
        raise Refusal("bad_file", str(error)) from None
    if not 0 <= number < len(games):
        raise Refusal("bad_file", f"it has {len(games)} games, counted from 0")
    game = games[number]
    if len(game.actions) > offers.limits.steps:
        raise Refusal("bad_file", f"a game of more than {offers.limits.steps} steps is not shown")
    plan = offers.replay(header, game.seed)
    try:
        session = plan.make()
    except Refusal as refusal:
        raise Refusal("bad_file", str(refusal)) from None
    with closing(session):
        if any(getattr(header, name) != getattr(session.header, name) for name in ("vocabulary", "agents", "actions")):
            raise Refusal("bad_file", "it had other words, moves or another number of agents than this world has now")
        if _play(session, game) != game:
            raise Refusal("bad_file", _OTHERWISE)
        about = {**about_game(session, {}, header.players, ()), "games": len(games), "game": number}
        return json_text({"game": about, "frames": history(session, sprites)}, compact=True)


def _play(session: Session, game: SavedEpisode) -> SavedEpisode:
    try:
        for actions in game.actions:
            if session.now.over:
                break
            if len(actions) != session.vec.num_agents:
                raise Refusal("bad_file", "it has moves for another number of agents")
            # Not by `choose`: agents may have made moves that were not legal, which do nothing.
            session.chosen = {agent: actions[agent] for agent in session.living}
            session.advance()
    except (MagroundingError, *_NONSENSE) as error:
        raise Refusal("bad_file", f"its moves cannot be played: {error}") from None
    if not session.now.over:
        raise Refusal("bad_file", _OTHERWISE)
    return session.saved()
