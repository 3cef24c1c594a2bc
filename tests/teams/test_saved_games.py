"""Saved games: played again they are the same game, or are refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import CheckpointError
from magrounding.storage import digest
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import play_batch
from magrounding.teams.saved_games import CHECK, EpisodeWriter, Header, read_episodes, replayed

WORLDS = {
    "ma_rtfm": {"agents": 2, "stage": "s2", "max_cycles": 30},
    "rtfm": {"task": "nl", "max_cycles": 30},
}


def save(path: Path, id="ma_rtfm", games=3, seed=5, **options):
    vec = mg.make_vec(id, games, **(options or WORLDS[id]))
    lineup = Lineup.parse("random", vec.num_agents)
    writer = EpisodeWriter(path, Header.of(vec, list(map(str, lineup.players)), "greedy"))
    writer.write(play_batch(lineup, vec, seed))
    return writer.episodes


def test_every_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "games"
    save(path, games=1, agents=2, max_cycles=4)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(data), size=150):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            read_episodes(path)
    path.write_bytes(data[:-1])
    with pytest.raises(CheckpointError):
        read_episodes(path)


def test_a_game_that_goes_another_way_is_refused(tmp_path):
    path = tmp_path / "games"
    save(path)
    head, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    for change in ({"won": not lines[1]["won"]}, {"seed": 99}, {"actions": lines[1]["actions"][:-1]}):
        path.write_text("".join(sealed(each) for each in (head, lines[0], lines[1] | change)))
        header, games = read_episodes(path)
        with pytest.raises(CheckpointError):
            list(replayed(path, header, games))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"agents": 3, "players": ["random"] * 3},
        {"players": "ab"},
        {"vocabulary": "0"},
    ],
)
def test_headers_that_do_not_fit(tmp_path, change):
    path = tmp_path / "games"
    save(path)
    head, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(sealed(each) for each in (head | change, *lines)))
    with pytest.raises(CheckpointError):
        list(replayed(path, *read_episodes(path)))


@pytest.mark.parametrize("actions", [[["left", 1]], [[1], [1, 2]], [[True, 1]], [1, 2], []])
def test_moves_that_are_none(tmp_path, actions):
    path = tmp_path / "games"
    save(path)
    head, line, *_ = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(sealed(head) + sealed(line | {"actions": actions, "seen": line["seen"][: len(actions)]}))
    with pytest.raises(CheckpointError):
        read_episodes(path)


def test_a_file_goes_on_where_a_kill_cut_it_short(tmp_path):
    path = tmp_path / "games"
    games = save(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert save(path, seed=6)[:2] == games[:2]
    header, found = read_episodes(path)
    assert [game.seed for game in found] == [5, 6, 6, 7, 8]
    assert len(list(replayed(path, header, found))) == 5
    with pytest.raises(CheckpointError):
        save(path, "rtfm")


def sealed(content):
    content = {name: value for name, value in content.items() if name != CHECK}
    return json.dumps({**content, CHECK: digest(content)[:16]}) + "\n"
