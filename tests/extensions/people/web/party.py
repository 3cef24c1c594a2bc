"""A server in the test's own event loop, and people who talk to it over real websockets."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
from aiohttp.test_utils import TestClient, TestServer

from magrounding.extensions.people.web.addresses import Proxies
from magrounding.extensions.people.web.host import Host, Keeper
from magrounding.extensions.people.web.limits import Limits
from magrounding.extensions.people.web.offers import Offers
from magrounding.extensions.people.web.server import Server
from magrounding.teams.actor import make_expert

S1 = {"stage": "s1", "split": "train", "max_cycles": 40}
"""Options of a game that is over after a few steps."""
SECONDS = 120
PATIENT = {"messages_per_second": 1e6, "burst": 10**6, "heartbeat": 1e4}
"""Limits of a server for people who read only now and then, on a machine that may be busy."""


class Party:
    """A server and its games.

    Attributes:
        client: aiohttp's, for pages.
        host: the games themselves.
    """

    def __init__(self, client, host):
        self.client, self.host, self.people = client, host, []

    @property
    def origin(self):
        return str(self.client.make_url("/")).rstrip("/")

    async def person(self, **headers):
        """Somebody with a websocket."""
        # Not by the client itself, which keeps whatever it has opened.
        headers = {"Origin": self.origin, **headers}
        socket = await self.client.session.ws_connect(f"{self.origin}/socket", headers=headers)
        self.people = [*(each for each in self.people if not each.socket.closed), Person(socket)]
        return self.people[-1]

    def best(self, code, agent):
        """What the expert would do in a person's place."""
        session = self.host.rooms[code].session
        return int(np.flatnonzero(make_expert(session.vec).best_actions()[0, agent])[0])


class Person:
    """Somebody who plays.

    Attributes:
        heard: all messages so far.
        mine: agents that it plays.
        frame: the last one.
    """

    def __init__(self, socket):
        self.socket, self.heard, self.mine, self.frame = socket, [], [], None

    async def say(self, kind, **fields):
        await self.socket.send_str(json.dumps({"type": kind, **fields}))

    async def hear(self, *kinds):
        """The next message of some kinds; what comes before it is noted."""
        async with asyncio.timeout(SECONDS):
            while True:
                message = json.loads(await self.socket.receive_str())
                self.heard.append(message)
                if message["type"] == "frame":
                    self.frame = message
                elif message["type"] == "joined":
                    self.mine = message["mine"]
                if message["type"] in kinds:
                    return message

    async def refused(self, kind, **fields):
        """The code with which a message is refused."""
        await self.say(kind, **fields)
        return (await self.hear("refused"))["code"]

    async def create(self, players, env="ma_rtfm", options=None, seed=3, pace=0):
        """A new game's code."""
        await self.say(
            "create", env=env, options=S1 if options is None else options, players=players, seed=seed, pace=pace
        )
        return (await self.hear("created"))["code"]

    async def join(self, code, **fields):
        """The answer to joining, after which there is a frame."""
        await self.say("join", code=code, **fields)
        answer = await self.hear("joined")
        await self.hear("frame")
        return answer

    async def move(self, agent, action):
        await self.say("move", agent=agent, step=self.frame["step"], action=action)

    async def close(self):
        await self.socket.close()


@asynccontextmanager
async def party(envs=("ma_rtfm",), out=None, study=None, limits=None, proxies=(), **offered):
    """A server with its games."""
    offers = Offers(tuple(envs), replace(Limits(), **{**PATIENT, **(limits or {})}), **offered)
    host = Host(offers, Keeper(out), None if study is None else study(offers))
    async with TestClient(TestServer(Server(host, proxies=Proxies(proxies)).application())) as client:
        there = Party(client, host)
        try:
            yield there
        finally:
            for person in there.people:
                await person.close()


async def play_out(party, code, *people):
    """Let people play as the expert would, until the game is over; their last frames."""
    while not people[0].frame["over"]:
        for person in people:
            for agent in person.mine:
                if str(agent) in person.frame["moves"]:
                    await person.move(agent, party.best(code, agent))
        for person in people:
            await person.hear("frame")
    return [person.frame for person in people]
