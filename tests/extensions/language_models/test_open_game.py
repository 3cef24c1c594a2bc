"""Games in which another program plays: it reads what the player `llm:NAME` reads."""

import hashlib
import json

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.extensions.language_models.open_game import OPEN_SEED, OpenGames
from magrounding.extensions.language_models.player import LanguageModels
from magrounding.teams.episodes import Episodes
from magrounding.teams.evaluate import REPORT_SEED
from magrounding.teams.lineup import Lineup
from tests.extensions.language_models.served import Served, last_legal, model, serving

DEADLY = {"stage": "s4", "agents": 3, "reading": "kind", "death": "individual", "max_cycles": 15}
WORLDS = {
    "ma_rtfm": (DEADLY, "model,oracle,model"),
    "messenger": ({"stage": "s2", "max_cycles": 15}, "model"),
    "rtfm": ({"task": "nl", "max_cycles": 15}, "model"),
}


def reply(body):
    """A legal move, an illegal one or none, by the messages."""
    draw = int(hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest(), 16)
    return last_legal(body) if draw % 3 else "<move>fly</move>" if draw % 2 else "hm"


def played(games, number, choose=reply):
    """Play a game; return it at its end, all requests, and the rewards of each choice."""
    game, asked, rewards = games.begin(number), [], []
    while not game.over:
        while waiting := game.asked:
            for dialogue in waiting.values():
                asked.append([dict(each) for each in dialogue.messages])
                dialogue.answer(choose({"messages": dialogue.messages}))
        game.advance()
        rewards.append(game.rewards)
    game.close()
    return game, asked, rewards


def sorted_texts(requests):
    return sorted(json.dumps(each) for each in requests)


@pytest.mark.parametrize("env", WORLDS)
def test_an_open_agent_is_asked_what_a_language_model_is(env):
    pytest.importorskip("httpx2")
    pytest.importorskip("aiohttp")
    options, players = WORLDS[env]
    games = OpenGames(env, options, players, history=2)
    vec, refused = mg.make_vec(env, 1, **games.options), 0
    for number in range(3):
        with serving(Served(reply)) as served:
            models = LanguageModels({"small": model(served, history=2, timeout=20.0)})
            lineup = Lineup.parse(players.replace("model", "llm:small"), vec.num_agents, models)
            episodes = Episodes(lineup.build_actor(vec, OPEN_SEED + number), vec, 1, OPEN_SEED + number)
            while episodes.rows.size:
                episodes.play(np.where(episodes.info.alive, episodes.choose(), 0))
            models.close()
        game, asked, _ = played(games, number)
        assert sorted_texts(asked) == sorted_texts(body["messages"] for body in served.asked)
        assert (game.won, game.steps) == (episodes.info.won[0], episodes.info.length[0])
        assert game.returns.tolist() == episodes.info.returns[0].tolist()
        refused += sum("was not played" in messages[-1]["content"] for messages in asked)
    assert refused > 0


@pytest.mark.parametrize(
    ("history", "read_again"),
    [
        (0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (3, [0, 1, 2, 3, 4, 5, 3, 4, 5, 3]),
        (10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_requests_begin_like_the_one_before_until_the_oldest_steps_are_dropped(history, read_again):
    """Servers reuse what they computed for the beginning of a request."""
    games = OpenGames("messenger", {"stage": "s2", "max_cycles": 10}, history=history)
    _, asked, _ = next(found for number in range(50) if (found := played(games, number, last_legal))[0].steps == 10)
    assert [len(messages) // 2 - 1 for messages in asked] == read_again
    for before, messages, past, present in zip(asked, asked[1:], read_again, read_again[1:], strict=False):
        assert (messages[: len(before)] == before) == (present > past), "nothing of it was dropped or changed"
        manuals = {each[1]["content"].split("\n\n")[0] for each in (before, messages)}
        assert len(manuals) == 1, "it comes first"


def test_a_game_goes_on_without_open_agents():
    """Agents that are out are asked no more; their teammates play to the end within one step, whose rewards add up."""
    waited = 0
    for number in range(12):
        game, asked, rewards = played(OpenGames("ma_rtfm", DEADLY, "model,random,random"), number, last_legal)
        assert np.allclose(np.sum(rewards, 0), game.returns, atol=1e-5)
        assert len(asked) <= game.steps
        waited += game.steps - len(asked)
    assert waited > 0


def test_training_has_no_game_of_another_split():
    assert OpenGames("ma_rtfm", {"stage": "s1"}).options["split"] == "train"
    assert OpenGames("messenger", {}, split="test").options["split"] == "test"
    assert OpenGames("rtfm", {}, split="eval_10x10").options["size"] == 10
    assert OPEN_SEED - 2**31 > REPORT_SEED + 2**31


@pytest.mark.parametrize(
    "arguments",
    [
        {"options": {"split": "eval"}},
        {"split": "tests"},
        {"players": "model,model"},
        {"reply": "xml"},
        {"history": -1},
    ],
)
def test_games_that_cannot_be(arguments):
    with pytest.raises(ConfigurationError):
        OpenGames(**{"env": "rtfm", "options": {}, **arguments})
