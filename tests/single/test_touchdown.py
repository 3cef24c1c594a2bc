"""Touchdown behind the door: what walks do, that instructions say what is seen, what chance wins."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.single.one_agent import AGENT
from magrounding.single.touchdown import CLASSES, SPLITS, Touchdown, files
from magrounding.single.touchdown.city import FAR, load_city
from magrounding.single.touchdown.layout import COLUMNS, column_of
from tests.full import in_full
from tools.touchdown import generate as command
from tools.touchdown.chance import chance_of
from tools.touchdown.writing import write_city


def walk(env, seed, choose):
    """All results of a walk whose actions `choose(env)` names."""
    results = [env.reset(seed=seed)]
    while env.agents:
        results.append(env.step({AGENT: choose(env)}))
    return results


def follow(env):
    return int(env.best_actions()[0].argmax())


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("options", [{}, {"manual_stop": True}, {"turned": True, "patch": 8}])
def test_the_shortest_path_player_always_arrives(split, options, monkeypatch):
    env = mg.make("touchdown", split=split, **options)
    routes = load_city(files.SHIPPED).routes(split)
    some = range(0, len(routes), 1 if split != "train" else in_full(1, 10))
    for number in some:
        monkeypatch.setattr("magrounding.single.touchdown.env.stream_key", lambda *_, number=number: number)
        results = walk(env, 0, follow)
        assert env.route is routes[number]
        assert results[-1][4][AGENT]["won"] is True
        assert len(env.visited) == len(env.route.nodes) == env._graph.distances(env.goal)[env.visited[0]] + 1


def test_rewards_are_links_and_the_last_one_is_the_outcome():
    env = mg.make("touchdown", split="test")
    results = walk(env, 5, follow)
    assert [result[1][AGENT] for result in results[1:]] == [pytest.approx(0.1)] * (len(results) - 2) + [1.0]
    assert results[-1][2:4] == ({AGENT: True}, {AGENT: False})
    steps = len(results) - 1
    assert walk(mg.make("touchdown", split="test", max_cycles=steps), 5, follow)[-1][2][AGENT]
    late = walk(mg.make("touchdown", split="test", max_cycles=steps - 1), 5, follow)[-1]
    assert (late[1][AGENT], late[2][AGENT], late[3][AGENT], late[4][AGENT]["won"]) == (-1.0, False, True, False)
    back = mg.make("touchdown", split="test")
    back.reset(seed=5)
    back.step({AGENT: follow(back)})
    home = [end for _, end, _ in back._ways].index(back.visited[0])
    assert back.step({AGENT: home})[1][AGENT] == pytest.approx(-0.1)


def test_stopping_by_oneself_counts_at_the_goal_only():
    env = mg.make("touchdown", manual_stop=True)
    env.reset(seed=0)
    assert env.spec.num_actions == 6
    _, rewards, terminations, _, infos = env.step({AGENT: 5})
    assert (rewards[AGENT], terminations[AGENT], infos[AGENT]["won"]) == (-1.0, True, False)
    results = walk(env, 0, follow)
    assert env.place == env.goal
    assert env.played[-1] == 5
    assert results[-2][1][AGENT] == pytest.approx(0.1)
    assert results[-1][1][AGENT] == 1.0


def test_what_is_shown(small_city):
    env = Touchdown(data=str(small_city)).make_env()
    seen = env.reset(seed=0)[0][AGENT]
    city, words = load_city(small_city), env.spec.vocabulary
    assert list(seen) == list(env.observation_space(AGENT).spaces)
    shown = [words.words[i] for i in seen["grid"][10, :, 0]]
    assert shown == [CLASSES[k] for k in city.panorama(0)[10]]
    assert words.decode(seen["goal"]).startswith("walk past the s ##t ##a ##r ##b")
    assert seen["columns"].tolist() == [64, 96, -1, -1, -1]  # north, and east: the panorama's middle is north
    assert seen["action_mask"].tolist() == [1, 1, 0, 0, 0]
    assert seen["position"].tolist() == [23, 64]
    env.step({AGENT: 0})
    seen = env.step({AGENT: 0})[0][AGENT]
    assert env._graph.ids[env.place][0] == "C"
    assert env.heading == 10.5
    assert seen["position"].tolist() == [23, column_of(60.0, 10.5)]
    ends = [env._graph.ids[end][0] for _, end, _ in env._ways]
    mask = dict(zip(ends, seen["action_mask"], strict=False))
    assert mask == {"B": 1, "D": 1, "E": 0}, "a way into a dead end is no way"
    result = env.step({AGENT: ends.index("E")})
    assert result[4][AGENT]["illegal"] is True
    assert env._graph.ids[env.place][0] == "C"
    assert env.step({AGENT: ends.index("D")})[4][AGENT]["won"] is True


def test_a_dead_end_that_is_the_goal_can_be_reached(small_city):
    graph = load_city(small_city).graph
    dead = next(k for k, id in enumerate(graph.ids) if id[0] == "E")
    assert graph.distances(dead).tolist() == [3, 2, 1, 2, 0, 3]
    assert graph.distances(0)[dead] == 3
    assert all(graph.open_ways(2, dead))


def tiny_city(folder, ways, route, **options):
    """A city of places A, B and C, and the env that walks one route in it."""
    nodes = [files.Node(id, 0.0, 40.0 + k / 1000, -73.0) for k, id in enumerate("ABC")]
    routes = [files.Route(tuple(route), "Walk past the Starbucks.", 0.0)]
    words = files.Vocabulary(("walk", "past", "the", "."), 30)
    links = [files.Link(start, 0.0, end) for start, end in ways]
    panoramas = np.zeros((3, 47, 128), np.uint8)
    write_city(folder, nodes, links, dict.fromkeys(SPLITS.values(), routes), panoramas, words)
    return Touchdown(data=str(folder), **options).make_env()


def test_a_walk_that_stops_by_itself_may_stay_where_no_way_begins(tmp_path):
    """The goal has no outgoing link, and arriving does not end the game: its legal actions can be played."""
    env = tiny_city(tmp_path / "city", ["AB"], "AB", manual_stop=True)
    env.reset(seed=0)
    seen = env.step({AGENT: 0})[0][AGENT]
    assert env.place == env.goal
    assert seen["action_mask"].tolist() == [1, 0, 0, 0, 0, 1]
    _, rewards, terminations, _, infos = env.step({AGENT: 0})
    assert (rewards[AGENT], terminations[AGENT], infos[AGENT].get("illegal", False)) == (0.0, False, False)
    assert env.place == env.goal
    assert env.step({AGENT: 5})[4][AGENT]["won"] is True


def test_the_expert_stays_where_no_way_begins_and_the_goal_is_elsewhere(tmp_path):
    env = tiny_city(tmp_path / "city", ["AB", "AC"], "AB")
    env.reset(seed=0)
    seen = env.step({AGENT: [end for _, end, _ in env._ways].index(2)})[0][AGENT]
    assert env.agents
    np.testing.assert_array_equal(env.best_actions()[0], seen["action_mask"])


@pytest.mark.parametrize("patch", [1, 2, 4, 8])
def test_a_turned_panorama_has_the_heading_in_its_middle(patch):
    plain, turned = (mg.make("touchdown", turned=turned, patch=patch) for turned in (False, True))
    middle, width = COLUMNS // patch // 2, COLUMNS // patch
    for seed in range(5):
        a, b = (env.reset(seed=seed)[0][AGENT] for env in (plain, turned))
        for _ in range(5):
            assert b["position"].tolist() == [23 // patch, middle]
            shift = middle - int(a["position"][1])
            np.testing.assert_array_equal(np.roll(a["grid"], shift, axis=1), b["grid"])
            columns = sorted((a["columns"][a["columns"] >= 0] + shift) % width)
            assert sorted(b["columns"][b["columns"] >= 0]) == columns == list(b["columns"][: len(columns)])
            assert [end for _, end, _ in plain._raw_ways()] == [end for _, end, _ in turned._raw_ways()]
            if not plain.agents:
                break
            label = plain._ways[follow(plain)][1]
            a, b = (
                env.step({AGENT: [end for _, end, _ in env._ways].index(label)})[0][AGENT] for env in (plain, turned)
            )


def test_the_areas_of_the_splits_have_no_place_in_common():
    city = load_city(files.SHIPPED)
    places = {split: {id for route in city.routes(split) for id in route.nodes} for split in SPLITS}
    assert not places["train"] & places["valid"]
    assert not places["train"] & places["test"]
    assert not places["valid"] & places["test"]
    texts = {split: {route.instruction for route in city.routes(split)} for split in SPLITS}
    assert len(texts["train"] & texts["test"]) < 0.02 * len(texts["test"])
    far = city.graph.distances(city.graph.number(city.routes("train")[0].nodes[-1]))
    assert far[city.graph.number(city.routes("test")[0].nodes[0])] == FAR


def test_the_packages_city_is_what_the_command_makes(tmp_path):
    assert command.main(["--out", str(tmp_path / "new"), "--pack"]) == 0
    for file in files.SHIPPED.iterdir():
        if file.suffix != ".npz":
            assert (tmp_path / "new" / file.name).read_bytes() == file.read_bytes(), file.name
    ours, theirs = (files.read_panoramas(folder)[1] for folder in (files.SHIPPED, tmp_path / "new"))
    assert (ours == theirs).mean() > 0.9999
    assert sum(file.stat().st_size for file in files.SHIPPED.iterdir()) < 300_000
    assert command.main(["--out", str(tmp_path / "new")]) == 2  # it is there already
    assert (
        command.main(["--out", str(tmp_path / "other"), "--seed", "5", "--train", "8", "--valid", "2", "--test", "2"])
        == 0
    )
    assert walk(mg.make("touchdown", data=str(tmp_path / "other"), split="test"), 1, follow)[-1][4][AGENT]["won"]


@pytest.mark.parametrize(("turns_back", "limit"), [(True, 64), (False, 24)])
def test_chance_wins_as_often_as_computed(turns_back, limit):
    env, rng, won, expected, variance = mg.make("touchdown", split="test"), np.random.default_rng(0), 0, 0.0, 0.0
    for seed in range(in_full(2000, 300)):
        env.reset(seed=seed)
        chance = chance_of(env._graph, env.place, env.goal, limit, turns_back)
        expected, variance = expected + chance, variance + chance * (1 - chance)
        before = None
        for _ in range(limit):
            ends = [end for (_, end, _), is_open in zip(env._ways, env._mask, strict=False) if is_open]
            onwards = [end for end in ends if turns_back or end != before] or ends
            before, action = env.place, [end for _, end, _ in env._ways].index(rng.choice(onwards))
            _, _, _, _, infos = env.step({AGENT: action})
            if not env.agents:
                break
        won += infos[AGENT].get("won", False)
    assert abs(won - expected) < 3 * np.sqrt(variance)
