"""Manuals that leave out what a game does not need, and games without their distractor: `omission`, `distraction`."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.arrays import ELEMENT, PRESENT, TARGET
from magrounding.envs.rtfm.ontology import ELEMENTS, TEAMS
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.errors import ConfigurationError

GAMES = 200


def started(env="rtfm", games=GAMES, seed=3, **options):
    vec = mg.make_vec(env, games, **options)
    return vec, vec.reset(seed=seed)[0]


def monsters(world, row):
    """(element, whether it must die) of the monsters alive."""
    rules = world._rules
    alive = world._games.entities[row, rules.agents : rules.agents + rules.monsters]
    return [(ELEMENTS[each[ELEMENT]], bool(each[TARGET])) for each in alive if each[PRESENT]]


@pytest.mark.parametrize("task", ["simple_stationary_single_monster", "simple_stationary", "nl"])
@pytest.mark.parametrize("manual", ["true", "reassigned"])
def test_only_what_a_game_needs_is_left_of_the_shortest_manual(task, manual):
    vec, _ = started(task=task, omission=1.0, manual=manual, max_cycles=5)
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
        vec, _ = started(env, omission=1.0, decoys=decoys, **options)
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
    vec, _ = started("rock_paper_scissors", games=50, omission=1.0)
    for row in range(50):
        dragon = next(each for each in vec.world.scene(row).figures if each.name == "dragon")
        (statement,) = filter(None, vec.world.text(row)["manual"])
        assert statement.split()[2] == dragon.quality


def test_each_other_statement_is_left_out_with_the_probability():
    _, observation = started(games=4_000, task="simple_stationary_single_monster", omission=0.3)
    shown = observation["manual"].any(-1).sum(1)
    assert shown.min() >= 1
    mean = (shown - 1).mean()  # of six statements that no game needs, .7 remain
    assert abs(mean - 4.2) < 5 * np.sqrt(6 * 0.3 * 0.7 / 4_000)


def test_whole_manuals_are_what_they_were():
    whole, shortened = started(task="simple_stationary")[1], started(task="simple_stationary", omission=0.5)[1]
    for name, array in whole.items():
        if name == "manual":
            kept = shortened[name].any(-1)
            assert np.array_equal(array[kept], shortened[name][kept])
            assert 0.3 < kept.mean() < 0.95
        else:
            assert np.array_equal(array, shortened[name])


def test_a_document_key_names_what_is_left_of_it():
    def keys(omission):
        vec = mg.make_vec("rtfm", GAMES, task="simple_stationary", omission=omission)
        observation, info = vec.reset(seed=3)
        return observation["manual"].copy(), info.document.copy()

    (whole, named), (short, renamed) = keys(0.0), keys(0.5)
    assert np.array_equal((whole == short).all((1, 2)), named == renamed)


def test_the_distractor_stays_away_with_its_probability_and_games_are_won_without_it():
    vec, _ = started(task="simple_stationary", distraction=0.25, max_cycles=60, games=2_000)
    alone = np.array([len(monsters(vec.world, row)) == 1 for row in range(2_000)])
    assert abs(alone.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 2_000)
    oracle, won, ended = Oracle(vec), np.zeros(2_000, bool), np.zeros(2_000, bool)
    while not ended.all():
        *_, info = vec.step(oracle.best_actions().argmax(-1))
        won |= info.done & info.won & ~ended
        ended |= info.done
    assert won[alone].mean() == 1.0


def test_a_curriculum_changes_games_that_begin_from_then_on():
    vec, observation = started(task="simple_stationary_single_monster", omission=1.0, max_cycles=3)
    before = observation["manual"].copy()
    vec.adjust(omission=0.0)
    while True:
        observation, *_, info = vec.step(np.zeros((GAMES, 1), int))
        if info.done.all():
            break
        assert np.array_equal(observation["manual"], before)
    assert observation["manual"].any(-1).all()
    fresh, _ = started(task="simple_stationary_single_monster", max_cycles=3)
    fresh.reset()
    assert np.array_equal(observation["manual"], fresh.world.observation["manual"])


def test_snapshots_keep_shortened_manuals():
    vec, observation = started(task="simple_stationary", omission=0.5)
    kept, before = vec.snapshot(), observation["manual"].copy()
    vec.adjust(omission=0.0)
    vec.reset()
    observation, _ = vec.restore(kept)
    assert np.array_equal(observation["manual"], before)


def test_only_adjustable_options_are_adjusted():
    vec, _ = started(games=2)
    with pytest.raises(ConfigurationError):
        vec.adjust(size=8)
    with pytest.raises(ConfigurationError):
        vec.adjust(omission=-0.5)
    vec = mg.make_vec("messenger", 2)
    with pytest.raises(ConfigurationError):
        vec.adjust(distraction=0.5)
