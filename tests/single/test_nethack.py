"""NetHack behind the door, on the real simulator: that it is nle's own game, seeded for good, and leaves nothing."""

import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.single.nethack import ACTIONS, SPLITS, TASKS, THRESHOLDS, NetHack
from magrounding.single.nethack.level import FLOOR, STEP, Level
from magrounding.single.nethack.options import SEEDS
from magrounding.single.nethack.words import (
    BEEN,
    BLANK,
    DOWN,
    HERO,
    KICKS,
    LOCKED,
    MARKS,
    SHUT,
    UNMARKED,
    all_words,
    first_ids,
)
from magrounding.single.one_agent import AGENT
from magrounding.single.tokenizer import split as words_of
from magrounding.vocabulary import plain_text
from tests.full import in_full, in_the_full_suite

pytest.importorskip("nle", reason="the extra `nethack` is absent: nle")

from nle import nethack
from nle.env import tasks

from tests.single.nethack_games import RECORDED, digest, random_games, random_wins

SHOWN = ("glyphs", "chars", "colors", "blstats", "message")
NLES = {"gold": tasks.NetHackGold, "scout": tasks.NetHackScout, "score": tasks.NetHackScore}


@pytest.fixture
def env():
    env = mg.make("nethack")
    yield env
    env.close()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Lists the folders of the games that are made from now on, here and in workers."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return lambda: sorted(tmp_path.rglob("nle*"))


