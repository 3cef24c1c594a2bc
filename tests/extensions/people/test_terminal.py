"""The terminal: whole games played by keys in the real app, without a screen."""

import asyncio

import numpy as np
import pytest

from examples.my_game.my_game import env as my_game
from magrounding.agents.building import make_policy
from magrounding.cli import watch
from magrounding.cli.command import CommandLine
from magrounding.envs.make import make_vec
from magrounding.errors import InvalidAction
from magrounding.registry import ENVS, EnvEntry
from magrounding.teams.lineup import Lineup, PlayerSpec
from magrounding.teams.saved_games import EpisodeWriter, read_episodes
from magrounding.teams.session import Session
from magrounding.teams.team import Team

pytest.importorskip("textual")

from textual.widgets import OptionList, Static

from magrounding.extensions.people import terminal
from magrounding.extensions.people.terminal import Terminal

S2 = {"stage": "s2", "agents": 2, "max_cycles": 40}


def session(env="ma_rtfm", players="human,oracle", seed=3, **options):
    options = options or S2
    return Session(env, options, Lineup.parse(players, options.get("agents", 1)), seed)


def best(game, agent):
    """What the oracle would do in a person's place."""
    from magrounding.teams.actor import make_expert

    labels = make_expert(game.vec).best_actions()[0, agent]
    return int(np.flatnonzero(labels)[0])


def play(game):
    """Play to the end by keys as the oracle would; the app at its end, as text."""

    async def run():
        app = Terminal(game, pause=60)
        async with app.run_test(size=(120, 40)) as pilot:
            keys = {action: key for key, action in app._keys.items()}
            while not game.now.over:
                for agent in list(game.waiting):
                    await pilot.press(keys[best(game, agent)])
            await pilot.pause()
            told = {"picture": shown(app, "picture"), "won": game.now.won}
            for name, key in (("back", "pageup"), ("again", "ctrl+r")):
                await pilot.press(key)
                told[name] = shown(app, "status")
        return told

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("env", "players", "options"),
    [("ma_rtfm", "human,oracle", S2), ("ma_rtfm", "human", S2), ("messenger", "human", {"stage": "s1"})],
)
def test_a_whole_game_is_won_by_keys(env, players, options):
    game = session(env, players, **options)
    told = play(game)
    assert told["won"]
    assert "looking back from step" in told["back"]
    assert "step 0" in told["again"]
    assert told["picture"]
    game.close()


def shown(app, name):
    return str(app.query_one(f"#{name}", Static).render())


@pytest.mark.parametrize("few", [0, 12])
def test_square_brackets_are_shown_as_they_are(monkeypatch, few):
    """A name like "go [/]" ended the app, and "go [b]x" was shown as "go x"."""
    names = ("go [/]", "go [b]x", "[red]", "stay")
    monkeypatch.setattr(my_game, "POTIONS", names)
    monkeypatch.setattr(terminal, "_FEW", few)
    monkeypatch.setitem(ENVS._entries, "brackets", EnvEntry("brackets", f"{my_game.__name__}:MyGame", multi_agent=True))

    async def run():
        game = session("brackets", "human,random", agents=2)
        app = Terminal(game, pause=60)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            moves = app.query_one("#moves", OptionList)
            shown_moves = [str(moves.render_line(line).text) for line in range(len(moves.options))]
            offered = "\n".join(shown_moves) if few == 0 else shown(app, "keys")
            assert all(name in offered for name in names)
            app.notify = lambda message, **options: told.append(options["markup"])
            app._choose(0, 99)
            app._choose(0, 1)
            await pilot.pause()
            assert "go [b]x" in shown(app, "last")
        game.close()

    told = []
    asyncio.run(run())
    assert told == [False]


