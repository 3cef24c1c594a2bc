"""A study: consent, questions, line-ups in counterbalanced order, a file for each participant, a table."""

import asyncio
import collections
import itertools
import json
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.extensions.people.cli import study
from magrounding.extensions.people.web import participants as studies
from magrounding.extensions.people.web.host import Host, Keeper
from magrounding.extensions.people.web.messages import Refusal
from magrounding.extensions.people.web.offers import Offers
from magrounding.extensions.people.web.participants import Participants
from magrounding.extensions.people.web.records import FORMAT
from magrounding.extensions.people.web.study import Condition, Invitations, Study, digest_of
from magrounding.storage import write_atomic
from magrounding.teams.saved_games import Header, SavedEpisode
from tests.extensions.people.web.party import party, play_out

EXAMPLE = Path(__file__).parents[4] / "magrounding" / "examples" / "study.toml"
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


RESULTS = {"won": True, "score": 1.0, "length": 1, "returns": (1.0, 1.0), "timed_out": False}
GAME = SavedEpisode(11, ((0, 0),), ("seen",), **RESULTS)
HEADER = Header("ma_rtfm", {"agents": 2}, 2, "words", ("stay",), ("human", "oracle"), "greedy")
BEFORE = {"plays": "never"}


def participants(folder, invitations=None):
    people = Participants(replace(Study.read(EXAMPLE, OFFERS), seeds=(11,)), folder, invitations)
    folder.mkdir(exist_ok=True)
    people.load()
    return people


def play(people, participant):
    """Play the next game, in no time."""
    people.keeper(participant, people.proceed(participant, None))(HEADER, GAME)


def data(folder):
    """Content of all participants' files, by number."""
    found = map(json.loads, (path.read_text() for path in folder.glob("participant_*.json")))
    return {one["participant"]: one for one in found}


def test_two_servers_that_see_no_locks_lose_nobody(tmp_path):
    both = [participants(tmp_path) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        entered = list(pool.map(lambda k: both[k % 2].enter(True, BEFORE)["ticket"], range(48)))
    assert sorted(data(tmp_path)) == list(range(48))
    assert {one["ticket"] for one in data(tmp_path).values()} == set(map(digest_of, entered))


def test_a_second_server_does_not_get_the_folder(tmp_path):
    hosts = [Host(OFFERS, Keeper(tmp_path), participants(tmp_path)) for _ in range(2)] + [
        Host(OFFERS, Keeper(tmp_path))
    ]
    hosts[0].open()
    for other in hosts[1:]:
        with pytest.raises(CheckpointError):
            other.open()
    hosts[0].close()
    hosts[1].open()
    hosts[1].close()


def test_data_of_another_study_are_not_gone_on_with(tmp_path):
    people = participants(tmp_path)
    people.enter(True, BEFORE)
    other = Participants(replace(people.study, title="another"), tmp_path)
    with pytest.raises(CheckpointError):
        other.load()
    (tmp_path / "participant_0.json").write_text("{")
    with pytest.raises(CheckpointError):
        people.load()


def full(monkeypatch, *folders):
    """Have the disk refuse every file in some folders."""

    def write(path, *args, **kwargs):
        if any(folder in path.parents for folder in folders):
            raise OSError(28, "No space left on device", str(path))
        write_atomic(path, *args, **kwargs)

    monkeypatch.setattr(studies, "write_atomic", write)


def with_late_games(folder, monkeypatch):
    """Participants, two of whom have played a game that the disk refused."""
    people = participants(folder)
    playing = [people.find(people.enter(True, BEFORE)["ticket"]) for _ in range(3)][:2]
    full(monkeypatch, folder)
    for one in playing:
        play(people, one)
    assert sorted(people.late) == [0, 1]
    return people


def test_what_is_late_when_the_server_stops_is_tried_again(tmp_path, monkeypatch):
    people = with_late_games(tmp_path, monkeypatch)
    monkeypatch.setattr(time, "sleep", lambda seconds: full(monkeypatch))  # meanwhile room is made
    Host(OFFERS, None, people).close()
    assert not people.late
    assert [len(one["games"]) for _, one in sorted(data(tmp_path).items())] == [1, 1, 0]
    assert len(list((tmp_path / "games").iterdir())) == 2


@pytest.mark.parametrize("refused", [0, 1])
def test_what_the_disk_refuses_to_the_end_is_elsewhere_and_said(tmp_path, monkeypatch, caplog, refused):
    study, places = tmp_path / "study", [tmp_path / "temporary", tmp_path / "memory"]
    for place in places:
        place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(places[0]))
    monkeypatch.setattr(studies, "_MEMORY", places[1])
    people = with_late_games(study, monkeypatch)
    full(monkeypatch, study, *places[:refused])
    people.close(0)
    assert not people.late
    (folder,) = places[refused].iterdir()
    assert not any(place.exists() and any(place.iterdir()) for place in places if place != places[refused])
    assert caplog.messages[-1].endswith(f"make room, and before the study goes on, cp -r {folder}/. {study}")
    assert folder.stat().st_mode & 0o777 == 0o700
    shutil.copytree(folder, study, dirs_exist_ok=True)  # room is made
    full(monkeypatch)
    again = participants(study)
    assert [len(one["games"]) for _, one in sorted(data(study).items())] == [1, 1, 0]
    assert len(list((study / "games").iterdir())) == 2
    assert again.enter(True, BEFORE)["ticket"]


