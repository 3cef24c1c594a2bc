"""What the oracle's moves rest on: whom an agent is after, what comes first, and where the manual says so."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, PRESENT, ROW, TARGET
from magrounding.envs.rtfm.ontology import ELEMENTS
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.errors import ConfigurationError

GAMES = 60


def started(env="rtfm", seed=3, **options):
    vec = mg.make_vec(env, GAMES, **options)
    vec.reset(seed=seed)
    return vec, Oracle(vec)


def places(entities, wanted):
    """Cells of the entities that a test calls wanted."""
    return {(int(each[ROW]), int(each[COLUMN])) for each in entities if each[PRESENT] and wanted(each)}


def marked(cells):
    return set(map(tuple, np.argwhere(cells).tolist()))


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ("rtfm", {"task": "simple_stationary"}),
        ("rtfm", {"task": "nl", "size": 8}),
        ("ma_rtfm", {"stage": "s1", "agents": 2}),
        ("ma_rtfm", {"stage": "s2", "agents": 3, "death": "individual"}),
    ],
)
def test_reasons_are_the_targets_their_items_and_their_statements(env, options):
    vec, oracle = started(env, **options)
    n, rules = vec.num_agents, vec.world._rules
    draws = np.random.default_rng(0)
    met = {"armed": 0, "unarmed": 0, "dead": 0}
    for _ in range(12):
        targets, subgoals, statements = oracle.reasons()
        for row in range(GAMES):
            entities = vec.world._games.entities[row]
            monsters, items = entities[n : n + rules.monsters], entities[n + rules.monsters :]
            manual = vec.world.text(row)["manual"]
            for agent in range(n):
                shown = marked(targets[row, agent]), marked(subgoals[row, agent])
                said = {manual[k] for k in np.flatnonzero(statements[row, agent])}
                if not entities[agent, PRESENT]:
                    met["dead"] += 1
                    assert shown == (set(), set())
                    assert not said
                    continue
                held = entities[agent, HELD]
                beaten = entities[held, ELEMENT] if held >= 0 else -1
                hunted = [each for each in monsters if each[PRESENT] and each[TARGET]]
                mine = [each for each in hunted if each[ELEMENT] == beaten]
                met["armed" if mine else "unarmed"] += 1
                elements = {int(each[ELEMENT]) for each in mine or hunted}
                assert shown[0] == places(hunted, lambda each: True)
                wanted = places(items, lambda each, elements=elements: each[ELEMENT] in elements)
                assert shown[1] == (places(mine, lambda each: True) if mine else wanted)
                assert len(said) == len(elements)
                assert all(any(ELEMENTS[k] in words.split() for words in said) for k in elements)
        actions = oracle.act()[0]
        actions[::2] = draws.integers(vec.spec.num_actions, size=actions[::2].shape)  # some die
        vec.step(actions)
    assert met["armed"]
    assert met["unarmed"]
    assert bool(met["dead"]) == (options.get("death") == "individual")


def test_a_reassigned_manual_is_pointed_to_by_what_it_says():
    _, true = started(task="simple_stationary")
    vec, reassigned = started(task="simple_stationary", manual="reassigned")
    assert (true.reasons().targets == reassigned.reasons().targets).all()
    statements = reassigned.reasons().statements[:, 0]
    assert (statements.sum(1) == 1).all()
    element = vec.world._games.entities[0, 1:3]
    target = next(each for each in element if each[TARGET])
    assert ELEMENTS[target[ELEMENT]] in vec.world.text(0)["manual"][int(statements[0].argmax())]


def test_letters_have_no_reasons():
    _, oracle = started("rock_paper_scissors")
    with pytest.raises(ConfigurationError):
        oracle.reasons()
