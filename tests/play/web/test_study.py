"""A study: consent, questions, line-ups in counterbalanced order, a file for each participant, a table."""

import asyncio
import collections
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from magrounding.cli import study
from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError
from magrounding.play.web.messages import Refusal
from magrounding.play.web.offers import Offers
from magrounding.play.web.study import FORMAT, Condition, Participants, Question, Study
from tests.play.web.party import party, play_out

EXAMPLE = Path(__file__).parents[3] / "magrounding" / "examples" / "study.toml"
OFFERS = Offers(("ma_rtfm",))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_orders_are_balanced(count):
    """Each line-up stands at each place equally often, and follows each other one equally often."""
    study = Study("", "", "", (0,), tuple(Condition(str(k), ("human",)) for k in range(count)))
    orders = [study.order(participant) for participant in range(2 * count)]
    assert all(sorted(order) == list(range(count)) for order in orders)
    for place in range(count):
        assert set(collections.Counter(order[place] for order in orders).values()) == {2}
    following = collections.Counter(pair for order in orders for pair in itertools.pairwise(order))
    assert len(following) == count * (count - 1)
    assert len(set(following.values())) <= 1


async def take_part(there, answers):
    """One participant, from consent to the end; the number."""
    one = await there.person()
    await one.say("enter", consent=True, answers={"plays": "never"})
    ticket = (await one.hear("study"))["ticket"]
    await one.say("proceed", ticket=ticket)
    while (step := await one.hear("study"))["code"]:
        game = await one.join(step["code"])
        assert game["game"]["players"] == ["human", "an agent"]  # which one it is stays hidden
        again = await one.refused("proceed", ticket="x")
        assert again == "no_game"
        await play_out(there, step["code"], one)
        assert await one.refused("restart", seed="same") == "game_over"
        assert (await there.client.get(f"/game/{step['code']}/saved")).status == 404
        if step["asks"]:
            assert await one.refused("proceed", ticket=ticket) == "bad_answer"
        await one.say("proceed", ticket=ticket, answers={"helpful": answers} if step["asks"] else None)
    assert await one.refused("finish", ticket=ticket, answers={"comment": "x" * 1001}) == "bad_answer"
    await one.say("finish", ticket=ticket, answers={"comment": "a | <b>"})
    return (await one.hear("study"))["number"]


def test_people_take_part_and_their_data_are_told(tmp_path, capsys):
    async def run():
        def study(offers):
            return Participants(replace(Study.read(EXAMPLE, offers), seeds=(11,)), tmp_path)

        async with party(study=study) as there:
            about = await (await there.client.get("/study/about")).json()
            assert "trained" not in json.dumps(about)
            assert [await take_part(there, answers) for answers in ("agree", "disagree")] == [0, 1]
            one = await there.person()
            assert await one.refused("enter", consent=False, answers={"plays": "never"}) == "bad_answer"
            assert await one.refused("enter", consent=True, answers={"plays": "always"}) == "bad_answer"
            assert await one.refused("enter", consent=True, answers={}) == "bad_answer"
            game = {"env": "ma_rtfm", "options": {}, "players": ["human"] * 2, "seed": 0, "pace": 0}
            assert await one.refused("create", **game) == "bad_game"

    asyncio.run(run())
    first, second = (json.loads((tmp_path / f"participant_{k}.json").read_text()) for k in range(2))
    assert (first["order"], second["order"]) == (["oracle", "trained"], ["trained", "oracle"])
    assert [(game["condition"], game["seed"]) for game in first["games"]] == [
        ("oracle", 11),
        ("trained", 11),
    ]
    assert first["answers"] == {
        "plays": "never",
        "between": {"oracle": {"helpful": "agree"}, "trained": {"helpful": "agree"}},
        "comment": "a | <b>",
    }
    assert first["finished"]
    assert len(list((tmp_path / "games").glob("*.jsonl"))) == 4
    assert CommandLine("magrounding study", (str(tmp_path), "--out", str(tmp_path / "table.md"))).run(study) == 0
    table = capsys.readouterr().out
    assert table == (tmp_path / "table.md").read_text()
    won = sum(game["won"] for one in (first, second) for game in one["games"] if game["condition"] == "oracle")
    assert f"| oracle | 2 | 2 | {won / 2:.0%} [" in table
    assert "| helpful, trained | agree: 1; disagree: 1 |" in table
    assert "| comment | a \\| &lt;b>: 2 |" in table


