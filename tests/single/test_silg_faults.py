"""Workers of NetHack and Touchdown that are killed: their games are lost, the others go on, and nothing is left."""

import os
import signal
import tempfile

import numpy as np
import pytest

import magrounding as mg


@pytest.mark.parametrize("world", ["nethack", "touchdown"])
def test_only_the_games_of_a_killed_worker_are_lost_and_no_folder_stays(world, tmp_path, monkeypatch):
    if world == "nethack":
        pytest.importorskip("nle", reason="extra nethack")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with mg.make_vec(world, 2, workers=2) as vec, mg.make_vec(world, 2, workers=0) as alone:
        vec.reset(seed=3)
        alone.reset(seed=3)
        os.kill(vec.pids[0], signal.SIGKILL)
        actions = alone.best_actions().argmax(-1)
        seen, _, _, _, info = vec.step(actions)
        expected = alone.step(actions)[0]
        assert info.fault.tolist() == [True, False]
        assert info.done.tolist()[0]
        for name, array in expected.items():
            np.testing.assert_array_equal(seen[name][1], array[1], name)
        again = vec.step(vec.best_actions().argmax(-1))[4]
        assert not again.fault.any()
        assert [fault.reason for fault in vec.faults] == ["killed by SIGKILL"]
    assert list(tmp_path.iterdir()) == []
