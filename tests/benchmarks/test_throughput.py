"""The throughput command measures what it says, writes it down, and refuses nonsense in one sentence."""

import json
from dataclasses import replace

import pytest

from benchmarks import throughput
from magrounding.cli import bench
from magrounding.cli.bench import Arguments
from magrounding.cli.command import CommandLine
from magrounding.experiment.presets import find_preset

QUICK = Arguments(stage="s1", num_envs=8, seconds=0.05, threads=1, learner=None)


def test_a_rate_is_steps_by_time_and_the_warm_up_is_not_counted(monkeypatch):
    passed = [0.0]
    monkeypatch.setattr(bench.time, "perf_counter", lambda: passed[0])

    def play():
        passed[0] += 0.25 if passed[0] else 8.0  # the first call compiles, say
        return 10

    assert set(bench.rates_in_turn([play], seconds=10.0)) == {(40.0,)}


def test_everything_is_measured_and_written(tmp_path, capsys):
    results = bench.run(replace(QUICK, json=tmp_path / "speed.json"), CommandLine("magrounding bench", ()))
    assert json.loads((tmp_path / "speed.json").read_text()) == results
    assert results["options"] == {"stage": "s1", "agents": 2}
    for name in ("vector_env_steps_per_second", "single_env_steps_per_second"):
        told = results[name]
        assert 0 < told["slowest"] <= told["median"] <= told["fastest"]
    assert results["creation"]["create_seconds"] > 0
    assert 0 < results["creation"]["megabytes"] < 1000
    assert results["machine"]["cores"] >= 1
    assert "learner" not in results
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_two_ways_of_workers_are_measured_in_turn(tmp_path):
    pytest.importorskip("minigrid", reason="the extra `babyai` is absent: minigrid")
    options = replace(QUICK, env="babyai", stage=None, num_envs=2, workers=0, beside_workers=1)
    results = bench.run(options, CommandLine("magrounding bench", ()))
    own, beside = (results[f"vector_env{name}_steps_per_second"]["median"] for name in ("", "_beside"))
    ratio = results["vector_env_ratio"]
    assert results["beside_workers"] == 1
    assert own > 0
    assert beside > 0
    assert 0 < ratio["slowest"] <= ratio["median"] <= ratio["fastest"]


def test_the_learner_is_measured_with_the_settings_asked_for(monkeypatch):
    phase = find_preset("quick", "ma_rtfm").of_stage("s2")[-1]
    quick = find_preset("quick", "ma_rtfm", "conv")
    small = replace(quick, phases={"*": (replace(phase, num_envs=4, learner=replace(phase.learner, unroll=5)),)})
    monkeypatch.setattr("magrounding.experiment.presets.txt2pi.CONTROLS", small)
    options = replace(
        QUICK,
        learner="conv",
        preset="quick",
        agents=3,
        seconds=0.01,
        beside="epochs=1,bf16=true",
        paths=("env.size=9",),
        device="cpu",
    )
    own, other = bench.learner_speed(options)
    assert own["settings"] == {}
    assert other["settings"] == {"learner.bf16": True, "learner.epochs": 1}
    assert (own["agent"], own["preset"], own["num_envs"], own["unroll"]) == ("conv", "quick", 4, 5)
    assert own["samples"] % (4 * 5 * 3) == 0
    assert own["samples"] >= 2 * 4 * 5 * 3
    assert own["samples_per_second"] == pytest.approx(own["samples"] / own["seconds"])
    assert own["phase"] == phase.name == "reinforce"
    assert own["shares"].pop("teaching") == 0
    assert set(own["shares"]) == {"world", "acting", "learning"}
    assert all(share > 0 for share in own["shares"].values())
    assert sum(own["shares"].values()) <= 1.0
    assert (own["device"], other["device"]) == ("cpu", "cpu")
    acting = 3 / (3 * 4)  # copies a sample: one each way for the step of four games
    assert own["to_device_per_sample"] > other["to_device_per_sample"] > acting  # and the gradient steps', of epochs
    assert own["from_device_per_sample"] > other["from_device_per_sample"] > acting
    assert 0 < own["bytes_from_device_per_sample"] < own["bytes_to_device_per_sample"]


def test_networks_are_compared_too(monkeypatch):
    preset = find_preset("quick_rl", "messenger", "emma")
    phase = preset.of_stage("s1")[-1]
    small = replace(preset, phases={"*": (replace(phase, num_envs=4, learner=replace(phase.learner, unroll=5)),)})
    monkeypatch.setattr("magrounding.experiment.presets.messenger.QUICK_RL_EMMA", small)
    options = replace(QUICK, env="messenger", learner="emma", preset="quick_rl", seconds=0.01)
    narrow, other = bench.learner_speed(replace(options, beside="hidden=8,maps=32,epochs=1"))
    assert (narrow["num_envs"], narrow["unroll"]) == (4, 5)
    assert other["settings"] == {"network.hidden": 8, "network.maps": 32, "learner.epochs": 1}
    assert other["parameters"] < narrow["parameters"]


@pytest.mark.parametrize("arguments", [["--stage", "s9"], ["--beside", "chunk=none"]])
def test_nonsense_is_refused_before_anything_is_measured(arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["throughput", *arguments])
    assert throughput.main() == 2
    assert capsys.readouterr().out == ""
