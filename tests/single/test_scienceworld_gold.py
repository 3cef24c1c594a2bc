"""A variation of each of the 30 tasks of ScienceWorld is done through our door by following its gold path."""

from __future__ import annotations

from shutil import which

import pytest

from magrounding.single.scienceworld import TASKS, ScienceWorld
from magrounding.single.scienceworld.tasks import variations

VARIATIONS = {
    "boil": 9,
    "change-the-state-of-matter-of": 13,
    "freeze": 12,
    "melt": 2,
    "measure-melting-point-known-substance": 117,
    "measure-melting-point-unknown-substance": 82,
    "use-thermometer": 86,
    "power-component": 6,
    "power-component-renewable-vs-nonrenewable-energy": 1,
    "test-conductivity": 277,
    "test-conductivity-of-unknown-substances": 125,
    "find-animal": 69,
    "find-living-thing": 41,
    "find-non-living-thing": 90,
    "find-plant": 15,
    "grow-fruit": 28,
    "grow-plant": 51,
    "chemistry-mix": 10,
    "chemistry-mix-paint-secondary-color": 14,
    "chemistry-mix-paint-tertiary-color": 2,
    "lifespan-longest-lived": 58,
    "lifespan-longest-lived-then-shortest-lived": 6,
    "lifespan-shortest-lived": 19,
    "identify-life-stages-2": 3,
    "identify-life-stages-1": 3,
    "inclined-plane-determine-angle": 0,
    "inclined-plane-friction-named-surfaces": 264,
    "inclined-plane-friction-unnamed-surfaces": 39,
    "mendelian-genetics-known-plant": 1,
    "mendelian-genetics-unknown-plant": 35,
}
"""Task → a training variation. Where plants and animals grow, not every path of the simulator holds: what it finds
depends on when they do, and following it in the words of the valid actions takes another course there."""


def test_they_are_training_variations_of_all_tasks():
    assert tuple(VARIATIONS) == TASKS
    assert all(variation in variations(task)["train"] for task, variation in VARIATIONS.items())


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_gold_path_wins(task):
    pytest.importorskip("scienceworld", reason="needs the extra `scienceworld`")
    if which("java") is None:
        pytest.skip("needs Java, which is not installed")
    env = ScienceWorld(task, max_cycles=1000).make_env()
    _, infos = env.reset(seed=0, options={"variation": VARIATIONS[task]})
    total, terminated = infos["agent_0"]["score"], False  # some tasks begin with points, as for the room one is in
    while env.agents:
        labels = env.best_actions()[0]
        assert labels.sum() == 1, "the game is on its gold path"
        _, rewards, terminations, _, infos = env.step({"agent_0": int(labels.argmax())})
        total += rewards["agent_0"]
        terminated = terminations["agent_0"]
    assert terminated
    assert infos["agent_0"]["won"]
    assert infos["agent_0"]["score"] == total == 100
