"""BabyAI keeps the promises that our own, stricter check asks of every env."""

import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("minigrid", reason="needs the extra `babyai`")

from magrounding.envs.checks import check_parallel_env
from magrounding.single.babyai import BabyAI
from magrounding.single.babyai.env import BabyAIEnv


class WithState(BabyAIEnv):
    """The check compares states; BabyAI shows none, so here is all that minigrid's game is made of."""

    state_space = spaces.Box(0, 255, (22 * 22 * 3 + 8,), np.uint8)

    def state(self):
        game, state = self.game, np.zeros(self.state_space.shape, np.uint8)
        cells = game.grid.encode().ravel()
        state[: len(cells)] = cells
        held = game.carrying.encode() if game.carrying else (0, 0, 0)
        state[-8:] = [*game.agent_pos, game.agent_dir, *held, *divmod(game.step_count, 256)]
        return state


@pytest.mark.parametrize("fast_view", [True, False])
@pytest.mark.parametrize("level", ["GoToLocal", "SynthLoc"])
def test_it_keeps_our_own_promises(level, fast_view):
    check_parallel_env(lambda: WithState(BabyAI(level, max_cycles=70, fast_view=fast_view)), noop=None)
