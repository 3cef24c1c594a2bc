"""What an environment's entry says of evaluation, and what it need not say."""

from dataclasses import replace

import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.registry import ENVS
from tests.experiment.tiny_runs import tiny_settings


def test_an_entry_need_not_say_anything():
    plan = mg.EnvEntry("bare", "nowhere:Game").evaluation
    assert plan.sets_of("") == {"train": {}}
    assert plan.reading_set == "train"
    assert plan.played_as("train", depends_on_names=False) == "train"


@pytest.mark.parametrize(("splits", "read"), [(("train", "eval", "other"), "eval"), (("seen", "other"), "seen")])
def test_wrong_texts_are_read_on_the_held_out_set(splits, read):
    assert mg.EvaluationPlan(mg.by_split(splits)).reading_set == read
    assert mg.EvaluationPlan(mg.by_split(splits), reading_set="other").reading_set == "other"


@pytest.mark.parametrize("more", [{"reading_set": "eval"}, {"aliases": {"test": "trian"}}])
def test_plans_of_sets_that_are_not_there_are_refused(more):
    with pytest.raises(ConfigurationError):
        mg.EvaluationPlan(mg.by_split(("train", "test")), **more)


@pytest.mark.parametrize("sets", [{"final_sets": ("train", "eval")}, {"selection_set": "eval"}, {"every": 100}])
def test_runs_are_judged_on_sets_of_their_environment(sets, monkeypatch):
    monkeypatch.setitem(ENVS._entries, "ma_rtfm", replace(ENVS["ma_rtfm"], evaluation=mg.EvaluationPlan()))
    known = {"stages": ("s1",), "stage_sets": ("train",), "every": None}
    settings = tiny_settings(**known)
    assert settings.entry.evaluation.reading_set == "train"
    with pytest.raises(ConfigurationError):
        tiny_settings(**known | sets).resolve()
