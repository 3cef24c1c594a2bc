"""Every registered environment is played at the terminal by keys, and what was played is the same game again."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import magrounding as mg
from magrounding.cli.game_arguments import EvaluationArguments
from magrounding.errors import MissingExtra
from magrounding.teams.lineup import Lineup
from magrounding.teams.saved_games import replayed
from magrounding.teams.session import Session

STEPS = 4


def open_game(id):
    """A short game in which people play all agents, as `magrounding play` makes it; skipped without its extra."""
    entry = mg.ENVS[id]
    limit = (f"env.max_cycles={STEPS}",) if "max_cycles" in entry.options else ()
    try:
        games = EvaluationArguments(env=entry.id, paths=limit).chosen_games()
        people = Lineup.parse("human", games.spec.num_agents)
        return Session(id, games.options, people, seed=3)
    except MissingExtra as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("id", sorted(mg.ENVS))
def test_it_is_played_by_keys(id):
    pytest.importorskip("textual")
    from textual.widgets import Input, OptionList

    from magrounding.extensions.people.terminal import Terminal

    game, draws = open_game(id), np.random.default_rng(0)

    async def run():
        app = Terminal(game, pause=60)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            for _ in range(STEPS):
                for agent in game.waiting:
                    moves = game.moves(agent)[:20]
                    move = moves[draws.integers(len(moves))]
                    if app._listed:
                        app.query_one("#filter", Input).value = move.name
                        await pilot.pause()
                        assert str(app.query_one("#moves", OptionList).options[0].prompt)
                        await pilot.press("enter")
                    else:
                        await pilot.press(next(key for key, action in app._keys.items() if action == move.action))
            await pilot.press("pageup", "tab", "ctrl+down", "end")

    asyncio.run(run())
    assert game.now.over or game.now.step == STEPS
    assert all(line.startswith("agent ") for line in game.now.last)
    assert all(game.now.words.values())
    if "max_cycles" in mg.ENVS[id].options:
        assert game.now.over
        assert not game._shown.agents  # the single env has come to the same end
        saved = game.saved()
        assert list(replayed(Path("game.jsonl"), game.header, [saved])) == [0]
    game.close()
