"""Floods of connections: some are closed, whoever asks properly is answered, and nothing grows."""

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

pytest.importorskip("aiohttp")

from aiohttp import ClientSession, web

from magrounding.extensions.people.web.addresses import Proxies
from magrounding.extensions.people.web.gate import HttpConnection, listening
from magrounding.extensions.people.web.limits import Limits

UNFINISHED = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@asynccontextmanager
async def serving(proxies=(), **limits):
    """A server of one page, and one whose connection lasts; (gate, port)."""

    async def page(request):
        return web.Response(text="here")

    async def lasting(request):
        assert isinstance(request.protocol, HttpConnection)
        request.protocol.allow(float("inf"))
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    app = web.Application()
    app.add_routes([web.get("/", page), web.get("/socket", lasting)])
    limits = replace(Limits(), **{"head_seconds": 1e4, **limits})
    async with listening(app, limits, Proxies(proxies), "127.0.0.1", 0) as (gate, port):
        yield gate, port


async def flood(port, count):
    """So many connections that begin a request and never end it."""
    writers = []
    for _ in range(count):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(UNFINISHED)
            writers.append(writer)
        except ConnectionError:
            pass
    return writers


async def page(session, port):
    async with session.get(f"http://127.0.0.1:{port}/") as answer:
        return answer.status


EAGER = {"connections_per_second": 1e6}


@pytest.mark.parametrize("limits", [{"connections": 8}, {"connections": 1000, "address_people": 1, **EAGER}])
def test_unfinished_requests_give_way_to_one_that_is_whole(limits):
    async def run():
        async with serving(**limits) as (gate, port), ClientSession() as session:
            async with session.ws_connect(f"http://127.0.0.1:{port}/socket") as socket:
                writers = await flood(port, 60)
                assert await page(session, port) == 200
                assert gate.count <= 8
                await socket.send_str("still here")  # what lasts is not closed to make room
                assert await socket.receive_str() == "still here"
            for writer in writers:
                writer.close()

    asyncio.run(run())


def test_a_flood_of_new_connections_is_refused_at_the_door():
    async def run():
        async with serving(address_people=1, connections_per_second=0.0) as (gate, port), ClientSession() as session:
            assert await page(session, port) == 200
            for _ in range(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
            while gate.count > 1:
                await asyncio.sleep(0.01)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            assert gate.count <= 1
            assert await page(session, port) == 200  # by the connection that it has

    asyncio.run(run())


def test_one_that_says_nothing_in_its_time_is_closed():
    async def run():
        async with serving(head_seconds=0.0) as (gate, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(UNFINISHED)
            while not gate.count:
                await asyncio.sleep(0.01)
            gate.close_late()
            assert gate.count == 0
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "words",
    [b"GET /" + b"a" * 9000 + b" HTTP/1.1", b"GET / HTTP/1.1\r\nContent-Length: -5", b"GET http://[::bad HTTP/1.1"],
)
def test_what_is_no_request_is_a_line_of_the_log(words, caplog):
    async def ask():
        async with serving() as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(words + b"\r\nHost: localhost\r\n\r\n")
            assert (await reader.readline()).split()[1] == b"400"
            writer.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(ask())
    (record,) = caplog.records
    assert record.exc_info is None
    assert len(record.getMessage().splitlines()) == 1
