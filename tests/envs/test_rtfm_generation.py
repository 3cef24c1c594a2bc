"""How an episode of RTFM is drawn: solvable, and uniform where the rules say so.

What a game is, is read from its words and its document; seeds are fixed, so a statistical test always passes or always
fails.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import chisquare

import magrounding as mg
from magrounding.envs.rtfm.arrays import COLUMN, HELD, PRESENT, ROW, TARGET
from magrounding.envs.rtfm.ontology import TASKS, TRAINING, UNSEEN
from tests.envs.reference_rtfm import ELEMENTS, TEAMS, Document
from tests.envs.rtfm_games import STAGES, being, counts, document_of

LEVEL = 1e-4
GAMES = 3000


@dataclass
class Drawn:
    """One game: monsters as (element, name), items as (element beaten, modifier, noun)."""

    document: Document
    targets: list[tuple[str, str]]
    distractors: list[tuple[str, str]]
    items: list[tuple[str, str, str]]


@cache
def drawn(env, rows=GAMES, **options) -> list[Drawn]:
    vec = mg.make_vec(env, rows, **options)
    vec.reset(seed=1000)
    world = vec.world
    n, m, i = counts(world)
    games = []
    for b in range(rows):
        document = document_of(world, b)
        monsters = [being(world, b, slot).words for slot in range(n, n + m)]
        items = [being(world, b, slot).words for slot in range(n + m, n + m + i)]
        friends = [document.team_of[name] == document.target_team for _, name in monsters]
        games.append(
            Drawn(
                document,
                [monster for monster, friend in zip(monsters, friends, strict=True) if friend],
                [monster for monster, friend in zip(monsters, friends, strict=True) if not friend],
                [(document.beats[modifier], modifier, noun) for modifier, noun in items],
            )
        )
    return games


def uniform(values, ways, level=LEVEL):
    """Whether every one of `ways` possible values comes equally often."""
    tally = Counter(values)
    assert len(tally) <= ways, f"{len(tally)} values, expected {ways}"
    frequencies = list(tally.values()) + [0] * (ways - len(tally))
    return chisquare(frequencies).pvalue > level


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("agents", [1, 3, 6])
def test_each_game_can_be_won_and_has_its_distractors(stage, agents):
    for game in drawn("ma_rtfm", 200, stage=stage, agents=agents):
        assert len(game.targets) == agents
        elements = [element for element, _ in game.targets]
        wanted = elements.copy()
        if stage == "s1":
            assert not game.distractors
            assert len(set(elements)) == min(agents, 4)
        else:
            assert len(game.distractors) == 1
            assert len(set(elements)) == min(agents, 3)
            assert game.distractors[0][0] not in elements
            wanted.append(game.distractors[0][0])
        # A good item for each target, and one that beats the distractor.
        assert sorted(item[0] for item in game.items) == sorted(wanted)


def test_single_agent_tasks_have_the_entities_of_their_names():
    for task in TASKS:
        for game in drawn("rtfm", 100, task=task):
            assert len(game.targets) == 1
            assert len(game.distractors) == (task != "simple_stationary_single_monster")
            assert len(game.items) == (1 if task == "simple_stationary_single_item" else 2)
            good, *bad = sorted(game.items, key=lambda item: item[0] != game.targets[0][0])
            assert good[0] == game.targets[0][0]
            assert all(item[0] != good[0] for item in bad)
            if bad and game.distractors:
                assert bad[0][0] == game.distractors[0][0]
            assert all(distractor[0] != good[0] for distractor in game.distractors)


@pytest.mark.parametrize(("env", "options"), [("rtfm", {"task": "group"}), ("ma_rtfm", {"stage": "s4", "agents": 3})])
def test_teams_elements_names_and_items_are_uniform(env, options):
    games = drawn(env, **options)
    n = options.get("agents", 1)
    assert uniform([game.document.target_team for game in games], 3)
    teams = [(g.document.target_team, g.document.team_of[g.distractors[0][1]]) for g in games]
    assert uniform(teams, 6)
    sets = [tuple(sorted(element for element, _ in game.targets)) for game in games]
    assert uniform(sets, len(list(combinations(ELEMENTS, n))))
    assert uniform([game.distractors[0][0] for game in games], 4)
    assert uniform([(game.targets[0][0], game.distractors[0][0]) for game in games], 12)
    assert uniform([name for game in games for _, name in game.targets], 9)
    assert uniform([game.distractors[0][1] for game in games], 9)
    assert uniform([noun for game in games for _, _, noun in game.items], 8)
    assert uniform([modifier for game in games for _, modifier, _ in game.items], 8)
    assert uniform([(g.items[0][2], g.items[1][2]) for g in games], 64)  # nouns with replacement


def test_monster_names_are_drawn_with_replacement_among_the_teams():
    games = drawn("ma_rtfm", stage="s4", agents=3)
    ranks = []
    for game in games:
        team = sorted(name for name, side in game.document.team_of.items() if side == game.document.target_team)
        assert len(team) == 3
        ranks.append(tuple(team.index(name) for _, name in game.targets))
    assert uniform(ranks, 27)


@pytest.mark.parametrize(("stage", "agents", "distinct"), [("s2", 4, 3), ("s1", 5, 4)])
def test_further_targets_repeat_one_of_the_first(stage, agents, distinct):
    repeated, absent = [], []
    for game in drawn("ma_rtfm", stage=stage, agents=agents):
        tally = Counter(element for element, _ in game.targets)
        assert sorted(tally.values()) == [1] * (distinct - 1) + [2]
        repeated.append(tally.most_common(1)[0][0])
        absent.append(tuple(e for e in ELEMENTS if e not in tally))
    assert uniform(repeated, 4)
    if distinct == 3:
        assert uniform(absent, 4)


def test_slots_do_not_tell_the_distractor():
    """Cells list monsters in slot order."""
    vec = mg.make_vec("ma_rtfm", 20_000, stage="s2", agents=3)
    vec.reset(seed=0)
    monsters = vec.world._games.entities[:, 3:7, TARGET]
    assert (monsters.sum(1) == 3).all()
    assert uniform(monsters.argmin(1).tolist(), 4)


@pytest.mark.parametrize(("task", "split", "ways"), [("simple", "train", 72), ("simple", "eval_new", 144)])
def test_assignments_are_uniform_over_their_split(task, split, ways):
    games = drawn("rtfm", 8000, task=task, split=split)
    meanings = [(tuple(sorted(g.document.team_of.items())), tuple(sorted(g.document.beats.items()))) for g in games]
    assert len(set(meanings)) == ways
    assert uniform(meanings, ways)


def test_group_assignments_are_uniform_over_teams_and_over_elements():
    games = drawn("rtfm", 3000, task="group")
    for monster, other in combinations(TRAINING.monsters, 2):
        together = np.mean([g.document.team_of[monster] == g.document.team_of[other] for g in games])
        assert abs(together - 1 / 4) < 4 * np.sqrt(1 / 4 * 3 / 4 / len(games))
    for modifier, other in combinations(TRAINING.modifiers, 2):
        together = np.mean([g.document.beats[modifier] == g.document.beats[other] for g in games])
        assert abs(together - 1 / 7) < 4 * np.sqrt(1 / 7 * 6 / 7 / len(games))
    for monster in TRAINING.monsters:
        assert uniform([g.document.team_of[monster] for g in games], 3)
    for modifier in TRAINING.modifiers:
        assert uniform([g.document.beats[modifier] for g in games], 4)


def test_the_assignment_says_nothing_about_the_goal_or_the_elements():
    games = drawn("rtfm", 8000, task="simple", split="train")
    teams = [tuple(game.document.team_of[monster] for monster in TRAINING.monsters[:3]) for game in games]
    assert uniform([(game.document.target_team, of) for game, of in zip(games, teams, strict=True)], 18)
    assert uniform([(g.targets[0], g.document.target_team) for g in games], 36)


def cells_of(env, rows=20_000, **options):
    vec = mg.make_vec(env, rows, **options)
    vec.reset(seed=77)
    entities = vec.world._games.entities
    assert (entities[:, :, PRESENT] == 1).all()
    assert (entities[:, : vec.num_agents, HELD] == -1).all()
    side = options["size"] - 2
    rows, columns = entities[..., ROW].astype(int) - 1, entities[..., COLUMN].astype(int) - 1
    assert ((rows >= 0) & (rows < side) & (columns >= 0) & (columns < side)).all()
    return rows * side + columns, side * side


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ("rtfm", {"task": "simple", "size": 6}),
        ("ma_rtfm", {"stage": "s2", "agents": 3, "size": 6}),
        ("ma_rtfm", {"stage": "s1", "agents": 3, "size": 5}),  # nine entities on nine cells
        ("rock_paper_scissors", {"task": "permutation", "size": 10}),
    ],
)
def test_everybody_stands_on_distinct_uniform_interior_cells(env, options):
    cells, interior = cells_of(env, **options)
    ordered = np.sort(cells, axis=1)
    assert (ordered[:, 1:] != ordered[:, :-1]).all()
    for slot in range(cells.shape[1]):
        assert uniform(cells[:, slot].tolist(), interior)
    if interior <= 16:
        for a, b in ((0, 1), (1, cells.shape[1] - 1)):
            pairs = list(zip(cells[:, a].tolist(), cells[:, b].tolist(), strict=True))
            assert uniform(pairs, interior * (interior - 1))


def test_statements_come_in_a_uniform_order():
    games = drawn("rtfm", 6000, task="nl", split="train")
    orders = [tuple(g.document.names) for g in games]
    for name in (*ELEMENTS, *TEAMS):
        assert uniform([order.index(name) for order in orders], 7)
    assert uniform([tuple(n for n in order if n in TEAMS) for order in orders], 6)
    assert uniform([tuple(n for n in order if n in ELEMENTS) for order in orders], 24)
    assert uniform([(order.index("fire"), order.index("star alliance")) for order in orders], 42)


@pytest.mark.parametrize("split", ["train", "eval_paraphrase"])
def test_templates_are_uniform_and_independent_of_each_other(split):
    games = drawn("rtfm", 6000, task="nl", split=split)
    of = {name: [] for name in (*ELEMENTS, *TEAMS)}
    for game in games:
        for name, (_, template) in zip(game.document.names, game.document.statements, strict=True):
            of[name].append(template)
    for name in ELEMENTS:
        assert uniform(of[name], 12)
    for name in TEAMS:
        assert uniform(of[name], 10)
    goals = [game.document.goal_template for game in games]
    assert uniform(goals, 10)
    assert uniform(zip(of["fire"], of["cold"], strict=True), 144)
    assert uniform(zip(of["fire"], of["rebel enclave"], strict=True), 120)
    assert uniform(zip(of["star alliance"], goals, strict=True), 100)


def entities_of(env, **options):
    vec = mg.make_vec(env, 500, **options)
    vec.reset(seed=9)
    return vec.world._games.entities.copy()


def test_the_text_never_moves_the_map():
    """Streams are separate: other templates, order or redrawing change neither task nor layout nor what happens."""
    base = entities_of("rtfm", task="simple")
    assert (base == entities_of("rtfm", task="simple_nl")).all()
    assert (base == entities_of("rtfm", task="simple", shuffle_manual=False)).all()
    assert (base == entities_of("rtfm", task="simple_nl", resample_text=True)).all()
    assert (
        entities_of("ma_rtfm", stage="s5", split="eval") == entities_of("ma_rtfm", stage="s5", split="eval_paraphrase")
    ).all()
    played = []
    for options in ({}, {"resample_text": True}):
        vec = mg.make_vec("rtfm", 64, task="simple_nl", **options)
        vec.reset(seed=4)
        played.append([vec.step(np.full((64, 1), t % 5))[0]["grid"].copy() for t in range(12)])
    np.testing.assert_array_equal(*played)


@pytest.mark.parametrize("stage", ["s2", "s3"])
def test_one_agent_in_the_multi_agent_game_is_the_single_agent_game(stage):
    """n = 1 of §3 is exactly §2."""
    task = {"s2": "simple_stationary", "s3": "simple"}[stage]
    single = mg.make_vec("rtfm", 64, task=task, size=8)
    multi = mg.make_vec("ma_rtfm", 64, stage=stage, agents=1)
    rng = np.random.default_rng(0)
    views = [single.reset(seed=3)[0], multi.reset(seed=3)[0]]
    for _ in range(60):
        assert views[0].keys() == views[1].keys()
        for key in views[0]:
            np.testing.assert_array_equal(views[0][key], views[1][key])
        actions = rng.integers(0, 5, (64, 1))
        steps = [single.step(actions), multi.step(actions)]
        for a, b in zip(steps[0][1:4], steps[1][1:4], strict=True):
            np.testing.assert_array_equal(a, b)
        views = [step[0] for step in steps]


def test_new_words_are_in_eval_new_and_nowhere_else():
    for split in ("train", "eval", "eval_new", "eval_paraphrase"):
        ontology = UNSEEN if split == "eval_new" else TRAINING
        for task, monsters, modifiers in (("simple_nl", 3, 4), ("nl", 9, 8)):
            names, nouns = Counter(), set()
            for game in drawn("rtfm", 150, task=task, split=split):
                assert set(game.document.team_of) == set(ontology.monsters[:monsters])
                assert set(game.document.beats) == set(ontology.modifiers[:modifiers])
                names.update(game.document.team_of.values())
                nouns |= {noun for *_, noun in game.items}
            assert nouns == set(ontology.nouns)
            assert len(set(names.values())) == 1  # every team has its three, or its one


@pytest.mark.parametrize("task", ["permutation", "released", "new_edge", "new_node"])
def test_rock_paper_scissors_games_are_uniform_and_cyclic(task):
    vec = mg.make_vec("rock_paper_scissors", 4000, task=task)
    vec.reset(seed=5)
    world = vec.world
    cycles, bearers, orders = [], [], []
    for b in range(4000):
        beats = document_of(world, b).beats
        assert set(beats) == set(beats.values())
        assert all(beats[beats[beats[letter]]] == letter != beats[letter] for letter in beats)
        monster = being(world, b, 1).words
        items = [being(world, b, slot).words for slot in (2, 3, 4)]
        assert monster[1] == "dragon"
        assert sorted(items) == sorted((letter, "") for letter in beats)
        assert monster[0] in beats
        low = min(beats)
        cycles.append((low, beats[low], beats[beats[low]]))
        bearers.append(sorted(beats).index(monster[0]))
        orders.append(tuple(sorted(beats).index(sentence.split()[0]) for sentence in world.text(b)["manual"]))
    assert uniform(bearers, 3)
    assert uniform(orders, len(list(permutations(range(3)))))
    if task != "released":  # of that split, some cycles are on both sides with different numbers of rotations
        assert uniform(cycles, {"permutation": 10, "new_edge": 16, "new_node": 20}[task])
