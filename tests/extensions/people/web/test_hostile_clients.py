"""Hostile clients at length: whatever they send is refused with a code, and another game in the same server goes on.

`make fuzz` sends 100,000 messages; `make test` some hundreds.
"""

import asyncio
import collections
import gc
import json
import os
import random
import resource
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")


from magrounding.extensions.people.web.messages import CODES
from magrounding.extensions.people.web.messages import MESSAGES as TYPES
from magrounding.teams.lineup import Lineup
from magrounding.teams.session import Session
from tests.extensions.people.web.party import party
from tests.full import in_full

MESSAGES = int(os.environ.get("MAGROUNDING_FUZZ_MESSAGES", in_full(600, 300)))
SEED = int(os.environ.get("MAGROUNDING_FUZZ_SEED", "0"))
ANSWERS = ("refused", "taken", "left", "created", "joined")
MEMORY = 48 * 2**20
"""Bytes that the process may grow by after the first tenth, whatever the number of messages."""
PATHS = (
    "../../etc/passwd",
    "/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "C:\\x",
    "file:///etc/passwd",
    "\0",
    "%00",
    "~/.ssh/id",
)
WORDS = (
    *PATHS,
    "",
    "x" * 50,
    "<script>alert(1)</script>",
    "' OR 1=1 --",
    "\ud800",
    "__proto__",
    "0",
    "ma_rtfm",
    "human",
)


def junk(rng, depth=0):
    """Any value of JSON."""
    kinds = [
        lambda: rng.choice(WORDS),
        lambda: rng.randint(-3, 9),
        lambda: rng.choice([2**31, -(2**63), 10**40, 1e308, -0.0, 0.5]),
        lambda: rng.choice([True, False, None]),
    ]
    if depth < 3:
        kinds += [
            lambda: [junk(rng, depth + 1) for _ in range(rng.randint(0, 3))],
            lambda: {rng.choice(WORDS): junk(rng, depth + 1) for _ in range(rng.randint(0, 3))},
        ]
    return rng.choice(kinds)()


def hostile(rng, codes):
    """A message that nobody should send, but for some that are right by accident."""
    kind = rng.choice(["noise", "type", "fields", "extra", "agent", "long", "game", "deep"])
    if kind == "noise":
        return "".join(chr(rng.randint(1, 0x2FFF)) for _ in range(rng.randint(0, 60)))
    if kind == "type":
        return json.dumps({"type": junk(rng), "ref": junk(rng)})
    if kind == "deep":
        return rng.choice("[{") * rng.randint(1, 3000)
    if kind == "long":
        return json.dumps({"type": "join", "code": "x" * rng.randint(4097, 20_000)})
    if kind == "agent":
        move = {"agent": rng.randint(-1, 3), "step": rng.randint(-1, 3), "action": rng.randint(-1, 9)}
        join = {"code": rng.choice(codes), "agent": rng.choice([0, 1, 2, -7, -1, None]), "token": rng.choice(WORDS)}
        return json.dumps(
            rng.choice([{"type": "move", **move}, {"type": "join", **join}, {"type": "restart", "seed": "same"}])
        )
    if kind == "game":
        options = {rng.choice(["corpus", "games", "size", "stage", "agents", "heap", "split"]): junk(rng)}
        players = [
            rng.choice(["human", "oracle", "run:/", "script:/etc/passwd", "pretrained:../../x"]) for _ in range(2)
        ]
        env = rng.choice(["ma_rtfm", "messenger", "alfworld", rng.choice(WORDS)])
        return json.dumps({"type": "create", "env": env, "options": options, "players": players, "pace": junk(rng)})
    name = rng.choice(list(TYPES))
    fields = {each: junk(rng) for each in TYPES[name].__struct_fields__ if each != "ref"}
    return json.dumps({"type": name, **fields, **({rng.choice(WORDS): junk(rng)} if kind == "extra" else {})})


class Attacker:
    """Somebody who sends junk, over and over, and counts the codes of what comes back."""

    def __init__(self, there, codes, rng):
        self.there, self.codes, self.rng, self.said = there, codes, rng, collections.Counter()
        self.person = None

    async def send(self):
        """One message; what is no message at all has tests of its own."""
        if self.person is None:
            self.person = await self.there.person()
        await self.person.socket.send_str(hostile(self.rng, self.codes).encode("utf-8", "replace").decode())
        answer = await self.person.hear(*ANSWERS)
        self.person.heard.clear()
        self.note(answer["code"] if answer["type"] == "refused" else "obeyed")
        if answer["type"] == "joined" and self.rng.random() < 0.5:  # else it stays, and moves what is not its own
            await self.person.say("leave")
            await self.person.hear("left")
        assert answer["type"] != "joined" or answer["agent"] is None, "somebody else's agent was had by guessing"

    async def pry(self, code):
        """Move what is somebody else's in a game that it watches: junk does so by chance alone."""
        move = {"type": "move", "agent": 0, "step": 0, "action": 0}
        join = {"type": "join", "code": code, "token": ""}
        other = await self.there.person()
        for message in (move, {**join, "agent": 0}, {**join, "agent": None}, move):
            await other.socket.send_str(json.dumps(message))
            answer = await other.hear(*ANSWERS)
            self.note(answer["code"] if answer["type"] == "refused" else "obeyed")

    def note(self, what):
        assert what in CODES or what == "obeyed"
        assert what != "internal"
        self.said[what] += 1


def memory():
    """Bytes that this process holds now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.timeout(300 + MESSAGES // 50)
def test_whatever_is_sent_is_refused_by_a_code_and_touches_no_other_game():
    limits = {"games": 12, "idle_seconds": 0.0, "strikes": 10**9, "heartbeat": 1e4}  # the bystander reads now and then
    limits |= {"heavy_per_second": 1e6, "heavy_burst": 10**6, "new_games_per_second": 1e6, "new_games_burst": 10**6}

    async def run():
        async with party(envs=("ma_rtfm", "messenger"), limits=limits) as there:
            bystander, owner = await there.person(), await there.person()
            code = await bystander.create(["human", "oracle"])
            await bystander.join(code)
            theirs = await owner.create(["human", "human"])
            await owner.join(theirs)
            await owner.join(theirs)  # both agents
            session = there.host.rooms[code].session
            same = Session("ma_rtfm", {**session.vec.options}, Lineup.parse("human,oracle", 2), 3)
            attacker = Attacker(there, [code, theirs, "nothing"], random.Random(SEED))
            grown = []
            await attacker.pry(theirs)
            for number in range(MESSAGES):
                await attacker.send()
                if number % 200 == 0:
                    there.host.sweep_once()
                if number % max(1, MESSAGES // 10) == 0:
                    grown.append(memory())
                if number % (MESSAGES // 4) == 0 and not same.now.over:
                    same.choose(0, same.moves(0)[-1].action)
                    await bystander.move(0, same.moves(0)[-1].action)
                    same.advance()
                    await bystander.hear("frame")
                assert session.now.words == same.now.words
                assert session.now.last == same.now.last
            assert code in there.host.rooms
            return attacker.said, grown

    said, grown = asyncio.run(run())
    refused = sum(count for what, count in said.items() if what in CODES)
    print(f"{said.total():,} messages, {refused:,} refused by a code:", dict(said.most_common()))
    assert said.total() == MESSAGES + 4
    assert refused > 0.8 * MESSAGES
    assert {"malformed", "unknown_type", "wrong_value", "too_big", "bad_game", "no_game"} <= said.keys()
    assert {"not_your_agent", "agent_taken", "not_joined"} <= said.keys()
    assert max(grown[1:]) - grown[1] < MEMORY
