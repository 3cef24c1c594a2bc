"""Games in the browser, as their pages talk to the server: by the real websocket, without a browser."""

import asyncio
import json
from threading import Event

import numpy as np
import pytest

pytest.importorskip("aiohttp")

from magrounding.cli import record
from magrounding.cli.command import CommandLine
from magrounding.teams.lineup import Lineup, PlayerSpec
from magrounding.teams.saved_games import read_episodes, replayed
from magrounding.training.demonstrations import Demonstrations
from tests.extensions.people.web.party import S1, party, play_out


def test_two_people_play_a_game_to_its_end_see_the_same_and_it_is_learnt_from(tmp_path):
    async def run():
        async with party(out=tmp_path) as there:
            one, other, third = [await there.person() for _ in range(3)]
            code = await one.create(["human", "human"])
            assert (await one.join(code))["agent"] == 0
            assert await one.refused("move", agent=0, step=0, action=0) == "not_begun"
            assert (await other.join(code))["agent"] == 1
            await one.hear("status")
            assert (await third.join(code))["agent"] is None  # every agent is taken: it watches
            frames = await play_out(there, code, one, other)
            assert frames[0] == frames[1]
            assert frames[0]["won"]
            while not third.frame["over"]:
                await third.hear("frame")
            assert third.frame == frames[0]
            assert await one.refused("move", agent=0, step=frames[0]["step"], action=0) == "game_over"
            saved = await there.client.get(f"/game/{code}/saved")
            assert saved.headers["Content-Disposition"] == 'attachment; filename="ma_rtfm-seed3.jsonl"'
            text = await saved.text()
            shown = await (await there.client.get(f"/game/{code}/frames")).json()
            again = await there.client.post("/replay", data=text, headers={"Origin": there.origin})
            replay = await again.json()
            assert [each["figures"] for each in replay["frames"]] == [each["figures"] for each in shown["frames"]]
            assert replay["frames"][0]["pursues"] == shown["frames"][0]["pursues"] != {}
            await one.say("restart", seed="next")
            await other.hear("frame")
            assert (other.frame["seed"], other.frame["step"]) == (4, 0)
            return text

    text = asyncio.run(run())
    (file,) = tmp_path.glob("ma_rtfm-*.jsonl")
    assert file.read_text() == text
    header, games = read_episodes(file)
    assert header.players == ("human", "human")
    assert list(replayed(file, header, games)) == [0]
    asked = "--env", "ma_rtfm", "--player", f"saved:{file}", "--out", str(tmp_path / "shown.npz")
    assert CommandLine("magrounding record", asked).run(record) == 0
    found = Demonstrations.load(tmp_path / "shown.npz")
    assert np.array_equal(found.actions[: len(games[0].actions)], games[0].actions)
    assert np.take_along_axis(found.labels, found.actions[..., None], -1).all()


def test_who_plays_is_sent_its_own_lines_of_a_split_manual_until_the_end():
    async def run():
        async with party() as there:
            one, other, third = [await there.person() for _ in range(3)]
            options = {"stage": "s2g", "split": "train", "reading": "kind", "max_cycles": 3}
            code = await one.create(["human", "human"], options=options)
            for person in (one, other, third):
                await person.join(code)
            seen = [person.frame["manual"] for person in (one, other, third)]
            assert [list(manual) for manual in seen] == [["0"], ["1"], ["0", "1"]]
            assert seen[0] | seen[1] == seen[2]
            assert (await there.client.get(f"/game/{code}/frames")).status == 409
            there.host.rooms[code]._once = True  # as in a study, where a second page of a player's must not show more
            await third.join(code)
            assert third.frame["manual"] == {}
            frames = await play_out(there, code, one, other)
            assert frames[0] == frames[1]
            assert list(frames[0]["manual"]) == ["0", "1"]
            assert (await there.client.get(f"/game/{code}/frames")).status == 200

    asyncio.run(run())


def test_an_agent_takes_over_the_seat_of_who_leaves_and_hands_it_back():
    async def run():
        async with party() as there:
            one, other = await there.person(), await there.person()
            code = await one.create(["human", "human"])
            await one.join(code)
            token = (await other.join(code))["token"]
            await other.close()
            while (await one.hear("status"))["present"] != [0]:
                pass
            await one.move(0, 0)
            await one.hear("frame")
            assert one.frame["step"] == 1  # it did not wait for who is away
            stranger, back = await there.person(), await there.person()
            assert (await stranger.join(code))["agent"] is None  # the agent is kept for a while
            assert await stranger.refused("join", code=code, agent=1) == "agent_taken"
            assert await stranger.refused("join", code=code, agent=1, token="guessed") == "agent_taken"
            assert (await back.join(code, token=token))["agent"] == 1
            await one.move(0, 0)
            await one.hear("status")
            assert one.frame["step"] == 1  # now it does wait
            await back.move(1, 0)
            await one.hear("frame")
            assert one.frame["step"] == 2
            return there.host.rooms[code]._played_by(1), there.host.rooms[code]._played_by(0)

    assert asyncio.run(run()) == ("human+oracle", "human")


