"""A server of a study that is killed, on a disk that is full now and then: nothing that was answered is lost."""

import os

import pytest

pytest.importorskip("aiohttp")

from benchmarks import study_kills


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_no_step_that_was_answered_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(study_kills, "FULL_EVERY", 10)
    monkeypatch.setattr(study_kills, "FULL_FOR", 4)
    counts = study_kills.campaign(tmp_path, participants=12, kills=3)
    assert (counts["lost steps"], counts["files of unknown kind"]) == (0, 0)
    assert (counts["participants in the files"], counts["servers"]) == (12, 4)
    assert 1 <= counts["kills"] <= 3  # on a busy machine a server may be done before its kill
    assert counts["second servers refused"] >= 3
    assert counts["not_stored"]
    assert counts["games"] == 2 * counts["participants thanked"] > 0
