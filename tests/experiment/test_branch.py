"""A branch of a finished run ends as if it had learnt everything itself, and begins with nothing else."""

from dataclasses import replace

import pytest
import torch

from benchmarks.tables.branch import beginning, branch
from magrounding.errors import CheckpointError
from magrounding.storage import read_json
from tests.experiment.tiny_runs import (
    IMITATION,
    LEARNER,
    killed_run,
    learn,
    phases_of,
    timeless,
    tiny_settings,
    weights_of,
)

BRIEF = {"phases": phases_of(90), "every": 60, "final_sets": ("train", "eval")}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "s1"
    learn(tiny_settings(stages=("s1",), **BRIEF), folder)
    return folder


def test_it_ends_as_a_run_of_all_stages(first, tmp_path):
    settings = tiny_settings(**BRIEF)
    learn(settings, tmp_path / "whole")
    branch(first, settings, tmp_path / "branch", "as typed")
    learn(settings, tmp_path / "branch", resume=True)
    assert torch.equal(weights_of(tmp_path / "branch"), weights_of(tmp_path / "whole"))
    assert not torch.equal(weights_of(tmp_path / "branch"), weights_of(first, "s1"))
    assert timeless(tmp_path / "branch") == timeless(tmp_path / "whole")
    config = read_json(tmp_path / "branch" / "config.json")
    assert (config["stages"], config["command"], config["branched_from"]) == (["s1", "s3"], "as typed", str(first))
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "branch"}
    assert read_json(first / "config.json")["stages"] == ["s1"]


def test_what_later_stages_do_is_no_part_of_a_beginning():
    settings = tiny_settings(**BRIEF)
    other = tiny_settings(**{**BRIEF, "phases": {**BRIEF["phases"], "s3": phases_of(7)["*"]}})
    assert beginning(settings, ("s1",)) == beginning(other, ("s1",))
    assert beginning(settings, settings.stages) != beginning(other, other.stages)
    renamed = tiny_settings(**BRIEF, about="In other words.")
    assert beginning(settings, settings.stages) == beginning(renamed, renamed.stages)
    elsewhere = replace(settings, workers=2)  # where there are more cores
    assert beginning(settings, settings.stages) == beginning(elsewhere, elsewhere.stages)


@pytest.mark.parametrize(
    "settings",
    [
        tiny_settings(stages=("s3", "s1"), **BRIEF),
        tiny_settings(seeds=(0, 1), **BRIEF),
        tiny_settings(**{**BRIEF, "phases": phases_of(90, IMITATION, LEARNER)}),
    ],
    ids=["stages", "seeds", "phases"],
)
def test_only_of_what_begins_the_same(first, tmp_path, settings):
    with pytest.raises(CheckpointError):
        branch(first, settings, tmp_path / "branch")
    assert not list(tmp_path.iterdir())


def test_only_of_what_is_finished_and_never_over_something_else(first, tmp_path):
    settings = tiny_settings(**BRIEF)
    killed_run(tiny_settings(stages=("s1",), **BRIEF), tmp_path / "killed", lambda position: position["steps"] >= 60)
    with pytest.raises(CheckpointError):
        branch(tmp_path / "killed", settings, tmp_path / "branch")
    (tmp_path / "there").mkdir()
    with pytest.raises(CheckpointError):
        branch(first, settings, tmp_path / "there")
