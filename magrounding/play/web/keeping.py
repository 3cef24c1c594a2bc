"""Keeping: every game that ends in a browser goes to a file of games like it, for `replay`, and for learning."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from magrounding.errors import MagroundingError
from magrounding.play.saved_games import EpisodeWriter, Header, SavedEpisode
from magrounding.storage import check_place, digest

LOG = logging.getLogger(__name__)


class Keeper:
    """Writes games into a folder, a file for each environment, options and players; None keeps nothing.

    Raises:
        CheckpointError: no file can be written there.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = Lock()
        self._writers: dict[str, EpisodeWriter] = {}
        if folder is not None:
            check_place(folder / "games.jsonl")

    def keep(self, header: Header, game: SavedEpisode) -> None:
        """Append a game; errors of the disk go to the log, and the players do not lose their game by them."""
        if self.folder is None:
            return
        kind = digest(asdict(header))
        path = self.folder / f"{header.env}-{kind[:8]}.jsonl"
        with self._lock:
            # A writer reads all games of its file when it begins: once for each file, not once for each game.
            writer = self._writers.pop(kind, None)
            try:
                if writer is None or not path.exists():
                    writer = EpisodeWriter(path, header)
                writer.write([game])
            except (OSError, MagroundingError) as error:  # a new writer will take away what was half written
                LOG.error("a game of %s is not kept: %s", header.env, error)
                return
            writer.episodes.clear()  # they are in the file
            self._writers[kind] = writer
