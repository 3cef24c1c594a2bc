"""Every registered world is played in the browser's way, by the same websocket, and its games are shown again."""

import asyncio
import random

import pytest

pytest.importorskip("aiohttp")

from magrounding.registry import ENVS, env_entry
from tests.extensions.people.web.party import party

STEPS = 4


@pytest.mark.timeout(600)
@pytest.mark.parametrize("env", list(ENVS))
def test_a_world_is_played_and_shown_again(env):
    entry, rng = env_entry(env), random.Random(0)

    async def run():
        async with party(envs=(env,)) as there:
            one = await there.person()
            options = {"max_cycles": STEPS} if "max_cycles" in entry.options else {}
            players = ["human"] * entry.options.get("agents", 1)
            await one.say("create", env=env, options=options, players=players, seed=1, pace=0)
            made = await one.hear("created", "refused")
            if made["type"] == "refused":
                assert "pip install" in made["sentence"] or "Java" in made["sentence"]
                pytest.skip(made["sentence"])
            for _ in players:
                game = (await one.join(made["code"]))["game"]
            while not one.frame["over"]:
                frame = one.frame
                assert frame.get("figures") or frame["text"]
                assert set(frame["moves"]) <= {str(agent) for agent in one.mine}
                for agent, legal in frame["moves"].items():
                    action = rng.choice(legal)
                    if game["actions"] is None:  # a number and the words of the choice
                        action, words = action
                        assert words == words.strip() != ""
                    await one.move(int(agent), action)
                await one.hear("frame")
            await one.hear("saved")
            text = await (await there.client.get(f"/game/{made['code']}/saved")).text()
            again = await there.client.post("/replay", data=text, headers={"Origin": there.origin})
            frames = (await again.json())["frames"]
            assert frames[-1]["over"]
            for name in ("figures", "text", "last", "score"):
                assert frames[-1].get(name) == one.frame.get(name)
            assert len(frames) == one.frame["step"] + 1 > 1

    asyncio.run(run())
