"""Manuals that leave out what a game does not need, and games without their distractor: `omission`, `distraction`."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.envs.messenger.arrays import ENTITIES, GOAL, HOLDS, KIND, MESSAGE, ROLE
from magrounding.envs.messenger.manual import LAYOUTS, find_corpus, without_punctuation
from magrounding.envs.rtfm.arrays import ELEMENT, PRESENT, TARGET
from magrounding.envs.rtfm.ontology import ELEMENTS, TEAMS
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.errors import ConfigurationError
from magrounding.teams.player import Player, shown_to

GAMES = 300


def started(env, games=GAMES, **options):
    vec = mg.make_vec(env, games, **options)
    return vec, *vec.reset(seed=3)


@pytest.mark.parametrize(
    ("env", "options", "needed"),
    [
        ("rtfm", {"task": "simple_stationary"}, None),
        ("messenger", {"stage": "s3"}, 2),
        ("messenger", {"stage": "s3", "manual": "reassigned"}, 2),
    ],
    ids=str,
)
def test_whole_manuals_are_what_they_were_and_keys_name_what_is_left(env, options, needed):
    (_, whole, named), (_, short, renamed) = (started(env, omission=omission, **options) for omission in (0.0, 0.5))
    for name, array in whole.items():
        if name != "manual":
            assert np.array_equal(array, short[name])
    kept = short["manual"].any(-1)
    assert np.array_equal(whole["manual"][kept], short["manual"][kept])
    assert np.array_equal(kept.all(1), named.document == renamed.document)
    assert 0.3 < kept.mean() < 0.95
    if needed:  # of four descriptions that no game needs, half remain
        assert abs((kept.sum(1) - needed).mean() - 2) < 5 * np.sqrt(4 * 0.25 / GAMES)


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ("rtfm", {"task": "simple_stationary_single_monster", "max_cycles": 3}),
        ("messenger", {"stage": "s1"}),
    ],
)
def test_a_curriculum_changes_games_that_begin_from_then_on(env, options):
    vec, observation, _ = started(env, omission=1.0, **options)
    before = observation["manual"].copy()
    assert not before.any(-1).all(1).any()
    vec.adjust(omission=0.0)
    begun, anew = np.zeros(GAMES, bool), np.zeros_like(before)
    while not begun.all():
        observation, *_, info = vec.step(np.zeros((GAMES, 1), int))
        now = info.done & ~begun
        anew[now], begun[now] = observation["manual"][now], True
        assert np.array_equal(observation["manual"][~begun], before[~begun])
    fresh = started(env, **options)[0]
    assert np.array_equal(anew, fresh.reset()[0]["manual"])


def monsters(world, row):
    """(element, whether it must die) of the monsters alive."""
    rules = world._rules
    alive = world._games.entities[row, rules.agents : rules.agents + rules.monsters]
    return [(ELEMENTS[each[ELEMENT]], bool(each[TARGET])) for each in alive if each[PRESENT]]


@pytest.mark.parametrize("task", ["simple_stationary_single_monster", "simple_stationary", "nl"])
@pytest.mark.parametrize("manual", ["true", "reassigned"])
def test_only_what_a_game_needs_is_left_of_the_shortest_manual(task, manual):
    vec, *_ = started("rtfm", task=task, omission=1.0, manual=manual, max_cycles=5)
    for row in range(0, GAMES, 7):
        present = monsters(vec.world, row)
        needed = {element for element, _ in present}
        if not all(target for _, target in present):
            needed |= {team for team in TEAMS if team in vec.world.text(row)["goal"]}
        said = {fact.object for fact in vec.world.facts(row)}
        assert said == needed
        assert sum(map(bool, vec.world.text(row)["manual"])) == len(needed)


@pytest.mark.parametrize(("env", "options"), [("rtfm", {"task": "simple_stationary"}), ("ma_rtfm", {"stage": "s2"})])
def test_without_decoys_no_manual_speaks_of_an_element_that_distractors_alone_have(env, options):
    spoken = {}
    for decoys in (0.0, 0.5, 1.0):
        vec, *_ = started(env, omission=1.0, decoys=decoys, **options)
        spoken[decoys] = 0
        for row in range(GAMES):
            present = monsters(vec.world, row)
            targets = {element for element, target in present if target}
            alone = {element for element, target in present if not target} - targets
            teams = {team for team in TEAMS if team in vec.world.text(row)["goal"]}
            said = {fact.object for fact in vec.world.facts(row)}
            assert said - alone == targets | teams
            spoken[decoys] += bool(said & alone)
    assert spoken[0.0] == 0
    assert 0.3 * GAMES < spoken[0.5] < 0.7 * GAMES
    assert spoken[1.0] > 0.9 * GAMES


def test_the_shortest_manual_of_letters_says_what_beats_the_dragons():
    vec, *_ = started("rock_paper_scissors", games=50, omission=1.0)
    for row in range(50):
        dragon = next(each for each in vec.world.scene(row).figures if each.name == "dragon")
        (statement,) = filter(None, vec.world.text(row)["manual"])
        assert statement.split()[2] == dragon.quality


def test_each_other_statement_is_left_out_with_the_probability():
    _, observation, _ = started("rtfm", games=4_000, task="simple_stationary_single_monster", omission=0.3)
    shown = observation["manual"].any(-1).sum(1)
    assert shown.min() >= 1
    mean = (shown - 1).mean()  # of six statements that no game needs, .7 remain
    assert abs(mean - 4.2) < 5 * np.sqrt(6 * 0.3 * 0.7 / 4_000)


def test_the_distractor_stays_away_with_its_probability_and_games_are_won_without_it():
    vec, *_ = started("rtfm", task="simple_stationary", distraction=0.25, max_cycles=60, games=2_000)
    alone = np.array([len(monsters(vec.world, row)) == 1 for row in range(2_000)])
    assert abs(alone.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 2_000)
    oracle, won, ended = Oracle(vec), np.zeros(2_000, bool), np.zeros(2_000, bool)
    while not ended.all():
        *_, info = vec.step(oracle.best_actions().argmax(-1))
        won |= info.done & info.won & ~ended
        ended |= info.done
    assert won[alone].mean() == 1.0


def test_snapshots_keep_shortened_manuals():
    vec, observation, _ = started("rtfm", task="simple_stationary", omission=0.5)
    kept, before = vec.snapshot(), observation["manual"].copy()
    vec.adjust(omission=0.0)
    vec.reset()
    observation, _ = vec.restore(kept)
    assert np.array_equal(observation["manual"], before)


def test_only_adjustable_options_are_adjusted():
    vec, *_ = started("rtfm", games=2)
    with pytest.raises(ConfigurationError):
        vec.adjust(size=8)
    with pytest.raises(ConfigurationError):
        vec.adjust(omission=-0.5)
    vec = mg.make_vec("messenger", 2)
    with pytest.raises(ConfigurationError):
        vec.adjust(distraction=0.5)


MESSENGER = [
    ("messenger", {"stage": "s1"}),
    ("messenger", {"stage": "s2"}),
    ("messenger", {"stage": "s3"}),
    ("ma_messenger", {"stage": "s2"}),
    ("ma_messenger", {"stage": "s4", "agents": 3}),
]


def told_by(sentence):
    """(entity, role) of which our training text may say such a sentence."""
    return {
        (entity, role) for (entity, role, _), told in find_corpus(None).sentences["train"].items() if sentence in told
    }


@pytest.mark.parametrize(("env", "options"), MESSENGER, ids=str)
def test_only_what_says_where_to_go_is_left_of_the_shortest_manual(env, options):
    vec, *_ = started(env, omission=1.0, **options)
    kinds = [
        {row[ROLE]: ENTITIES[row[KIND]] for row in game} for game in vec.world._games.entities[:, vec.num_agents :]
    ]
    begins_with = vec.world._games.entities[:, 0, HOLDS]
    if options["stage"] in ("s1", "s2"):
        delivers = env == "messenger" and options["stage"] == "s2"
        assert delivers or 0.1 < begins_with.mean() < 0.3
    else:
        delivers = True
    for row in range(0, GAMES, 7):
        needed = {(kinds[row][MESSAGE], "message")} if not begins_with[row] else set()
        needed |= {(kinds[row][GOAL], "goal")} if begins_with[row] or delivers else set()
        said = list(filter(None, vec.world.text(row)["manual"]))
        assert len(said) == len(needed)
        assert all(any(each in told_by(sentence) for sentence in said) for each in needed)


def test_a_reassigned_manual_keeps_the_descriptions_that_a_true_one_keeps():
    shown = [
        started("messenger", stage="s3", manual=manual, omission=0.5)[1]["manual"].any(-1)
        for manual in ("true", "reassigned")
    ]
    assert np.array_equal(*shown)


def test_rows_that_are_joined_leave_out_the_same():
    rows, *joined = (started("messenger", stage="s3", omission=0.5, layout=layout)[0].world for layout in LAYOUTS)
    for row in range(GAMES):
        text = " ".join(filter(None, rows.text(row)["manual"]))
        assert [world.text(row)["manual"] for world in joined] == [[text], [without_punctuation(text)]]


@pytest.mark.parametrize("agent", ["emma", "sir", "txt2pi", "relread"])
def test_networks_read_manuals_with_empty_rows(agent):
    vec, observation, info = started("messenger", stage="s3", games=4, omission=1.0)
    policy = make_policy(agent, vec.spec)
    batch = Player(policy, vec.spec, 4).batch(shown_to(0, observation, vec.spec, info.document), np.ones(4, bool))
    output = policy(batch)
    assert output.logits.isfinite().all()
    assert output.value.isfinite().all()
