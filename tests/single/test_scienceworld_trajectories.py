"""Gold trajectories in a file: what is written is read, a kill costs a line, and no test variation is collected."""

from __future__ import annotations

import sys
from shutil import which

import pytest

from magrounding.errors import ConfigurationError
from magrounding.single.scienceworld import TASKS, ScienceWorld
from magrounding.single.scienceworld.options import variations
from magrounding.single.scienceworld.trajectories import Trajectory, learnable, read_trajectories
from tools.scienceworld import collect_gold
from tools.scienceworld.collect_gold import append_trajectory, mend, planned_items

PATH = Trajectory(
    "boil", "train", 3, "Boil it.", ("a", "look around", "c"), (True, False, True), 100, {"a": (0, 1, 2, 3)}
)


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "some" / "gold.jsonl"
    append_trajectory(file, PATH)
    append_trajectory(file, Trajectory("melt", "valid", 1, "é", (), (), -100, {}))
    first, second = read_trajectories(file)
    assert first == PATH
    assert (second.text, second.score) == ("é", -100)


def valid_at(trajectory, step):
    """What was valid before the command of a step."""
    return sorted(
        action
        for action, spans in trajectory.valid.items()
        if any(first <= step < behind for first, behind in zip(spans[::2], spans[1::2], strict=True))
    )


def test_a_line_that_a_kill_has_cut_off(tmp_path):
    file = tmp_path / "gold.jsonl"
    append_trajectory(file, PATH)
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:20])
    assert read_trajectories(file) == [PATH]
    mend(file)
    assert file.read_bytes() == whole
    mend(tmp_path / "none")


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"task": 3}'])
def test_files_that_are_none(tmp_path, line):
    file = tmp_path / "gold.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(ConfigurationError):
        read_trajectories(file)
    with pytest.raises(ConfigurationError):
        read_trajectories(tmp_path / "none")


def test_what_a_guide_learns_from(tmp_path):
    """Paths that reach 100; of validation variations only those that say what was valid."""
    file = tmp_path / "gold.jsonl"
    append_trajectory(file, PATH)
    with pytest.raises(ConfigurationError):
        learnable(file)
    for score, valid in ((100, {"a": (0, 1)}), (100, {}), (25, {"a": (0, 1)})):
        append_trajectory(file, Trajectory("boil", "valid", score, "", ("a",), (True,), score, valid))
    train, judged = learnable(file)
    assert train == [PATH]
    assert len(judged) == 1


def test_what_is_collected():
    """Tasks in turn, the same variations first whatever the number, never those of the test."""
    few, many = planned_items(list(TASKS), 2, 1, 1), planned_items(list(TASKS), 12, 10, 5)
    assert [item.task for item in few[:30]] == list(TASKS)
    assert {item.split for item in many} == {"train", "valid"}
    assert len(set(many)) == len(many)
    assert {item[:3] for item in few} <= {item[:3] for item in many}
    for item in many:
        assert item.variation in variations(item.task)[item.split]
    assert sum(item.listed for item in few) == 60
    assert sum(item.task == "identify-life-stages-2" and item.split == "valid" for item in many) == 2


@pytest.fixture
def simulator(tmp_path, monkeypatch):
    pytest.importorskip("scienceworld", reason="needs the extra `scienceworld`")
    if which("java") is None:
        pytest.skip("needs Java, which is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))


def collected(monkeypatch, out, *arguments):
    monkeypatch.setattr(sys, "argv", ["collect_gold", "--out", str(out), "--tasks", "T22", *arguments])
    return collect_gold.main()


class TestCollecting:
    def test_collects_goes_on_and_does_what_it_says(self, simulator, tmp_path, monkeypatch):
        out = tmp_path / "gold.jsonl"
        assert collected(monkeypatch, out, "--train", "1", "--valid", "0") == 0
        (first,) = read_trajectories(out)
        assert (first.task, first.split, first.score) == (TASKS[22], "train", 100)
        assert collected(monkeypatch, out, "--train", "2", "--listed", "1", "--valid", "1") == 0
        found = read_trajectories(out)
        assert found[0] == first
        assert [(each.split, bool(each.valid)) for each in found] == [
            ("train", True),
            ("valid", True),
            ("train", False),
        ]
        env = ScienceWorld(first.task).make_env()
        _, infos = env.reset(seed=0, options={"variation": first.variation})
        assert infos["agent_0"]["text"]["task"] == first.text
        for step, command in enumerate(first.commands):
            choices = infos["agent_0"]["text"]["choices"]
            assert valid_at(first, step) == sorted(set(choices))
            _, _, _, _, infos = env.step({"agent_0": choices.index(command)})
        assert infos["agent_0"]["score"] == 100

    def test_a_path_that_takes_too_long_is_left_out(self, simulator, tmp_path, monkeypatch, capsys):
        out = tmp_path / "gold.jsonl"
        assert collected(monkeypatch, out, "--train", "1", "--valid", "0", "--limit", "0.01") == 0
        assert not out.exists()
        assert "left out: lifespan-shortest-lived" in capsys.readouterr().out
