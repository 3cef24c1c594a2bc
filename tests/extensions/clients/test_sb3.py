"""stable-baselines3 and sb3-contrib: no glue, and a reader that learns."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from pettingzoo.utils import BaseParallelWrapper

import magrounding as mg
from magrounding.envs.single_agent import SingleAgentEnv
from magrounding.errors import CallOrderError, ConfigurationError, MissingExtra

ONE_AGENT = {"rtfm": {}, "rock_paper_scissors": {}, "messenger": {}, "babyai": {"level": "GoToObj"}}


def single(id, **options):
    if id == "babyai":
        pytest.importorskip("minigrid")
    return gymnasium.make(f"magrounding/{mg.ENVS[id].versioned_id}", **{**ONE_AGENT[id], **options})


def policy(spec):
    from magrounding.extensions.clients.sb3 import WordExtractor

    return {"features_extractor_class": WordExtractor, "features_extractor_kwargs": {"spec": spec}, "net_arch": [32]}


@pytest.mark.parametrize("id", ONE_AGENT)
def test_masks_and_words_of_the_single_agent_face(id):
    env = single(id)
    ask = env.get_wrapper_attr("action_masks")
    with pytest.raises(CallOrderError):
        ask()
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        mask = ask()
        assert mask.dtype == np.bool_
        np.testing.assert_array_equal(mask, info["action_mask"])
        mask[:] = False  # the caller's own
        info["action_mask"][:] = 0
        assert ask().any()
        _, _, terminated, truncated, info = env.step(rng.integers(env.action_space.n))
        if terminated or truncated:
            _, info = env.reset()
    words = env.get_wrapper_attr("vocabulary")
    assert words.decode([1, 2]) == " ".join(words.words[1:3])


def test_an_env_without_words_says_so():
    foreign = BaseParallelWrapper(mg.make("rtfm"))
    assert SingleAgentEnv(foreign).vocabulary is mg.make("rtfm").spec.vocabulary
    foreign.spec = None
    with pytest.raises(ConfigurationError):
        _ = SingleAgentEnv(foreign).vocabulary


def test_without_sb3_it_says_what_to_install():
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "import magrounding.extensions.clients\n"
        "try: import magrounding.extensions.clients.sb3\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "MissingExtra WordExtractor needs an optional package: pip install 'magrounding[clients]'\n"
    assert issubclass(MissingExtra, ImportError)


@pytest.mark.parametrize("name", ["PPO", "DQN", "A2C"])
def test_sb3_learns_and_comes_back_from_a_file(name, tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    options = {"PPO": {"n_steps": 64}, "DQN": {"buffer_size": 200, "learning_starts": 50}, "A2C": {}}[name]
    env = single("rtfm", max_cycles=20)
    model = getattr(sb3, name)(
        "MultiInputPolicy", env, seed=0, policy_kwargs=policy(mg.ENVS["rtfm"].describe()), **options
    )
    readers = [part for key, part in model.policy.named_parameters() if key.endswith("embedding.weight")]
    before = [part.clone() for part in readers]
    model.learn(128)
    assert any((part != old).any() for part, old in zip(readers, before, strict=True))
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", env=env)
    seen, _ = env.reset(seed=5)
    for _ in range(10):
        action, _ = model.predict(seen, deterministic=True)
        assert action == loaded.predict(seen, deterministic=True)[0]
        seen, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            seen, _ = env.reset()


def test_sb3s_own_checks_pass():
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(single("rtfm", max_cycles=20).unwrapped, warn=False)


@pytest.mark.parametrize("id", ONE_AGENT)
def test_maskable_ppo_plays_every_world_of_one_agent_and_nothing_masked(id):
    contrib = pytest.importorskip("sb3_contrib")
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    illegal = []

    class Watched(gymnasium.Wrapper):
        def step(self, action):
            outcome = self.env.step(action)
            illegal.append(outcome[-1].get("illegal", False))
            return outcome

    env = vec_env.DummyVecEnv([lambda: Watched(single(id))] * 3)
    spec = mg.ENVS[id].describe(**ONE_AGENT[id])
    model = contrib.MaskablePPO("MultiInputPolicy", env, n_steps=32, batch_size=48, policy_kwargs=policy(spec), seed=1)
    model.learn(192)
    assert len(illegal) == 192
    assert not any(illegal)


def test_supersuit_gives_sb3_all_agents_where_some_die(monkeypatch):
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("supersuit")
    pytest.importorskip("magrounding.extensions.clients.tensors")
    from examples.clients import sb3_supersuit

    model = sb3_supersuit.learner(0, death="individual")
    assert model.env.num_envs == 64
    model.learn(4096)
    played, game = [], sb3_supersuit.game
    monkeypatch.setattr(sb3_supersuit, "game", lambda *options: played.append(game(*options)) or played[-1])
    share = sb3_supersuit.win_rate(model, rounds=1, death="individual")
    ends = [env.unwrapped.world.out for env in played]
    assert all(end.done[0] for end in ends)
    assert share == np.mean([end.won[0] for end in ends])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_maskable_ppo_learns_to_read():
    pytest.importorskip("sb3_contrib")
    from examples.clients import maskable_ppo

    model = maskable_ppo.learner(seed=0)
    model.learn(160_000)
    assert maskable_ppo.win_rate(model) > 0.5
    assert maskable_ppo.win_rate(None) < 0.3
