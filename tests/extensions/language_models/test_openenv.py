"""OpenEnv's own client plays whole games against our server over loopback."""

import re
import socket
import threading
from contextlib import closing, contextmanager

import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.extensions.language_models.open_game import OPEN_SEED, OpenGames
from magrounding.teams.actor import make_expert
from magrounding.teams.episodes import Episodes

pytest.importorskip("openenv", reason="OpenEnv is not installed: make test-clients")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its own parts, as they are imported

import uvicorn  # noqa: E402
from openenv import GenericEnvClient  # noqa: E402

from magrounding.extensions.language_models.openenv import make_app  # noqa: E402

PAIR = {"stage": "s2g", "reading": "kind", "agents": 2, "max_cycles": 10}


@contextmanager
def served(app):
    """Serve in a thread while entered; yields the address."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        place.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{place.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def last_move(messages):
    """The last legal move of the present step."""
    moves = [re.findall(r"MOVES\n(.*)", each["content"]) for each in messages]
    return f"<move>{next(found for found in reversed(moves) if found)[-1].split(', ')[-1]}</move>"


@pytest.mark.parametrize("reward", ["world", "win"])
def test_the_client_plays_what_an_open_agent_plays(reward):
    """Message by message; a reply without a move costs no step, and a second one is a step in which nothing is done."""
    said = iter(["hm", "", "<move>fly</move>", "-", "-"])
    twin = OpenGames("ma_rtfm", PAIR, "oracle,model").begin(7)
    steps = refused = 0
    with (
        served(make_app("ma_rtfm", PAIR, "oracle,model", reward=reward)) as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        shown = client.reset(seed=7, episode_id="first")
        assert (shown.reward, shown.done) == (None, False)
        while not shown.done:
            dialogue = twin.dialogues[1]
            assert shown.observation["messages"] == dialogue.messages
            assert shown.observation["won"] is None
            reply = next(said, None)
            reply = last_move(dialogue.messages) if reply is None else reply
            dialogue.answer(reply)
            shown = client.step({"reply": reply})
            if dialogue.action is None:
                assert shown.reward == 0.0
                refused += 1
                continue
            refused += dialogue.refused > 1
            twin.advance()
            steps += 1
            assert shown.reward == (twin.rewards[1] if reward == "world" else float(twin.won))
            assert shown.done == twin.over
        state = client.state()
        assert shown.observation["won"] == twin.won
    assert (state["episode_id"], state["number"], state["split"]) == ("first", 7, "train")
    assert (state["step_count"], state["refused"]) == (steps, refused) == (twin.steps, 5)
    assert state["total_reward"] == twin.returns[1]


def test_winning_is_rewarded():
    """The oracle's moves, as replies: each game is won, by its last step."""
    options = {"task": "simple_stationary"}
    with (
        served(make_app("rtfm", options)) as url,
        GenericEnvClient(base_url=url).sync() as client,
        closing(mg.make_vec("rtfm", 1, split="train", **options)) as vec,
    ):
        for number in range(3):
            episodes = Episodes(make_expert(vec), vec, 1, OPEN_SEED + number)
            shown, rewards = client.reset(seed=number), []
            while not shown.done:
                actions = episodes.choose()
                episodes.play(actions)
                shown = client.step({"reply": f"<move>{vec.spec.actions.names[int(actions[0, 0])]}</move>"})
                rewards.append(shown.reward)
            assert (rewards[-1], sum(rewards)) == (1.0, 1.0)
            assert shown.observation["won"]


def test_clients_play_at_once_games_of_their_own():
    with served(make_app("messenger", {"max_cycles": 5})) as url:
        clients = [GenericEnvClient(base_url=url).sync() for _ in range(3)]
        for client in clients:
            client.connect()
        shown = [client.reset(seed=seed) for seed, client in enumerate(clients)]
        assert len({each.observation["messages"][-1]["content"] for each in shown}) == 3
        drawn = {client.reset().observation["messages"][-1]["content"] for client in clients}
        assert len(drawn) == 3, "without a seed each session draws its games"
        for client in clients:
            client.close()


def test_what_is_wrong_is_said():
    with served(make_app("rtfm")) as url, GenericEnvClient(base_url=url).sync() as client:
        with pytest.raises(RuntimeError):
            client.step({"reply": "<move>up</move>"})
        with pytest.raises(RuntimeError):
            client.reset(seed=2**40)
        client.reset(seed=1)
        with pytest.raises(RuntimeError):
            client.step({"move": "up"})
        assert not client.step({"reply": "<move>up</move>"}).done, "the session goes on"
    with pytest.raises(ConfigurationError):
        make_app("ma_rtfm", PAIR)
    with pytest.raises(ConfigurationError):
        make_app("ma_rtfm", PAIR, "model,pretrained:none")
    with pytest.raises(ConfigurationError):
        make_app("rtfm", reward="loss")