def test_the_same_seeds_are_the_same_games_in_another_process_too():
    seeds = in_full(50, 3)
    first, again = digest(seeds, 80), digest(seeds, 80)
    elsewhere = subprocess.check_output(
        [sys.executable, "-m", "tests.single.nethack_games", str(seeds), "80"],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert first == again == elsewhere.strip()
    assert digest(seeds + 1, 80) != first


@pytest.mark.parametrize("prompt", NLES)
def test_a_prompt_sees_and_gains_what_nles_own_task_does(prompt):
    env = mg.make("nethack", task=f"silg_{prompt}", characters=True, colours=True, max_cycles=400)
    options = {"options": nethack.NETHACKOPTIONS, "penalty_step": 0.0, "penalty_time": 0.0, "fix_moon_phase": True}
    own = NLES[prompt](observation_keys=SHOWN, **options)  # nle's `screen_descriptions` would draw random numbers
    first, gains = np.array(first_ids()), 0
    for seed in range(in_full(30, 6)):
        rng, total = np.random.default_rng(seed), 0.0
        seen = env.reset(seed=seed)[0][AGENT]
        own.seed(core=env.game_seed, disp=env.game_seed, reseed=False)
        theirs, _ = own.reset()
        while env.agents:
            planes = np.stack([theirs[key] for key in ("glyphs", "chars", "colors")], -1)
            np.testing.assert_array_equal(seen["grid"], planes + first)
            np.testing.assert_array_equal(seen["position"], theirs["blstats"][1::-1])
            action = int(rng.integers(23))
            seen = env.step({AGENT: action})[0][AGENT]
            theirs, reward, _, _, _ = own.step(action)
            total += reward
            assert env.gained == total
        gains += env.gained > 0
    assert gains, "nothing was ever gained"
    env.close()
    own.close()


def test_what_is_shown():
    env = mg.make("nethack", characters=True, colours=True)
    observations, infos = env.reset(seed=3)
    seen, text = observations[AGENT], infos[AGENT]["text"]
    assert list(seen) == list(env.observation_space(AGENT).spaces)
    glyph, character, colour = first_ids()
    row, column = seen["position"]
    assert seen["grid"][row, column].tolist() == [glyph + HERO, character + ord("@"), colour + 15]
    assert all_words()[glyph + HERO] == f"glyph:{HERO}"
    assert (seen["grid"][..., 0] == glyph + BLANK).mean() > 0.5
    assert text["message"]
    for name in ("goal", "message", "status"):
        assert plain_text(env.spec.words, seen[name]) == " ".join(words_of(text[name]))
    assert text["status"].startswith("dlvl 1 $ 0 hp ")
    assert mg.make("nethack", task="eat").reset(seed=0)[0][AGENT]["grid"].shape == (21, 79, 1)


def test_the_actions_are_nles(env):
    names = {"N": "north", "E": "east", "S": "south", "W": "west"}
    names |= {"NE": "north east", "SE": "south east", "SW": "south west", "NW": "north west"}
    theirs = []
    for action in tasks.TASK_ACTIONS:
        kind = type(action).__name__
        name = names.get(action.name, action.name.lower())
        theirs.append(f"far {name}" if kind == "CompassDirectionLonger" else name)
    assert tuple(theirs) == ACTIONS == env.spec.actions.names


@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_an_episode_is_won_once_it_has_gained_enough(thresholds):
    env, won = mg.make("nethack", thresholds=thresholds), 0
    for result in random_games(env, range(60)):
        if len(result) == 2:
            before = 0.0
            continue
        _, rewards, terminations, truncations, infos = result
        enough = env.gained >= THRESHOLDS[thresholds][env.prompt] > before
        before = env.gained
        if env.agents:
            assert (rewards[AGENT], "won" in infos[AGENT], enough) == (-0.02, False, False)
            continue
        won += enough
        assert infos[AGENT]["won"] == enough
        assert rewards[AGENT] == (1.0 if enough else -1.0)
        assert terminations[AGENT] != truncations[AGENT]
        assert truncations[AGENT] == (len(env.played) == 80 and not enough and env._engine.statistics[20] > 0)
    assert 0 < won < 60
    env.close()


def test_prompts_and_seeds_are_those_of_the_split():
    for place, split in enumerate(SPLITS):
        env, prompts, seeds = mg.make("nethack", split=split), [], set()
        for _ in range(30):
            env.reset(seed=4 if not seeds else None)
            prompts.append(env.prompt)
            seeds.add(env.game_seed)
        assert len(seeds) == 30
        assert all(place * SEEDS <= seed < (place + 1) * SEEDS for seed in seeds)
        assert set(prompts) == {"gold", "scout", "score"}
        env.close()
    assert NetHack().limit == 80
    assert NetHack(max_cycles=50).describe().max_cycles == 50
    assert NetHack(task="oracle").limit == 5000


@pytest.mark.parametrize("task", [task for task in TASKS if not task.startswith("silg")])
def test_nles_own_tasks_pay_what_nle_pays(task):
    env = mg.make("nethack", task=task, max_cycles=60)
    own = getattr(tasks, "NetHack" + "".join(part.title() for part in task.split("_")))
    own = own(observation_keys=SHOWN, fix_moon_phase=True)
    for seed in range(3):
        rng, total = np.random.default_rng(seed), 0.0
        env.reset(seed=seed)
        own.seed(core=env.game_seed, disp=env.game_seed, reseed=False)
        own.reset()
        while env.agents:
            action = int(rng.integers(23))
            _, rewards, terminations, _, infos = env.step({AGENT: action})
            _, reward, done, _, info = own.step(action)
            total += reward
            assert (rewards[AGENT], infos[AGENT]["score"], terminations[AGENT]) == (reward, total, done)
        assert infos[AGENT]["won"] == (int(info["end_status"]) == 2)
    env.close()
    own.close()


def test_memory_files_and_folders_do_not_grow_with_resets(folders):
    process, sizes, files = Path("/proc/self"), [], []
    env, rng = mg.make("nethack"), np.random.default_rng(0)
    laps = in_full(1000, 120) // 4
    for _ in range(4):
        for _ in range(laps):
            env.reset()
            for _ in range(3):
                if env.agents:
                    env.step({AGENT: int(rng.integers(23))})
        gc.collect()
        sizes.append(int((process / "statm").read_text().split()[1]) * 4096 / 2**20)
        files.append(len(list((process / "fd").iterdir())))
        assert len(folders()) == 1
    assert sizes[-1] - sizes[0] < 8, sizes
    assert files[-1] == files[0]
    env.close()
    assert not folders()


def test_the_explorer_wins_most_games_and_keeps_its_word():
    env, won, games = mg.make("nethack", split="test"), 0, in_full(900, 100)
    for seed in range(games):
        env.reset(seed=seed)
        while env.agents:
            labels = env.best_actions()
            assert labels.shape == (1, 23)
            assert labels.sum() == 1
            np.testing.assert_array_equal(labels, env.best_actions())
            infos = env.step({AGENT: int(labels.argmax())})[4]
        won += infos[AGENT]["won"]
    assert env.best_actions().all()
    assert won > 0.6 * games
    env.close()
    with pytest.raises(ConfigurationError):
        mg.make("nethack", task="eat").best_actions()


def test_a_crop_is_what_lies_around_the_agent():
    whole, near = (mg.make("nethack", characters=True, crop=crop) for crop in (0, 9))
    for seed in range(4):
        a, b = (env.reset(seed=seed)[0][AGENT] for env in (whole, near))
        while whole.agents:
            row, column = a["position"]
            assert b["grid"].shape == (9, 9, 2)
            known = a["grid"][..., :1] != whole.spec.vocabulary["glyph:2359"]
            wide = np.pad(a["grid"] * known, ((4, 4), (4, 4), (0, 0)))
            if row >= 0:
                np.testing.assert_array_equal(b["grid"], wide[row : row + 9, column : column + 9])
            action = 1 + (seed + len(whole.played)) % 16
            a, b = (env.step({AGENT: action})[0][AGENT] for env in (whole, near))
    whole.close()
    near.close()


def test_a_game_that_states_another_prompt_is_the_same_game():
    """The goal is another, and what the expert says; dungeon, threshold and prompt stay."""
    true, false = (mg.make("nethack", task="silg_gold", stated=each) for each in (None, "scout"))
    differs = 0
    for seed in (1, 2):
        a, b = (env.reset(seed=seed)[0][AGENT] for env in (true, false))
        assert plain_text(false.spec.words, b["goal"]) == "explore the map"
        assert plain_text(true.spec.words, a["goal"]) == "get more gold"
        while true.agents:
            np.testing.assert_array_equal(a["grid"], b["grid"])
            best = int(true.best_actions()[0].argmax())
            differs += best != int(false.best_actions()[0].argmax())
            a, b = (env.step({AGENT: best})[0][AGENT] for env in (true, false))
        assert (false.prompt, false.gained, false.agents) == ("gold", true.gained, [])
    assert differs
    true.close()
    false.close()
    with pytest.raises(ConfigurationError):
        NetHack(task="eat", stated="gold")


def test_a_level_is_what_the_episode_has_shown_of_it():
    """Glyphs are nle's; stone is known beside where the agent has been, and nothing is known beyond."""
    env, glyph = mg.make("nethack", task="silg_score", thresholds="new", level=True), first_ids()[0]
    marks = dict(zip(MARKS, range(len(all_words()), len(all_words()) + len(MARKS)), strict=True))
    found, under, levels = set(), set(), 0
    for seed in (7, 8, 10):  # of games that go down stairs
        seen, depth, been = env.reset(seed=seed)[0][AGENT], -1, set()
        while env.agents:
            row, column = seen["position"].tolist()
            if depth != env._engine.statistics[12]:
                depth, been = env._engine.statistics[12], set()
                levels += 1
            been.add((row, column))
            shown, mark = seen["level"][..., 0] - glyph, seen["level"][..., 1]
            known, blank = shown >= 0, seen["grid"][..., 0] == glyph + BLANK
            known[row, column] = False  # what is under the agent is shown, and not the agent
            np.testing.assert_array_equal(shown[known], seen["grid"][..., 0][known] - glyph)
            under |= {int(shown[row, column])}
            known[row, column] = True
            assert known[~blank].all()
            assert all(known[max(0, r - 1) : r + 2, max(0, c - 1) : c + 2].all() for r, c in been)
            assert all(mark[cell] > 0 for cell in been)
            beside = np.pad(mark > 0, 1)
            near = sum(beside[r : r + 21, c : c + 79].astype(int) for r in range(3) for c in range(3))
            assert not (known & blank & (near == 0)).any()
            found |= {*np.unique(mark).tolist()} - {0}
            best = int(env.best_actions()[0].argmax())
            seen = env.step({AGENT: best if len(env.played) % 9 else 1 + len(env.played) % 8})[0][AGENT]
    env.close()
    assert levels > 3
    assert under > {FLOOR, DOWN}
    assert HERO not in under
    assert found >= {marks["been there"], marks["not entered at the first try"], marks["not entered"]}


def test_marks_of_a_locked_door_that_is_kicked_until_it_opens():
    level, screen = Level(), np.full((21, 79), FLOOR)
    screen[5, 5] = BLANK + 15
    level.look(screen, 5, 4, 1, "")
    east = STEP + 1
    assert level.marks()[5, 5] == UNMARKED
    level.look(screen, 5, 4, 1, "This door is locked.", east)
    assert (level.locked, level.marks()[5, 5]) == ((5, 5), LOCKED)
    for _ in range(KICKS):
        level.look(screen, 5, 4, 1, "In what direction?", ACTIONS.index("kick"))
        level.look(screen, 5, 4, 1, "WHAMM!!!", east)
    assert level.marks()[5, 5] == SHUT
    level.look(screen, 5, 4, 1, "In what direction?", ACTIONS.index("kick"))
    screen[5, 5] = BLANK + 12
    level.look(screen, 5, 4, 1, "As you kick the door, it crashes open!", east)
    assert (level.locked, level.vain[5, 5], level.marks()[5, 5]) == (None, 0, UNMARKED)
    level.look(screen, 5, 5, 1, "", east)
    assert level.marks()[5, 5] == level.marks()[5, 4] == BEEN
    assert level.look(screen, 5, 5, 2, "", east)
    assert level.marks()[5, 4] == UNMARKED


@in_the_full_suite("a thousand games at random")
def test_a_random_policy_wins_as_often_as_it_did_in_another_program():
    wins, games = random_wins(1200, "test")
    for prompt, (won, played) in RECORDED.items():
        pooled = (wins[prompt] + won) / (games[prompt] + played)
        deviation = np.sqrt(pooled * (1 - pooled) * (1 / games[prompt] + 1 / played))
        assert abs(wins[prompt] / games[prompt] - won / played) < 3 * deviation, prompt
