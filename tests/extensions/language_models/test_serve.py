"""Language models beside people in the browser: chosen by name, asked in the game's thread, kept in the folder."""

import json
from dataclasses import replace

import pytest

import magrounding as mg
from magrounding.extensions.language_models.endpoint import EndpointFailed
from magrounding.extensions.language_models.player import LanguageModels
from magrounding.extensions.people.cli import serve
from magrounding.teams.lineup import CALLS_FILE, Lineup
from magrounding.teams.match import play_apart
from tests.extensions.language_models.served import Served, file_of, model, serving
from tests.extensions.language_models.test_endpoint import KEY

pytest.importorskip("httpx2")
pytest.importorskip("aiohttp")


def test_a_person_plays_with_a_model(tmp_path, monkeypatch):
    monkeypatch.setenv("TINY_KEY", KEY)
    with serving(Served()) as served:
        file = file_of(tmp_path, served, api_key_env="TINY_KEY")
        asked = serve.Arguments(env=("ma_rtfm",), player=("helper=llm:small",), llm=file, out=tmp_path / "games")
        server = serve.make_server(asked)
        offers = server.host.offers
        shown = json.dumps(offers.listed())
        assert "helper" in shown
        options = {"stage": "s1", "agents": 2, "max_cycles": 4}
        session = offers.plan("ma_rtfm", options, ["human", "helper"], 3).make()
        while not session.now.over:
            session.choose(0, session.moves(0)[0].action)
            session.advance()
        session.close()
        offers.more_players["helper"].actor.models.close()
    assert len(served.asked) == session.saved().length
    kept = (tmp_path / "games" / CALLS_FILE).read_text()
    assert kept.count("\n") == len(served.asked)
    assert KEY not in kept + shown


def test_games_that_are_stopped_ask_no_more():
    with serving(Served()) as served:
        models = LanguageModels({"small": model(served)}, 4)
        lineup = Lineup.parse("llm:small,random", 2, models)
        games = play_apart(lineup, "ma_rtfm", {"stage": "s1", "agents": 2, "max_cycles": 20}, range(50))
        assert next(games).seed == 0
        games.close()
        assert models.stopped
        with pytest.raises(EndpointFailed):
            first_move(replace(lineup, ends_games=True))
        models.close()


def first_move(lineup):
    vec = mg.make_vec("ma_rtfm", 1, stage="s1", agents=2)
    obs, info = vec.reset(seed=0)
    actor = lineup.build_actor(vec, 0)
    return actor.act(obs, actor.initial_memory(1), info)
