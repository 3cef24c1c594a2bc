"""Manuals that are split among agents, what they tell one another, and the oracles that tell or guess."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.arrays import (
    ELEMENT,
    FIRST_TELL,
    MANUAL_ROW,
    OBJECT,
    RELATION,
    TARGET,
    TEAM,
    TEAM_DIVISION,
    WORD_2,
)
from magrounding.envs.rtfm.oracle import Oracle, SilentOracle
from magrounding.envs.rtfm.splits import side
from magrounding.errors import ConfigurationError
from magrounding.teams.evaluate import evaluate

GAMES = 300
KIND = {"stage": "s2g", "reading": "kind"}


def started(games=GAMES, **options):
    vec = mg.make_vec("ma_rtfm", games, copy=True, **options)
    return vec, vec.reset(seed=3)[0]


def tells(vec, row):
    """Actions: every agent that may tells this row of its manual, the others stay."""
    may = vec.world.observation["action_mask"][..., FIRST_TELL + row] == 1
    return np.where(may, FIRST_TELL + row, 0)


@pytest.mark.parametrize("agents", [2, 3, 5])
@pytest.mark.parametrize("reading", ["kind", "half", "librarian"])
def test_the_game_is_the_same_and_each_row_somebodys_own(reading, agents):
    bodies = agents - (reading == "librarian")
    vec, split = started(stage="s4", reading=reading, agents=agents, size=9)
    _, whole = started(stage="s4", agents=bodies, size=9)
    own = split["told_by"] == 0
    assert (own.sum(1) == 1).all()
    assert np.array_equal(split["manual"].sum(1), whole["manual"])
    assert np.array_equal(split["manual"].any(-1), own)
    assert np.array_equal(split["goal"], whole["goal"])
    for name in ("grid", "position", "inventory"):
        assert np.array_equal(split[name][:, :bodies], whole[name])
    counts = np.sort(own.sum(2), 1)
    if reading == "librarian":
        assert own[:, -1].all()
    elif reading == "half":
        assert (counts[:, -1] - counts[:, 0] == (7 % agents > 0)).all()
    elif agents == 2:
        assert set(map(tuple, counts)) == {(3, 4)}
        facts = vec.world.fact_table()
        kinds = [{int(fact[RELATION]) for fact in facts[b] if own[b, 0, fact[MANUAL_ROW]]} for b in range(GAMES)]
        assert {frozenset(kind) - {-1} for kind in kinds} == {frozenset({0}), frozenset({1})}
    assert 0.3 * GAMES < own[:, 0, 0].sum() < 0.7 * GAMES or agents > 2 or reading == "librarian"


def test_another_game_has_the_same_map_and_own_statements_but_other_targets():
    """For an agent that reads about elements alone, wherever the targets do not share their name: in two of three."""
    vec, _ = started(1000, **KIND, split="eval")
    world, (_, scalars, entities) = vec.world, vec.world._games
    teams, ways = world._tables.teams, world._tables.elements.shape[0]
    words = world._tables.monster_words.tolist()
    team_of = np.zeros((len(teams), 9), int)
    for team in range(3):
        np.put_along_axis(team_of, teams[:, team].astype(int), team, 1)
    found = np.zeros(len(scalars), bool)
    for b, monsters in enumerate(entities[:, 2:5]):
        names = [words.index(word) for word in monsters[:, WORD_2]]
        of_goal = team_of[:, names] == scalars[b, TEAM]
        others = np.flatnonzero((of_goal.sum(1) == 2) & (of_goal != monsters[:, TARGET]).any(1))
        element = scalars[b, TEAM_DIVISION + 1]
        found[b] = any(side(way * ways + element) == world._rules.side for way in others[:200])
    shared = np.array([len(set(names)) < 3 for names in entities[:, 2:5, WORD_2].tolist()])
    assert np.array_equal(found, ~shared)
    assert 0.62 < found.mean() < 0.71


def test_what_is_told_is_read_by_all_from_the_next_step_on_and_once():
    vec, before = started(**KIND, agents=3)
    actions = tells(vec, 4)
    assert ((actions > 0).sum(1) == 1).all()
    after, *_, info = vec.step(actions)
    teller = actions.argmax(1)
    rows = np.arange(GAMES)
    assert not info.illegal.any()
    assert (after["manual"][:, :, 4] == before["manual"][rows, teller, 4][:, None]).all()
    assert (after["told_by"][rows, teller, 4] == 0).all()
    assert (np.sort(after["told_by"][..., 4], 1)[:, 1:] == 1 + teller[:, None]).all()
    assert np.array_equal(np.delete(after["manual"], 4, 2), np.delete(before["manual"], 4, 2))
    assert np.array_equal(after["position"], before["position"])
    assert not after["action_mask"][..., FIRST_TELL + 4].any()
    *_, again = vec.step(actions)
    assert np.array_equal(again.illegal, actions > 0)


def test_no_agent_tells_more_than_it_may():
    vec, seen = started(**KIND, tells=2)
    for _ in range(3):
        may = seen["action_mask"][..., FIRST_TELL:]
        seen, *_ = vec.step(np.where(may.any(-1), FIRST_TELL + may.argmax(-1), 0))
    assert ((seen["told_by"] > 0).sum((1, 2)) == 4).all()
    assert not seen["action_mask"][..., FIRST_TELL:].any()
    assert started(**KIND, tell=False)[0].spec.num_actions == FIRST_TELL


def test_at_first_all_talk_and_nothing_moves():
    vec, before = started(stage="s5", reading="kind", talk=2)
    for _ in range(2):
        mask = vec.world.observation["action_mask"]
        assert not mask[..., 1:FIRST_TELL].any()
        assert mask[..., 0].all()
        now, *_, info = vec.step(np.full((GAMES, 2), 1))
        assert info.illegal.all()
        assert np.array_equal(now["grid"], before["grid"])
    moved, *_ = vec.step(np.zeros((GAMES, 2), int))
    assert not np.array_equal(moved["grid"], before["grid"])
    vec.adjust(talk=0)
    masks = vec.reset(seed=3)[0]["action_mask"]
    assert np.array_equal(masks[..., :FIRST_TELL], started(stage="s5")[1]["action_mask"])


def test_another_games_statements_are_heard_or_none():
    told = {}
    for heard in ("own", "another", "none"):
        vec, before = started(stage="s5", reading="librarian", heard=heard, talk=1)
        told[heard], *_ = vec.step(tells(vec, 2))
        assert np.array_equal(told[heard]["manual"][:, -1], before["manual"][:, -1])
    lines = {heard: seen["manual"][:, 0, 2] for heard, seen in told.items()}
    assert not lines["none"].any()
    assert (told["none"]["told_by"][:, 0] == -1).all()
    assert (lines["own"] != lines["another"]).any(1).mean() > 0.9
    names = [vec.spec.vocabulary[word] for word in ("fire", "cold", "lightning", "poison", "star", "order", "rebel")]
    for name in names:  # about the same element or team
        assert np.array_equal((lines["own"] == name).any(1), (lines["another"] == name).any(1))


def test_no_agent_is_handed_a_statement_that_it_cannot_read():
    env = mg.make("ma_rtfm", **KIND)
    observations, infos = env.reset(seed=1)
    for agent, seen in observations.items():
        written = [env.spec.vocabulary.decode(line) for line in seen["manual"].tolist()]
        assert infos[agent]["text"]["manual"] == written
        assert all(bool(line) == (by >= 0) for line, by in zip(written, seen["told_by"], strict=True))


def test_a_snapshot_goes_on_with_what_was_told():
    vec, _ = started(stage="s5", reading="kind", agents=3, heard="another")
    vec.step(tells(vec, 0))
    kept = vec.snapshot()
    after = [vec.step(tells(vec, row))[0] for row in (1, 2)]
    fresh = mg.make_vec("ma_rtfm", GAMES, copy=True, stage="s5", reading="kind", agents=3, heard="another")
    fresh.restore(kept)
    for row, seen in zip((1, 2), after, strict=True):
        again = fresh.step(tells(fresh, row))[0]
        assert all(np.array_equal(seen[name], again[name]) for name in seen)


def test_targets_have_distinct_names():
    names = started(stage="s4", distinct_names=True, agents=3)[0].world._games.entities[:, 3:7]
    assert all(len(set(row[row[:, TARGET] == 1, WORD_2].tolist())) == 3 for row in names)


@pytest.mark.parametrize(
    ("options", "least"),
    [
        (KIND, 0.98),
        ({**KIND, "tells": 1}, 0.7),
        ({**KIND, "tells": 2}, 0.98),
        ({"stage": "s2g", "reading": "librarian", "agents": 3}, 0.98),
        ({"stage": "s5", "reading": "kind"}, 0.85),
        ({"stage": "s5", "reading": "kind", "agents": 3, "talk": 3}, 0.7),
        ({"stage": "s5", "reading": "half"}, 0.85),
    ],
    ids=str,
)
def test_the_oracle_tells_and_wins(options, least):
    assert evaluate(Oracle, "ma_rtfm", {**options, "split": "eval"}, 400).won.mean() > least


def test_who_guesses_wins_five_of_nine():
    """Targets share their name in a third of the games; of the others a third is guessed."""
    won = evaluate(SilentOracle, "ma_rtfm", {**KIND, "split": "eval"}, 2_000).won.mean()
    assert abs(won - 5 / 9) < 0.04


@pytest.mark.parametrize("stage", ["s2g", "s5"])
def test_no_oracle_goes_by_what_its_agent_cannot_know(stage):
    """Other targets or weapons, which change nothing that an agent reads or sees, change none of its best moves."""
    vec, seen = started(stage=stage, reading="kind")
    entities = vec.world._games.entities
    labels = Oracle(vec).best_actions()
    assert (labels <= (seen["action_mask"] == 1)).all()
    reads_teams = (seen["told_by"] == 0).sum(2) == 3
    distinct = np.array([len(set(names)) == 3 for names in entities[:, 2:5, WORD_2].tolist()])
    unsure = ~reads_teams & distinct[:, None]
    kept = entities.copy()
    entities[:, 2:5, TARGET] = np.roll(kept[:, 2:5, TARGET], 1, 1)
    assert np.array_equal(Oracle(vec).best_actions()[unsure], labels[unsure])
    entities[:] = kept
    entities[:, 5:8, ELEMENT] = np.roll(kept[:, 5:8, ELEMENT], 1, 1)
    assert np.array_equal(Oracle(vec).best_actions()[reads_teams], labels[reads_teams])


def test_needed_rows_are_about_targets():
    vec, _ = started(stage="s4", reading="half")
    (_, needed), facts = vec.world.lines(), vec.world.fact_table()
    counts = needed.sum(1)
    assert set(counts.tolist()) <= {2, 3}
    assert 0.6 < (counts == 3).mean() < 0.74
    for b in range(20):
        elements = {int(m[ELEMENT]) for m in vec.world._games.entities[b, 2:5] if m[TARGET]}
        about = facts[b][(facts[b, :, RELATION] == 0) & np.isin(facts[b, :, OBJECT], list(elements))]
        rows = set(about[:, MANUAL_ROW].tolist())
        assert len(rows) == 2
        assert rows <= set(np.flatnonzero(needed[b]).tolist())


@pytest.mark.parametrize(
    "options",
    [
        {"stage": "s6", "reading": "kind"},
        {"stage": "s5", "reading": "half", "layout": "merged"},
        {"stage": "s5", "reading": "kind", "agents": 1},
        {"stage": "s2", "distinct_names": True},
        {"stage": "s5", "reading": "some"},
        {"stage": "s5", "reading": "kind", "tells": 0},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(options):
    with pytest.raises(ConfigurationError):
        mg.make("ma_rtfm", **options)


def test_a_split_without_a_gap_is_warned_of():
    with pytest.warns(UserWarning, match="kind"):
        mg.make("ma_rtfm", stage="s2", reading="kind")


def test_reasons_name_no_statement_that_an_agent_cannot_read():
    vec, seen = started(stage="s4", reading="kind")
    reasons = Oracle(vec).reasons().statements
    assert not (reasons & (seen["told_by"] < 0)).any()
    assert reasons.any((1, 2)).all()