def test_a_page_that_lost_its_connection_takes_its_seat_from_itself():
    async def run():
        async with party() as there:
            one, again, tab = [await there.person() for _ in range(3)]
            code = await one.create(["human", "oracle"])
            token = (await one.join(code))["token"]
            assert (await tab.join(code, token=token))["agent"] is None  # another tab of the same browser
            assert (await again.join(code, token=token, agent=0))["mine"] == [0]
            await one.hear("displaced")
            assert await one.refused("move", agent=0, step=0, action=0) == "not_your_agent"
            await again.say("leave")
            await again.hear("left")
            late = await there.person()
            assert (await late.join(code))["agent"] == 0  # left for good: the agent is free at once

    asyncio.run(run())


def test_time_that_is_up_moves_who_has_not_chosen():
    async def run():
        async with party() as there:
            one, other = await there.person(), await there.person()
            code = await one.create(["human", "human"], pace=0.3)
            await one.join(code)
            await other.join(code)
            await one.hear("frame")
            assert one.frame["step"] == 1
            await one.move(0, 0)
            await one.move(0, 0)
            assert (await one.hear("frame"))["last"][0].startswith("agent 0: stay")

    asyncio.run(run())


def test_agents_whose_person_is_out_do_not_take_the_persons_time():
    async def run():
        async with party() as there:
            one = await there.person()
            options = {"stage": "s3", "agents": 2, "max_cycles": 40, "death": "individual"}
            await one.join(await one.create(["human", "oracle"], options=options, seed=0, pace=600))
            async with asyncio.timeout(300):
                while "0" in one.frame["moves"]:
                    await one.move(0, 0)
                    await one.hear("frame")
                assert not one.frame["over"]
                await one.hear("frame")

    asyncio.run(run())


class Thinker:
    """A player that thinks until it is told to go on."""

    def __init__(self):
        self.go_on = Event()
        self.go_on.set()

    def act(self, obs, memory=None, info=None, greedy=True):
        self.go_on.wait(60)
        return obs["action_mask"].argmax(-1), None


def test_who_thinks_long_holds_up_nobody_else_and_a_game_that_hangs_is_given_up(monkeypatch):
    thinker = Thinker()

    def build_actor(lineup, vec, seed):
        return thinker if "random" in lineup.name else PlayerSpec("oracle").build_actor(vec, seed)

    monkeypatch.setattr(Lineup, "build_actor", build_actor)

    async def run():
        async with party(limits={"patience": 4.0}) as there:
            slow, quick = await there.person(), await there.person()
            code, other = await slow.create(["human", "random"]), await quick.create(["human", "oracle"])
            await slow.join(code)
            await quick.join(other)
            thinker.go_on.clear()
            await slow.move(0, 0)
            assert await slow.refused("move", agent=0, step=0, action=0) == "thinking"
            await play_out(there, other, quick)
            assert slow.frame["step"] == there.host.rooms[code]._step == 0
            while not (await slow.hear("status"))["thinking"]:
                pass
            thinker.go_on.set()
            await slow.hear("frame")
            thinker.go_on.clear()
            await slow.move(0, 0)
            assert (await slow.hear("closed"))["code"] == "lost"
            thinker.go_on.set()
            assert await slow.refused("move", agent=0, step=1, action=0) == "lost"
            assert (await there.client.get(f"/game/{code}/frames")).status == 500
            await slow.close()
            while there.host.rooms[code].visitors:
                await asyncio.sleep(0.01)
            there.host.sweep_once()
            assert list(there.host.rooms) == [other]

    asyncio.run(run())


def test_games_that_nobody_is_in_go_and_there_are_no_more_than_so_many():
    async def run():
        async with party(limits={"games": 2, "idle_seconds": 0.0, "sockets": 2}) as there:
            one, other = await there.person(), await there.person()
            kept = await one.create(["human", "oracle"])
            await one.join(kept)
            gone = await other.create(["oracle", "oracle"])
            await other.join(gone)
            fields = {"env": "ma_rtfm", "options": S1, "players": ["human"] * 2, "seed": 0, "pace": 0}
            assert await other.refused("create", **fields) == "full"
            refused = await there.client.get("/socket", headers={"Origin": there.origin})
            assert (refused.status, (await refused.json())["code"]) == (503, "full")
            await other.say("leave")
            await other.hear("left")
            there.host.sweep_once()
            assert list(there.host.rooms) == [kept]
            assert await other.refused("join", code=gone) == "no_game"

    asyncio.run(run())


def test_what_trained_agents_take_and_read_is_shown_and_what_stands_in_for_people_is_not():
    names = ["human", "pretrained:ma_rtfm-s5-2agents-endi"]

    async def run():
        async with party(standin=names[1]) as there:
            one = await there.person()
            code = await one.create(names, options={"stage": "s5", "max_cycles": 2})
            await one.join(code)
            assert list(one.frame["claims"]) == ["1"]
            for _ in range(2):
                await one.move(0, 0)
                await one.hear("frame")
            await one.hear("saved")
            text = await (await there.client.get(f"/game/{code}/saved")).text()
            assert json.loads(text.splitlines()[0])["players"] == names
            replay = await there.client.post("/replay", data=text, headers={"Origin": there.origin})
            frames = (await replay.json())["frames"]
            return [each for each in one.heard if each["type"] == "frame"], frames

    live, again = asyncio.run(run())
    assert [each["claims"] for each in live[:2]] == [each["claims"] for each in again[:2]]