def test_data_of_people_are_for_the_host_alone(tmp_path):
    folder = tmp_path / "study"
    people = participants(folder)
    one = people.find(people.enter(True, BEFORE)["ticket"])
    play(people, one)
    assert folder.stat().st_mode & 0o777 == (folder / "games").stat().st_mode & 0o777 == 0o700
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_personal_invitation_is_for_one(tmp_path):
    codes = tmp_path / "codes.txt"
    codes.write_text("first-code\n\nsecond-code\n")
    people = participants(tmp_path / "study", Invitations.read(codes))
    for code in ("", "third-code", "first-code "):
        with pytest.raises(Refusal) as refused:
            people.enter(True, BEFORE, invitation=code)
        assert refused.value.code == "no_invitation"
    former = people.enter(True, BEFORE, invitation="first-code")["ticket"]
    play(people, people.find(former))
    people = participants(tmp_path / "study", Invitations.read(codes))
    entered = people.enter(True, BEFORE, invitation="first-code")  # in another browser: it goes on there
    assert (entered["done"], list(data(tmp_path / "study"))) == (1, [0])
    with pytest.raises(Refusal):
        people.find(former)
    people.find(entered["ticket"]).record.finished = True
    with pytest.raises(Refusal):
        people.enter(True, BEFORE, invitation="first-code")
    people.enter(True, BEFORE, invitation="second-code")
    assert sorted(data(tmp_path / "study")) == [0, 1]
    assert "first-code" not in json.dumps(data(tmp_path / "study"))


@pytest.mark.parametrize("text", [b"", b"same-code\nsame-code", b"short", b"with space", b"\xff"])
def test_invitations_that_are_none(tmp_path, text):
    (tmp_path / "codes.txt").write_bytes(text)
    with pytest.raises(ConfigurationError):
        Invitations.read(tmp_path / "codes.txt")


def test_one_address_does_not_shift_the_orders(tmp_path):
    async def run():
        def study(offers):
            return Participants(Study.read(EXAMPLE, offers), tmp_path)

        limits = {"address_people": 2, "participants_per_second": 0.0}
        async with party(study=study, limits=limits, proxies=["127.0.0.1"]) as there:
            flood = await there.person(**{"X-Forwarded-For": "203.0.113.7"})
            said = []
            for _ in range(6):
                await flood.say("enter", consent=True, answers=BEFORE)
                said.append((await flood.hear("study", "refused")).get("code", "entered"))
            assert said == ["entered"] * 2 + ["quota"] * 4
            other = await there.person(**{"X-Forwarded-For": "203.0.113.8"})
            await other.say("enter", consent=True, answers=BEFORE)
            assert (await other.hear("study"))["ticket"]

    asyncio.run(run())
    assert sorted(data(tmp_path)) == [0, 1, 2]


RECORD = {"format": FORMAT, "study": "", "participant": 0, "order": ["a"], "answers": {}, "finished": False}


@pytest.mark.parametrize(
    "content", [{"format": "other"}, RECORD | {"games": [3]}, RECORD | {"games": [{"condition": "a", "won": True}]}]
)
def test_data_that_are_none(tmp_path, capsys, content):
    line = CommandLine("magrounding study", (str(tmp_path),))
    assert line.run(study) == 2
    (tmp_path / "participant_0.json").write_text(json.dumps(content))
    assert line.run(study) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"ma_rtfm"', '"chess"'),
        ('["human", "oracle"]', '["oracle", "oracle"]'),
        ('name = "trained"', 'name = "oracle"'),
        ('id = "comment"', 'id = "between"'),
        ("seeds = [11, 12]", "seeds = [11, -1]"),
        ("pace = 0", "pace = inf"),
        ('["disagree", "neither", "agree"]', "[1, 2]"),
    ],
)
def test_studies_that_cannot_be_held(tmp_path, old, new):
    file = tmp_path / "study.toml"
    file.write_text(EXAMPLE.read_text().replace(old, new))
    with pytest.raises(ConfigurationError):
        Study.read(file, OFFERS)
