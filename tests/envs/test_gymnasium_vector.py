"""The vector face: a real `gymnasium.vector.VectorEnv` that plays, row by row, the games of single envs."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

import magrounding as mg
from magrounding.envs.gymnasium_vector import GymnasiumVectorEnv, make_gymnasium_vec
from magrounding.errors import CallOrderError, ConfigurationError, InvalidAction
from magrounding.simulators.env_row import episode_seed
from tests.simulators.games import Counting

MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
SHORT = {
    "rtfm": {"task": "simple", "max_cycles": 6},
    "rock_paper_scissors": {"max_cycles": 6},
    "messenger": {"stage": "s2", "max_cycles": 6},
}


def make(id="rtfm", num_envs=5, **options):
    name = f"magrounding/{mg.ENVS[id].versioned_id}"
    return gymnasium.make_vec(
        name, num_envs, vectorization_mode="vector_entry_point", **{**SHORT.get(id, {}), **options}
    )


def singles(id, num_envs, mode):
    return gymnasium.make_vec(
        f"magrounding/{mg.ENVS[id].versioned_id}", num_envs, "sync", {"autoreset_mode": mode}, **SHORT.get(id, {})
    )


def assert_same(mine, theirs):
    """All that the face gives is what Gymnasium gives; texts are what it leaves out."""
    if isinstance(mine, dict):
        assert mine.keys() == theirs.keys() - {"text", "_text"}
        for key, part in mine.items():
            assert_same(part, theirs[key])
    elif isinstance(mine, np.ndarray) and mine.dtype == object:
        assert [each is None for each in mine] == [each is None for each in theirs]
        for one, other in zip(mine, theirs, strict=True):
            if one is not None:
                assert_same(one, other)
    else:
        np.testing.assert_array_equal(mine, theirs)
        assert mine.shape == theirs.shape


def agree(mine, theirs):
    """Both parts of a reset, or all parts of a step; a same-step end says of its last info only how it ended."""
    for one, other in zip(mine, theirs, strict=True):
        if isinstance(one, dict) and "final_info" in other:
            wanted = {k: v for k, v in other["final_info"].items() if k.lstrip("_") in ("won", "score", "illegal")}
            assert_same(one["final_info"], wanted)
            one, other = ({k: v for k, v in infos.items() if k != "final_info"} for infos in (one, other))
        assert_same(one, other)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("id", SHORT)
def test_it_plays_what_single_envs_play_side_by_side(id, mode):
    mine, theirs, rng = make(id, autoreset_mode=mode), singles(id, 5, mode), np.random.default_rng(3)
    assert mine.metadata["autoreset_mode"] is mode
    assert mine.single_observation_space == theirs.single_observation_space
    assert mine.observation_space == theirs.observation_space
    assert mine.action_space == theirs.action_space
    agree(mine.reset(seed=11), theirs.reset(seed=11))
    ends = 0
    for _ in range(40):
        actions = rng.integers(0, 5, 5)
        played = theirs.step(actions)
        agree(mine.step(actions), played)
        ends += (played[2] | played[3]).sum()
    assert ends > 20
    agree(mine.reset(), theirs.reset())  # the next episodes


@pytest.mark.parametrize("id", SHORT)
def test_games_that_return_copies_say_the_same(id):
    plain, fresh = (make(id, num_envs=16, max_cycles=1, copy=copy) for copy in (False, True))
    for one, other in zip(fresh.reset(seed=0), plain.reset(seed=0), strict=True):
        assert_same(one, other)
    for _ in range(8):  # every second step only starts the next episodes
        for one, other in zip(fresh.step(np.zeros(16, int)), plain.step(np.zeros(16, int)), strict=True):
            assert_same(one, other)


def test_a_seed_of_numpy_is_a_seed():
    mine, other = make(), make()
    assert_same(mine.reset(seed=np.int64(3))[0], other.reset(seed=3)[0])


@pytest.mark.parametrize("mode", MODES)
def test_returned_arrays_are_the_callers_own(mode):
    env = make(autoreset_mode=mode)
    seen, infos = env.reset(seed=0)
    before = {key: array.copy() for key, array in (*seen.items(), *infos.items())}
    for _ in range(20):
        env.step(np.zeros(5, np.int64))
    for key, array in before.items():
        np.testing.assert_array_equal(array, seen[key] if key in seen else infos[key])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_statistics_of_gymnasium_are_of_whole_episodes(mode):
    env = wrappers.RecordEpisodeStatistics(make(num_envs=16, autoreset_mode=mode, max_cycles=7))
    if mode == "SameStep" and tuple(map(int, gymnasium.__version__.split(".")[:2])) < (1, 4):
        pytest.skip("this Gymnasium's RecordEpisodeStatistics leaves out the first step after a same-step reset")
    env.reset(seed=0)
    found, expected = [], []
    returns, lengths, fresh = np.zeros(16), np.zeros(16, int), np.zeros(16, bool)
    for _ in range(60):
        _, reward, terminated, truncated, infos = env.step(env.action_space.sample())
        returns, lengths = returns + reward, lengths + ~fresh
        done = terminated | truncated
        assert ("_episode" in infos) == done.any()
        if done.any():
            np.testing.assert_array_equal(infos["_episode"], done)
            found += list(zip(infos["episode"]["r"][done].round(4), infos["episode"]["l"][done], strict=True))
            expected += list(zip(returns[done].round(4), lengths[done], strict=True))
        returns[done], lengths[done] = 0, 0
        fresh = done & (mode == "NextStep")
    assert found == expected
    assert len(found) > 50
    assert max(length for _, length in found) == 7


def test_pictures():
    env = make(num_envs=2, render_mode="rgb_array")
    env.reset(seed=0)
    frames = env.render()
    assert len(frames) == 2
    assert frames[0].dtype == np.uint8
    assert not np.array_equal(frames[0], frames[1])
    single = gymnasium.make("magrounding/rtfm-v1", render_mode="rgb_array", **SHORT["rtfm"])
    single.reset(seed=1)
    np.testing.assert_array_equal(frames[1], single.render())


def test_without_a_mode_gymnasium_takes_ours():
    env = gymnasium.make_vec("magrounding/rtfm-v1", num_envs=2)
    assert isinstance(env.unwrapped, GymnasiumVectorEnv)
    assert env.spec.id == "magrounding/rtfm-v1"
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.unwrapped.vocabulary.decode([1]) == env.unwrapped.vocabulary.words[1]
    env.close()
    env.close()


def test_misuse_is_one_sentence():
    with pytest.raises(ConfigurationError):
        make_gymnasium_vec("ma_rtfm", 2)
    for options in ({"autoreset_mode": "never"}, {"autoreset_mode": "Disabled"}, {"render_mode": "ansi"}):
        with pytest.raises(ConfigurationError):
            make(**options)
    env = make()
    with pytest.raises(CallOrderError):
        env.step(np.zeros(5, int))
    env.reset(seed=0)
    for wrong in (np.zeros(4, int), np.zeros((5, 1), int), np.full(5, 5), np.zeros(5), None, [[1], [1, 2]]):
        with pytest.raises(InvalidAction):
            env.step(wrong)
    with pytest.raises(ConfigurationError):
        env.reset(seed=-1)


@pytest.mark.parametrize(("workers", "mode"), [*((0, mode) for mode in MODES), (2, MODES[0])])
def test_a_simulator(workers, mode):
    pytest.importorskip("minigrid")
    mine = make("babyai", num_envs=4, level="GoToObj", max_cycles=5, workers=workers, autoreset_mode=mode)
    games = [gymnasium.make("magrounding/babyai-v0", level="GoToObj", max_cycles=5) for _ in range(4)]
    assert mine.single_observation_space == games[0].observation_space
    seen, _ = mine.reset(seed=7)
    for row, game in enumerate(games):
        assert_same({key: array[row] for key, array in seen.items()}, game.reset(seed=7 + row)[0])
    rng, playing, ends = np.random.default_rng(0), np.ones(4, bool), 0
    fresh = np.zeros(4, bool)
    for _ in range(12):
        actions = rng.integers(0, 7, 4)
        seen, reward, terminated, truncated, infos = mine.step(actions)
        done = terminated | truncated
        ends += done.sum()
        if mode is AutoresetMode.NEXT_STEP:
            assert not done[fresh].any()
            assert not reward[fresh].any()
        for row in np.flatnonzero(playing):  # later episodes of a row have seeds of their own
            last, paid, *flags, info = games[row].step(actions[row])
            shown = {key: array[row] for key, array in seen.items()}
            assert_same(infos["final_obs"][row] if "final_obs" in infos and done[row] else shown, last)
            assert (reward[row], [terminated[row], truncated[row]]) == (np.float32(paid), flags)
            if done[row]:
                told = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
                assert told["won"][row] == info["won"]
        playing &= ~done
        fresh = done
    assert ends >= 8
    mine.close()
    for game in games:
        game.close()


def test_held_games_of_a_simulator_stay_as_they_are():
    pytest.importorskip("minigrid")
    vec = mg.make_vec("babyai", 2, level="GoToObj", max_cycles=3)
    vec.reset(seed=0)
    for _ in range(3):
        seen, *_, info = vec.step([[0], [0]])
    assert info.done.all()
    before = seen["grid"].copy()
    vec.hold(np.array([True, False]))
    seen, reward, terminated, truncated, info = vec.step([[0], [0]])
    np.testing.assert_array_equal(seen["grid"][0], before[0])
    assert info.length.tolist() == [0, 1]
    assert [reward[0, 0], terminated[0, 0], truncated[0, 0], info.done[0]] == [0, False, False, False]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("id", SHORT)
def test_a_reset_mask_starts_some_games_as_gymnasium_does(id, mode):
    mine, theirs, rng = make(id, autoreset_mode=mode), singles(id, 5, mode), np.random.default_rng(5)
    agree(mine.reset(seed=3), theirs.reset(seed=3))
    over = np.zeros(5, bool)
    started = {True: 0, False: 0}  # games that had just ended, and others
    for step in range(60):
        actions = rng.integers(0, 5, 5)
        played = theirs.step(actions)
        agree(mine.step(actions), played)
        over = played[2] | played[3]
        if step % 3:
            continue
        mask = rng.random(5) < 0.5
        mask[rng.integers(5)] = True
        options = {"reset_mask": mask}
        seed = (None, 40)[step % 2]
        ours = mine.reset(seed=seed, options=options)
        assert options["reset_mask"] is mask
        agree(ours, theirs.reset(seed=seed, options={"reset_mask": mask.copy()}))
        for ended in started:
            started[ended] += (mask & (over == ended)).sum()
    assert min(started.values()) > 5


def test_a_mask_of_all_games_is_a_reset_and_other_masks_are_refused():
    env = make()
    with pytest.raises(CallOrderError):
        env.reset(options={"reset_mask": np.arange(5) == 2})
    whole, other = np.ones(5, bool), make()
    assert_same(env.reset(seed=3, options={"reset_mask": whole})[0], other.reset(seed=3)[0])
    for wrong in (np.ones(4, bool), np.ones(5, int), [True] * 5, None, True, np.ones((5, 1), bool)):
        with pytest.raises(ConfigurationError):
            env.reset(options={"reset_mask": wrong})
    with pytest.raises(ConfigurationError):
        env.reset(options={"reset_mask": np.zeros(5, bool)})
    env.step(np.zeros(5, int))
    env.close()
    with pytest.raises(CallOrderError):
        env.reset(options={"reset_mask": whole})


@pytest.mark.parametrize(("workers", "mode"), [*((0, mode) for mode in MODES), (2, MODES[0])])
def test_a_reset_mask_of_a_simulator(workers, mode):
    """Games that show their row's seed, their episode's number and their step, and end with the fourth."""
    vec = mg.vectorize(lambda: Counting(), 4, workers)
    env = GymnasiumVectorEnv(vec, mode)

    def shown(result):
        return result[0]["observation"].tolist()

    def step(*rows):
        return env.step(np.isin(np.arange(4), rows).astype(int))  # 1 ends a game

    assert shown(env.reset(seed=10)) == [[10, 0], [11, 0], [12, 0], [13, 0]]
    step()
    first = shown(step())
    assert first == [[10, 2], [11, 2], [12, 2], [13, 2]]
    seen, infos = env.reset(seed=20, options={"reset_mask": np.array([True, False, False, True])})
    assert seen["observation"].tolist() == [[20, 0], [11, 2], [12, 2], [23, 0]]
    assert infos["_document"].tolist() == infos["_action_mask"].tolist() == [True, False, False, True]
    assert infos["action_mask"].any(1).tolist() == [True, False, False, True]
    assert not infos["document"][1]
    assert shown(step()) == [[20, 1], [11, 3], [12, 3], [23, 1]]
    seen, _, over, *_ = step(1, 2)
    assert over.tolist() == [False, True, True, False]
    if mode is AutoresetMode.NEXT_STEP:
        assert seen["observation"].tolist() == [[20, 2], [11, 4], [12, 4], [23, 2]]
    second = [[episode_seed(seed, 1), 0] for seed in (20, 11, 12, 23)]
    third = [[episode_seed(seed, 2), 0] for seed in (20, 11, 12, 23)]
    seen, _ = env.reset(options={"reset_mask": np.array([True, True, False, False])})
    if mode is AutoresetMode.NEXT_STEP:  # what has ended is started by this reset, and by nothing before
        assert seen["observation"].tolist() == [second[0], second[1], [12, 4], [23, 2]]
        assert shown(step()) == [[second[0][0], 1], [second[1][0], 1], second[2], [23, 3]]
    else:  # what has ended has begun anew already, and is started once more
        assert seen["observation"].tolist() == [second[0], third[1], second[2], [23, 2]]
        assert shown(step()) == [[second[0][0], 1], [third[1][0], 1], [second[2][0], 1], [23, 3]]
    env.close()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_reset_without_a_seed_skips_no_episode(workers):
    env = GymnasiumVectorEnv(mg.vectorize(lambda: Counting(), 2, workers))
    env.reset(seed=5)
    env.step(np.array([1, 0]))
    seen, _ = env.reset()
    assert seen["observation"].tolist() == [[episode_seed(5, 1), 0], [episode_seed(6, 1), 0]]
    env.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_some_games_of_a_vector_env_of_simulators(workers):
    with mg.vectorize(lambda: Counting(), 3, workers) as vec:
        with pytest.raises(CallOrderError):
            vec.reset(rows=[1])
        vec.reset(seed=0)
        vec.step([[0], [0], [1]])
        seen, info = vec.reset(seed=7, rows=[0])
        assert seen["observation"][:, 0].tolist() == [[7, 0], [1, 1], [episode_seed(2, 1), 0]]
        assert info.length.tolist() == [0, 1, 0]
        assert info.returns.tolist() == [[0], [1], [0]]
        assert not info.done.any()
        assert len(info.final_rows) == 0
        for wrong in ([3], [-1], "0", [0.5], np.ones(3, bool)):
            with pytest.raises(ConfigurationError):
                vec.reset(rows=wrong)
        assert vec.step([[0], [0], [0]])[4].length.tolist() == [1, 2, 1]


def test_some_games_are_not_reset_while_a_step_is_being_played():
    with mg.vectorize(lambda: Counting(), 2, 1) as vec:
        vec.reset(seed=0)
        vec.send([[0]], 0)
        with pytest.raises(CallOrderError):
            vec.reset(rows=[1])
        vec.receive(0)
        vec.reset(rows=[1])