def test_a_statement_is_told_by_the_number_of_its_line_and_marked_where_it_is_heard():
    async def run():
        game = session("ma_rtfm", "human", stage="s2g", agents=2, reading="kind")
        own = game.now.statements[0][1]
        app = Terminal(game, pause=60)
        async with app.run_test(size=(120, 60)) as pilot:
            await pilot.press(str(own.row + 1), "s")
            name = "tell " + own.words.removesuffix(" .")
            assert f"agent 0: {name}" in " ".join(shown(app, "last").split())
            assert name not in shown(app, "keys")
            await pilot.press("s")
            assert f"{own.words} (told by agent 0)" in shown(app, "texts").splitlines()
        game.close()

    asyncio.run(run())


def test_attention_is_to_the_statements_that_an_agent_reads_while_its_manual_grows():
    options = {"stage": "s2g", "agents": 2, "reading": "kind"}
    spec = make_vec("ma_rtfm", 1, **options).spec
    team = Team([make_policy("relread", spec)] * 2, spec, env="ma_rtfm", options=options)
    game = Session("ma_rtfm", options, Lineup((PlayerSpec("human"), PlayerSpec("run", actor=team)), "mixed"), 3)
    before = game.now.statements[1]
    game.choose(0, 5 + game.now.statements[0][0].row)
    game.advance()
    assert len(game.now.statements[1]) == len(before) + 1
    for view in game.views:
        assert len(view.attention[1]) == len(view.statements[1])
    game.close()


def drive(monkeypatch, screenplay):
    """Let apps that a command runs be driven by `screenplay(app, pilot)`."""

    async def run(app):
        async with app.run_test() as pilot:
            await pilot.pause()
            await screenplay(app, pilot)

    monkeypatch.setattr(Terminal, "run", lambda app: asyncio.run(run(app)))


def test_statements_are_marked_for_the_agent_that_tab_chooses():
    async def run():
        game = session("ma_rtfm", "human,pretrained:ma_rtfm-s2-2agents")
        app = Terminal(game, pause=60)
        async with app.run_test() as pilot:
            await pilot.pause()
            weights = game.now.attention[1]
            statements = [each.words for each in game.now.statements[1]]
            assert len(weights) == len(statements) > 3
            assert sum(weights) == pytest.approx(1)
            assert game.now.attention[0] is None
            lines = shown(app, "texts").partition("MANUAL bars: what agent 1 goes by\n")[2].splitlines()
            assert [line[2:] for line in lines] == statements
            heights = ["▁▂▃▄▅▆▇█".index(line[0]) for line in lines]
            assert heights == [round(7 * weight / max(weights)) for weight in weights]
            await pilot.press("tab")
            assert "▸ 0 human" in shown(app, "status")
            assert "bars" not in shown(app, "texts")
            await pilot.press("tab", "s")
            assert "agent 1 goes by" in shown(app, "texts")

    asyncio.run(run())


def test_a_saved_game_is_gone_through(monkeypatch, tmp_path):
    game = session(players="oracle", env="ma_rtfm")
    writer = EpisodeWriter(tmp_path / "games", game.header)
    for seed in (3, 4):
        game.begin(seed)
        while game.advance():
            pass
        writer.write([game.saved()])
    seen = []

    async def screenplay(app, pilot):
        assert app.session.header.players == ("oracle", "oracle")
        assert app.session.seed == 4
        while not app.session.now.over:
            await pilot.press("pagedown")
        seen.append(app.session.saved())
        await pilot.press("ctrl+n")  # there is no third game
        assert (app.session.seed, app.session.now.over) == (4, True)

    drive(monkeypatch, screenplay)
    assert CommandLine("magrounding watch", (str(tmp_path / "games"), "--game", "1")).run(watch) == 0
    assert seen == read_episodes(tmp_path / "games")[1][1:]


def test_who_moves_and_what_cannot_be():
    game = session()
    assert (game.living, game.waiting, game.advance()) == ([0, 1], [0], False)
    with pytest.raises(InvalidAction):
        game.choose(1, 0)
    with pytest.raises(InvalidAction):
        game.choose(0, 9)
    game.choose(0, 0)
    last = game.moves(0)[-1]
    game.choose(0, last.action)  # thought better of it
    assert game.advance()
    assert game.now.last[0].startswith(f"agent 0: {last.name}")
    assert game.chosen == {}
