"""Keeping: every game that ends in a browser goes to a file of games like it, for `replay`, and to be learnt from."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from magrounding.errors import MagroundingError
from magrounding.play.saved_games import GameWriter, Header, SavedGame
from magrounding.storage import check_place, digest

LOG = logging.getLogger(__name__)


class Keeper:
    """Writes games into a folder; a file for each world, its options and its players.

    Args:
        folder: where to; None keeps nothing.

    Raises:
        CheckpointError: no file can be written there.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = Lock()
        if folder is not None:
            check_place(folder / "games.jsonl")

    def keep(self, header: Header, game: SavedGame) -> None:
        """Append a game; that the disk refuses is said in the log, and the players do not lose their game by it."""
        if self.folder is None:
            return
        path = self.folder / f"{header.env}-{digest(asdict(header))[:8]}.jsonl"
        try:
            with self._lock:
                GameWriter(path, header).write([game])
        except (OSError, MagroundingError) as error:
            LOG.error("a game of %s is not kept: %s", header.env, error)
