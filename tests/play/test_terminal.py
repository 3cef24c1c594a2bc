"""The terminal: whole games played by keys in the real app, without a screen."""

import asyncio
import re

import numpy as np
import pytest

from magrounding.cli import play as command
from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError, InvalidAction
from magrounding.play.action_names import letters_of
from magrounding.play.lineup import Lineup
from magrounding.play.saved_games import GameWriter, read_games, replayed
from magrounding.play.session import Session

pytest.importorskip("textual")

from textual.widgets import Input, Static

from magrounding.play.terminal import Terminal

S2 = {"stage": "s2", "agents": 2, "max_cycles": 40}


def session(env="ma_rtfm", players="human,oracle", seed=3, **options):
    options = options or S2
    return Session(env, options, Lineup.parse(players, options.get("agents", 1)), seed)


def best(game, agent):
    """What the oracle would do in a person's place."""
    from magrounding.play.actor import make_expert

    labels = make_expert(game.vec).best_actions()[0, agent]
    return int(np.flatnonzero(labels)[0])


def play(game, *, screen=(120, 40), listed=False):
    """Play to the end by keys as the oracle would; the app at its end, as text."""

    async def run():
        app = Terminal(game, pause=60)
        async with app.run_test(size=screen) as pilot:
            keys = {} if listed else {action: key for key, action in app._keys.items()}
            for _ in range(game.vec.spec.max_cycles):
                if game.now.over:
                    break
                for agent in list(game.waiting):
                    action = best(game, agent)
                    if listed:
                        app.query_one("#filter", Input).value = next(
                            move.name for move in game.moves(agent) if move.action == action
                        )
                        await pilot.press("enter")
                    else:
                        await pilot.press(keys[action])
            await pilot.pause()
            shown = {name: str(app.query_one(f"#{name}", Static).render()) for name in ("picture", "status", "last")}
            await pilot.press("pageup")
            shown["back"] = str(app.query_one("#status", Static).render())
            await pilot.press("ctrl+r")
            shown["again"] = str(app.query_one("#status", Static).render())
        return shown

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("env", "players", "options"),
    [
        ("ma_rtfm", "human,oracle", S2),
        ("ma_rtfm", "human", S2),
        ("rtfm", "human", {"task": "simple_stationary", "max_cycles": 40}),
        ("messenger", "human", {"stage": "s1"}),
        ("ma_messenger", "human,oracle", {"stage": "s1", "agents": 2}),
        ("babyai", "human", {"level": "GoToLocal"}),
    ],
)
def test_a_whole_game_is_won_by_keys(env, players, options):
    if env == "babyai":
        pytest.importorskip("minigrid")
    game = session(env, players, **options)
    shown = play(game)
    assert "The game is won." in shown["status"]
    assert "looking back from step" in shown["back"]
    assert "step 0" in shown["again"]
    assert "agent 0: " in shown["last"]
    assert shown["picture"]
    game.close()


def test_a_text_world_has_a_list():
    pytest.importorskip("alfworld")
    game = session("alfworld", "human", split="train")
    assert "The game is won." in play(game, listed=True)["status"]
    game.close()


@pytest.mark.parametrize("screen", [(80, 24), (120, 40)])
def test_all_moves_and_the_goal_are_on_the_screen(screen):
    async def run():
        app = Terminal(session(), pause=60)
        async with app.run_test(size=screen) as pilot:
            await pilot.pause()
            keys, legal = app.query_one("#keys", Static), [move.name for move in app.session.moves(0)]
            assert str(keys.render()).split() == [
                f"{key}:{name}"
                for key, name in zip("sudlr", ("stay", "up", "down", "left", "right"), strict=True)
                if name in legal
            ]
            assert keys.region.bottom <= screen[1]
            texts = app.query_one("#texts", Static)
            assert "goal:" in str(texts.render())
            assert texts.region.bottom <= screen[1]  # the whole manual, without scrolling

    asyncio.run(run())


def test_agents_among_themselves_play_on_and_stop():
    async def run():
        app = Terminal(session(players="oracle"), pause=0.01)
        async with app.run_test() as pilot:
            while not app.session.now.over:
                await pilot.pause(0.01)
            assert app.session.now.won
            await pilot.press("ctrl+n")
            assert app.session.seed == 4
            await pilot.press("ctrl+p")
            step = app.session.now.step
            await pilot.pause(0.1)
            assert app.session.now.step <= step + 1

    asyncio.run(run())


def test_a_game_that_a_person_played_is_saved(tmp_path):
    game = session()
    writer = GameWriter(tmp_path / "games", game.header)
    while not game.now.over:
        for agent in game.waiting:
            game.choose(agent, best(game, agent))
        assert game.advance()
    writer.write([game.saved()])
    header, games = read_games(tmp_path / "games")
    assert header.players == ("human", "oracle")
    assert games[0].won
    assert list(replayed(tmp_path / "games", header, games)) == [0]


def test_who_moves_and_what_cannot_be():
    game = session()
    assert (game.living, game.waiting, game.advance()) == ([0, 1], [0], False)
    with pytest.raises(InvalidAction, match="agent 1 is not for a person to move"):
        game.choose(1, 0)
    with pytest.raises(InvalidAction, match="agent 0 cannot do 9 now"):
        game.choose(0, 9)
    with pytest.raises(ConfigurationError, match="saved when it is over"):
        game.saved()
    game.choose(0, 0)
    last = game.moves(0)[-1]
    game.choose(0, last.action)  # thought better of it
    assert game.advance()
    assert game.now.last[0].startswith(f"agent 0: {last.name}")
    assert game.chosen == {}


def test_keys():
    names = ("stay", "up", "down", "left", "right", "strike")
    assert letters_of(names) == {"s": 0, "u": 1, "d": 2, "l": 3, "r": 4, "t": 5}
    assert letters_of(["quit", "stay"], "q") == {"u": 0, "s": 1}
    with pytest.raises(ConfigurationError, match="no key is left for the action 'aa'"):
        letters_of(["a", "aa"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--env", "chess"), "unknown env 'chess'"),
        (("--env", "ma_rtfm", "--players", "human,oracle,human"), "one for each of the 2"),
        (("--env", "ma_rtfm", "--seconds", "0"), "--seconds must be more than 0, got 0"),
        (("--env", "ma_rtfm", "--players", "run:no/such"), "this is not the folder of a run"),
    ],
)
def test_bad_input_is_one_sentence(capsys, arguments, complaint):
    assert command.main(CommandLine("magrounding play", arguments)) == 2
    assert re.fullmatch(rf"error: [^\n]*{re.escape(complaint)}[^\n]*\n", capsys.readouterr().err)
