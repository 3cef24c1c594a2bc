"""Foreign envs that answer wrongly, one thing of one answer: a sentence or a result comes of it, never anything else.

`make fuzz` draws ten thousand games; one in two hundred is played in a worker process.
"""

import collections
import os

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magrounding.envs.gymnasium_vector import GymnasiumVectorEnv
from magrounding.errors import CallOrderError, MagroundingError
from magrounding.simulators.vectorize import vectorize
from tests.fuzzing import corrupted, junk
from tests.simulators.games import Scripted, ScriptedTeam

DRAWS = int(os.environ.get("MAGROUNDING_FUZZ_DRAWS", "300"))
ONE_IN = 200
"""Games in this process for each in a worker, which has to start for it."""
STEPS = 4
NAMES = ("ann", "bob")

LONE = {
    "floats": spaces.Box(np.array([-1, -np.inf, 0], np.float32), np.array([1, np.inf, 0.7], np.float32)),
    "image": spaces.Box(0, 255, (2, 2, 3), np.uint8),
    "narrow": spaces.Box(np.array([[3, -9]], np.int16), np.array([[5, 9]], np.int16)),
    "one of": spaces.Discrete(4, start=2),
    "several": spaces.MultiDiscrete([2, 5, 3], start=[0, 1, 0]),
    "bits": spaces.MultiBinary(3),
}
MASK = spaces.Box(0, 1, (3,), np.int8)
SPACES = [*LONE.values(), spaces.Dict(LONE), spaces.Dict({"image": LONE["image"], "action_mask": MASK})]


@st.composite
def right_answers(draw, observation, team):
    """What `reset` and then `step` answer, and rightly: the game ends with the last of them."""
    observation.seed(draw(st.integers(0, 99)))
    answers = []
    names = NAMES if team else ("agent_0",)
    for step in range(STEPS + 1):
        last = step == STEPS
        info = {"action_mask": np.array([1, 0, 1], np.int8), "score": 2.5, "illegal": step == 2, "document": 7}
        if last:
            info |= {"won": True}
        parts = [observation.sample(), 1.5, last, False, info]
        by_agent = [dict.fromkeys(names, part) for part in parts] if team else parts
        answer = tuple(by_agent) if step else (by_agent[0], by_agent[4])
        answers.append(([] if last else list(names), answer) if team else answer)
    return answers


@st.composite
def games(draw):
    """(space, whether it is for a team, answers), mostly with one thing wrong in one answer."""
    observation, team = draw(st.sampled_from(SPACES)), draw(st.booleans())
    answers = draw(right_answers(observation, team))
    at = draw(st.integers(0, STEPS))
    agents, answer = answers[at] if team else ((), answers[at])
    how = draw(st.sampled_from(["part", "part", "part", "part", "part", "all", "fewer", "more", "agents", "nothing"]))
    if how == "part":
        i = draw(st.integers(0, len(answer) - 1))
        wrong = draw(junk | corrupted(answer[i]))
        answer = (*answer[:i], wrong, *answer[i + 1 :])
    elif how == "all":
        answer = draw(junk)
    elif how == "fewer":
        answer = answer[:-1]
    elif how == "more":
        answer = (*answer, {})
    elif how == "agents":
        agents = draw(junk | st.lists(st.sampled_from([*NAMES, "eve"])))
    answers[at] = (agents, answer) if team else answer
    return observation, team, answers


def assert_in_spaces(vec, space, observation, rewards, info):
    """All that a vector env shows is in the space of the env, or is a mask, and is a finite reward."""
    parts = space.spaces if isinstance(space, spaces.Dict) else {"observation": space}
    for name, array in observation.items():
        part = parts.get(name, MASK)
        assert array.dtype == part.dtype
        for one in array.reshape(-1, *part.shape):
            assert part.contains(one), (name, one)
    assert np.isfinite(rewards).all()
    assert np.isfinite(info.score).all()
    assert np.isfinite(info.returns).all()
    assert {each.dtype for each in (info.done, info.won, info.alive, info.illegal)} == {np.dtype(bool)}


def play(vec, space):
    """A reset and some steps, the first error being a sentence; then what is left of the games is no trouble either."""
    actions = np.zeros((vec.num_envs, vec.num_agents), np.int64)
    try:
        observation, info = vec.reset(seed=0)
        assert_in_spaces(vec, space, observation, np.zeros(1), info)
        for _ in range(STEPS + 2):
            observation, rewards, _, _, info = vec.step(actions)
            assert_in_spaces(vec, space, observation, rewards, info)
            assert_in_spaces(vec, space, info.final_observation, rewards, info)
    except MagroundingError as error:
        with pytest.raises(CallOrderError):
            vec.step(actions)
        return str(error)
    return ""


def play_face(vec):
    """The same through the face of Gymnasium."""
    face = GymnasiumVectorEnv(vec)
    try:
        seen, _ = face.reset(seed=0)
        for _ in range(STEPS + 3):
            assert face.observation_space.contains(seen)
            seen, reward, *_ = face.step(np.zeros(vec.num_envs, np.int64))
            assert np.isfinite(reward).all()
    except MagroundingError as error:
        return str(error)
    return ""


@pytest.mark.timeout(300 + DRAWS)
@pytest.mark.parametrize(("workers", "draws"), [(0, DRAWS), (1, max(2, DRAWS // ONE_IN))])
def test_wrong_answers_end_in_one_sentence(workers, draws):
    said = collections.Counter()

    @settings(
        max_examples=draws, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(games(), st.integers(0, 3))
    def draw(game, face):
        space, team, answers = game
        make = (lambda: ScriptedTeam(space, answers)) if team else (lambda: Scripted(space, answers))
        vec = vectorize(make, 2, workers)
        sentence = play(vec, space) if team or face else play_face(vec)
        assert len(sentence.splitlines()) <= 1
        assert len(sentence) < 500
        assert not getattr(vec, "faults", None)  # what an env says is no reason to replace its worker
        vec.close()
        said["a sentence" if sentence else "a result"] += 1

    draw()
    print(f"{said.total():,} games with {workers} workers:", dict(said))
    assert said.total() >= draws
    assert draws < 100 or min(said["a sentence"], said["a result"]) > draws / 10
