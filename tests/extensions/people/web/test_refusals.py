"""What hostile or broken clients send: each is refused with a code of its own, and nobody else notices."""

import asyncio
import json
from dataclasses import asdict, replace

import pytest

pytest.importorskip("aiohttp")

from aiohttp import WSMsgType, WSServerHandshakeError

from magrounding.extensions.people.web.messages import Refusal, parse, read
from magrounding.teams.lineup import Lineup, PlayerSpec
from magrounding.teams.saved_games import to_text
from magrounding.teams.session import Session
from tests.extensions.people.web.party import S1, party

GAME = {"env": "ma_rtfm", "options": S1, "players": ["human", "oracle"], "seed": 0, "pace": 0}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[]", "malformed"),
        ("[" * 4000, "malformed"),
        ('{"type": 3}', "malformed"),
        ('{"type": "leave", "ref": NaN}', "malformed"),
        ('{"type": "finish", "ticket": "", "answers": {"comment": "\\ud83d"}}', "malformed"),  # half a character
        ('{"type": "eval"}', "unknown_type"),
        ('{"type": "leave", "path": "/etc/passwd"}', "unknown_field"),
        ('{"type": "move", "agent": true, "step": 0, "action": 0}', "wrong_value"),
        ('{"type": "move", "agent": 0, "step": 0}', "wrong_value"),
        (f'{{"type": "move", "agent": 0, "step": 0, "action": {10**30}}}', "wrong_value"),
    ],
)
def test_messages_are_checked_field_by_field(text, code):
    with pytest.raises(Refusal) as refused:
        parse(read(text))
    assert refused.value.code == code


@pytest.mark.parametrize(
    "changes",
    [
        {"env": "../../etc"},
        {"env": "alfworld"},  # registered, and not offered
        {"options": {"corpus": "/etc"}, "env": "messenger", "players": ["human"]},
        {"options": {"size": 1000}},
        {"options": {"max_cycles": 10**6}},
        {"players": ["human"]},
        {"players": ["human", "run:runs/quick"]},
        {"players": ["human", ["oracle"]]},
        {"pace": -1},
    ],
)
def test_only_what_is_offered_is_made(changes):
    async def run():
        async with party(envs=("ma_rtfm", "messenger")) as there:
            one = await there.person()
            assert await one.refused("create", **{**GAME, **changes}) in ("bad_game", "wrong_value")
            assert there.host.rooms == {}

    asyncio.run(run())


def test_players_are_those_that_the_host_names(tmp_path):
    moves = tmp_path / "moves.txt"
    moves.write_text("stay\n*\n")

    async def run():
        async with party(more_players={"still": PlayerSpec.parse(f"script:{moves}")}) as there:
            one = await there.person()
            code = await one.create(["human", "still"])
            await one.join(code)
            await one.move(0, 0)
            await one.hear("frame")
            assert one.frame["last"][1].startswith("agent 1: stay")
            assert str(tmp_path) not in json.dumps(one.heard)
            moves.unlink()
            await one.say("create", **{**GAME, "players": ["human", "still"]})
            refused = await one.hear("refused")
            assert (refused["code"], refused["sentence"]) == ("bad_game", "one of its players cannot be had")

    asyncio.run(run())


def test_moves_that_are_not_ones_own_to_make():
    async def run():
        async with party() as there:
            one, other = await there.person(), await there.person()
            move = {"agent": 0, "step": 0, "action": 0}
            assert await one.refused("move", **move) == "not_joined"
            assert await one.refused("join", code="../../etc/passwd") == "no_game"
            code = await one.create(["human", "oracle"])
            await one.join(code)
            await other.join(code)
            assert await other.refused("move", **move) == "not_your_agent"
            assert await one.refused("move", **{**move, "agent": 1}) == "not_your_agent"
            assert await one.refused("move", **{**move, "step": 7}) == "stale"
            assert await one.refused("move", **{**move, "action": 99}) == "illegal_move"
            assert await one.refused("join", code=code, agent=1) == "wrong_value"
            assert await other.refused("restart", seed="same") == "not_your_agent"
            assert await one.refused("restart", seed="other") == "wrong_value"
            assert there.host.rooms[code].session.now.step == 0
            assert (await there.client.get(f"/game/{code}/saved")).status == 409
            await one.say("move", **move, ref=5)
            assert (await one.hear("taken"))["ref"] == 5

    asyncio.run(run())


