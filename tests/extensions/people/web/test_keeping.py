"""Games are kept at the cost of one line each, and a game that is made too late is closed."""

import asyncio
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest

pytest.importorskip("aiohttp")

from magrounding.extensions.people.web.addresses import Quota
from magrounding.extensions.people.web.host import Host, Keeper
from magrounding.extensions.people.web.limits import Limits
from magrounding.extensions.people.web.messages import Refusal
from magrounding.extensions.people.web.offers import Offers
from magrounding.teams import saved_games
from magrounding.teams.saved_games import Header, SavedEpisode, read_episodes

HEADER = Header("ma_rtfm", {"agents": 2}, 2, "words", ("stay",), ("human", "oracle"), "greedy")


def game(seed):
    return SavedEpisode(seed, ((0, 0),), ("seen",), won=True, score=1.0, length=1, returns=(1.0, 1.0), timed_out=False)


def test_a_file_goes_on_after_what_was_half_written_and_begins_again_where_it_was_removed(tmp_path, monkeypatch):
    keeper, write = Keeper(tmp_path), saved_games.EpisodeWriter.write
    keeper.keep(HEADER, game(0))
    (path,) = tmp_path.iterdir()

    def full(self, games):
        with path.open("a") as file:
            file.write('{"half')
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saved_games.EpisodeWriter, "write", full)
    keeper.keep(HEADER, game(1))
    monkeypatch.setattr(saved_games.EpisodeWriter, "write", write)
    keeper.keep(HEADER, game(2))
    assert read_episodes(path) == (HEADER, [game(0), game(2)])
    path.unlink()
    keeper.keep(HEADER, game(3))
    assert read_episodes(path) == (HEADER, [game(3)])


def test_a_game_that_is_made_too_late_is_closed():
    go_on, closed = Event(), Event()

    def make():
        go_on.wait(60)
        return SimpleNamespace(close=closed.set)

    async def run():
        limits = replace(Limits(), patience=0.05)
        host = Host(Offers(("ma_rtfm",), limits))
        with pytest.raises(Refusal):
            await host.make(SimpleNamespace(people=(), make=make), 0, None, Quota("", limits))
        assert not host.rooms

    asyncio.run(run())
    assert not closed.is_set()
    go_on.set()
    assert closed.wait(60)
