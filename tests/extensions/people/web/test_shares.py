"""Shares of addresses: what one takes, others still get, also behind a proxy; empty games give way."""

import asyncio

import pytest

pytest.importorskip("aiohttp")

from aiohttp import WSServerHandshakeError

from tests.extensions.people.web.party import S1, party

PROXY = ["127.0.0.1"]
GAME = {"env": "ma_rtfm", "options": S1, "players": ["human", "oracle"], "seed": 0, "pace": 0}


def of(address):
    return {"X-Forwarded-For": address}


@pytest.mark.parametrize(("proxies", "turned_away"), [(PROXY, 0), ((), 95)])
def test_visitors_behind_a_trusted_proxy_do_not_lock_one_another_out(proxies, turned_away):
    async def run():
        async with party(limits={"request_burst": 5, "requests_per_second": 0.0}, proxies=proxies) as there:
            asked = [await there.client.get("/", headers=of(f"203.0.113.{k}")) for k in range(100)]
            return [answer.status for answer in asked]

    assert asyncio.run(run()).count(429) == turned_away


def test_an_address_has_its_share_of_websockets():
    async def run():
        async with party(limits={"address_people": 1}, proxies=PROXY) as there:
            taken = [await there.person(**of("203.0.113.7")) for _ in range(2)]
            with pytest.raises(WSServerHandshakeError, match="429"):
                await there.person(**of("203.0.113.7"))
            await there.person(**of("203.0.113.8"))
            await taken[0].close()
            while len([each for each in there.people if not each.socket.closed]) > 2:
                await asyncio.sleep(0.01)

    asyncio.run(run())


def test_an_address_has_its_share_of_games():
    async def run():
        async with party(limits={"address_people": 2}, proxies=PROXY) as there:
            greedy, other = await there.person(**of("203.0.113.7")), await there.person(**of("203.0.113.8"))
            for _ in range(2):
                await greedy.join(await greedy.create(["human", "oracle"]))
                await greedy.move(0, 0)
                await greedy.hear("frame")
            assert await greedy.refused("create", **GAME) == "quota"
            await other.create(["human", "oracle"])
            assert len(there.host.rooms) == 3

    asyncio.run(run())


def test_a_game_in_which_nobody_has_moved_gives_way_when_the_server_is_full():
    async def run():
        async with party(limits={"games": 3}, proxies=PROXY) as there:
            one, other = await there.person(**of("203.0.113.7")), await there.person(**of("203.0.113.8"))
            played = await one.create(["human", "oracle"])
            await one.join(played)
            await one.move(0, 0)
            await one.hear("frame")
            empty = [await one.create(["human", "oracle"]) for _ in range(2)]
            await one.join(empty[1])  # it reads there, before its first move
            new = await other.create(["human", "oracle"])
            assert set(there.host.rooms) == {played, empty[1], new}
            await other.join(new)
            assert await other.refused("create", **GAME) == "full"

    asyncio.run(run())