@pytest.mark.parametrize("origin", [None, "null", "http://127.0.0.1:1", "http://["])
def test_foreign_pages_reach_nothing(origin):
    async def run():
        async with party() as there:
            headers = {} if origin is None else {"Origin": origin}
            with pytest.raises(WSServerHandshakeError, match="403"):
                await there.client.ws_connect("/socket", headers=headers)
            answer = await there.client.post("/replay", data="x", headers=headers)
            assert (answer.status, (await answer.json())["code"]) == (403, "foreign_origin")

    asyncio.run(run())


def test_pages_are_sealed_and_no_file_is_reached_by_a_path():
    async def run():
        async with party() as there:
            for path in ("/", "/game/whatever", "/replay"):
                page = await there.client.get(path)
                assert page.status == 200
                assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
                assert page.headers["X-Content-Type-Options"] == "nosniff"
                assert page.headers["Server"] == "magrounding"
                text = await page.text()
                assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
                assert "whatever" not in text
            for path in (
                "/file/../host.py",
                "/file/%2e%2e%2fhost.py",
                "/file/%2fetc%2fpasswd",
                "/sprite/..%2f..",
                "/game/x/../../etc",
                "/nothing",
                "/game/x/saved",
            ):
                answer = await there.client.get(path)
                assert answer.status == 404
                assert (await answer.json())["code"] in ("no_page", "no_game")
            renamed = await there.client.get("/", headers={"Host": "evil.example"})
            assert (renamed.status, (await renamed.json())["code"]) == (403, "foreign_host")
            assert (await (await there.client.put("/")).json())["code"] == "no_page"

    asyncio.run(run())


def test_what_is_too_long_or_too_fast():
    limits = {"message_bytes": 200, "frame_bytes": 1000, "messages_per_second": 1, "burst": 4, "strikes": 6}

    async def run():
        async with party(limits={**limits, "upload_bytes": 500}) as there:
            one = await there.person()
            assert await one.refused("join", code="x" * 300) == "too_big"
            await one.socket.send_bytes(b"{}")
            assert (await one.hear("refused"))["code"] == "malformed"
            assert await one.refused("eval") == "unknown_type"
            await one.say("leave")
            await one.hear("left")
            assert [await one.refused("leave") for _ in range(6)] == ["too_fast"] * 6
            assert (await one.socket.receive()).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
            assert one.socket.close_code == 1008
            big = await there.person()
            await big.socket.send_str("x" * 2000)
            await big.socket.receive()
            assert big.socket.close_code == 1009
            upload = await there.client.post("/replay", data="x" * 2000, headers={"Origin": there.origin})
            assert (upload.status, (await upload.json())["code"]) == (413, "too_big")

    asyncio.run(run())


def saved_game(env="ma_rtfm", players="oracle,oracle", **options):
    session = Session(env, options or {**S1, "agents": 2}, Lineup.parse(players, 2 if "," in players else 1), 5)
    while not session.now.over:
        session.advance()
    session.close()
    return session.header, session.saved()


def altered(header, game, **changes):
    """The text of a game whose header or moves somebody has changed, seals and all."""
    own = {name: value for name, value in changes.items() if name in asdict(game)}
    rest = {name: value for name, value in changes.items() if name not in own}
    return to_text(replace(header, **rest), [replace(game, **own)])


def test_uploads_are_played_again_or_refused():
    header, game = saved_game()
    whole, later = to_text(header, [game, game]), game.actions[1:]
    messenger = {"env": "messenger", "agents": 1, "players": ("random",), "options": {"corpus": "/etc"}}

    async def run():
        async with party(envs=("ma_rtfm", "messenger"), limits={"steps": 60}) as there:

            async def upload(text, query=""):
                answer = await there.client.post(f"/replay{query}", data=text, headers={"Origin": there.origin})
                content = await answer.json()
                return content.get("code") or len(content["frames"])

            assert await upload(whole) == await upload(whole, "?game=1") == game.length + 1
            assert await upload(whole, "?game=2") == "bad_file"
            assert await upload(whole, "?game=-1") == "wrong_value"
            unread = altered(header, game, players=("run:/etc", "script:/etc/passwd"))
            assert await upload(unread) == game.length + 1
            for text in (
                whole.replace('"seed":5', '"seed":6'),
                altered(header, game, seed=6),
                altered(header, game, actions=((99, 0), *later)),
                altered(header, game, actions=((2**70, 0), *later)),
                altered(header, game, actions=((0,),)),
                altered(header, game, actions=game.actions * 60),
                altered(header, game, options={**header.options, "size": 1000}),
                altered(header, game, options={**header.options, "corpus": "/etc"}),
                altered(header, game, **messenger),
                altered(header, game, seed=2**70),
            ):
                assert await upload(text) == "bad_file"

    asyncio.run(run())