def test_half_a_character_is_no_answer(tmp_path, capsys):
    question = Question("comment", "What?")
    question.check("\U0001f600")
    with pytest.raises(Refusal, match="an answer is no text: comment"):
        question.check("\ud83d")
    one = {"format": FORMAT, "study": "", "participant": 0, "order": [], "answers": {"comment": "\ud83d!"}, "games": []}
    (tmp_path / "participant_0.json").write_text(json.dumps(one | {"finished": True}))
    assert CommandLine("magrounding study", (str(tmp_path), "--out", str(tmp_path / "table.md"))).run(study) == 0
    assert "| comment | ?!: 1 |" in capsys.readouterr().out  # data of before such answers were refused


def test_a_page_that_is_open_twice_gets_one_game(tmp_path):
    async def run():
        async with party(study=lambda offers: Participants(Study.read(EXAMPLE, offers), tmp_path)) as there:
            one, again = await there.person(), await there.person()
            await one.say("enter", consent=True, answers={"plays": "never"})
            ticket = (await one.hear("study"))["ticket"]
            await asyncio.gather(*(page.say("proceed", ticket=ticket) for page in (one, again)))
            codes = {(await page.hear("study"))["code"] for page in (one, again)}
            assert codes == set(there.host.rooms)
            assert len(codes) == 1

    asyncio.run(run())


def test_the_end_comes_after_the_questions_about_the_last_games(tmp_path):
    people = Participants(replace(Study.read(EXAMPLE, OFFERS), seeds=(11,)), tmp_path)
    one = people.find(people.enter(True, {"plays": "never"})["ticket"])
    one.games += [{}, {}]
    with pytest.raises(Refusal, match="come first"):
        people.finish(one, {"comment": ""})
    people.proceed(one, {"helpful": "agree"})
    assert people.finish(one, {"comment": ""})["end"]


def test_data_that_are_none(tmp_path, capsys):
    line = CommandLine("magrounding study", (str(tmp_path),))
    assert line.run(study) == 2
    (tmp_path / "participant_0.json").write_text('{"format": "other"}')
    assert line.run(study) == 2
    assert "is no participant's data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("title =", "name =", "unknown option of Study 'name'"),
        ('"ma_rtfm"', '"chess"', "there is no such world"),
        ('["human", "oracle"]', '["oracle", "oracle"]', "one of the players of 'oracle' is human"),
        ('name = "trained"', 'name = "oracle"', "a name of its own"),
        ('id = "comment"', 'id = "plays"', "an id of its own"),
        ("seeds = [11, 12]", "seeds = []", "at least one seed"),
        ("pace = 0", "pace = = 0", "is no TOML"),
        ("pace = 0", 'pace = "0"', "pace of Study takes"),
        ("pace = 0", "pace = -1", "pace of Study takes"),
        ("pace = 0", "pace = inf", "pace of Study takes"),
        ("pace = 0", "open = 1", "open of Study takes True or False"),
        ("seeds = [11, 12]", "seeds = [11, -1]", "a seed is a whole number"),
        ("seeds = [11, 12]", "seeds = [11, 1.5]", "seeds of Study takes"),
        ("seeds = [11, 12]", "seeds = 11", "seeds of Study takes"),
        ('name = "trained"', "name = 1", "name of Condition takes a string"),
        ('["human", "oracle"]', '"human"', "players of Condition takes a list"),
        ('id = "plays"', "id = 1", "of Question takes a string"),
        ('ask = "The computer player was helpful."', "ask = 1", "of Question takes a string"),
        ('["disagree", "neither", "agree"]', "[1, 2]", "answers of Question takes"),
        ('["disagree", "neither", "agree"]', '"agree"', "answers of Question takes"),
        ('["disagree", "neither", "agree"]', "5", "answers of Question takes"),
        ('id = "comment"', 'id = "between"', "no question has the id 'between'"),
    ],
)
def test_studies_that_cannot_be_held(tmp_path, old, new, sentence):
    file = tmp_path / "study.toml"
    file.write_text(EXAMPLE.read_text().replace(old, new))
    with pytest.raises(ConfigurationError, match=sentence):
        Study.read(file, OFFERS)
